package query

import (
	"context"
	"fmt"
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

// The names of those series begin so, those of the run and those of a span alone; a run's own
// series have no colon in front.
const (
	sharedPrefix = ":shared:"
	spanPrefix   = ":span:"
)

// sharedParts are parts of expressions with their values, by what was asked.
type sharedParts struct {
	prefix string
	mu     sync.Mutex
	texts  map[string]*sharedPart
	list   []*sharedPart // by the number in their names
}

type sharedPart struct {
	once   sync.Once
	name   string
	at     int64 // when it was asked; it would be the same at any moment
	values record.Memory
	err    error
}

func newSharedParts(prefix string) *sharedParts {
	return &sharedParts{prefix: prefix, texts: map[string]*sharedPart{}}
}

func (s *sharedParts) part(key string) *sharedPart {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.texts[key]
	if p == nil {
		p = &sharedPart{name: s.prefix + strconv.Itoa(len(s.list))}
		s.texts[key], s.list = p, append(s.list, p)
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

// asking is where expressions are evaluated: over a run, with what they share. What only those of a
// span of time share is gone with it; one whole hour's courses would be held at once otherwise.
type asking struct {
	*Run
	store storage.Queryable
	span  *sharedParts // nil for none
	end   string       // the span's, as it stands in what depends on it
}

// within is asking with parts of a span's own.
func (a asking) within(span Span) asking {
	a.span, a.end = newSharedParts(spanPrefix), "@ "+moment(span.End)
	a.store = withSharedParts{a.store, a.span}
	return a
}

// withShared puts shared parts in their places in what is to be evaluated at a moment.
// A part that cannot be evaluated by itself stays where it is, and fails there.
func (a asking) withShared(root parser.Expr, at time.Time) parser.Expr {
	var by func(parser.Expr) parser.Expr
	by = func(e parser.Expr) parser.Expr {
		if !isShared(e) {
			return nil
		}
		text := e.String()
		p := a.part(text)
		p.once.Do(func() { a.fill(p, e, at) })
		if p.err == nil {
			return p.stand()
		}
		again, err := Parser.ParseExpr(text) // the engine has changed e
		if err != nil {
			return nil
		}
		replaceBelow(again, by)
		return again
	}
	return replace(root, by)
}

// part is the part of that text, among the span's where it depends on the span.
func (a asking) part(text string) *sharedPart {
	if a.span != nil && strings.Contains(text, a.end) {
		return a.span.part(text)
	}
	return a.shared.part(text)
}

// fill evaluates a part, with the shared parts within it in their places.
func (a asking) fill(p *sharedPart, e parser.Expr, at time.Time) {
	if sum, ok := e.(*parser.AggregateExpr); ok {
		sum.Expr = a.withShared(sum.Expr, at)
	}
	p.at = at.UnixMilli()
	p.err = a.ask(e, at, func(s promql.Sample) {
		named := labels.NewBuilder(s.Metric).Set(labels.MetricName, p.name).Labels()
		p.values.Add(named, []record.Point{{Time: p.at, Value: s.F}})
	})
}

// stand is what stands for a part: "({__name__="NAME"} @ AT + 0)". The sum has no name, as the part had none.
func (p *sharedPart) stand() parser.Expr {
	series := &parser.VectorSelector{Timestamp: &p.at, LabelMatchers: []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, labels.MetricName, p.name)}}
	return &parser.ParenExpr{Expr: &parser.BinaryExpr{Op: parser.ADD, LHS: series, RHS: &parser.NumberLiteral{}}}
}

// isShared says whether a part is worth being evaluated once: an aggregation of what reads
// whole windows, or such a reading. It is the same at all moments, and has no name.
func isShared(e parser.Expr) bool {
	switch e := e.(type) {
	case *parser.AggregateExpr:
		switch e.Op {
		case parser.SUM, parser.MAX, parser.MIN, parser.AVG, parser.COUNT:
			return readsWindows(e.Expr)
		}
	case *parser.Call:
		switch e.Func.Name {
		case "rate", "increase", "delta", "count_over_time", "max_over_time", "min_over_time", "avg_over_time", "sum_over_time", "quantile_over_time":
			return readsWindows(e)
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

// ask evaluates a tree at a moment, and hands over its samples one by one.
func (a asking) ask(tree parser.Expr, at time.Time, use func(promql.Sample)) error {
	query, err := a.engine.NewInstantQuery(context.Background(), a.store, nil, a.trees.hand(tree), at)
	if err != nil {
		return err
	}
	defer query.Close()
	res := query.Exec(context.Background())
	if res.Err != nil {
		return res.Err
	}
	v, ok := res.Value.(promql.Vector)
	if !ok {
		return fmt.Errorf("%s: no vector", tree)
	}
	for _, s := range v {
		if s.H != nil {
			return fmt.Errorf("%s: a native histogram", tree)
		}
		use(s)
	}
	return nil
}

// trees have the engine take what is parsed already. It asks its parser for every text, so it is
// given the name of a tree, once.
type trees struct {
	parser.Parser
	handed sync.Map // by name
	count  atomic.Int64
}

func (t *trees) hand(tree parser.Expr) string {
	name := "tree " + strconv.FormatInt(t.count.Add(1), 10)
	t.handed.Store(name, tree)
	return name
}

// ParseExpr returns the tree of that name.
func (t *trees) ParseExpr(name string) (parser.Expr, error) {
	if tree, ok := t.handed.LoadAndDelete(name); ok {
		return tree.(parser.Expr), nil
	}
	return t.Parser.ParseExpr(name)
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
	return own.Select(ctx, false, hints, matchers...)
}
