// Package query evaluates the expressions of rules over a recorded run: PromQL,
// by Prometheus' own engine, with the run's windows as variables
// (rules/README.md). What PromQL cannot say, it leaves to the caller: why there
// is nothing to ask, and which series an expression names.
package query

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// Span is a stretch of time with both ends in it, in Unix milliseconds.
type Span struct{ Start, End int64 }

// windows are the stretches that a run has, by name. "run" is everything
// recorded, "window" the main one; "early", "middle" and "late" are its thirds.
type windows map[string]Span

// windowsOf lists a run's windows; first and last are the times of its first
// and last sample. A window without length, or still open, is none.
func windowsOf(list []model.Window, first, last int64) windows {
	w := windows{}
	if last > first {
		w["run"] = Span{first, last}
	}
	for _, win := range list {
		if win.End > win.Start {
			w[win.Name] = Span{win.Start, win.End}
		}
	}
	if hold, ok := w[model.Hold]; ok {
		w.setMain(hold)
	} else if base, ok := w[model.Baseline]; ok && last > base.End {
		w.setMain(Span{base.End, last})
	} else if run, ok := w["run"]; ok {
		w.setMain(run)
	}
	return w
}

var thirdNames = []string{"early", "middle", "late"}

// setMain makes a span the main window, with its thirds. Each begins where the one before it ends.
func (w windows) setMain(s Span) {
	third := (s.End - s.Start) / 3
	w["window"] = s
	w["early"], w["middle"], w["late"] = Span{s.Start, s.Start + third}, Span{s.Start + third, s.End - third}, Span{s.End - third, s.End}
}

// Sample is one result of an expression: a finite number and what it is of.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Result is what an expression gave for a run, sorted by labels. Missing says why
// it could not be asked; Failed that the engine refused it, which is an error of
// the rule.
type Result struct {
	Samples []Sample
	Missing string
	Failed  error
}

// Run is a run that expressions are asked of, each once. It is safe for concurrent
// use.
type Run struct {
	meta    model.Run
	engine  *promql.Engine
	large   func() *promql.Engine // for one query at a time; made when one needs it
	one     sync.Mutex
	storage storage.Queryable
	windows windows
	all     Span     // from the first to the last sample
	names   sync.Map // of series: whether there are any
	grain   grain
	at      time.Time
	shared  *sharedParts
	trees   *handing

	mu      sync.Mutex
	replies map[string]*reply // by what was asked
}

// reply is of an expression that is being evaluated, or was.
type reply struct {
	once sync.Once
	Result
}

// Of prepares a run for questions. The error is that of a run without any sample.
func Of(rec *record.Run) (*Run, error) {
	first, last, err := rec.Span()
	if err != nil {
		return nil, err
	}
	return Over(rec.Meta(), rec.Queryable(), first, last), nil
}

// Over is Of for a manifest and a store of series, the first and last sample of
// which were taken at these times, in Unix milliseconds. Subqueries look twice an interval at
// moments that the engine counts from the epoch; the store's clock is put ahead
// so that they fall on the end of the main window, and no reading is missed.
func Over(meta model.Run, store storage.Queryable, first, last int64) *Run {
	w := windowsOf(meta.Windows, first, last)
	step := stepOf(meta.Plan.Interval, w)
	end := last
	if whole, ok := w["window"]; ok {
		end = whole.End
	}
	ahead := (step - end%step) % step
	for name, s := range w {
		w[name] = Span{s.Start + ahead, s.End + ahead}
	}
	g := grainOf(meta.Plan.Interval)
	g.step = time.Duration(step) * time.Millisecond
	shared, prepared := newSharedParts(sharedPrefix), &handing{Parser: Parser}
	return &Run{
		shared:  shared,
		trees:   prepared,
		meta:    meta,
		grain:   g,
		engine:  newEngine(g, prepared, maxSamples),
		large:   sync.OnceValue(func() *promql.Engine { return newEngine(g, prepared, maxLargeSamples) }),
		storage: withSharedParts{withMachines{aheadStore{store, ahead, g.lookback}, meta.Hosts, g.lookback.Milliseconds() / 2}, shared},
		windows: w,
		all:     Span{first + ahead, last + ahead},
		at:      time.UnixMilli(end + ahead),
		replies: map[string]*reply{},
	}
}

// The most samples (of 16 bytes) that a query holds at a time. One that needs more
// than the first is asked again when no other such is: so memory is bounded, however
// many queries run, and the answer does not depend on how many do.
const (
	maxSamples      = 1_000_000
	maxLargeSamples = 16_000_000
)

func newEngine(g grain, from parser.Parser, samples int) *promql.Engine {
	untraced()
	return promql.NewEngine(promql.EngineOpts{
		Logger:                   slog.New(slog.DiscardHandler),
		MaxSamples:               samples,
		Timeout:                  time.Hour,
		LookbackDelta:            g.lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return g.step.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		Parser:                   from,
	})
}

// Meta is the run's manifest. The caller must not change what it points to.
func (q *Run) Meta() model.Run { return q.meta }

// Window returns the window of that name, false where the run has none; "window" is
// the main one, "run" everything recorded. Its times are the engine's, which are
// later than the run's by less than two readings are apart.
func (q *Run) Window(name string) (Span, bool) {
	s, ok := q.windows[name]
	return s, ok
}

// Ask evaluates an expression at the end of the main window.
func (q *Run) Ask(e *Expression) Result {
	return q.once(e.Text, func() Result { return q.asking(q.windows, q.at).evaluate(e) })
}

