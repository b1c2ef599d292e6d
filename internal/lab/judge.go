package lab

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/model"
)

// judge compares a report with the truth that holds with these mends applied.
func judge(c *Case, mends []string, rep *model.Report) *Result {
	truth := c.truthAfter(mends, rep.Verdict.Answer)
	res := &Result{Case: c.ID, Truth: truth, Mends: mends, Answer: rep.Verdict.Answer, Dir: rep.Dir, Report: *rep}
	for _, f := range rep.Verdict.Root {
		res.Named = append(res.Named, f.Rule)
	}
	if rep.Load != nil {
		res.GoodRPS = rep.Load.GoodRPS
	}
	res.Wrong = truth.compare(rep.Verdict)
	res.Pass = len(res.Wrong) == 0
	return res
}

// truthAfter is the truth with some mends applied: of the case as it is, when
// there are none; that nothing is wrong any more, when all are. In between it
// is what the mends leave, in its order; where the case states no order, any
// of its causes. answer is the verdict's, of which several may be right at the end.
func (c *Case) truthAfter(mends []string, answer model.Answer) Truth {
	t := c.Truth
	switch {
	case len(mends) == 0 && len(t.Avoidable) > 0 && answer == model.AnswerCapacity:
		t = Truth{Answer: answer, Avoidable: t.Avoidable, Quiet: t.Quiet}
	case len(mends) == 0:
	case len(mends) == len(c.Mends) && t.Answer == model.AnswerCause:
		t = Truth{Answer: c.Truth.Mended[0], Quiet: append(c.Truth.roots(), c.Truth.Quiet...)}
		if slices.Contains(c.Truth.Mended, answer) {
			t.Answer = answer
		}
	case len(t.Then) > 0:
		left := slices.DeleteFunc(t.Limits(), func(n Next) bool { return c.mendedBy(n, mends) })
		if len(left) > 0 {
			t.Root, t.Subject, t.Then, t.Explains = left[0].Root, left[0].Subject, left[1:], nil
		}
	default:
		t.Subject = nil
	}
	return t
}

// Limits are all that bind, in their order.
func (t Truth) Limits() []Next {
	if len(t.Root) == 0 {
		return nil
	}
	return append([]Next{{Root: t.Root, Subject: t.Subject}}, t.Then...)
}

// mendFits tells whether a mend lifts a limit.
func mendFits(m Mend, n Next) bool {
	return slices.ContainsFunc(m.Rules, func(r string) bool { return slices.Contains(n.Root, r) }) && agree(m.Subject, n.Subject)
}

// agree tells whether two sets of labels can be of one subject.
func agree(a, b map[string]string) bool {
	for k, v := range a {
		if w, ok := b[k]; ok && v != w {
			return false
		}
	}
	return true
}

func (c *Case) mendedBy(n Next, mends []string) bool {
	return slices.ContainsFunc(c.Mends, func(m Mend) bool { return slices.Contains(mends, m.ID) && mendFits(m, n) })
}

// mendsUpTo are the mends that lift the first n limits.
func (c *Case) mendsUpTo(n int) []string {
	var ids []string
	for _, limit := range c.Truth.Limits()[:n] {
		for _, m := range c.Mends {
			if mendFits(m, limit) && !slices.Contains(ids, m.ID) {
				ids = append(ids, m.ID)
			}
		}
	}
	return ids
}

// fits tells whether a finding is this limit.
func (n Next) fits(f model.Finding) bool {
	return slices.Contains(n.Root, f.Rule) && hasLabels(f.Subject, n.Subject)
}

// compare returns a sentence for each way in which a verdict differs from the truth.
func (t Truth) compare(v model.Verdict) []string {
	var wrong []string
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if v.Answer != t.Answer {
		bad("the answer is %q; the truth is %q", v.Answer, t.Answer)
	}
	for i, f := range v.Root {
		switch {
		case t.Answer == model.AnswerCapacity && f.Kind == "capacity":
		case slices.ContainsFunc(t.Limits(), func(n Next) bool { return n.fits(f) }):
		case !slices.Contains(t.roots(), f.Rule) && (i == 0 || f.Answer == model.Confirmed):
			bad("%s (%s) is at the root, and is not the truth", f.Rule, f.Answer)
		case slices.Contains(t.Root, f.Rule) && i == 0:
			bad("%s is named for %s; the truth is %s", f.Rule, labels(f.Subject), labels(t.Subject))
		}
	}
	if v.Answer == model.AnswerCapacity && len(t.Avoidable) > 0 && !slices.Contains(t.Avoidable, firstSaving(v.Bill)) {
		bad("the first that can be spared is %q; the truth is %s", firstSaving(v.Bill), strings.Join(t.Avoidable, ", "))
	}
	wrong = append(wrong, t.order(v.Root)...)
	for _, f := range slices.Concat(v.Root, v.Findings) {
		if f.Answer == model.Confirmed && slices.Contains(t.Quiet, f.Rule) {
			bad("%s is confirmed and must stay quiet", f.Rule)
		}
	}
	wrong = append(wrong, t.beneath(v)...)
	slices.Sort(wrong)
	return slices.Compact(wrong)
}

