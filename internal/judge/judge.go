// Package judge makes the report of a run: the verdict by the rules in force, where
// the mean request's time went, what the load averages are made of, and what the run
// says of itself.
package judge

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll/internal/breakdown"
	"plimsoll/internal/diagnose"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/report"
	"plimsoll/internal/ruleset"
)

// servingOwner finds who answers on each host, for commands about "the service".
var servingOwner = query.Fixed(`max by (host, owner) (max_over_time(plimsoll_tcp_listen_accepted[$window])) > 0`)

// Run makes the report of a run, by these rules. Of a run that lies in no directory
// (a server's series) it has neither load nor breakdown.
func Run(rec *record.Run, set ruleset.Rules) (model.Report, error) {
	q, err := query.Of(rec)
	if err != nil {
		return model.Report{}, err
	}
	return Asked(q, rec, set)
}

// Asked is Run where the run is asked for more than the report: what the rules asked of it is known then.
func Asked(q *query.Run, rec *record.Run, set ruleset.Rules) (model.Report, error) {
	meta := rec.Meta()
	r := model.Report{
		Plan: meta.Plan, Cost: meta.Cost, Collectors: meta.Collectors, Hosts: meta.Hosts, Windows: meta.Windows, Notes: meta.Notes, Tracing: meta.Tracing,
		ToolSummaries: meta.ToolSummaries,
		RulesHash:     set.Hash, Site: SiteOf(set), Version: meta.Version, Closed: meta.Closed,
	}
	r.Verdict = diagnose.Diagnose(q, set, report.ByHand{Plan: meta.Plan, Hosts: meta.Hosts, Owners: owners(q)}.Command)
	r.RequestRate = diagnose.RequestRate(q, set)
	r.Verdict.LoadAverage = breakdown.LoadAverages(q)
	if rec.Dir() == "" {
		return r, nil
	}
	r.Dir = filepath.Clean(rec.Dir())
	var err error
	if r.Load, err = rec.Load(); err != nil {
		return r, err
	}
	if r.Breakdown, err = breakdown.Of(rec); err != nil {
		return r, err
	}
	stacks, missing := stacksOf(rec, cpuStacks)
	whole, _ := stacksOf(rec, wholeStacks) // without them, scripts are named less well
	if r.Program, err = programOf(rec, q, r.Verdict, stacks, whole); err != nil {
		return r, err
	}
	r.Verdict.Bill, err = billOf(q, set, stacks, whole, missing)
	withBill(&r.Verdict, len(whole) > 0)
	withLost(&r.Verdict, r.Load)
	return r, err
}

// withLost has the sentence begin with the workers that were lost: what was found is about less than was asked for.
func withLost(v *model.Verdict, l *model.Load) {
	if l == nil {
		return
	}
	var gone []string
	for _, w := range l.Workers {
		if w.Gone != "" {
			gone = append(gone, w.Name)
		}
	}
	if len(gone) > 0 {
		v.Sentence = fmt.Sprintf("The load lost %d of its %d workers (%s), and their share with them. %s", len(gone), len(l.Workers), strings.Join(gone, ", "), v.Sentence)
	}
}

// SoFar is the verdict about what was recorded of a run that still lasts. It takes up the
// caller's thread alone.
func SoFar(rec *record.Run, set ruleset.Rules) (model.Verdict, error) {
	q, err := query.Of(rec)
	if err != nil {
		return model.Verdict{}, err
	}
	meta := rec.Meta()
	return diagnose.Brief(q, set, report.ByHand{Plan: meta.Plan, Hosts: meta.Hosts}.Command), nil
}

// owners are the process groups that answer, by host; of several the busiest listener's.
func owners(q *query.Run) map[string]string {
	list := map[string]string{}
	answers := q.Ask(servingOwner()).Samples
	for _, s := range answers {
		host := s.Labels["host"]
		most, _ := query.Largest(answers, map[string]string{"host": host})
		list[host] = most.Labels["owner"]
	}
	return list
}

// SiteOf is what a site changed about the rules, nil for nothing.
func SiteOf(set ruleset.Rules) *model.Site {
	if set.Site.Empty() {
		return nil
	}
	return &set.Site
}

// RulesFor returns the rules for a run that was made: with the thresholds that were
// in force then, unless own (nil for none) are to be. folder is where rules of a site
// in the set are from, "" for the built-in rules alone. notes say what else was in force.
func RulesFor(meta model.Run, set ruleset.Rules, folder string, own []model.Threshold) (_ ruleset.Rules, notes []string, err error) {
	var then model.Site
	if meta.Site != nil {
		then = *meta.Site
	}
	list := then.Thresholds
	if own != nil {
		list = own
	}
	rules := slices.Concat(then.Added, then.Replaced)
	if folder == "" && len(rules) > 0 {
		notes = append(notes, "the run was made with rules of a site's own ("+strings.Join(rules, ", ")+"); without --rules DIR it is judged without them")
		list = slices.DeleteFunc(slices.Clone(list), func(t model.Threshold) bool { return slices.Contains(rules, t.Rule) })
	}
	if folder != "" && then.RulesHash != "" && then.RulesHash != set.Site.RulesHash {
		notes = append(notes, "the rules, with those of "+folder+", are not those of the run's first verdict")
	}
	set, err = set.WithThresholds(list)
	return set, notes, err
}

// Keep leaves a report in its run's directory.
func Keep(r model.Report) error {
	var doc bytes.Buffer
	if err := report.JSON(&doc, r); err != nil {
		return fmt.Errorf("write the verdict of %s: %w", r.Dir, err)
	}
	return writer.Verdict(r.Dir, doc.Bytes())
}
