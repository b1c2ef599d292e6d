package diagnose

import (
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// acceptance is how a fix's "accept" is held against the run after the change.
type acceptance struct {
	measure *expression
	// is is the comparison that all results have to meet. Without one (split is
	// false) the expression holds where it has a result.
	is    comparison
	split bool
	// counted: it measures the growth of counters, so that no result is none of it.
	counted bool
}

// parseAcceptance takes "EXPR < NUMBER" apart, so that a result which does not
// meet it is told from one that is missing.
func parseAcceptance(src string, known records) (*acceptance, error) {
	whole, err := parseExpression(src, known)
	if err != nil {
		return nil, err
	}
	root, err := parseWithVariables(whole.text)
	if err != nil {
		return nil, err
	}
	a := &acceptance{measure: whole, counted: strings.Contains(src, "increase(") || strings.Contains(src, "rate(")}
	binary, ok := root.(*parser.BinaryExpr)
	if !ok || !binary.Op.IsComparisonOperator() {
		return a, nil
	}
	bound, ok := binary.RHS.(*parser.NumberLiteral)
	if !ok {
		return a, nil
	}
	at := binary.LHS.PositionRange()
	if a.measure, err = parseExpression(whole.text[at.Start:at.End], known); err != nil {
		return nil, err
	}
	a.is, a.split = comparison{op: binary.Op.String(), bound: bound.Val}, true
	return a, nil
}

// Accepted says whether the fix with that index did what its rule promises of
// it, by the run after the change. It is unknown where the rule states no
// "accept", and where what that asks for was not read.
func Accepted(rec *record.Run, rules Rules, rule string, fix int, subject map[string]string) (model.Truth, error) {
	r := rules.Get(rule)
	if r == nil || fix < 0 || fix >= len(r.Fix) {
		return model.Unknown, fmt.Errorf("rule %s has no fix %d; was the verdict made with other rules", rule, fix+1)
	}
	if r.Fix[fix].accept == nil {
		return model.Unknown, nil
	}
	first, last, err := rec.Span()
	if err != nil {
		return model.Unknown, err
	}
	return newRun(rec.Meta(), rec.Queryable(), first, last).accepted(r.Fix[fix].accept, subject)
}

func (r *run) accepted(a *acceptance, subject map[string]string) (model.Truth, error) {
	res := r.ask(a.measure)
	if res.missing != "" || res.failed != nil {
		return model.Unknown, res.failed
	}
	seen := r.sightOf(a.measure, subject)
	found, good := false, true
	for _, s := range res.samples {
		if agree(s.labels, subject) {
			found = true
			good = good && (!a.split || a.is.holds(s.value))
		}
	}
	switch {
	case found && !good:
		return model.False, nil
	case found && seen.dim == "":
		return model.True, nil
	case found || seen.closed != "":
		return model.Unknown, nil
	case !a.split:
		return model.False, nil
	case a.counted && a.is.holds(0):
		return model.True, nil
	}
	return model.Unknown, nil
}
