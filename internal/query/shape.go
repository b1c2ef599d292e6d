package query

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// An expression is parsed once, whatever run it is asked of and however often: to parse was two fifths of what it
// took to judge a run while it lasts. So what differs from run to run, its windows, stands in the tree as marks, and is
// put in their places in a copy for each evaluation, which the engine changes anyway. A record is parsed once for all
// expressions that name it.

// shape is an expression, parsed. It is never changed, and has parts in common with others' shapes.
type shape struct {
	whole parser.Expr
	// asked is whole with terms, and moving the same for a main window that moves, nil where it cannot.
	asked  parser.Expr
	moving func() parser.Expr

	required, optional []string                 // windows, in the order of the text
	looks              [][]*parser.SubqueryExpr // each subquery, behind those that it stands in
	ranges             []time.Duration          // of what is no difference, in the order of the text
}

// trees are what the shapes of a rule set have in common.
type trees struct {
	mu       sync.Mutex
	records  map[string]parser.Expr // in parentheses, as they stand in expressions
	isRecord map[parser.Expr]bool
	terms    map[string]*term // by their texts
}

func newTrees() *trees {
	return &trees{records: map[string]parser.Expr{}, isRecord: map[parser.Expr]bool{}, terms: map[string]*term{}}
}

// shapeOf parses a text that may name records.
func (t Terms) shapeOf(src, text string) (*shape, error) {
	if t.trees == nil {
		t.trees = newTrees()
	}
	t.trees.mu.Lock()
	defer t.trees.mu.Unlock()
	root, err := t.parse(src)
	if err != nil {
		return nil, err
	}
	s := &shape{whole: root}
	s.noteWindows(text)
	s.noteRanges()
	s.asked = t.trees.parted(root, false)
	s.moving = sync.OnceValue(func() parser.Expr {
		free := dup(root)
		if !let(free) {
			return nil
		}
		return newTrees().parted(free, true)
	})
	return s, nil
}

// parse parses a text, with its records in their places.
func (t Terms) parse(src string) (parser.Expr, error) {
	root, err := parseMarked(src)
	if err != nil {
		return nil, err
	}
	var graft func(parser.Expr) parser.Expr
	graft = func(e parser.Expr) parser.Expr {
		if vs, ok := e.(*parser.VectorSelector); ok {
			if rec, ok := t.Records[vs.Name]; ok {
				e, bad := t.record(rec)
				if bad != nil && err == nil {
					err = bad
				}
				return e
			}
		}
		return rebuilt(e, graft)
	}
	return graft(root), err
}

// record is the tree of a record. One that is a number is none: the parser takes its name for series.
func (t Terms) record(rec Record) (parser.Expr, error) {
	if known := t.trees.records[rec.Name]; known != nil {
		return known, nil
	}
	src := rec.Written
	if src == "" {
		src = rec.Expr
	}
	root, err := t.parse(src)
	if err != nil {
		return nil, err
	}
	if root.Type() != parser.ValueTypeVector {
		return nil, errNumber
	}
	whole := &parser.ParenExpr{Expr: root}
	t.trees.records[rec.Name] = whole
	t.trees.isRecord[whole] = true
	return whole, nil
}

// noteWindows notes which windows a text, with its records, names.
func (s *shape) noteWindows(text string) {
	ReplaceVariables(text, func(v VariableUse) string {
		list := &s.required
		if v.Optional {
			list = &s.optional
		}
		*list = append(slices.DeleteFunc(*list, func(name string) bool { return name == v.Window }), v.Window)
		return ""
	})
}

// noteRanges notes what the lengths of windows may be wrong for.
func (s *shape) noteRanges() {
	differences := map[*parser.MatrixSelector]bool{}
	parser.Inspect(s.whole, func(n parser.Node, path []parser.Node) error {
		switch n := n.(type) {
		case *parser.Call:
			if ms := difference(n); ms != nil {
				differences[ms] = true
			}
		case *parser.MatrixSelector:
			if !differences[n] && !slices.Contains(s.ranges, n.Range) {
				s.ranges = append(s.ranges, n.Range)
			}
		case *parser.SubqueryExpr:
			var chain []*parser.SubqueryExpr
			for _, up := range path {
				if sub, ok := up.(*parser.SubqueryExpr); ok {
					chain = append(chain, sub)
				}
			}
			s.looks = append(s.looks, append(chain, n))
		}
		return nil
	})
}

