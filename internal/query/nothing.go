package query

import (
	"context"
	"math"

	"github.com/prometheus/prometheus/promql/parser"
)

// mayGive says whether an expression may have a result, by which of the series that it names are there. A third of what the rules ask
// of a run is of services that it has none of, and to be told so by the engine takes as long as an answer.
func (q *Run) mayGive(e parser.Expr) bool {
	switch e := e.(type) {
	case *parser.VectorSelector:
		return q.has(e)
	case *parser.MatrixSelector:
		return q.mayGive(e.VectorSelector)
	case *parser.SubqueryExpr:
		return q.mayGive(e.Expr)
	case *parser.ParenExpr:
		return q.mayGive(e.Expr)
	case *parser.UnaryExpr:
		return q.mayGive(e.Expr)
	case *parser.AggregateExpr:
		return q.mayGive(e.Expr)
	case *parser.BinaryExpr:
		return q.bothMayGive(e)
	case *parser.Call:
		return q.callMayGive(e)
	}
	return true // a number
}

func (q *Run) bothMayGive(e *parser.BinaryExpr) bool {
	switch m := e.VectorMatching; {
	case e.Op == parser.LOR:
		return q.mayGive(e.LHS) || q.mayGive(e.RHS)
	case e.Op == parser.LUNLESS:
		return q.mayGive(e.LHS)
	case m != nil && (m.FillValues.LHS != nil || m.FillValues.RHS != nil): // it gives what only one side has
		return true
	}
	return q.mayGive(e.LHS) && q.mayGive(e.RHS)
}

// callMayGive: of no series every function gives none, but for those that make a number of it.
func (q *Run) callMayGive(e *parser.Call) bool {
	switch e.Func.Name {
	case "scalar", "absent", "absent_over_time":
		return true
	}
	for _, arg := range e.Args {
		if !q.mayGive(arg) {
			return false
		}
	}
	return true
}

// has says whether there is a series that a selector fits.
func (q *Run) has(s *parser.VectorSelector) bool {
	key := s.Name
	for _, m := range s.LabelMatchers {
		key += "," + m.String()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	there, asked := q.there[key]
	if asked {
		return there
	}
	all, err := q.storage.Querier(math.MinInt64/2, math.MaxInt64/2)
	if err != nil {
		return true // the engine says what is wrong
	}
	defer all.Close()
	set := all.Select(context.Background(), false, nil, s.LabelMatchers...)
	there = set.Next() || set.Err() != nil
	q.there[key] = there
	return there
}