// AskBefore evaluates an expression as if the baseline were the main window. Without
// one it is missing.
func (q *Run) AskBefore(e *Expression) Result {
	return q.once("baseline: "+e.Text, func() Result {
		base, ok := q.windows[model.Baseline]
		if !ok {
			return Result{Missing: "this run has no baseline window"}
		}
		w := maps.Clone(q.windows)
		w.setMain(base)
		return q.asking(w, time.UnixMilli(base.End)).evaluate(e)
	})
}

// Samples evaluates a text that may name these records. A window that the run does
// not have gives no result.
func (q *Run) Samples(text string, known Records) ([]Sample, error) {
	e, err := Parse(text, known)
	if err != nil {
		return nil, err
	}
	res := q.Ask(e)
	return res.Samples, res.Failed
}

// once evaluates what has this key, or returns what it gave before.
func (q *Run) once(key string, evaluate func() Result) Result {
	q.mu.Lock()
	a := q.replies[key]
	if a == nil {
		a = &reply{}
		q.replies[key] = a
	}
	q.mu.Unlock()
	a.once.Do(func() { a.Result = evaluate() })
	return a.Result
}

// evaluate evaluates an expression at one moment.
func (a asking) evaluate(e *Expression) Result {
	s, err := e.shape()
	if err != nil {
		return Result{Failed: err}
	}
	missing, lacking, err := s.fits(a.frame, a.grain)
	if missing != "" {
		return Result{Missing: missing}
	}
	if err != nil {
		return Result{Failed: err}
	}
	tree := s.asked
	if a.alone {
		tree = s.whole
	}
	var res Result
	res.Failed = a.exec(tree, func(v parser.Value) (err error) {
		res.Samples, err = samplesIn(v)
		return err
	})
	if lacking != "" && res.Failed == nil && len(res.Samples) == 0 {
		return Result{Missing: lacking}
	}
	return res
}

// exec evaluates a shape's tree, and hands over its value. Where it needs more samples than may be held beside others, it
// is evaluated again when no other such is.
func (a asking) exec(tree parser.Expr, use func(parser.Value) error) error {
	if !a.alone && tree.Type() == parser.ValueTypeVector {
		if a.nothing(tree) {
			return use(a.at.none())
		}
		if p := a.alike(tree); p != nil {
			return use(p.vector())
		}
	}
	err := a.run(a.engine, a.instance(tree), use)
	var many promql.ErrTooManySamples
	if errors.As(err, &many) {
		a.one.Lock()
		defer a.one.Unlock()
		err = a.run(a.large(), a.instance(tree), use)
	}
	return err
}

// run has an engine evaluate a tree as it is.
func (a asking) run(engine *promql.Engine, tree parser.Expr, use func(parser.Value) error) error {
	query, err := a.at.query(engine, a.store, a.trees.hand(tree))
	if err != nil {
		return err
	}
	defer query.Close()
	res := query.Exec(context.Background())
	if res.Err != nil {
		return res.Err
	}
	return use(res.Value)
}

// samplesIn are the samples of a value at one moment.
func samplesIn(v parser.Value) ([]Sample, error) {
	switch v := v.(type) {
	case promql.Vector:
		return samplesOf(v), nil
	case promql.Scalar:
		return samplesOf(promql.Vector{{F: v.V}}), nil
	}
	return nil, fmt.Errorf("want an instant vector or a number, got a %s", v.Type())
}

// samplesOf drops what is no finite number (nothing divided by nothing says
// nothing) and sorts by labels, so that the same run gives the same bytes.
func samplesOf(v promql.Vector) []Sample {
	v = slices.DeleteFunc(v, func(s promql.Sample) bool {
		return s.H != nil || math.IsNaN(s.F) || math.IsInf(s.F, 0)
	})
	slices.SortFunc(v, func(a, b promql.Sample) int { return labels.Compare(a.Metric, b.Metric) })
	out := make([]Sample, len(v))
	for i, s := range v {
		out[i] = Sample{Labels: s.Metric.Map(), Value: s.F}
		delete(out[i].Labels, "__name__")
	}
	return out
}

// Largest returns the sample that belongs to a subject, which is one that
// agrees with it in all labels that both have; the largest of several.
func Largest(samples []Sample, subject map[string]string) (Sample, bool) {
	var best Sample
	found := false
	for _, s := range samples {
		if Agree(s.Labels, subject) && (!found || s.Value > best.Value) {
			best, found = s, true
		}
	}
	return best, found
}

// Agree says whether two sets of labels have the same value wherever both have one.
func Agree(a, b map[string]string) bool {
	for name, v := range a {
		if w, ok := b[name]; ok && v != w {
			return false
		}
	}
	return true
}

// The engine tells OpenTelemetry of each query and of each node that it evaluates. Nobody listens here, and still what is made for
// nobody was a sixth of all that judging a run allocates.

// untraced has nothing made.
var untraced = sync.OnceFunc(func() { otel.SetTracerProvider(nobody{}) })

// nobody is who listens.
type nobody struct{ noop.TracerProvider }

// Tracer implements trace.TracerProvider.
func (nobody) Tracer(string, ...trace.TracerOption) trace.Tracer { return deaf{} }

type deaf struct{ noop.Tracer }

// Start begins nothing, and leaves the context as it is.
func (deaf) Start(ctx context.Context, _ string, _ ...trace.SpanStartOption) (context.Context, trace.Span) {
	return ctx, nothing
}

var nothing trace.Span = noop.Span{}
