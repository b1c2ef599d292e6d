package alerts

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
)

// leastImpact is the share of users' time or requests below which a cause is no answer
// of a verdict, and rings no alert.
const leastImpact = "0.1"

// part is one thing that has to hold: behind "and", on the labels that it shares with the subject; or
// another one does.
type part struct {
	on   []string
	text string
	or   []part
}

func (p part) behind(base string) string {
	text := fmt.Sprintf("%s\nand on (%s) %s", base, strings.Join(p.on, ", "), p.text)
	if len(p.or) == 0 {
		return text
	}
	for _, other := range p.or {
		text += "\nor " + other.behind(base)
	}
	return "(" + text + ")"
}

// condition is what has to hold for a rule to be confirmed: applies, every needs, and one
// decides or proves. left are the proofs that cannot be asked for.
func (t *translation) condition(r *ruleset.Rule) (text string, left []whyNot, err error) {
	if r.Kind == ruleset.Healthy {
		return "", nil, outside("nothing is wrong when it holds")
	}
	needs, proofs, left, err := t.parts(r)
	if err != nil {
		return "", nil, err
	}
	applies, err := t.asked(r.AppliesExpr, r.Applies, true)
	if err != nil {
		return "", nil, prefixed("applies: ", err)
	}
	if _, err := t.sharing(applies, r.Subject, len(r.Subject)); err != nil {
		return "", nil, prefixed("applies: ", err)
	}
	if err := t.oneExporter(append(needs.exprs, applies)); err != nil {
		return "", nil, err
	}
	t.want(applies)
	base := fmt.Sprintf("group by (%s) (%s)", strings.Join(t.names(r.Subject), ", "), t.text(applies))
	for _, p := range needs.parts {
		base = p.behind(base)
	}
	if base, err = t.withImpact(base, r); err != nil {
		return "", nil, err
	}
	text = proved(base, proofs.parts)
	for _, e := range slices.Concat(needs.exprs, proofs.exprs) {
		t.want(e)
	}
	if _, err := plainParser.ParseExpr(text); err != nil {
		return "", nil, fmt.Errorf("its expression cannot be put together: %w", err)
	}
	return text, left, nil
}

// asks are parts, and the expressions in them.
type asks struct {
	parts []part
	exprs []parser.Expr
}

func (a *asks) add(p part, exprs []parser.Expr) {
	a.parts, a.exprs = append(a.parts, p), append(a.exprs, exprs...)
}

// parts are what a rule's clues ask for.
func (t *translation) parts(r *ruleset.Rule) (needs, proofs asks, left []whyNot, err error) {
	var last error
	for i := range r.Clues {
		c := &r.Clues[i]
		if c.Role == model.Supports || c.From != "" {
			continue
		}
		p, exprs, err := t.clue(c, r)
		var out outsideError
		switch {
		case err != nil && !errors.As(err, &out):
			return asks{}, asks{}, nil, fmt.Errorf("clue %s: %w", c.ID, err)
		case err != nil && c.Role == model.Needs:
			return asks{}, asks{}, nil, prefixed("clue "+c.ID+": ", err)
		case err != nil:
			left, last = append(left, whyNot{c.ID, err.Error()}), prefixed("clue "+c.ID+": ", err)
		case c.Role == model.Needs:
			needs.add(p, exprs)
		default:
			proofs.add(p, exprs)
		}
	}
	switch {
	case len(proofs.parts) == 0 && last != nil:
		return asks{}, asks{}, nil, last
	case len(proofs.parts) == 0:
		return asks{}, asks{}, nil, outside("it proves nothing, it only suspects")
	}
	return needs, proofs, left, nil
}

// prefixed says where an outsideError comes from.
func prefixed(where string, err error) error {
	var out outsideError
	if errors.As(err, &out) {
		return outsideError{where + out.why}
	}
	return fmt.Errorf("%s%w", where, err)
}