// fits says what is wrong with asking it of a run with these windows. Missing, when not empty, is the window that stands
// in the way, since the run does not have it; lacking one that stands in the way only
// where the expression has no result.
func (s *shape) fits(w windows, g grain) (missing, lacking string, err error) {
	for _, name := range s.required {
		if _, ok := w[name]; !ok {
			missing = fmt.Sprintf("this run has no %s window", name)
		}
	}
	if missing != "" {
		return missing, "", nil
	}
	for _, name := range s.optional {
		if _, ok := w[name]; !ok {
			lacking = fmt.Sprintf("this run has no %s window", name)
		}
	}
	f := filling{w, g}
	for _, r := range s.ranges {
		if r = f.duration(r); r < g.interval {
			missing = fmt.Sprintf("the readings are %v apart, too far for a look at %v", g.interval, r)
			break
		}
	}
	for _, chain := range s.looks {
		if err := f.checkMoments(chain); err != nil {
			return missing, lacking, err
		}
	}
	return missing, lacking, nil
}

// A mark stands for what a variable is in a run, as the milliseconds of a moment, a range or a number of seconds. An
// expression that says one of its own is refused.
const firstMark = 7_777_777_000

// What a mark stands for: as the variables' parts, and the length of a range.
const (
	markSeconds = iota
	markStart
	markEnd
	markRange
)

// mark is that of a part of a window.
func mark(window string, part int) int64 {
	return firstMark + int64(part*len(windowNames)+slices.Index(windowNames, window))
}

// markOf is the window and the part that milliseconds are a mark of.
func markOf(ms int64) (window string, part int, ok bool) {
	n, k := int64(len(windowNames)), ms-firstMark
	if k < 0 || k >= 4*n {
		return "", 0, false
	}
	return windowNames[k%n], int(k / n), true
}

// isWindow says whether a range is one with a millisecond more than what is meant (see millis).
func isWindow(ms *parser.MatrixSelector) bool {
	_, _, marked := markOf(ms.Range.Milliseconds())
	return marked || ms.VectorSelector.(*parser.VectorSelector).Timestamp != nil
}

// isThird says whether a range is a third of the main window.
func isThird(ms *parser.MatrixSelector) bool {
	window, _, _ := markOf(ms.Range.Milliseconds())
	return slices.Contains(thirdNames, window)
}

// smooths says whether a difference can be read off between readings.
func smooths(call *parser.Call) bool {
	_, ok := promql.SmoothedSafeFunctions[call.Func.Name]
	return ok
}

// parseMarked parses a text, with marks for its windows. A range ends when its window does.
func parseMarked(text string) (parser.Expr, error) {
	marked := ReplaceVariables(text, func(v VariableUse) string {
		switch v.Part {
		case "_seconds":
			return moment(mark(v.Window, markSeconds))
		case "_start":
			return moment(mark(v.Window, markStart))
		case "_end":
			return moment(mark(v.Window, markEnd))
		}
		return rangeMark + strconv.FormatInt(mark(v.Window, markRange), 10) + rangeMark + moment(mark(v.Window, markEnd)) + rangeMark
	})
	root, err := Parser.ParseExpr(pinRanges(marked))
	if err != nil {
		return nil, err
	}
	sortNames(root)
	return root, nil
}

// filling is what is put in the places of marks.
type filling struct {
	windows
	grain
}

// millis is what milliseconds stand for, themselves where they are no mark. A range of Prometheus is open at its start, so
// a millisecond more takes in the reading at the start itself. Of a window that is not there, and need
// not be, a range has nothing in it.
func (f filling) millis(ms int64) int64 {
	name, part, ok := markOf(ms)
	if !ok {
		return ms
	}
	span, there := f.windows[name]
	switch part {
	case markStart:
		return span.Start
	case markEnd:
		if !there {
			return beforeAll
		}
		return span.End
	case markRange:
		if !there {
			return 2*f.interval.Milliseconds() + 1
		}
		return span.End - span.Start + 1
	}
	return span.End - span.Start
}

func (f filling) duration(d time.Duration) time.Duration {
	if d < 0 { // an offset
		return -f.duration(-d)
	}
	return time.Duration(f.millis(d.Milliseconds()))*time.Millisecond + d%time.Millisecond
}

// number is a number with what it stands for, which is none for a window that is not there.
func (f filling) number(n *parser.NumberLiteral) *parser.NumberLiteral {
	ms := math.Round(math.Abs(n.Val) * 1000)
	name, _, ok := markOf(int64(ms))
	if !ok || ms/1000 != math.Abs(n.Val) {
		return n
	}
	c := *n
	c.Val = math.NaN()
	if _, there := f.windows[name]; there {
		c.Val = math.Copysign(1, n.Val) * float64(f.millis(int64(ms))) / 1000
	}
	return &c
}

