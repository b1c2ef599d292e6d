package lab

import (
	"context"
	"fmt"
	"slices"

	"plimsoll/internal/model"
)

// WalkStep is one run of a walk, before its mend was applied.
type WalkStep struct {
	// Answer and Root are what the verdict said; Root is "" when it named nothing.
	Answer  model.Answer      `json:"answer"`
	Root    string            `json:"root,omitempty"`
	Subject map[string]string `json:"subject,omitempty"`
	// Mend is what was done about it before the next step, "" at the end.
	Mend string `json:"mend,omitempty"`
	// RPS counts replies of any status, GoodRPS those below 400, per second.
	RPS     float64 `json:"rps"`
	GoodRPS float64 `json:"good_rps"`
	// GoodShare is good replies over requests (ratio).
	GoodShare float64 `json:"good_share"`
	// P50 and P99 are of what the user waited, failed requests included, in microseconds.
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	Dir string  `json:"dir"`
}

// Walk does what a person would do with the verdicts: run the case, apply the
// mend for what is named, run again, until nothing is named any more. Every
// step starts from fresh hosts. It returns the steps so far together with an
// error when a verdict names nothing that the case can mend; each is handed
// to onStep (may be nil) as it ends.
func (l *Lab) Walk(ctx context.Context, id string, opt Options, onStep func(WalkStep)) ([]WalkStep, error) {
	c, err := l.Case(id)
	if err != nil {
		return nil, err
	}
	unlock, err := l.begin()
	if err != nil {
		return nil, err
	}
	defer unlock()
	var steps []WalkStep
	done := map[string]bool{}
	for {
		res, err := l.runCase(ctx, c, opt)
		if err != nil {
			return steps, err
		}
		step, mend := nextStep(c, res.Report, done)
		steps = append(steps, step)
		if onStep != nil {
			onStep(step)
		}
		switch {
		case mend != nil:
			done[mend.ID] = true
			opt.Mends = append(slices.Clone(opt.Mends), mend.ID)
		case step.Answer == model.AnswerHealthy || step.Answer == model.AnswerCapacity:
			return steps, nil
		default:
			return steps, fmt.Errorf("case %s, step %d: the verdict %q names %q, for which no mend is left; see %s",
				c.ID, len(steps), step.Answer, step.Root, step.Dir)
		}
	}
}

// nextStep turns a report into a row of the table and the mend it asks for:
// that of the first finding at its root for which there is one.
func nextStep(c *Case, rep model.Report, done map[string]bool) (WalkStep, *Mend) {
	step := WalkStep{Answer: rep.Verdict.Answer, Dir: rep.Dir}
	if ld := rep.Load; ld != nil {
		step.RPS, step.GoodRPS, step.GoodShare = ld.RPS, ld.GoodRPS, ld.GoodShare
		step.P50, step.P99 = ld.Waited.P50, ld.Waited.P99
	}
	if rep.Verdict.Answer != model.AnswerCause {
		return step, nil
	}
	for i, f := range rep.Verdict.Root {
		if i == 0 {
			step.Root, step.Subject = f.Rule, f.Subject
		}
		if m := c.mendFor(f, done); m != nil {
			step.Root, step.Subject, step.Mend = f.Rule, f.Subject, m.ID
			return step, m
		}
	}
	return step, nil
}
