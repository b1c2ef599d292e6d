package alerts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// labelSets are the sets of labels that an expression's results may have: one, but for
// alternatives (or) that differ.
type labelSets [][]string

func (s labelSets) each(change func([]string) []string) labelSets {
	var out labelSets
	for _, set := range s {
		set = change(slices.Clone(set))
		slices.Sort(set)
		out = out.with(slices.Compact(set))
	}
	return out
}

func (s labelSets) with(sets ...[]string) labelSets {
	for _, set := range sets {
		if !slices.ContainsFunc(s, func(other []string) bool { return slices.Equal(other, set) }) {
			s = append(s, set)
		}
	}
	return s
}

// labels tells which labels the results of an expression have.
func (t *translation) labels(n parser.Expr) (labelSets, error) {
	switch n := n.(type) {
	case *parser.NumberLiteral, *parser.StringLiteral:
		return labelSets{nil}, nil
	case *parser.ParenExpr:
		return t.labels(n.Expr)
	case *parser.StepInvariantExpr:
		return t.labels(n.Expr)
	case *parser.UnaryExpr:
		return t.labels(n.Expr)
	case *parser.SubqueryExpr:
		return t.labels(n.Expr)
	case *parser.MatrixSelector:
		return t.labels(n.VectorSelector)
	case *parser.VectorSelector:
		return t.seriesLabels(n.Name)
	case *parser.AggregateExpr:
		return t.aggregated(n)
	case *parser.BinaryExpr:
		return t.combined(n)
	case *parser.Call:
		return t.called(n)
	}
	return nil, fmt.Errorf("%s: nobody knows the labels of a %T", n, n)
}

func (t *translation) seriesLabels(name string) (labelSets, error) {
	if strings.Contains(name, ":") {
		rec := t.records[name]
		if rec == nil {
			return nil, fmt.Errorf("%s: no such record", name)
		}
		return rec.labels, nil
	}
	set := []string{"host"}
	if name == "plimsoll_host_info" {
		set = append(set, "machine")
	}
	if s := t.signals[name]; s != nil {
		set = append(set, s.Labels...)
	}
	slices.Sort(set)
	return labelSets{slices.Compact(set)}, nil
}

func (t *translation) aggregated(n *parser.AggregateExpr) (labelSets, error) {
	below, err := t.labels(n.Expr)
	if err != nil {
		return nil, err
	}
	switch n.Op {
	case parser.TOPK, parser.BOTTOMK:
		return below, nil
	}
	if n.Without {
		return below.each(func(set []string) []string {
			return slices.DeleteFunc(set, func(name string) bool { return slices.Contains(n.Grouping, name) })
		}), nil
	}
	// A label that a sample lacks is not there after the aggregation either.
	return below.each(func(set []string) []string {
		set = slices.DeleteFunc(set, func(name string) bool { return !slices.Contains(n.Grouping, name) })
		if lit, ok := n.Param.(*parser.StringLiteral); ok && n.Op == parser.COUNT_VALUES {
			set = append(set, lit.Val)
		}
		return set
	}), nil
}

func (t *translation) combined(n *parser.BinaryExpr) (labelSets, error) {
	left, err := t.labels(n.LHS)
	if err != nil {
		return nil, err
	}
	right, err := t.labels(n.RHS)
	if err != nil {
		return nil, err
	}
	m := n.VectorMatching
	switch {
	case n.RHS.Type() == parser.ValueTypeScalar:
		return left, nil
	case n.LHS.Type() == parser.ValueTypeScalar:
		return right, nil
	case n.Op == parser.LAND, n.Op == parser.LUNLESS:
		return left, nil
	case n.Op == parser.LOR:
		return left.with(right...), nil
	case m.Card == parser.CardManyToOne:
		return left.each(func(set []string) []string { return append(set, m.Include...) }), nil
	case m.Card == parser.CardOneToMany:
		return right.each(func(set []string) []string { return append(set, m.Include...) }), nil
	case m.On:
		return left.each(func(set []string) []string {
			return slices.DeleteFunc(set, func(name string) bool { return !slices.Contains(m.MatchingLabels, name) })
		}), nil
	}
	// Without "on" both sides have the same labels, but for those that are ignored.
	var out labelSets
	for _, set := range left {
		if slices.ContainsFunc(right, func(other []string) bool { return slices.Equal(other, set) }) {
			out = out.with(set)
		}
	}
	return out, nil
}

func (t *translation) called(n *parser.Call) (labelSets, error) {
	switch n.Func.Name {
	case "scalar", "time":
		return labelSets{nil}, nil
	}
	for _, arg := range n.Args {
		if arg.Type() != parser.ValueTypeVector && arg.Type() != parser.ValueTypeMatrix {
			continue
		}
		below, err := t.labels(arg)
		if err != nil {
			return nil, err
		}
		switch n.Func.Name {
		case "label_replace", "label_join":
			made := n.Args[1].(*parser.StringLiteral).Val
			return below.each(func(set []string) []string { return append(set, made) }), nil
		case "histogram_quantile":
			return below.each(func(set []string) []string {
				return slices.DeleteFunc(set, func(name string) bool { return name == "le" })
			}), nil
		}
		return below, nil
	}
	return labelSets{nil}, nil
}
