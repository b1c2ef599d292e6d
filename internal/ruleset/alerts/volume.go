package alerts

import (
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"plimsoll/internal/ruleset"
)

// A share of three requests says nothing, and one lost packet is no alarm. So what a clue counts,
// or takes a share or a mean of, has to be there often enough.

// grave are units of events of which one is enough: each ends or stops a process, or is
// the kernel's or the service's own word that something is full.
var grave = map[string]bool{"processes": true, "kills": true, "messages": true, "lines": true, "times": true, "changes": true}

// volumes are the counts that have to reach the least volume for a clue to tell.
func (t *translation) volumes(n parser.Expr, c *ruleset.Clue) []parser.Expr {
	if t.options.Least == 0 {
		return nil
	}
	n = unwrapped(n)
	if c.Threshold.Op != ">" && c.Threshold.Op != ">=" {
		return nil // of little it asks for little
	}
	if t.counts(n) {
		if c.Threshold.Bound >= t.options.Least {
			return nil
		}
		return []parser.Expr{n}
	}
	b, ok := n.(*parser.BinaryExpr)
	if !ok || b.Op != parser.DIV {
		return nil
	}
	switch above, below := unwrapped(b.LHS), unwrapped(b.RHS); {
	case t.counts(above):
		return []parser.Expr{above}
	case t.counts(below):
		return []parser.Expr{below}
	}
	return nil
}

// unwrapped is what is within parentheses, roundings and cuts.
func unwrapped(n parser.Expr) parser.Expr {
	switch e := n.(type) {
	case *parser.ParenExpr:
		return unwrapped(e.Expr)
	case *parser.Call:
		switch e.Func.Name {
		case "clamp_max", "clamp_min", "round":
			return unwrapped(e.Args[0])
		}
	case *parser.BinaryExpr:
		if _, ok := e.RHS.(*parser.NumberLiteral); ok && e.Op == parser.GTR && !e.ReturnBool {
			return unwrapped(e.LHS)
		}
	}
	return n
}

// counts says whether an expression is a number of events of users in the window.
func (t *translation) counts(n parser.Expr) bool {
	switch n := unwrapped(n).(type) {
	case *parser.VectorSelector:
		if rec := t.records[n.Name]; rec != nil {
			return t.counts(rec.expr)
		}
	case *parser.AggregateExpr:
		return (n.Op == parser.SUM || n.Op == parser.MAX) && t.counts(n.Expr)
	case *parser.Call:
		if strings.HasPrefix(n.Func.Name, "label_") {
			return t.counts(n.Args[0])
		}
		return n.Func.Name == "increase" && t.ofUsers(n)
	case *parser.BinaryExpr:
		switch n.Op {
		case parser.ADD, parser.LOR:
			return t.counts(n.LHS) && t.counts(n.RHS)
		case parser.SUB, parser.LAND, parser.LUNLESS:
			return t.counts(n.LHS)
		case parser.MUL:
			lit, ok := n.LHS.(*parser.NumberLiteral)
			return ok && lit.Val == 0 && t.counts(n.RHS)
		}
	}
	return false
}

// ofUsers says that a counter counts what happens to one user at a time.
func (t *translation) ofUsers(n *parser.Call) bool {
	m, ok := n.Args[0].(*parser.MatrixSelector)
	if !ok {
		return false
	}
	s := t.signals[m.VectorSelector.(*parser.VectorSelector).Name]
	return s != nil && !grave[s.Unit] && s.Unit != "seconds" && s.Unit != "bytes"
}
