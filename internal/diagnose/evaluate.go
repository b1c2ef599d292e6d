package diagnose

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
)

// run is one recorded run, as the rules see it.
type run struct {
	*query.Run
	eyes
	command CommandLine
	brief   bool
}

func newRun(q *query.Run, command CommandLine) *run {
	meta := q.Meta()
	names := map[string]bool{}
	for _, h := range meta.Hosts {
		names[h.Name] = true
	}
	for h := range meta.Status {
		names[h] = true
	}
	return &run{
		Run:     q,
		command: command,
		eyes:    eyes{hosts: slices.Sorted(maps.Keys(names)), status: meta.Status, partial: partial(meta)},
	}
}

// partial says whether series are somebody else's. Of a host that an exporter of ours watches the machine
// is known, and what that exporter does not look for is not there, as in a run.
func partial(meta model.Run) bool {
	return meta.Plan.Remote != nil && (len(meta.Hosts) == 0 || slices.ContainsFunc(meta.Hosts, func(h model.Host) bool { return h.Machine == "" }))
}

// rule evaluates one rule for every subject it applies to. The error tells of
// the rule's own faults; the findings are good all the same, with "unknown"
// where a fault stood in the way.
func (r *run) rule(rule *ruleset.Rule) ([]model.Finding, error) {
	subjects, missing, err := r.subjects(rule)
	if missing != "" {
		return []model.Finding{r.unasked(rule, nil, model.Unknown, missing)}, err
	}
	var out []model.Finding
	served := map[string]bool{} // hosts that gave a subject
	for _, subject := range subjects {
		f, ferr := r.finding(rule, subject)
		err = errors.Join(err, ferr)
		out = append(out, f)
		served[subject["host"]] = true
	}
	return append(out, r.hostsWithout(rule, served)...), err
}

// subjects asks what the rule applies to: the results of "applies", cut down
// to the subject's labels, each once, sorted.
func (r *run) subjects(rule *ruleset.Rule) (list []map[string]string, missing string, err error) {
	res := r.Ask(rule.AppliesExpr)
	if res.Missing != "" {
		return nil, res.Missing, nil
	}
	if res.Failed != nil {
		return nil, "the rule's expression failed: " + res.Failed.Error(), fmt.Errorf("applies: %w", res.Failed)
	}
	seen := map[string]bool{}
	for _, s := range res.Samples {
		subject := map[string]string{}
		for _, name := range rule.Subject {
			v, ok := s.Labels[name]
			if !ok {
				err = fmt.Errorf("applies: a result has no label %s, which is one of the subject's", name)
				return nil, "the rule's expression failed: " + err.Error(), err
			}
			subject[name] = v
		}
		if k := subjectKey(subject); !seen[k] {
			seen[k] = true
			list = append(list, subject)
		}
	}
	sort.Slice(list, func(i, j int) bool { return subjectKey(list[i]) < subjectKey(list[j]) })
	return list, "", nil
}

// subjectKey writes a subject so that equal ones are equal and all can be sorted.
func subjectKey(subject map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(subject)) {
		fmt.Fprintf(&b, "%s=%q,", name, subject[name])
	}
	return b.String()
}

// hostsWithout answers for hosts that gave no subject: unknown where a signal
// of "applies" was looked for and not read, ruled out where all were read.
func (r *run) hostsWithout(rule *ruleset.Rule, served map[string]bool) []model.Finding {
	var out []model.Finding
	for _, host := range r.hosts {
		if served[host] {
			continue
		}
		tried, missing := false, ""
		for _, sel := range rule.AppliesExpr.Selectors() {
			if sel.Excludes { // it can have hidden no subject
				continue
			}
			st, ok := r.look(host, sel.Name)
			tried = tried || ok
			if ok && st.State != model.Read && missing == "" {
				missing = sel.Name + ": " + why(st)
			}
		}
		subject := map[string]string{"host": host}
		switch {
		case missing != "":
			out = append(out, r.unasked(rule, subject, model.Unknown, missing))
		case tried:
			out = append(out, r.unasked(rule, subject, model.False, ""))
		}
	}
	return out
}

// unasked is the finding of a rule that has no subject: unknown, or ruled out
// since there is nothing of the kind on the host.
func (r *run) unasked(rule *ruleset.Rule, subject map[string]string, t model.Truth, missing string) model.Finding {
	if subject == nil {
		subject = map[string]string{}
	}
	c := model.Clue{ID: "applies", Role: model.Needs, Truth: t, Is: "some", Missing: missing}
	answer := model.UnknownState
	if t == model.False {
		answer = model.RuledOut
		c.Say = "there is nothing here that the rule could apply to"
	}
	return model.Finding{
		Rule: rule.ID, Kind: rule.Kind, Title: rule.Title, Subject: subject,
		Answer: answer, Clues: []model.Clue{c},
	}
}