// firstSaving is the id of what a bill says first that could be spared, "" of nothing.
func firstSaving(b *model.Bill) string {
	if b == nil || len(b.Entries) == 0 || len(b.Entries[0].Avoidable) == 0 {
		return ""
	}
	return b.Entries[0].Avoidable[0].ID
}

// order looks for the limits at the root, one after the other.
func (t Truth) order(root []model.Finding) []string {
	var wrong []string
	before := -1
	for _, n := range t.Limits() {
		at := slices.IndexFunc(root, n.fits)
		switch {
		case at < 0 && !n.Hidden:
			wrong = append(wrong, fmt.Sprintf("none of %s is at the root", strings.Join(n.Root, ", ")))
		case at >= 0 && at < before:
			wrong = append(wrong, fmt.Sprintf("%s is named before %s, which binds first", root[at].Rule, root[before].Rule))
		}
		before = max(before, at)
	}
	return wrong
}

// beneath looks for what the root has to explain: where it holds, something
// must be said to explain it.
func (t Truth) beneath(v model.Verdict) []string {
	var wrong []string
	for _, f := range v.Findings {
		holds := f.Answer == model.Confirmed || f.Answer == model.Suspected
		if holds && f.ExplainedBy == "" && slices.Contains(t.Explains, f.Rule) {
			wrong = append(wrong, fmt.Sprintf("%s stands by itself; the cause should explain it", f.Rule))
		}
	}
	return wrong
}

// labels writes a subject as {a=b, c=d}, by name.
func labels(m map[string]string) string {
	var parts []string
	for k, v := range m {
		parts = append(parts, k+"="+v)
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ", ") + "}"
}

// Result is what came of one run of a case.
type Result struct {
	Case  string   `json:"case"`
	Truth Truth    `json:"truth"`
	Mends []string `json:"mends,omitempty"` // applied before the run
	// Answer and Named are what the verdict said: its word, and the rules at its root.
	Answer model.Answer `json:"answer"`
	Named  []string     `json:"named"`
	Pass   bool         `json:"pass"`
	// Wrong are the sentences that say why Pass is false.
	Wrong   []string `json:"wrong,omitempty"`
	GoodRPS float64  `json:"good_rps"` // replies below 400 per second; 0 under watch
	// VerdictSeconds is from the last reading, taken a second after the last
	// request ended, to the end of the program that gave the verdict.
	VerdictSeconds *float64     `json:"verdict_seconds,omitempty"`
	Seconds        float64      `json:"seconds"` // from bringing up to taking down
	Dir            string       `json:"dir"`     // the run directory
	Report         model.Report `json:"report"`
}

// Outcome is how a verdict stands to the truth.
type Outcome string

const (
	// Right: the root that is the truth, no other, and all that belongs to it.
	Right Outcome = "right"
	// Vague: true, but not the whole truth.
	Vague Outcome = "vague"
	// Unclear: Plimsoll said that it does not know.
	Unclear Outcome = "unclear"
	// Wrong: something that is not so.
	Wrong Outcome = "wrong"
	// Failed: there was no verdict.
	Failed Outcome = "failed"
	// NotDriven: the case cannot be tried in this mode.
	NotDriven Outcome = "not driven"
)

// Outcomes are all of them, best first.
var Outcomes = []Outcome{Right, Vague, Unclear, Wrong, Failed, NotDriven}

// outcome sorts a verdict; wrong is what compare said of it.
func (t Truth) outcome(v model.Verdict, wrong []string) Outcome {
	switch {
	case len(wrong) == 0:
		return Right
	case v.Answer == model.AnswerUnclear:
		return Unclear
	case v.Answer != t.Answer || t.Answer != model.AnswerCause || len(v.Root) == 0:
		return Wrong
	}
	near := append(t.roots(), t.Vague...)
	for i, f := range v.Root {
		if (i == 0 || f.Answer == model.Confirmed) && !slices.Contains(near, f.Rule) {
			return Wrong
		}
	}
	for _, f := range slices.Concat(v.Root, v.Findings) {
		if f.Answer == model.Confirmed && slices.Contains(t.Quiet, f.Rule) {
			return Wrong
		}
	}
	return Vague
}
