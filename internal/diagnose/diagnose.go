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
	return diagnose(newRun(meta, rec.Queryable(), first, last), rules, meta.Plan.Load != nil), nil
}

func diagnose(r *run, rules Rules, loaded bool) model.Verdict {
	var findings []model.Finding
	for _, rule := range rules.List {
		// The rule's own faults are in its findings as unknown; Test shows them.
		list, _ := r.rule(rule)
		findings = append(findings, list...)
	}
	v := verdict(rules, findings, loaded)
	v.LoadAverage = r.loadAverages()
	return v
}
