package query

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"plimsoll/internal/lazy"
	"plimsoll/internal/record"
)

// Spans are stretches of time of one length, which begin a step after one another, in the
// engine's time (see Window).
type Spans struct {
	First Span
	Step  int64 // milliseconds
	Count int
}

// At is one of the spans.
func (s Spans) At(i int) Span {
	by := int64(i) * s.Step
	return Span{s.First.Start + by, s.First.End + by}
}

// Part are count of the spans, from one on.
func (s Spans) Part(from, count int) Spans { return Spans{s.At(from), s.Step, count} }

// when is when something is evaluated: once, or at steps up to the last.
type when struct {
	first, last time.Time
	step        time.Duration // 0 for once
}

func (m when) query(engine *promql.Engine, store storage.Queryable, text string) (promql.Query, error) {
	if m.step == 0 {
		return engine.NewInstantQuery(context.Background(), store, nil, text, m.first)
	}
	return engine.NewRangeQuery(context.Background(), store, nil, text, m.first, m.last, m.step)
}

// none is no result.
func (m when) none() parser.Value {
	if m.step == 0 {
		return promql.Vector{}
	}
	return promql.Matrix{}
}

// number is which of the moments a time is.
func (m when) number(ms int64) int64 { return (ms - m.first.UnixMilli()) / m.step.Milliseconds() }

// points are a series that has no value at any of the moments.
func (m when) points() []record.Point {
	list := make([]record.Point, 1+m.number(m.last.UnixMilli()))
	for i := range list {
		list[i] = record.Point{Time: m.first.Add(time.Duration(i) * m.step).UnixMilli(), Value: math.Float64frombits(value.StaleNaN)}
	}
	return list
}

// results are what a value is at each of the moments.
func (m when) results(v parser.Value) ([]Result, error) {
	list, ok := v.(promql.Matrix)
	if !ok {
		return nil, fmt.Errorf("want a course, got a %s", v.Type())
	}
	at := make([]promql.Vector, 1+m.number(m.last.UnixMilli()))
	for _, s := range list {
		for _, f := range s.Floats {
			i := m.number(f.T)
			at[i] = append(at[i], promql.Sample{Metric: s.Metric, T: f.T, F: f.F})
		}
	}
	out := make([]Result, len(at))
	for i, v := range at {
		out[i].Samples = samplesOf(v)
	}
	return out, nil
}

// AskOver evaluates expressions as if the main window were each of these spans: so the courses of
// measures over a run are drawn. Of each expression it gives a result for each span. Measures are made
// of the same terms, so what they share is evaluated once.
func (q *Run) AskOver(list []*Expression, spans Spans) [][]Result {
	a := asking{Run: q, course: newSharedParts(coursePrefix), at: when{
		time.UnixMilli(spans.First.End), time.UnixMilli(spans.At(spans.Count - 1).End), time.Duration(spans.Step) * time.Millisecond,
	}}
	a.store = withSharedParts{q.storage, a.course}
	out := make([][]Result, len(list))
	for i, e := range list {
		e = e.inPart()
		if out[i] = a.moving(e, spans); out[i] == nil {
			out[i] = a.oneByOne(e, spans)
		}
	}
	return out
}

// holdTotal matches what the load had counted in its main phase when the run was over.
var holdTotal = lazy.Regexp(`last_over_time\((plimsoll_load_(?:outcomes|wait_seconds)_total\{phase="hold"[^}]*\})\[\$run\]\)`)

// inPart is an expression for a part of the main window, in which the load counted a part: over the whole's
// total, what a part counted would be a share of nothing that anybody asked for.
func (e *Expression) inPart() *Expression {
	return &Expression{Text: holdTotal().ReplaceAllString(e.Text, "increase($1[$$window])")}
}

// moving evaluates an expression at all moments at once, as one whose main window moves along; nil where it
// is none.
func (a asking) moving(e *Expression, spans Spans) []Result {
	if thirds().MatchString(e.Text) {
		return nil
	}
	s, err := e.shape()
	if err != nil || strings.Contains(e.Text, "$window_start") || strings.Contains(e.Text, "$window_end") {
		return nil
	}
	a.frame = maps.Clone(a.windows)
	a.frame["window"] = Span{movingEnd - (spans.First.End - spans.First.Start), movingEnd}
	missing, lacking, err := s.fits(a.frame, a.grain)
	if err != nil || missing != "" || s.moving() == nil {
		return nil
	}
	var out []Result
	err = a.exec(s.moving(), func(v parser.Value) (err error) {
		out, err = a.at.results(v)
		return err
	})
	if err != nil { // in one of them, maybe
		return nil
	}
	for i := range out {
		if lacking != "" && len(out[i].Samples) == 0 {
			out[i] = Result{Missing: lacking}
		}
	}
	return out
}

// thirds match parts of the main window, which end at other moments than it does.
var thirds = lazy.Regexp(`\$(early|middle|late)\b`)

// movingEnd is the end, in Unix milliseconds, of a main window that moves: no other window has it.
const movingEnd = -2e9

// let frees what is pinned to the end of a moving window, to be evaluated at any moment. It cannot where
// a subquery looks from each of its moments at that one.
func let(tree parser.Expr) (free bool) {
	free = true
	parser.Inspect(tree, func(n parser.Node, path []parser.Node) error {
		var at **int64
		switch n := n.(type) {
		case *parser.VectorSelector:
			at = &n.Timestamp
		case *parser.SubqueryExpr:
			at = &n.Timestamp
		default:
			return nil
		}
		if *at != nil && **at == mark("window", markEnd) {
			free = free && !slices.ContainsFunc(path, func(up parser.Node) bool { _, sub := up.(*parser.SubqueryExpr); return sub })
			*at = nil
		}
		return nil
	})
	return free
}

// oneByOne evaluates an expression over one span after the other, and shares nothing.
func (a asking) oneByOne(e *Expression, spans Spans) []Result {
	out := make([]Result, spans.Count)
	w := maps.Clone(a.windows)
	for i := range out {
		w.setMain(spans.At(i))
		own := a.asking(w, time.UnixMilli(w["window"].End))
		own.alone = true
		out[i] = own.evaluate(e)
	}
	return out
}
