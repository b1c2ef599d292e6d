package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// nearWhat is what a clue's value is held against, for the end of its sentence, where that is near; "" elsewhere, where it
// would only be one more number, and of one that only supports, which has no say.
func nearWhat(c model.Clue) string {
	if c.Role == model.Supports || c.Value == nil || strings.HasSuffix(c.Is, " 0") || strings.HasPrefix(c.Is, "==") || !layout.Near(c.Is, *c.Value) { // of any at all, and of yes or no, there is no more to say
		return ""
	}
	return threshold(c)
}

// threshold is what a clue's value is held against.
func threshold(c model.Clue) string {
	return " (threshold: " + layout.Limit(c.Is, c.Value, c.Say) + ")"
}

// manyTimes is from when on a wait looks bad beside another: one that nobody takes for chance.
const manyTimes = 10

// looksToUsers says what looks bad to users, or that nothing does.
func looksToUsers(r model.Report) string {
	l := r.Load
	if l == nil {
		if _, seen := besides(r.Verdict); len(seen) > 0 {
			return felt(seen[0])
		}
		return cmp.Or(notServed(r.Verdict), "nothing was seen that looks bad to them")
	}
	if l.GoodShare < 1 {
		return layout.Share(1-l.GoodShare) + " of what was tried failed: that is what looks bad"
	}
	q := l.Latency
	slow := fmt.Sprintf("%s (p99); half of all less than %s", layout.Micros(q.P99), layout.Micros(q.P50))
	switch {
	case q.Count == 0:
		return ""
	case q.P50 > 0 && q.P99 >= manyTimes*q.P50:
		return "no request failed; what looks bad is that one in 100 waited longer than " + slow
	case l.Calm.Count > 0 && l.Calm.P50 > 0 && q.P50 >= manyTimes*l.Calm.P50:
		return fmt.Sprintf("no request failed; what looks bad is that half waited longer than %s, and alone than %s", layout.Micros(q.P50), layout.Micros(l.Calm.P50))
	}
	return "nothing looks bad: no request failed, and 99 of 100 waited less than " + layout.Micros(q.P99)
}

// felt says what users felt of a symptom, and from when on it is one.
func felt(f model.Finding) string {
	c := decider(f, model.True)
	if c == nil || c.Value == nil || c.Role == model.Supports || strings.HasSuffix(c.Is, " 0") {
		return says(f, model.True)
	}
	return c.Say + threshold(*c)
}

// notServed says by what it is not known that all is well, of the users' requests that were seen or of the programs, "" where
// neither was judged.
func notServed(v model.Verdict) string {
	for _, f := range slices.Concat(v.Findings, v.RuledOut) {
		if f.Kind != "healthy" || hadNothing(f) {
			continue
		}
		if c := decider(f, model.False); c != nil && (c.Role == model.Needs || c.Role == model.Decides) {
			return "not proven to be well: " + c.Say + threshold(*c)
		}
	}
	return ""
}

// The clues that say where the users are, which is for the next step, and who served them, which stands in the sentence: no reasons.
const (
	listenerClue = "listener"
	serverClue   = "server"
)

// mostTelling are the clues that hold, each sentence once, what says the most first. One that only supports stands before what was
// needed where it names somebody or something that is not told yet: that says more to whoever has to mend it than a further number.
func mostTelling(clues []model.Clue, told string) []model.Clue {
	best := slices.DeleteFunc(slices.Clone(clues), func(c model.Clue) bool {
		return c.Truth != model.True || c.Say == "" || c.ID == listenerClue || c.ID == serverClue
	})
	slices.SortStableFunc(best, func(a, b model.Clue) int { return weight(b, told) - weight(a, told) })
	if sign := signOf(best); sign != nil { // what shows that a fix helped has to stand there before
		first := *sign
		best = slices.DeleteFunc(best, func(c model.Clue) bool { return c.ID == first.ID })
		best = slices.Insert(best, 0, first)
	}
	said := map[string]bool{} // two clues may hold one value against two thresholds
	return slices.DeleteFunc(best, func(c model.Clue) bool {
		again := said[c.Say]
		said[c.Say] = true
		return again
	})
}

// signOf is the clue by whose value one sees that a cause is gone: what decides, else what proves, else what is needed first; nil where each
// that holds is the same without the cause.
func signOf(clues []model.Clue) *model.Clue {
	for _, role := range []model.Role{model.Decides, model.Proves, model.Needs} {
		is := func(c model.Clue) bool {
			return c.Role == role && c.Truth == model.True && c.Say != "" && !c.Assumed && !c.Stays && c.ID != listenerClue && c.ID != serverClue
		}
		at := slices.IndexFunc(clues, func(c model.Clue) bool { return is(c) && c.Value != nil && layout.Said(*c.Value, c.Say) != "" })
		if at < 0 { // without a number it is there or not
			at = slices.IndexFunc(clues, is)
		}
		if at >= 0 {
			return &clues[at]
		}
	}
	return nil
}

// namesMore says whether a clue names what a text does not.
func namesMore(c model.Clue, told string) bool {
	for _, name := range c.Names {
		if !strings.Contains(told, name) {
			return true
		}
	}
	return false
}

// weight orders clues by how much they say.
func weight(c model.Clue, told string) int {
	switch {
	case c.Assumed:
		return -1
	case c.Stays:
		return 1
	case c.Role == model.Decides:
		return 4
	case c.Role == model.Proves:
		return 3
	case c.Role == model.Supports && namesMore(c, told):
		return 2
	case c.Role == model.Needs:
		return 1
	}
	return 0
}

// nothingOf says whether there was nothing at all of what would have decided a finding.
func nothingOf(f model.Finding) bool {
	return !slices.ContainsFunc(f.Clues, func(c model.Clue) bool { return c.Role == model.Decides && c.Value != nil })
}

// rulesOf are the causes and limits of a list, but for those that are told of elsewhere.
func rulesOf(list []model.Finding, elsewhere map[string]bool) map[string]bool {
	rules := map[string]bool{}
	for _, f := range list {
		if (f.Kind == "cause" || f.Kind == "capacity") && !elsewhere[f.Rule] {
			rules[f.Rule] = true
		}
	}
	return rules
}
