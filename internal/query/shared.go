package query

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
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

// sharedPrefix begins the names of those series; a run's own have no colon in front.
const sharedPrefix = ":shared:"

// sharedParts are parts of expressions with their values, by what was asked and when.
type sharedParts struct {
	mu    sync.Mutex
	texts map[string]*sharedPart
	list  []*sharedPart // by the number in their names
}

type sharedPart struct {
	once   sync.Once
	number int
	values record.Memory
	err    error
}

func newSharedParts() *sharedParts { return &sharedParts{texts: map[string]*sharedPart{}} }

func (s *sharedParts) part(key string) *sharedPart {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.texts[key]
	if p == nil {
		p = &sharedPart{number: len(s.list)}
		s.texts[key], s.list = p, append(s.list, p)
	}
	return p
}

// named is the part that a series' name says, nil for another series.
func (s *sharedParts) named(matchers []*labels.Matcher) *sharedPart {
	for _, m := range matchers {
		number, ours := strings.CutPrefix(m.Value, sharedPrefix)
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

// withShared puts shared parts in their places in a text that is to be evaluated at a moment.
// A part that cannot be evaluated by itself stays where it is, and fails there.
func (q *Run) withShared(text string, at time.Time) string {
	root, err := Parser.ParseExpr(text)
	if err != nil {
		return text // evaluating it tells why
	}
	var cuts []splice
	var walk func(parser.Node)
	walk = func(n parser.Node) {
		if e, ok := n.(parser.Expr); ok && isShared(e) {
			if number, ok := q.share(e, at); ok {
				pos := e.PositionRange()
				// The sum has no name, as the part had none.
				cuts = append(cuts, splice{int(pos.Start), int(pos.End), fmt.Sprintf(`({__name__="%s%d"} @ %s + 0)`, sharedPrefix, number, moment(at.UnixMilli()))})
				return
			}
		}
		for child := range parser.ChildrenIter(n) {
			walk(child)
		}
	}
	walk(root)
	return spliceAll(text, cuts)
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
			pinned = pinned && n.Func.Name != "time" && n.Func.Name != "timestamp"
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

// share evaluates a part, unless that was done, and returns its number.
func (q *Run) share(e parser.Expr, at time.Time) (int, bool) {
	text := e.String()
	p := q.shared.part(strconv.FormatInt(at.UnixMilli(), 10) + " " + text)
	p.once.Do(func() {
		p.err = q.ask(q.withSharedWithin(e, text, at), at, func(s promql.Sample) {
			named := labels.NewBuilder(s.Metric).Set(labels.MetricName, sharedPrefix+strconv.Itoa(p.number)).Labels()
			p.values.Add(named, []record.Point{{Time: at.UnixMilli(), Value: s.F}})
		})
	})
	return p.number, p.err == nil
}

// withSharedWithin is a part's text with the shared parts within it in their places.
func (q *Run) withSharedWithin(e parser.Expr, text string, at time.Time) string {
	if a, ok := e.(*parser.AggregateExpr); ok {
		inner := *a
		within, err := Parser.ParseExpr(q.withShared(a.Expr.String(), at))
		if err == nil {
			inner.Expr = within
			return inner.String()
		}
	}
	return text
}

// ask evaluates a text at a moment, and hands over its samples one by one.
func (q *Run) ask(text string, at time.Time, use func(promql.Sample)) error {
	query, err := q.engine.NewInstantQuery(context.Background(), q.storage, nil, text, at)
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
		return fmt.Errorf("%s: no vector", text)
	}
	for _, s := range v {
		if s.H != nil {
			return fmt.Errorf("%s: a native histogram", text)
		}
		use(s)
	}
	return nil
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