// proved adds that one of the proofs holds; those on the same labels in one go.
func proved(base string, proofs []part) string {
	var sides []part
	for _, p := range flat(proofs) {
		i := slices.IndexFunc(sides, func(s part) bool { return slices.Equal(s.on, p.on) })
		if i < 0 {
			sides = append(sides, p)
			continue
		}
		sides[i].text += " or " + p.text
	}
	for i := range sides {
		sides[i].text = "(" + sides[i].text + ")"
	}
	if len(sides) == 1 {
		return sides[0].behind(base)
	}
	var list []string
	for _, s := range sides {
		list = append(list, "("+s.behind(base)+")")
	}
	return strings.Join(list, "\nor\n")
}

// flat lists alternatives beside what they are alternatives of.
func flat(list []part) []part {
	var out []part
	for _, p := range list {
		out = append(out, part{on: p.on, text: p.text})
		out = append(out, flat(p.or)...)
	}
	return out
}

// clue is a clue that is true: its measure against its threshold.
func (t *translation) clue(c *ruleset.Clue, r *ruleset.Rule) (part, []parser.Expr, error) {
	measure, err := t.asked(c.MeasureExpr, c.Measure, !t.options.Foreign)
	if err != nil {
		return part{}, nil, err
	}
	if either, ok := measure.(*parser.BinaryExpr); ok && either.Op == parser.LOR && c.Threshold.Op == ">=" && !either.VectorMatching.On {
		if _, err := t.sharing(measure, r.Subject, 0); err != nil {
			return t.either(either, c, r)
		}
	}
	return t.measured(measure, c, r)
}

// either is a clue of which the alternatives belong to the subject by different labels: one of them
// holds, since of several results the largest counts.
func (t *translation) either(n *parser.BinaryExpr, c *ruleset.Clue, r *ruleset.Rule) (part, []parser.Expr, error) {
	first, exprs, err := t.measured(n.LHS, c, r)
	if err != nil {
		return part{}, nil, err
	}
	second, more, err := t.measured(n.RHS, c, r)
	first.or = append(first.or, second)
	return first, append(exprs, more...), err
}

// measured is a clue's measure, or an alternative of it, against its threshold.
func (t *translation) measured(measure parser.Expr, c *ruleset.Clue, r *ruleset.Rule) (part, []parser.Expr, error) {
	on, err := t.sharing(measure, r.Subject, 0)
	if err != nil {
		return part{}, nil, err
	}
	text := t.text(measure)
	// Of several results the largest counts; where it has to be large, any of them may be it.
	if c.Threshold.Op == ">" || c.Threshold.Op == ">=" {
		text = "(" + text + ")"
	} else {
		text = fmt.Sprintf("max by (%s) (%s)", strings.Join(t.names(on), ", "), text)
	}
	text = finite(text+" "+c.Is, measure)
	text += t.guards(c)
	exprs := []parser.Expr{measure}
	for _, v := range t.volumes(measure, c) {
		shared, err := t.sharing(v, r.Subject, 0)
		if err != nil {
			return part{}, nil, err
		}
		text += fmt.Sprintf(" and on (%s) ((%s) >= %v)", strings.Join(t.names(shared), ", "), t.text(v), t.options.Least)
		exprs = append(exprs, v)
	}
	return part{on: t.names(on), text: "(" + text + ")"}, exprs, nil
}

// sharing are the labels that the results of an expression share with a subject. least is how many
// of them there have to be.
func (t *translation) sharing(n parser.Expr, subject []string, least int) ([]string, error) {
	sets, err := t.labels(n)
	if err != nil {
		return nil, err
	}
	var on []string
	for i, set := range sets {
		var own []string
		for _, name := range subject {
			if slices.Contains(set, name) {
				own = append(own, name)
			}
		}
		if i > 0 && !slices.Equal(on, own) {
			return nil, outside("its alternatives belong to its subject by different labels (%v, %v)", on, own)
		}
		on = own
	}
	if len(on) < least {
		return nil, outside("what is given has only the labels %v of its subject", on)
	}
	return on, nil
}

