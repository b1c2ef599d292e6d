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

// Load is the load engine's process as a source. What it says comes when the engine
// pleases, and its changes of phase are what windows begin with; so its owner reads
// Records, and hands each to Take.
type Load struct {
	host string
	argv []string
	plan model.LoadPlan
	rec  *Recorder
	now  func() time.Time

	engine *engine

	mu     sync.Mutex
	turn   *load.Record // a change of phase, which belongs to the next edge
	newest int64        // time stamp of the newest samples, Unix milliseconds
	cpu    float64      // what the engine used; 0 until its end
}

// NewLoad prepares a load that comes from host. argv is the command line of the
// engine's process: it reads plan from stdin, prints load.Records as JSON lines, and
// ends when its stdin is closed.
func NewLoad(rec *Recorder, now func() time.Time, host string, argv []string, plan model.LoadPlan) *Load {
	return &Load{host: host, argv: argv, plan: plan, rec: rec, now: now}
}

// Start starts the engine. Cancelling ctx asks it to send nothing more and to end.
func (l *Load) Start(ctx context.Context) (err error) {
	if l.engine, err = startEngine(ctx, l.argv, l.plan); err != nil {
		return err
	}
	for _, sig := range load.Signals {
		l.rec.Book.Set([]string{l.host}, sig, model.Status{State: model.Read}, l.now(), 0)
	}
	return nil
}

// PID is the engine's.
func (l *Load) PID() int { return l.engine.cmd.Process.Pid }

// Records are closed after the last one; Err then says how the engine ended.
func (l *Load) Records() <-chan load.Record { return l.engine.records }

// Err is why the engine gave up, nil when it did not.
func (l *Load) Err() error { return l.engine.err }

// Take records what the engine says. A change of phase is recorded by the next edge.
func (l *Load) Take(r load.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.PhaseStarted != "" {
		l.turn = &r
		return
	}
	l.put(r, l.madeAt(r))
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

// Round records the change of phase at which an edge is.
func (l *Load) Round(_ context.Context, r Round) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Edge && l.turn != nil {
		l.put(*l.turn, r.Time.UnixMilli())
		l.turn = nil
	}
	return nil
}

func (l *Load) put(r load.Record, t int64) {
	t = max(t, l.newest+1)
	l.newest = t
	r.Samples(func(sig *model.Signal, v float64, labels ...string) {
		l.rec.Sample(l.host, t, sig, v, labels...)
	})
	for _, i := range r.Intervals {
		if i.Phase == model.Hold {
			l.rec.Interval(i.Start, i.End, i.Kind, i.Histogram)
		}
	}
}

// lateRecord in milliseconds is longer than a record ever waits for us.
const lateRecord = 10_000

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

// Close ends the engine, if it has not ended.
func (l *Load) Close() error {
	if l.engine == nil {
		return nil
	}
	_ = l.engine.cmd.Process.Kill() // it may have ended
	for range l.engine.records {    // until it is gone
	}
	return nil
}

// Drive drives plan without observing anything: do gets each record. See NewLoad for argv.
func Drive(ctx context.Context, argv []string, plan model.LoadPlan, do func(load.Record)) error {
	e, err := startEngine(ctx, argv, plan)
	if err != nil {
		return err
	}
	for r := range e.records {
		do(r)
	}
	return e.err
}
