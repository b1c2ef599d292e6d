// Package diagnose turns a recorded run and a rule set into a verdict. It is a
// pure function: the same run and rules give the same bytes, on any machine.
// It only reads; package query asks the run, and package ruleset has the rules.
//
// PromQL cannot say "unknown", so this package does: a clue is true, false, or
// unknown because a signal it names was not seen. See truth for a clue, answer
// for a rule and conclude for the verdict.
package diagnose

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
)

// CommandLine writes a clue's command so that it can be typed as it stands. The
// labels are those of the sample that answered.
type CommandLine func(pieces []layout.Piece, subject, labels map[string]string) string

// Diagnose evaluates all rules over a run. A rule that the engine refuses does
// not stop the others: it is unknown, with the reason.
func Diagnose(q *query.Run, set ruleset.Rules, command CommandLine) model.Verdict {
	return newRun(q, command).verdict(set, 2*runtime.GOMAXPROCS(0)) // some wait for what others evaluate
}

// Brief is Diagnose for a run that others still make: on the caller's thread alone, so that no other of this process is
// taken up, and of what a rule rules out with the one clue that does, which takes a third of the time.
func Brief(q *query.Run, set ruleset.Rules, command CommandLine) model.Verdict {
	r := newRun(q, command)
	r.brief = true
	return r.verdict(set, 1)
}

func (r *run) verdict(set ruleset.Rules, threads int) model.Verdict {
	findings := r.all(set.List, threads)
	r.setAside(findings, set)
	v := verdict(set, findings, r.when)
	unheld(&v, r.Meta().Plan)
	v.Sentence = r.withListener(v.Sentence, slices.Concat(v.Root, v.Grounds))
	return v
}

// Findings evaluates one rule for every subject it applies to. The error tells of
// the rule's own faults; the findings are good all the same, with "unknown"
// where a fault stood in the way.
func Findings(q *query.Run, rule *ruleset.Rule) ([]model.Finding, error) {
	return newRun(q, asTheyAre).rule(rule)
}

// asTheyAre writes commands for a test of the rule: without the way into a host.
func asTheyAre(pieces []layout.Piece, _, _ map[string]string) string {
	return layout.CommandLine(pieces)
}

// When asks the condition of an explanation for the subject of what would be explained.
// The error is one of the rule; the clue is then unknown.
func When(q *query.Run, e ruleset.Explain, of map[string]string) (model.Clue, error) {
	c, _, err := newRun(q, asTheyAre).clue(e.When, of)
	return c, err
}

// when is the same within a verdict; a rule's own fault leaves it unknown.
func (r *run) when(c *ruleset.Clue, of map[string]string) model.Clue {
	out, _, _ := r.clue(c, of)
	return out
}

// shownFindings is how much of what a capture shows an unclear verdict quotes.
const shownFindings = 2

// unheld words an unclear verdict on a run without load of ours in which
// nothing is even suspected. It is not healthy: how long users waited was not
// seen. Then the candidates that came nearest are none.
func unheld(v *model.Verdict, plan model.Plan) {
	if v.Answer != model.AnswerUnclear || plan.Load != nil || slices.ContainsFunc(v.Findings, mayHold) {
		return
	}
	v.Nearest = []model.Candidate{}
	v.Sentence = "No cause was found; how long users waited was not seen, so this does not prove that all is well."
	switch {
	case plan.Capture != nil:
		v.Sentence = "Nothing in these packets holds a service back, as far as the wire shows it."
		if shows := plan.Capture.Shows; len(shows) > 0 {
			v.Sentence = "By no rule is what these packets show known to hold a service back. " + strings.Join(shows[:min(len(shows), shownFindings)], " ")
		}
		return
	case plan.Remote == nil:
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
	return f.Kind != ruleset.Healthy && (f.Answer == model.Confirmed || f.Answer == model.Suspected)
}

// all evaluates the rules, on so many threads, the caller's included. They are
// independent of each other; the findings are in the rules' order.
func (r *run) all(rules []*ruleset.Rule, threads int) []model.Finding {
	found := make([][]model.Finding, len(rules))
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(rules)); i = next.Add(1) - 1 {
			// The rule's own faults are in its findings as unknown; Test shows them.
			found[i], _ = r.rule(rules[i])
		}
	}
	var workers sync.WaitGroup
	for range min(threads, len(rules)) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
	return slices.Concat(found...)
}
