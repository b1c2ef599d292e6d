// Package live holds what is shown of a run while it is made: the load's seconds, and the
// last minutes of a few series. It hears what the run records, and holds nobody up.
package live

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
)

// Reach is how much of the past is held of series, in milliseconds.
const Reach = 10 * 60 * 1000

// outcomes is the signal that the seconds are counted from.
const outcomes = "plimsoll_load_outcomes_total"

// shown are the signals that are held, with the labels that are kept apart: series that
// agree in them are added up as they come.
var shown = map[string][]string{
	outcomes:                                  {"host", "phase", "outcome"},
	"plimsoll_load_requests_total":            {"host", "phase"},
	"node_cpu_seconds_total":                  {"host", "mode"},
	"node_procs_running":                      {"host"},
	"node_sockstat_TCP_inuse":                 {"host"},
	"node_pressure_cpu_waiting_seconds_total": {"host"},
	"node_pressure_io_waiting_seconds_total":  {"host"},
}

// Run is a run in the making. Its methods may be called by several goroutines.
type Run struct {
	interval int64

	mu      sync.Mutex
	windows []model.Window
	course  *record.Course
	series  map[*labels.Labels]*reading // nil of what is not held
	sums    map[string]*sum             // by their labels
	missed  int64                       // rounds that were lost to us
	newest  int64
}

// reading is what was last read of a series.
type reading struct {
	into    *sum
	outcome string // of a series of outcomes
	value   float64
}

// sum is several series added up.
type sum struct {
	labels labels.Labels
	points []record.Point
}

// New is a run that is read every so many milliseconds.
func New(interval int64) *Run {
	return &Run{interval: interval, series: map[*labels.Labels]*reading{}, sums: map[string]*sum{}}
}

// Follow takes what a listener hears until the recording ends, or ctx does. heard, if
// set, is called after each batch.
func (r *Run) Follow(ctx context.Context, l *writer.Listener, heard func()) {
	defer l.Close()
	for {
		b, missed, err := l.Next(ctx)
		if err != nil {
			return
		}
		r.take(b, missed)
		if heard != nil {
			heard()
		}
	}
}

func (r *Run) take(b *writer.Batch, missed writer.Missed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missed += missed.Batches
	if b.Windows != nil {
		r.windows = b.Windows
	}
	for _, s := range b.Samples {
		r.sample(s)
	}
	for _, i := range b.Intervals {
		if i.Tag == "response" {
			r.course.Latency(i)
		}
	}
}

func (r *Run) sample(s writer.Sample) {
	r.newest = max(r.newest, s.Time)
	of, known := r.series[s.Series]
	if !known {
		of = r.meet(s.Series)
		r.series[s.Series] = of
	}
	if of == nil {
		return
	}
	if of.outcome != "" {
		if r.course == nil {
			r.course = record.NewCourse(s.Time)
		}
		r.course.Outcome(of.outcome, s.Time, int64(s.Value-of.value))
		of.value = s.Value
	}
	of.into.add(s.Time, s.Value)
}

// meet says what is held of a series that was not seen before, nil for nothing.
func (r *Run) meet(list *labels.Labels) *reading {
	name := list.Get(labels.MetricName)
	by, ok := shown[name]
	if !ok {
		return nil
	}
	b := labels.NewBuilder(labels.EmptyLabels()).Set(labels.MetricName, name)
	for _, l := range by {
		b.Set(l, list.Get(l))
	}
	kept := b.Labels()
	into := r.sums[kept.String()]
	if into == nil {
		into = &sum{labels: kept}
		r.sums[kept.String()] = into
	}
	of := &reading{into: into}
	if name == outcomes {
		of.outcome = list.Get("outcome")
	}
	return of
}

// add adds a reading: those of one round share their time.
func (s *sum) add(t int64, v float64) {
	if n := len(s.points); n > 0 && s.points[n-1].Time == t {
		s.points[n-1].Value += v
		return
	} else if n > 0 && s.points[n-1].Time > t {
		return
	}
	s.points = append(s.points, record.Point{Time: t, Value: v})
	if t-s.points[0].Time > 2*Reach { // half of it goes at a time
		i := slices.IndexFunc(s.points, func(p record.Point) bool { return p.Time >= t-Reach })
		s.points = slices.Clone(s.points[i:])
	}
}

// View is a run as it stands.
type View struct {
	// Windows so far; one that is open ends with the newest sample.
	Windows []model.Window
	// Open: the last window is open.
	Open bool
	// Seconds are those of the load, as the closed run will tell them.
	Seconds []model.Second
	// Recent holds the last minutes of the series that are shown.
	Recent *record.Run
	// Missed is how many rounds came too fast to be taken.
	Missed int64
}

// View is the run as it stands.
func (r *Run) View() View {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := View{Windows: slices.Clone(r.windows), Seconds: r.course.Seconds(r.windows), Missed: r.missed}
	if n := len(v.Windows); n > 0 && v.Windows[n-1].End == 0 {
		v.Open, v.Windows[n-1].End = true, max(r.newest, v.Windows[n-1].Start)
	}
	var m record.Memory
	for _, s := range r.sums {
		from := slices.IndexFunc(s.points, func(p record.Point) bool { return p.Time >= r.newest-Reach })
		if from >= 0 {
			m.Add(s.labels, slices.Clone(s.points[from:]))
		}
	}
	m.Sort()
	v.Recent = record.InMemory(model.Run{Windows: v.Windows, Plan: model.Plan{Interval: r.interval}}, &m)
	return v
}

// Last is the last of the load's seconds that is over, and whether there is one.
func (v View) Last() (s model.Second, ok bool) {
	if len(v.Seconds) < 2 {
		return model.Second{}, false
	}
	return v.Seconds[len(v.Seconds)-2], true
}

// Held is how long the window of that name has lasted, in seconds, and whether there is one.
func (v View) Held(window string) (seconds float64, ok bool) {
	for _, w := range slices.Backward(v.Windows) {
		if w.Name == window {
			return math.Max(float64(w.End-w.Start), 0) / 1000, true
		}
	}
	return 0, false
}
