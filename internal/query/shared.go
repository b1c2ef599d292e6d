package query

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"plimsoll/internal/record"
)

// Rules are made of the same terms, written out in each expression: the CPU time of each
// program stands in a hundred of them. Of what reads whole windows each is evaluated once, and
// stands in the expressions as a series of its own with that one value.

// The names of those series begin so, those of the run and those of a course alone (see AskOver); a
// run's own series have no colon in front.
const (
	sharedPrefix = ":shared:"
	coursePrefix = ":course:"
)

// sharedParts are parts of expressions with their values, by what was asked.
type sharedParts struct {
	prefix string
	mu     sync.Mutex
	parts  map[partKey]*sharedPart
	list   []*sharedPart // by the number in their names
}

type partKey struct {
	text string
	main Span // the main window, where it looks at that
}

type sharedPart struct {
	once   sync.Once
	name   string
	at     *int64 // when it was asked; it would be the same at any moment. nil for a part of a course
	values record.Memory
	err    error
}

func newSharedParts(prefix string) *sharedParts {
	return &sharedParts{prefix: prefix, parts: map[partKey]*sharedPart{}}
}

func (s *sharedParts) part(key partKey) *sharedPart {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.parts[key]
	if p == nil {
		p = &sharedPart{name: s.prefix + strconv.Itoa(len(s.list))}
		s.parts[key], s.list = p, append(s.list, p)
	}
	return p
}

// named is the part that a series' name says, nil for another series.
func (s *sharedParts) named(matchers []*labels.Matcher) *sharedPart {
	for _, m := range matchers {
		number, ours := strings.CutPrefix(m.Value, s.prefix)
		if m.Name != labels.MetricName || m.Type != labels.MatchEqual || !ours {
			continue
		}
		if n, err := strconv.Atoi(number); err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.list[n]
		}
	}
	return nil
}

// asking is where expressions are evaluated: over a run, at some moments, with what they share.
type asking struct {
	*Run
	store storage.Queryable
	frame windows // that stand for the variables
	at    when
	// course are the parts that are evaluated at each of the moments, nil where there is one moment.
	// They are gone with it; one whole hour's courses would be held at once otherwise.
	course *sharedParts
	alone  bool // nothing is shared
}

// asking is of one moment.
func (q *Run) asking(w windows, at time.Time) asking {
	return asking{Run: q, store: q.storage, frame: w, at: when{first: at}}
}

// term is a part of expressions that is evaluated once for all that have it, and is then a series of its own.
type term struct {
	parser.Expr
	text   string      // with marks
	parted parser.Expr // with terms in it
	course bool        // it is evaluated at each moment of a course
	main   bool        // it looks at the main window
}

// parted is a tree with terms in it.
func (t *trees) parted(e parser.Expr, course bool) parser.Expr {
	sub, within := e.(*parser.SubqueryExpr)
	switch {
	case takesMoments(e): // of a series it tells another moment than of an expression
		return e
	case isShared(e) || t.isRecord[e] && readsWindows(e):
		return t.term(e, false)
	case course && within: // it looks at moments of its own
		c := *sub
		c.Expr = t.parted(sub.Expr, false)
		return &c
	case course && isPart(e):
		return t.term(e, true)
	case course && chooses(e):
		c := *e.(*parser.AggregateExpr)
		c.Expr = t.term(c.Expr, !isShared(c.Expr))
		return &c
	}
	return t.below(e, course)
}

// below is a node with terms below it.
func (t *trees) below(e parser.Expr, course bool) parser.Expr {
	return rebuilt(e, func(e parser.Expr) parser.Expr { return t.parted(e, course) })
}

func (t *trees) term(e parser.Expr, course bool) *term {
	text := e.String()
	known := t.terms[text]
	if known != nil {
		return known
	}
	n := &term{Expr: e, text: text, parted: e, course: course, main: looksAtMain(e)}
	switch e := e.(type) {
	case *parser.AggregateExpr:
		c := *e
		c.Expr = t.parted(e.Expr, course)
		n.parted = &c
	case *parser.ParenExpr:
		n.parted = t.parted(e.Expr, course)
	default:
		if !isPart(e) {
			n.parted = t.below(e, course)
		}
	}
	t.terms[text] = n
	return n
}

