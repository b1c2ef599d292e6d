package tune

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/model"
)

// Options say what tune may do.
type Options struct {
	// Apply makes the changes; without it the first is only shown.
	Apply bool
	// MaxRisk is low, medium or high.
	MaxRisk string
	// Only and Never name rules ("net.conntrack.table_full", or "net." and all
	// beneath it) and kinds of change ("sysctl").
	Only, Never []string
	// MaxSteps is how many changes are made at most.
	MaxSteps int
	// Goals are what is good enough; empty means as good as it gets.
	Goals []Goal
}

var riskOrder = []string{"low", "medium", "high"}

// Risks are the words for --max-risk.
func Risks() []string { return slices.Clone(riskOrder) }

// candidate is a fix of a finding. Its place is that among the rule's fixes: the finding may list fewer.
type candidate struct {
	root model.Finding
	fix  model.Fix
}

// key says what the finding is about: a rule and a subject.
func key(f model.Finding) string {
	parts := []string{f.Rule}
	for _, name := range slices.Sorted(maps.Keys(f.Subject)) {
		parts = append(parts, name+"="+f.Subject[name])
	}
	return strings.Join(parts, " ")
}

// candidates lists the fixes that may be tried for a verdict, the first root's
// first, and says of the others why not. spent are those that failed before, and
// why, by key of the finding and index.
func candidates(v model.Verdict, opt Options, spent map[string]map[int]string) (list []candidate, skipped []string) {
	for _, root := range v.Root {
		for _, fix := range root.Fix {
			why := spent[key(root)][fix.Index]
			if why == "" {
				why = forbidden(root, fix, opt)
			}
			if why != "" {
				skipped = append(skipped, fmt.Sprintf("%s: %s (%s)", root.Rule, fix.Title, why))
				continue
			}
			list = append(list, candidate{root, fix})
		}
	}
	return list, skipped
}

// forbidden says why a fix may not be made, "" if it may.
func forbidden(root model.Finding, fix model.Fix, opt Options) string {
	named := func(list []string) bool {
		return slices.ContainsFunc(list, func(s string) bool {
			if s == root.Rule || strings.HasSuffix(s, ".") && strings.HasPrefix(root.Rule, s) {
				return true
			}
			return slices.ContainsFunc(fix.Changes, func(c model.FixChange) bool { return c.Kind == s })
		})
	}
	switch {
	case len(fix.Changes) == 0 || slices.ContainsFunc(fix.Changes, func(c model.FixChange) bool { return c.Kind == model.ChangePerson }):
		return "a person's to do"
	case slices.ContainsFunc(fix.Changes, func(c model.FixChange) bool { return c.Value == "" }):
		return "this run does not tell the new value, or whose setting it is"
	case others(root, fix):
		return "it is nginx's, and this is another process"
	case fix.Undo != "automatic":
		return "it cannot be taken back by itself"
	case slices.Index(riskOrder, fix.Risk) > slices.Index(riskOrder, opt.MaxRisk):
		return "risk " + fix.Risk + " is beyond --max-risk " + opt.MaxRisk
	case fix.Restart == "service" || fix.Restart == "host":
		return "it needs a restart of the " + fix.Restart + ", which is a person's to do"
	case len(opt.Only) > 0 && !named(opt.Only):
		return "--only leaves it out"
	case named(opt.Never):
		return "--never leaves it out"
	}
	return ""
}

// evidence is what the run after a change says of it.
type evidence struct {
	accept model.Truth
	paid   model.ComparisonAnswer
	// again: the same rule names the same subject as a root.
	again bool
	// larger: it now asks for a larger value than the one that was set.
	larger bool
}

// judge says what becomes of a change, and why:
//
//	accept           the same root again   result               the change is
//	true             no, or asking for more  better             kept
//	any              yes                   better               on trial
//	true             –                     otherwise            on trial
//	false, unknown   yes, asking for more  not worse            kept, and raised again
//	false, unknown   yes                   otherwise            undone
//	unknown          no                    better               kept
//	false            no                    better               on trial
//	unknown          no                    otherwise            on trial
//	false            no                    otherwise            undone
func judge(e evidence) (model.TuneOutcome, string) {
	switch {
	case e.paid == model.Better && e.again && !e.larger:
		return model.OnTrial, "it paid, but the same cause is named as before; it is judged at the end by leaving it out"
	case e.accept == model.True && e.paid == model.Better:
		return model.Kept, "it did what it should, and it paid"
	case e.accept == model.True:
		return model.OnTrial, "it did what it should; " + notPaid(e.paid)
	case e.again && e.larger && e.paid != model.Worse:
		return model.Kept, "it still binds; raised again in the next step"
	case e.again:
		return model.Undone, "the same cause binds as before, so it was taken back"
	case e.paid == model.Better && e.accept == model.Unknown:
		return model.Kept, "it paid (whether it did all it should was not to be seen)"
	case e.paid == model.Better:
		return model.OnTrial, "it paid, but did not do all it should; it is judged at the end by leaving it out"
	case e.accept == model.Unknown:
		return model.OnTrial, "whether it did what it should was not to be seen; " + notPaid(e.paid)
	}
	return model.Undone, "it did not do what it should, so it was taken back"
}

