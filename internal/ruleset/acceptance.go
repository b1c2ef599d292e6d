package ruleset

import (
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"plimsoll/internal/query"
)

// Acceptance is how a fix's "accept" is held against the run after the change.
type Acceptance struct {
	Measure *query.Expression
	// Is is the comparison that all results have to meet. Without one (Split is
	// false) the expression holds where it has a result.
	Is    Comparison
	Split bool
	// Counted: it measures the growth of counters, so that no result is none of it.
	Counted bool
}

// ParseAcceptance takes "EXPR < NUMBER" apart, so that a result which does not
// meet it is told from one that is missing.
func ParseAcceptance(src string, terms query.Terms) (*Acceptance, error) {
	whole, err := terms.Parse(src)
	if err != nil {
		return nil, err
	}
	root, err := query.ParseWithVariables(src)
	if err != nil {
		return nil, err
	}
	a := &Acceptance{Measure: whole, Counted: strings.Contains(src, "increase(") || strings.Contains(src, "rate(")}
	binary, ok := root.(*parser.BinaryExpr)
	if !ok || !binary.Op.IsComparisonOperator() {
		return a, nil
	}
	bound, ok := binary.RHS.(*parser.NumberLiteral)
	if !ok {
		return a, nil
	}
	at := binary.LHS.PositionRange()
	if a.Measure, err = terms.Parse(src[at.Start:at.End]); err != nil {
		return nil, err
	}
	a.Is, a.Split = Comparison{Op: binary.Op.String(), Bound: bound.Val}, true
	return a, nil
}
