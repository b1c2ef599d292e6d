package lab

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/model"
)

// judge compares a report with the truth: of the case as it is, when no mend
// was applied; that nothing is wrong any more, when all were. With some of
// them applied the truth is any of the case's causes.
func judge(c *Case, mends []string, rep *model.Report) *Result {
	res := &Result{Case: c.ID, Truth: c.Truth, Mends: mends, Answer: rep.Verdict.Answer, Dir: rep.Dir, Report: *rep}
	for _, f := range rep.Verdict.Root {
		res.Named = append(res.Named, f.Rule)
	}
	if rep.Load != nil {
		res.GoodRPS = rep.Load.GoodRPS
	}
	truth := c.Truth
	switch {
	case len(mends) > 0 && len(mends) == len(c.Mends):
		truth = Truth{Answer: c.Truth.Mended[0], Quiet: append(slices.Clone(c.Truth.Root), c.Truth.Quiet...)}
		if slices.Contains(c.Truth.Mended, rep.Verdict.Answer) {
			truth.Answer = rep.Verdict.Answer
		}
		res.Truth = truth
	case len(mends) > 0:
		truth.Subject = nil // whichever limit binds next
	}
	res.Wrong = truth.compare(rep.Verdict)
	res.Pass = len(res.Wrong) == 0
	return res
}

// compare returns a sentence for each way in which a verdict differs from the truth.
func (t Truth) compare(v model.Verdict) []string {
	var wrong []string
	if v.Answer != t.Answer {
		wrong = append(wrong, fmt.Sprintf("the answer is %q; the truth is %q", v.Answer, t.Answer))
	}
	matched := false
	for i, f := range v.Root {
		switch {
		case slices.Contains(t.Root, f.Rule) && hasLabels(f.Subject, t.Subject):
			matched = true
		case slices.Contains(t.Root, f.Rule) && i == 0:
			wrong = append(wrong, fmt.Sprintf("%s is named for %s; the truth is %s", f.Rule, labels(f.Subject), labels(t.Subject)))
		case slices.Contains(t.Root, f.Rule):
			// The right rule for a second subject takes nothing away.
		case t.Answer == model.AnswerCapacity && f.Kind == "capacity":
			matched = true
		case i == 0 || f.Answer == model.Confirmed:
			wrong = append(wrong, fmt.Sprintf("%s (%s) is at the root, and is not the truth", f.Rule, f.Answer))
		}
	}
	if len(t.Root) > 0 && !matched {
		wrong = append(wrong, fmt.Sprintf("none of %s is at the root", strings.Join(t.Root, ", ")))
	}
	for _, f := range slices.Concat(v.Root, v.Findings) {
		if f.Answer == model.Confirmed && slices.Contains(t.Quiet, f.Rule) {
			wrong = append(wrong, fmt.Sprintf("%s is confirmed and must stay quiet", f.Rule))
		}
	}
	slices.Sort(wrong)
	return slices.Compact(wrong)
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
