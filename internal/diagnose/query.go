package diagnose

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"log/slog"

	"plimsoll/internal/model"
)

// span is a stretch of time with both ends in it, in Unix milliseconds.
type span struct{ start, end int64 }

// windows are the stretches that a run has, by name. "run" is everything
// recorded, "window" the main one.
type windows map[string]span

// windowsOf lists a run's windows; first and last are the times of its first
// and last sample. A window without length, or still open, is none.
func windowsOf(list []model.Window, first, last int64) windows {
	w := windows{}
	if last > first {
		w["run"] = span{first, last}
	}
	for _, win := range list {
		if win.End > win.Start {
			w[win.Name] = span{win.Start, win.End}
		}
	}
	if hold, ok := w[model.Hold]; ok {
		w["window"] = hold
	} else if base, ok := w[model.Baseline]; ok && last > base.end {
		w["window"] = span{base.end, last}
	} else if run, ok := w["run"]; ok {
		w["window"] = run
	}
	return w
}

// sample is one result of an expression: a finite number and its labels.
type sample struct {
	labels map[string]string
	value  float64
}

// result is what an expression gave for a run. missing says why it could not
// be asked; failed that the engine refused it, which is an error of the rule.
type result struct {
	samples []sample
	missing string
	failed  error
}

// querier evaluates expressions over one run, each once. It is safe for
// concurrent use.
type querier struct {
	engine  *promql.Engine
	large   *promql.Engine // for one query at a time
	one     sync.Mutex
	storage storage.Queryable
	windows windows
	grain   grain
	at      time.Time

	mu      sync.Mutex
	replies map[string]*reply // by what was asked
}

// reply is of an expression that is being evaluated, or was.
type reply struct {
	once sync.Once
	result
}

// newQuerier prepares the evaluation. Subqueries look twice an interval at
// moments that the engine counts from the epoch; the store's clock is shifted
// so that they fall on the end of the main window, and no reading is missed.
func newQuerier(meta model.Run, store storage.Queryable, first, last int64) *querier {
	w := windowsOf(meta.Windows, first, last)
	step := stepOf(meta.Plan.Interval, w)
	end := last
	if whole, ok := w["window"]; ok {
		end = whole.end
	}
	shift := (step - end%step) % step
	for name, s := range w {
		w[name] = span{s.start + shift, s.end + shift}
	}
	g := grainOf(meta.Plan.Interval)
	g.step = time.Duration(step) * time.Millisecond
	return &querier{
		grain:   g,
		engine:  newEngine(g, maxSamples),
		large:   newEngine(g, maxLargeSamples),
		storage: withMachines{shifted{store, shift}, meta.Hosts, g.lookback.Milliseconds() / 2},
		windows: w,
		at:      time.UnixMilli(end + shift),
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

func newEngine(g grain, samples int) *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		Logger:                   slog.New(slog.DiscardHandler),
		MaxSamples:               samples,
		Timeout:                  time.Hour,
		LookbackDelta:            g.lookback,
		NoStepSubqueryIntervalFn: func(int64) int64 { return g.step.Milliseconds() },
		EnableAtModifier:         true,
		EnableNegativeOffset:     true,
		Parser:                   promParser,
	})
}

// ask evaluates an expression at the end of the main window.
func (q *querier) ask(e *expression) result {
	return q.once(e.text, func() result { return q.evaluate(e, q.windows, q.at) })
}

// once evaluates what has this key, or returns what it gave before.
func (q *querier) once(key string, evaluate func() result) result {
	q.mu.Lock()
	a := q.replies[key]
	if a == nil {
		a = &reply{}
		q.replies[key] = a
	}
	q.mu.Unlock()
	a.once.Do(func() { a.result = evaluate() })
	return a.result
}

func (q *querier) evaluate(e *expression, w windows, at time.Time) result {
	text, missing, err := e.query(w, q.grain)
	if missing != "" {
		return result{missing: missing}
	}
	if err != nil {
		return result{failed: err}
	}
	res := q.exec(q.engine, text, at)
	var many promql.ErrTooManySamples
	if errors.As(res.failed, &many) {
		q.one.Lock()
		defer q.one.Unlock()
		res = q.exec(q.large, text, at)
	}
	return res
}

func (q *querier) exec(engine *promql.Engine, text string, at time.Time) result {
	query, err := engine.NewInstantQuery(context.Background(), q.storage, nil, text, at)
	if err != nil {
		return result{failed: err}
	}
	defer query.Close()
	res := query.Exec(context.Background())
	if res.Err != nil {
		return result{failed: res.Err}
	}
	switch v := res.Value.(type) {
	case promql.Vector:
		return result{samples: samplesOf(v)}
	case promql.Scalar:
		return result{samples: samplesOf(promql.Vector{{F: v.V}})}
	}
	return result{failed: fmt.Errorf("want an instant vector or a number, got a %s", res.Value.Type())}
}

// samplesOf drops what is no finite number (nothing divided by nothing says
// nothing) and sorts by labels, so that the same run gives the same bytes.
func samplesOf(v promql.Vector) []sample {
	v = slices.DeleteFunc(v, func(s promql.Sample) bool {
		return s.H != nil || math.IsNaN(s.F) || math.IsInf(s.F, 0)
	})
	slices.SortFunc(v, func(a, b promql.Sample) int { return labels.Compare(a.Metric, b.Metric) })
	out := make([]sample, len(v))
	for i, s := range v {
		out[i] = sample{labels: s.Metric.Map(), value: s.F}
		delete(out[i].labels, "__name__")
	}
	return out
}

// largest returns the sample that belongs to a subject, which is one that
// agrees with it in all labels that both have; the largest of several.
func largest(samples []sample, subject map[string]string) (sample, bool) {
	var best sample
	found := false
	for _, s := range samples {
		if agree(s.labels, subject) && (!found || s.value > best.value) {
			best, found = s, true
		}
	}
	return best, found
}

func agree(a, b map[string]string) bool {
	for name, v := range a {
		if w, ok := b[name]; ok && v != w {
			return false
		}
	}
	return true
}