// names writes labels with the one by which hosts are told.
func (t *translation) names(list []string) []string {
	list = slices.Clone(list)
	for i, name := range list {
		if name == "host" {
			list[i] = t.options.host()
		}
	}
	return list
}

// finite keeps what is divided by nothing from being very much.
func finite(text string, n parser.Expr) string {
	open := false
	parser.Inspect(n, func(n parser.Node, _ []parser.Node) error {
		if b, ok := n.(*parser.BinaryExpr); ok && b.Op == parser.DIV && !aboveZero(b.RHS) {
			open = true
		}
		return nil
	})
	if open {
		return "(" + text + ") < +Inf"
	}
	return text
}

// aboveZero says that an expression has results above zero alone.
func aboveZero(n parser.Expr) bool {
	switch n := n.(type) {
	case *parser.ParenExpr:
		return aboveZero(n.Expr)
	case *parser.NumberLiteral:
		return n.Val > 0
	case *parser.AggregateExpr:
		return n.Op == parser.COUNT
	case *parser.BinaryExpr:
		lit, ok := n.RHS.(*parser.NumberLiteral)
		return ok && (n.Op == parser.GTR || n.Op == parser.GTE && lit.Val > 0) && lit.Val >= 0 && !n.ReturnBool
	}
	return false
}

// guards keep a clue from being true where nobody knows: where what it measures could not be read and
// none of it would be true as well, or where what excludes was not read.
func (t *translation) guards(c *ruleset.Clue) string {
	if t.options.Foreign {
		return ""
	}
	var seen, excluding []string
	for _, s := range c.MeasureExpr.Selectors() {
		switch {
		case s.Name == query.MachineInfo || !t.options.Given(s.Name) || len(s.Before) > 0:
		case s.Excludes:
			excluding = append(excluding, s.Name)
		case c.Threshold.Holds(0):
			seen = append(seen, s.Name)
		}
	}
	names := slices.Concat(seen, excluding)
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return fmt.Sprintf(` unless on (host) plimsoll_signal_state{signal=~%s,state=~"denied|failed"}`, quoted(slices.Compact(names)))
}

// withImpact adds that what it takes from users is not known, or enough.
func (t *translation) withImpact(base string, r *ruleset.Rule) (string, error) {
	if r.ImpactExpr == nil {
		return base, nil
	}
	impact, err := t.asked(r.ImpactExpr, r.Impact, true)
	var out outsideError
	if errors.As(err, &out) {
		return base, nil
	}
	if err != nil {
		return "", fmt.Errorf("impact: %w", err)
	}
	on, err := t.sharing(impact, r.Subject, 0)
	if errors.As(err, &out) {
		return base, nil
	}
	if err != nil {
		return "", fmt.Errorf("impact: %w", err)
	}
	t.want(impact)
	labels := strings.Join(t.names(on), ", ")
	text := t.text(impact)
	if capped := finite(text, impact); capped != text {
		text = "(" + text + ") < +Inf"
	}
	return fmt.Sprintf("%s\nunless on (%s) (max by (%s) (%s) < %s)", base, labels, labels, text, leastImpact), nil
}

// oneExporter refuses what joins series of two exporters, whose instance labels differ.
func (t *translation) oneExporter(list []parser.Expr) error {
	if !t.options.Foreign {
		return nil
	}
	exporter := ""
	var names []string
	for _, n := range list {
		names = append(names, t.seriesNames(n)...)
	}
	for _, name := range names {
		prefix, _, _ := strings.Cut(name, "_")
		if exporter != "" && prefix != exporter {
			return outside("its series come from two exporters (%s, %s), whose instance labels differ", exporter, prefix)
		}
		exporter = prefix
	}
	return nil
}

// seriesNames are the series that an expression and its terms read.
func (t *translation) seriesNames(n parser.Expr) []string {
	var names []string
	for _, vs := range query.VectorSelectors(n) {
		if rec := t.records[vs.Name]; rec != nil {
			names = append(names, t.seriesNames(rec.expr)...)
		} else {
			names = append(names, vs.Name)
		}
	}
	return names
}