// instance is a tree with its windows and its terms filled in, for one evaluation.
func (a asking) instance(e parser.Expr) parser.Expr {
	f := filling{a.frame, a.grain}
	switch e := e.(type) {
	case *term:
		return a.part(e)
	case *parser.NumberLiteral:
		return f.number(e)
	case *parser.Call:
		c := rebuilt(e, a.instance).(*parser.Call)
		if of := difference(e); of != nil {
			return anchored(c, of, a.grain.lookback)
		}
		return c
	}
	c := rebuilt(e, a.instance)
	f.into(c)
	return c
}

// part is what stands for a term. One that cannot be evaluated by itself stays where it is, and fails there.
func (a asking) part(t *term) parser.Expr {
	p := a.partOf(t)
	if p.err != nil {
		return a.instance(newTrees().below(t.Expr, t.course))
	}
	return p.stand()
}

// partOf is the part that a term is here, evaluated.
func (a asking) partOf(t *term) *sharedPart {
	among := a.course
	if !t.course {
		among, a = a.shared, a.asking(a.frame, a.at.first)
	}
	key := partKey{text: t.text}
	if t.main {
		key.main = a.frame["window"]
	}
	p := among.part(key)
	p.once.Do(func() { a.fill(p, t) })
	return p
}

// fill evaluates a part, with the terms within it in their places.
func (a asking) fill(p *sharedPart, t *term) {
	if a.course == nil {
		at := a.at.first.UnixMilli()
		p.at = &at
	}
	if a.nothing(t.parted) {
		return
	}
	if of := a.alike(t.parted); of != nil {
		p.at, p.values = of.at, of.values
		return
	}
	p.err = a.run(a.engine, a.instance(t.parted), func(v parser.Value) error {
		switch v := v.(type) {
		case promql.Vector:
			return p.fillOnce(v)
		case promql.Matrix:
			return p.fillCourse(v, a.at)
		}
		return fmt.Errorf("%s: no vector", t.text)
	})
}

// alike is the part that a tree is without anything about it, nil for any other tree: that needs no engine.
func (a asking) alike(e parser.Expr) *sharedPart {
	for {
		switch x := e.(type) {
		case *parser.ParenExpr:
			e = x.Expr
			continue
		case *term:
			if a.course != nil {
				return nil
			}
			if p := a.partOf(x); p.err == nil {
				return p
			}
		}
		return nil
	}
}

// vector is a part's value as the engine would give it.
func (p *sharedPart) vector() promql.Vector {
	out := make(promql.Vector, 0, p.values.Len())
	for lset, v := range p.values.Firsts() {
		out = append(out, promql.Sample{Metric: lset, T: *p.at, F: v.Value})
	}
	return out
}

func (p *sharedPart) fillOnce(v promql.Vector) error {
	slices.SortFunc(v, func(a, b promql.Sample) int { return labels.Compare(a.Metric, b.Metric) }) // a subquery's rows come in the order of a map
	for _, s := range v {
		if s.H != nil {
			return errHistogram
		}
		p.add(s.Metric, []record.Point{{Time: *p.at, Value: s.F}})
	}
	return nil
}

// fillCourse marks where a series has no value, since the engine takes the one before for a while.
func (p *sharedPart) fillCourse(m promql.Matrix, at when) error {
	for _, s := range m {
		if len(s.Histograms) > 0 {
			return errHistogram
		}
		points := at.points()
		for _, f := range s.Floats {
			points[at.number(f.T)].Value = f.F
		}
		p.add(s.Metric, points)
	}
	return nil
}

var errHistogram = errors.New("a native histogram")

func (p *sharedPart) add(lset labels.Labels, points []record.Point) {
	p.values.Add(lset, points)
}

// stand is what stands for a part: {__name__="NAME"} @ AT. Its series have no name, as the part had none.
func (p *sharedPart) stand() parser.Expr {
	return &parser.VectorSelector{Timestamp: p.at, LabelMatchers: []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, labels.MetricName, p.name)}}
}

// isShared says whether a part is the same at all moments, and worth being evaluated once.
func isShared(e parser.Expr) bool { return isPart(e) && readsWindows(e) }

