package query

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Most rules are about what a run has nothing of: another database than its own, another web server. To find out that
// they have no result needs no engine.

// nothing says that a tree surely has no result, from left to right: what need not be known for that is not
// evaluated, so a fault in it is not met.
func (a asking) nothing(e parser.Expr) bool {
	switch e := e.(type) {
	case *term:
		return a.partOf(e).nothing()
	case *parser.VectorSelector:
		return !a.has(e.LabelMatchers)
	case *parser.MatrixSelector:
		return a.nothing(e.VectorSelector)
	case *parser.SubqueryExpr:
		return a.nothing(e.Expr)
	case *parser.ParenExpr:
		return a.nothing(e.Expr)
	case *parser.UnaryExpr:
		return a.nothing(e.Expr)
	case *parser.AggregateExpr:
		return a.nothing(e.Expr)
	case *parser.BinaryExpr:
		return a.nothingOfTwo(e)
	case *parser.Call:
		return a.nothingCalled(e)
	}
	return false
}

func (a asking) nothingOfTwo(e *parser.BinaryExpr) bool {
	m := e.VectorMatching
	switch {
	case e.Type() != parser.ValueTypeVector:
		return false
	case e.Op == parser.LOR:
		return a.nothing(e.LHS) && a.nothing(e.RHS)
	case e.Op == parser.LUNLESS:
		return a.nothing(e.LHS)
	case m != nil && m.FillValues != parser.VectorMatchFillValues{}: // one side is enough
		return false
	}
	return a.nothing(e.LHS) || a.nothing(e.RHS)
}

func (a asking) nothingCalled(e *parser.Call) bool {
	switch e.Func.Name {
	case "absent", "absent_over_time", "vector", "scalar", "info": // they make something of it
		return false
	}
	for _, arg := range e.Args {
		if t := arg.Type(); (t == parser.ValueTypeVector || t == parser.ValueTypeMatrix) && a.nothing(arg) {
			return true
		}
	}
	return false
}

// nothing says that a part has no value.
func (p *sharedPart) nothing() bool { return p.err == nil && p.values.Len() == 0 }

// has says whether the run may have series of this name, at any time.
func (q *Run) has(matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if m.Name != labels.MetricName || m.Type != labels.MatchEqual {
			continue
		}
		if m.Value == MachineInfo { // it is made for what asks for it
			return true
		}
		if known, ok := q.names.Load(m.Value); ok {
			return known.(bool)
		}
		any := q.any(m)
		q.names.Store(m.Value, any)
		return any
	}
	return true
}

// Has says whether the run may have series of this name, at any time.
func (q *Run) Has(name string) bool {
	return q.has([]*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, labels.MetricName, name)})
}

// any says whether the run has a sample of what matches; one that cannot be read is the engine's to tell of.
func (q *Run) any(m *labels.Matcher) bool {
	querier, err := q.storage.Querier(q.all.Start, q.all.End)
	if err != nil {
		return true
	}
	defer querier.Close()
	set := querier.Select(context.Background(), false, nil, m)
	for set.Next() {
		if it := set.At().Iterator(nil); it.Next() != chunkenc.ValNone || it.Err() != nil {
			return true
		}
	}
	return set.Err() != nil
}
