package alerts

import (
	"fmt"
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// A rule speaks of one run; a Prometheus has the series of all hosts. Each host is a run
// by itself there, as "diagnose --all" has it, so that what adds up all hosts adds up
// one host's, and what matches on nothing matches on the host.

// ofOneHost puts the host into every grouping and every matching of an expression.
func ofOneHost(root parser.Expr) (parser.Expr, error) {
	root, err := withoutScalars(root)
	if err != nil {
		return nil, err
	}
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.AggregateExpr:
			if n.Without && slices.Contains(n.Grouping, "host") {
				err = fmt.Errorf("%s: it drops the host", n)
			}
			if !n.Without && !slices.Contains(n.Grouping, "host") {
				n.Grouping = append([]string{"host"}, n.Grouping...)
			}
		case *parser.BinaryExpr:
			m := n.VectorMatching
			if m != nil && m.On && !slices.Contains(m.MatchingLabels, "host") {
				m.MatchingLabels = append([]string{"host"}, m.MatchingLabels...)
			}
		}
		return nil
	})
	return root, err
}

// withoutScalars writes what compares with scalar(x), or cuts to it, as a comparison with
// each host's x: a scalar has no host.
func withoutScalars(n parser.Expr) (parser.Expr, error) {
	var err error
	down := func(child *parser.Expr) {
		var bad error
		if *child, bad = withoutScalars(*child); bad != nil && err == nil {
			err = bad
		}
	}
	switch n := n.(type) {
	case *parser.SubqueryExpr:
		down(&n.Expr)
	case *parser.ParenExpr:
		down(&n.Expr)
	case *parser.UnaryExpr:
		down(&n.Expr)
	case *parser.AggregateExpr:
		down(&n.Expr)
	case *parser.Call:
		if n.Func.Name == "scalar" {
			return nil, fmt.Errorf("%s: nobody knows of which host it is here", n)
		}
		if n.Func.Name == "clamp_max" && hasScalar(n.Args[1]) {
			return cutTo(n.Args[0], n.Args[1])
		}
		for i := range n.Args {
			down(&n.Args[i])
		}
	case *parser.BinaryExpr:
		if n.RHS.Type() == parser.ValueTypeScalar && hasScalar(n.RHS) {
			down(&n.LHS)
			n.RHS = &parser.ParenExpr{Expr: unscaled(n.RHS)}
			n.VectorMatching = &parser.VectorMatching{Card: parser.CardManyToOne, On: true}
			return n, err
		}
		down(&n.LHS)
		down(&n.RHS)
	}
	return n, err
}

func hasScalar(n parser.Expr) bool {
	found := false
	parser.Inspect(n, func(n parser.Node, _ []parser.Node) error {
		if c, ok := n.(*parser.Call); ok && c.Func.Name == "scalar" {
			found = true
		}
		return nil
	})
	return found
}

// unscaled is a number of scalar(x), such as 0.5 * scalar(x), with x itself.
func unscaled(n parser.Expr) parser.Expr {
	switch n := n.(type) {
	case *parser.Call:
		if n.Func.Name == "scalar" {
			return n.Args[0]
		}
	case *parser.ParenExpr:
		n.Expr = unscaled(n.Expr)
	case *parser.BinaryExpr:
		n.LHS, n.RHS = unscaled(n.LHS), unscaled(n.RHS)
	}
	return n
}

// cutTo is clamp_max(v, scalar(s)): the lesser of both, and nothing without an s.
func cutTo(v, s parser.Expr) (parser.Expr, error) {
	v, err := withoutScalars(v)
	if err != nil {
		return nil, err
	}
	to := unscaled(s)
	text := fmt.Sprintf("(((%s) < on () group_left () (%s)) or (0 * (%s) + on () group_left () (%s)))", v, to, v, to)
	return plainParser.ParseExpr(text)
}