// chooses says whether among equals the first one is taken. Within an evaluation at several moments the engine hands series on in
// the order of a map, so it would be another one each time; those of a part are in the order of their labels.
func chooses(e parser.Expr) bool {
	of, ok := e.(*parser.AggregateExpr)
	return ok && (of.Op == parser.TOPK || of.Op == parser.BOTTOMK)
}

// takesMoments says whether something tells when its readings were taken.
func takesMoments(e parser.Expr) bool {
	call, ok := e.(*parser.Call)
	return ok && call.Func.Name == "timestamp"
}

// looksAtMain says whether something depends on where the main window is.
func looksAtMain(e parser.Expr) (main bool) {
	look := func(ms int64) {
		window, _, ok := markOf(ms)
		main = main || ok && slices.Contains(windowNames[:4], window)
	}
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.NumberLiteral:
			look(int64(math.Round(math.Abs(n.Val) * 1000)))
		case *parser.MatrixSelector:
			look(n.Range.Milliseconds())
		case *parser.VectorSelector:
			if n.Timestamp != nil {
				look(*n.Timestamp)
			}
			look(n.OriginalOffset.Abs().Milliseconds())
		case *parser.SubqueryExpr:
			if n.Timestamp != nil {
				look(*n.Timestamp)
			}
			look(n.Range.Milliseconds())
			look(n.Step.Milliseconds())
			look(n.OriginalOffset.Abs().Milliseconds())
		}
		return nil
	})
	return main
}

// isPart says whether something is an aggregation, or reads a range. It has no name.
func isPart(e parser.Expr) bool {
	switch e := e.(type) {
	case *parser.AggregateExpr:
		switch e.Op {
		case parser.SUM, parser.MAX, parser.MIN, parser.AVG, parser.COUNT:
			return true
		}
	case *parser.Call:
		switch e.Func.Name {
		case "rate", "increase", "delta", "idelta", "count_over_time", "max_over_time", "min_over_time", "avg_over_time", "sum_over_time", "quantile_over_time":
			return true
		}
	}
	return false
}

// readsWindows says whether all that an expression reads is pinned to a moment, and some of it a
// range.
func readsWindows(e parser.Expr) bool {
	pinned, ranges := true, false
	parser.Inspect(e, func(n parser.Node, path []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			pinned = pinned && (n.Timestamp != nil || withinPinned(path))
		case *parser.MatrixSelector, *parser.SubqueryExpr:
			ranges = true
		case *parser.Call:
			pinned = pinned && len(n.Args) > 0 && n.Func.Name != "timestamp" // time() and its kin have none
		}
		return nil
	})
	return pinned && ranges
}

// withinPinned says whether a subquery above is pinned.
func withinPinned(path []parser.Node) bool {
	for _, n := range path {
		if sub, ok := n.(*parser.SubqueryExpr); ok && sub.Timestamp != nil {
			return true
		}
	}
	return false
}

// handing has the engine take what is parsed already. It asks its parser for every text, so it is
// given the name of a tree, once.
type handing struct {
	parser.Parser
	handed sync.Map // by name
	count  atomic.Int64
}

func (h *handing) hand(tree parser.Expr) string {
	name := "tree " + strconv.FormatInt(h.count.Add(1), 10)
	h.handed.Store(name, tree)
	return name
}

// ParseExpr returns the tree of that name.
func (h *handing) ParseExpr(name string) (parser.Expr, error) {
	if tree, ok := h.handed.LoadAndDelete(name); ok {
		return tree.(parser.Expr), nil
	}
	return h.Parser.ParseExpr(name)
}

// withSharedParts is a store that has the shared parts, too.
type withSharedParts struct {
	storage.Queryable
	shared *sharedParts
}

func (s withSharedParts) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := s.Queryable.Querier(mint, maxt)
	return sharedQuerier{q, s.shared, mint, maxt}, err
}

type sharedQuerier struct {
	storage.Querier
	shared     *sharedParts
	mint, maxt int64
}

func (q sharedQuerier) Select(ctx context.Context, sort bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	p := q.shared.named(matchers)
	if p == nil {
		return q.Querier.Select(ctx, sort, hints, matchers...)
	}
	own, err := p.values.Querier(q.mint, q.maxt)
	if err != nil {
		return storage.ErrSeriesSet(err)
	}
	return own.Select(ctx, false, hints)
}