// missed says whether a change that was left out at the end is missed, and so
// stays: by the result without it, by whether the same cause binds again then, and
// by whether the user's own load tool failed with it and does not without it.
func missed(without model.ComparisonAnswer, again, harmed bool) (bool, string) {
	switch {
	case harmed:
		return false, "the command failed with it and does not fail without it, so it was taken back"
	case again:
		return true, "without it the same cause binds again, so it stays"
	case without == model.Worse:
		return true, "without it the result is worse, so it stays"
	case without == model.NotKnown:
		return false, "nothing shows that it is needed, so it was taken back"
	}
	return false, "without it the result is no worse: it brought nothing, and was taken back"
}

// others says whether a fix is a setting of nginx, and the finding about some
// other process: a rule has fixes for whichever program it is.
func others(root model.Finding, fix model.Fix) bool {
	name := root.Subject["groupname"]
	return name != "" && name != "nginx" && slices.ContainsFunc(fix.Changes, func(c model.FixChange) bool { return c.Kind == model.ChangeNginx })
}

func notPaid(a model.ComparisonAnswer) string {
	switch a {
	case model.Worse:
		return "the result is worse so far, which the next limit may be the reason of: on trial"
	case model.NotKnown:
		return "what it brought is not known; it is judged at the end by leaving it out"
	}
	return "it brought nothing so far, which the next limit may be the reason of: on trial"
}

// paid says whether B is better than A as a whole. Where the share of good
// replies moved, waits for what is another mixture of replies say nothing. Else rate
// and wait both count, a change of the wait half as much as the same change of the
// rate. Quantiles do not: they are of requests, and those who got in make most of these. Where the noise
// could hide twice the rate, as of few seconds on a slow machine, it is not known that nothing was brought.
func paid(c model.Comparison) model.ComparisonAnswer {
	by := map[string]float64{}
	known, hidden := false, false
	for _, d := range c.Differences {
		by[d.Name] = effect(d)
		known = known || d.Answer != model.NotKnown
		hidden = hidden || d.Name == "good_rps" && d.Answer == model.NoDifference && d.High >= 2
	}
	sum := by["good_rps"] + by["good_share"]
	if by["good_share"] == 0 {
		sum = by["good_rps"] + by["wait"]/2
	}
	switch {
	case sum > 0:
		return model.Better
	case sum < 0:
		return model.Worse
	case !known || hidden:
		return model.NotKnown
	}
	return model.NoDifference
}

// effect is the logarithm of how many times better B is; 0 within the noise.
func effect(d model.Difference) float64 {
	most := math.Log(1000) // from nothing to something
	var size float64
	switch d.Answer {
	case model.Better:
		size = 1
	case model.Worse:
		size = -1
	default:
		return 0
	}
	if d.Ratio > 0 {
		return size * min(math.Abs(math.Log(d.Ratio)), most)
	}
	return size * most
}

// asksForMore says whether the verdict names the same root again, and whether
// the same fix now asks for more than what was set.
func asksForMore(v model.Verdict, c candidate) (again, larger bool) {
	for _, root := range v.Root {
		if key(root) != key(c.root) {
			continue
		}
		at := slices.IndexFunc(root.Fix, func(f model.Fix) bool { return f.Index == c.fix.Index })
		if at < 0 {
			return true, false
		}
		for i, x := range root.Fix[at].Changes {
			if i < len(c.fix.Changes) && greater(x.Kind, x.Value, c.fix.Changes[i].Value) {
				larger = true
			}
		}
		return true, larger
	}
	return false, false
}

// greater compares numbers; of a quota the first, which is its CPU time. Of other settings of
// several numbers (tcp_rmem, a range of ports) the first one is not what is asked for.
func greater(kind, a, b string) bool {
	if kind == model.ChangeQuota {
		a, _, _ = strings.Cut(a, " ")
		b, _, _ = strings.Cut(b, " ")
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x > y
}