// finding evaluates a rule for one subject.
func (r *run) finding(rule *ruleset.Rule, subject map[string]string) (model.Finding, error) {
	f := model.Finding{
		Rule: rule.ID, Kind: rule.Kind, Title: rule.Title, Subject: subject,
		Blind: rule.Blind,
	}
	clues, err := r.clues(rule, subject, "")
	f.Clues, f.Answer = clues.list, answer(clues.list)
	seen, perr := r.clues(rule, subject, ruleset.Packets)
	errs := []error{err, perr}
	labels := clues.labels
	switch told := answer(seen.list); {
	case f.Answer != model.UnknownState && !(f.Answer == model.RuledOut && blank(clues.list)):
		f.Clues = append(f.Clues, supporting(seen.list)...)
	case len(seen.list) > 0 && told != model.UnknownState:
		f.Clues, f.Answer, labels = seen.list, told, seen.labels
	}
	switch f.Answer {
	case model.RuledOut:
		putFirst(f.Clues, model.False)
	case model.UnknownState:
		putFirst(f.Clues, model.Unknown)
	default:
		f.Story = strings.TrimSpace(rule.Story)
		if f.Answer != model.Near {
			r.countedBy(rule, f.Clues)
		}
		if f.Answer == model.Suspected {
			f.Unlike = lookalikes(rule)
		}
		errs = append(errs, r.impactAndFix(rule, &f, labels))
	}
	return f, errors.Join(errs...)
}

// lookalikes are the causes that a rule is told from.
func lookalikes(rule *ruleset.Rule) (list []model.Lookalike) {
	for _, u := range rule.Unlike {
		if u.Title != "" {
			list = append(list, model.Lookalike{Rule: u.Finding, Title: u.Title})
		}
	}
	return list
}

// clues are a rule's answers to its clues, and the labels of what gave them.
type clues struct {
	list   []model.Clue
	labels map[string]string
}

// clues evaluates the clues that come from there (packets, or "" for all others).
func (r *run) clues(rule *ruleset.Rule, subject map[string]string, from string) (clues, error) {
	out := clues{labels: map[string]string{}}
	var errs []error
	for i := range rule.Clues {
		if rule.Clues[i].From != from {
			continue
		}
		c, witness, err := r.clue(&rule.Clues[i], subject)
		if err != nil {
			errs = append(errs, fmt.Errorf("clue %s: %w", c.ID, err))
		}
		for name, v := range witness {
			if _, taken := out.labels[name]; !taken {
				out.labels[name] = v
			}
		}
		out.list = append(out.list, c)
		if r.brief && c.Role == model.Needs && c.Truth == model.False && !rule.AsksPackets() {
			break
		}
	}
	return out, errors.Join(errs...)
}

// blank says that nothing was measured of the subject by what tells: it is not to be seen there.
func blank(list []model.Clue) bool {
	return !slices.ContainsFunc(list, func(c model.Clue) bool { return c.Role != model.Supports && c.Value != nil })
}

// supporting are the clues that are true, as ones that only add a sentence.
func supporting(list []model.Clue) []model.Clue {
	var out []model.Clue
	for _, c := range list {
		if c.Truth == model.True {
			c.Role = model.Supports
			out = append(out, c)
		}
	}
	return out
}

// putFirst moves the clue that gave the answer to the front: the first needs
// (else decides) with that truth.
func putFirst(clues []model.Clue, t model.Truth) {
	for _, role := range []model.Role{model.Needs, model.Decides} {
		for i, c := range clues {
			if c.Role == role && c.Truth == t {
				copy(clues[1:i+1], clues[:i])
				clues[0] = c
				return
			}
		}
	}
}

// impactAndFix adds what only a finding that may hold has.
func (r *run) impactAndFix(rule *ruleset.Rule, f *model.Finding, labels map[string]string) error {
	var errs []error
	if rule.ImpactExpr != nil {
		res := r.Ask(rule.ImpactExpr)
		if res.Failed != nil {
			errs = append(errs, fmt.Errorf("impact: %w", res.Failed))
		}
		if s, ok := query.Largest(res.Samples, f.Subject); ok {
			impact := min(max(s.Value, 0), 1)
			f.Impact, f.ImpactOf = &impact, impactOf(rule.ImpactOf, s.Labels)
		}
	}
	for i := range rule.Fix {
		fix, err := r.fix(&rule.Fix[i], f.Subject, labels)
		if err != nil {
			errs = append(errs, fmt.Errorf("fix %q: %w", rule.Fix[i].Title, err))
		}
		if i < len(rule.Fix)-1 && fix.First == nil && rule.Fix[i].First != nil && rule.Fix[i].First.ToExpr != nil {
			continue // it is for another subject than this: the next one is for all
		}
		fix.Index = i
		f.Fix = append(f.Fix, fix)
	}
	return errors.Join(errs...)
}

// impactOf is what an impact is a share of: what its result says itself in the label impact_of, where a rule has several, else what
// the rule says.
func impactOf(rule string, labels map[string]string) string {
	switch kind := labels["impact_of"]; kind {
	case "":
		return rule
	case "time":
		return ""
	default:
		return kind
	}
}
