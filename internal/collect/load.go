package collect

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

// Load is a load engine as a source. What it says comes when the engine
// pleases, and its changes of phase are what windows begin with; so its owner reads
// Records, and hands each to Take.
type Load struct {
	hosts []string // from which it comes, the first of which has what is one number of the whole
	plan  model.LoadPlan
	begin func(context.Context) (Engine, error)
	rec   *Recorder
	now   func() time.Time

	Engine

	mu     sync.Mutex
	turn   *load.Record // a change of phase, which belongs to the next edge
	newest int64        // time stamp of the newest samples, Unix milliseconds
	cpu    float64      // what the engine used; 0 until its end
	gone   map[string]bool
}

// NewLoad prepares a load that comes from these hosts. begin is what Engines returned.
func NewLoad(rec *Recorder, now func() time.Time, hosts []string, plan model.LoadPlan, begin func(context.Context) (Engine, error)) *Load {
	return &Load{hosts: hosts, plan: plan, begin: begin, rec: rec, now: now, gone: map[string]bool{}}
}

// Start starts the engine. Cancelling ctx asks it to send nothing more and to end.
func (l *Load) Start(ctx context.Context) (err error) {
	if l.Engine, err = l.begin(ctx); err != nil {
		return err
	}
	for _, sig := range load.Signals {
		l.rec.Book.Set(l.hosts, sig, load.StatusOf(&l.plan, sig), l.now(), 0)
	}
	return nil
}

// Take records what the engine says. A change of phase is recorded by the next edge.
func (l *Load) Take(r load.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.PhaseStarted != "" {
		l.turn = &r
		return
	}
	l.put(r, l.madeAt(r))
	l.noteGone(r)
	if r.Totals != nil {
		l.cpu = r.Totals.CPUSeconds
		for _, outcome := range slices.Sorted(maps.Keys(r.Causes)) {
			l.rec.Note("of the requests that ended as " + outcome + " the first said: " + r.Causes[outcome])
		}
		if r.Totals.Cancelled {
			l.rec.Note("interrupted: the load was stopped before its plan was done")
		}
	}
}

// lateTurn in milliseconds is by how much an edge may come after the change of phase that it is about, and count as its moment.
const lateTurn = 500

// Round records the change of phase at which an edge is. Where the edge is late, since this machine is short of CPU time, the change
// has its own time, as what the engine said after it: else all that would be in the first moment of the window.
func (l *Load) Round(_ context.Context, r Round) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Edge && l.turn != nil {
		at := r.Time.UnixMilli()
		if made := l.madeAt(*l.turn); made < at-lateTurn {
			at = made
		}
		l.put(*l.turn, at)
		l.turn = nil
	}
	return nil
}

func (l *Load) put(r load.Record, t int64) {
	t = max(t, l.newest+1)
	l.newest = t
	r.SamplesBy(l.hosts[0], func(host string, sig *model.Signal, v float64, labels ...string) {
		l.rec.Sample(host, t, sig, v, labels...)
	})
	for _, i := range r.Intervals {
		if i.Phase == model.Hold {
			l.rec.Interval(i.Start, i.End, i.Kind, i.Histogram)
		}
	}
}

// lateRecord in milliseconds is longer than a record waits for us: 10 s were seen on an emulated machine that loaded its tracers meanwhile.
const lateRecord = 60_000

// madeAt is when the engine made r, which may have waited here while a round
// was read. Where its clock and ours do not agree, somebody set one, it is now.
func (l *Load) madeAt(r load.Record) int64 {
	now := l.now().UnixMilli()
	if r.Time > now || r.Time < now-lateRecord {
		return now
	}
	return r.Time
}

// Settle does nothing: the engine's records wait for their reader.
func (l *Load) Settle() {}

// Phase does nothing: windows begin with the engine's phases.
func (l *Load) Phase(string) {}

// CPUSeconds is what the engine used, 0 before its end.
func (l *Load) CPUSeconds() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cpu
}

// noteGone says of each worker that is gone what is missing since then, once.
func (l *Load) noteGone(r load.Record) {
	for _, w := range r.Workers {
		if w.Gone == "" || l.gone[w.Name] {
			continue
		}
		l.gone[w.Name] = true
		l.rec.Note(w.WithoutIt(len(r.Workers)))
	}
}

// Close ends the engine, if it has not ended.
func (l *Load) Close() error {
	if l.Engine != nil {
		l.Kill()
	}
	return nil
}

// Drive drives plan without observing anything: do gets each record.
func Drive(ctx context.Context, engines Engines, plan model.LoadPlan, do func(load.Record)) error {
	begin, err := engines(ctx, plan)
	if err != nil {
		return err
	}
	e, err := begin(ctx)
	if err != nil {
		return err
	}
	for r := range e.Records() {
		do(r)
	}
	return e.Err()
}