// into puts what marks stand for in a node that is not shared.
func (f filling) into(e parser.Expr) {
	at := func(ms *int64) *int64 {
		if ms == nil {
			return nil
		}
		now := f.millis(*ms)
		return &now
	}
	switch e := e.(type) {
	case *parser.VectorSelector:
		e.Timestamp, e.OriginalOffset = at(e.Timestamp), f.duration(e.OriginalOffset)
	case *parser.MatrixSelector:
		e.Range = f.duration(e.Range)
	case *parser.SubqueryExpr:
		e.Timestamp, e.OriginalOffset = at(e.Timestamp), f.duration(e.OriginalOffset)
		e.Range, e.Step = f.duration(e.Range), f.duration(e.Step)
	}
}

// rebuilt is a copy of a node, with what by makes of each that is below it. Numbers and texts are the same.
func rebuilt(e parser.Expr, by func(parser.Expr) parser.Expr) parser.Expr {
	switch e := e.(type) {
	case *parser.AggregateExpr:
		c := *e
		c.Expr = by(e.Expr)
		if e.Param != nil {
			c.Param = by(e.Param)
		}
		return &c
	case *parser.BinaryExpr:
		c := *e
		c.LHS, c.RHS = by(e.LHS), by(e.RHS)
		return &c
	case *parser.Call:
		c := *e
		c.Args = make(parser.Expressions, len(e.Args))
		for i, arg := range e.Args {
			c.Args[i] = by(arg)
		}
		return &c
	case *parser.ParenExpr:
		c := *e
		c.Expr = by(e.Expr)
		return &c
	case *parser.UnaryExpr:
		c := *e
		c.Expr = by(e.Expr)
		return &c
	case *parser.SubqueryExpr:
		c := *e
		c.Expr = by(e.Expr)
		return &c
	case *parser.MatrixSelector:
		c := *e
		c.VectorSelector = by(e.VectorSelector)
		return &c
	case *parser.VectorSelector:
		c := *e
		return &c
	}
	return e
}

// dup is a copy of a tree.
func dup(e parser.Expr) parser.Expr { return rebuilt(e, dup) }

// sortNames brings the names of labels into the order into which the engine brings them where they stand, since copies
// of a tree have them in common.
func sortNames(root parser.Expr) {
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.AggregateExpr:
			slices.Sort(n.Grouping)
			n.Grouping = slices.Clip(n.Grouping)
		case *parser.BinaryExpr:
			if m := n.VectorMatching; m != nil {
				slices.Sort(m.MatchingLabels)
				m.MatchingLabels = slices.Clip(m.MatchingLabels)
			}
		}
		return nil
	})
}

// difference is the range of a call that is a difference of a plain series, nil for anything else.
func difference(call *parser.Call) *parser.MatrixSelector {
	if _, ok := promql.AnchoredSafeFunctions[call.Func.Name]; !ok {
		return nil
	}
	ms, _ := call.Args[0].(*parser.MatrixSelector)
	return ms
}

// anchored makes increase, rate and their kin exact: it is "(difference(s[range] anchored) and idelta(s[more]))". "anchored" takes
// the reading at the range's start, or the last one before it, and the last in
// the range, and corrects counter resets. It answers 0 where there is only one
// reading; nothing is known then, so a difference that needs two readings guards it: of
// such a store need not count all. marked is the call's range as it stands in the shape.
//
// A third of the main window is but some readings long, and those of two series are not taken at the same moments: one
// has a reading just before a third's end, the other just after, and a quotient of the two is wrong by half. So there
// the value at an end is read off the line between the readings beside it ("smoothed").
func anchored(call *parser.Call, marked *parser.MatrixSelector, lookback time.Duration) parser.Expr {
	ms := call.Args[0].(*parser.MatrixSelector)
	of := *ms.VectorSelector.(*parser.VectorSelector)
	of.Smoothed = isThird(marked) && smooths(call)
	of.Anchored = !of.Smoothed
	exact, seen := *ms, *ms
	exact.VectorSelector = &of
	if isWindow(marked) {
		exact.Range -= time.Millisecond // what a range has more than its window
	}
	seen.Range = exact.Range + lookback
	call.Args[0] = &exact
	two := &parser.Call{Func: parser.Functions["idelta"], Args: parser.Expressions{&seen}, PosRange: call.PosRange}
	return &parser.ParenExpr{PosRange: call.PosRange, Expr: &parser.BinaryExpr{
		Op: parser.LAND, VectorMatching: &parser.VectorMatching{Card: parser.CardManyToMany},
		LHS: call, RHS: two,
	}}
}
