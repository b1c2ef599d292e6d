// Package diagnose turns a recorded run and a rule set into a verdict. It is a
// pure function: the same run and rules give the same bytes, on any machine.
// It only reads; package record opens the run, and writing one is a room apart.
//
// A rule is data (rules/README.md); its language is PromQL, evaluated by
// Prometheus' own engine. PromQL cannot say "unknown", so this package does:
// a clue is true, false, or unknown because a signal it names was not seen.
// See truth for a clue, answer for a rule and conclude for the verdict.
package diagnose

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// Diagnose evaluates all rules over a run. A rule that the engine refuses does
// not stop the others: it is unknown, with the reason. The error is that of a
// run without any sample.
func Diagnose(rec *record.Run, rules Rules) (model.Verdict, error) {
	first, last, err := rec.Span()
	if err != nil {
		return model.Verdict{}, err
	}
	meta := rec.Meta()
	return diagnose(newRun(meta, rec.Queryable(), first, last), rules), nil
}

// unheld words an unclear verdict on a run without load of ours in which
// nothing is even suspected. It is not healthy: how long users waited was not
// seen. Then the candidates that came nearest are none.
func unheld(v *model.Verdict, plan model.Plan) {
	if v.Answer != model.AnswerUnclear || plan.Load != nil || slices.ContainsFunc(v.Findings, mayHold) {
		return
	}
	v.Nearest = []model.Candidate{}
	v.Sentence = "Nothing was found that holds a service back; how long users waited was not seen."
	if plan.Remote == nil {
		return
	}
	blind := map[string]bool{}
	for _, f := range v.Unknown {
		blind[f.Rule] = true
	}
	v.Sentence = fmt.Sprintf("Nothing in these series holds the service back; %d rules could not be judged from them.", len(blind))
}

// mayHold tells of a finding that says something is amiss, or full.
func mayHold(f model.Finding) bool {
	return f.Kind != kindHealthy && (f.Answer == model.Confirmed || f.Answer == model.Suspected)
}

func diagnose(r *run, rules Rules) model.Verdict {
	v := verdict(rules, r.all(rules.List))
	unheld(&v, r.meta.Plan)
	v.LoadAverage = r.loadAverages()
	return v
}

// all evaluates the rules, on as many CPUs as there are. They are independent of
// each other; the findings are in the rules' order.
func (r *run) all(rules []*Rule) []model.Finding {
	found := make([][]model.Finding, len(rules))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(rules)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(rules)); i = next.Add(1) - 1 {
				// The rule's own faults are in its findings as unknown; Test shows them.
				found[i], _ = r.rule(rules[i])
			}
		})
	}
	workers.Wait()
	return slices.Concat(found...)
}
