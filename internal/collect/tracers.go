package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/pprof/profile"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

// TraceLevel says which tracers watch: none, those that are nearly free, these and what shows the functions of
// scripts where one runs, or all, the expensive ones in bursts.
type TraceLevel string

// The levels.
const (
	TraceOff   TraceLevel = "off"
	TraceLight TraceLevel = "light"
	TraceAuto  TraceLevel = "auto"
	TraceFull  TraceLevel = "full"
)

// TraceLevels are all of them, the cheapest first.
var TraceLevels = []TraceLevel{TraceOff, TraceLight, TraceAuto, TraceFull}

// tracing is the tracers of a level, as a source. Its methods may be called from several
// goroutines.
type tracing struct {
	level TraceLevel
	known []trace.Tracer
	hosts []*host.Host
	rec   *Recorder
	now   func() time.Time
	more  bool // programs that nobody knows yet will be started

	mu      sync.Mutex
	steady  []*tracer          // they watch all the time
	bursty  []*bursty          // they watch in bursts
	sparing []*sparing         // they watch all the time while that is cheap, and else in bursts
	busy    map[string]float64 // groupname → the newest value of the tracers' Busy signals
	bursts  *bursts            // nil outside the hold window
	holding bool               // it is the hold window
	ours    []int              // processes that are left out
}

// tracer is one that watches.
type tracer struct {
	trace.Tracer
	running trace.Running
	sums    *sums
	before  *profile.Profile // the stacks when the hold window began
	stacks  *profile.Profile // those of the hold window
	failing bool             // the last try failed
}

func newTracing(level TraceLevel, known []trace.Tracer, hosts []*host.Host, rec *Recorder, now func() time.Time) *tracing {
	return &tracing{level: level, known: known, hosts: hosts, rec: rec, now: now, busy: map[string]float64{}}
}

// Start starts the tracers of the level. What cannot be traced is a status of its
// signals, never an error.
func (t *tracing) Start(context.Context) error {
	t.begin(t.lacks)
	for _, one := range t.all() {
		t.seen(one, t.now())
	}
	t.tellMarks()
	return nil
}

// begin starts the tracers of the level, and tells why one could not be.
func (t *tracing) begin(cannot func(trace.Tracer, error)) {
	if t.level == TraceOff {
		return
	}
	defer trace.ForgetTypes()
	for _, one := range t.known {
		if !t.level.has(one.Level) {
			continue
		}
		running, err := t.start(one)
		if err != nil {
			cannot(one, err)
			continue
		}
		t.add(one, running)
	}
}

// lacks says that a tracer could not be started.
func (t *tracing) lacks(one trace.Tracer, err error) {
	t.mark(one, t.now(), func(*model.Signal) model.Status { return host.StatusOf(err) })
}

// again starts the same tracers beside those that watch, to replace them. The error is of those that watch and could not be
// started a second time.
func (t *tracing) again() (*tracing, error) {
	fresh := newTracing(t.level, t.known, t.hosts, t.rec, t.now)
	fresh.more = t.more
	var errs []error
	fresh.begin(func(one trace.Tracer, err error) {
		if t.has(one.Name) {
			errs = append(errs, fmt.Errorf("tracer %s: %w", one.Name, err))
		} else {
			t.lacks(one, err)
		}
	})
	if err := fresh.ignore(t.ours...); err != nil {
		return nil, errors.Join(err, t.stay(fresh))
	}
	return fresh, errors.Join(errs...)
}

// stay ends what was to replace it, and goes on: what that said of signals does not hold.
func (t *tracing) stay(fresh *tracing) error {
	err := fresh.detach()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.all() {
		if !one.failing {
			t.seen(one, t.now())
		}
	}
	return err
}

// replace takes what watches in fresh, and gives back what watched in its place; the rest goes on. It is called between rounds.
func (t *tracing) replace(fresh *tracing) (old []trace.Running) {
	t.Settle()
	for _, s := range t.sparing {
		if fresh.has(s.Name) {
			t.endTurns(s)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.all() {
		if fresh.has(one.Name) {
			old = append(old, one.running)
		}
	}
	t.steady = append(slices.DeleteFunc(t.steady, func(o *tracer) bool { return fresh.has(o.Name) }), fresh.steady...)
	t.bursty = append(slices.DeleteFunc(t.bursty, func(o *bursty) bool { return fresh.has(o.Name) }), fresh.bursty...)
	t.sparing = append(slices.DeleteFunc(t.sparing, func(o *sparing) bool { return fresh.has(o.Name) }), fresh.sparing...)
	clear(t.busy)
	t.holding = false // what has not watched from its beginning is no window
	for _, one := range fresh.all() {
		t.seen(one, t.now())
	}
	fresh.tellMarks()
	return old
}

// has says whether a tracer of a name watches.
func (t *tracing) has(name string) bool {
	return slices.ContainsFunc(t.all(), func(one *tracer) bool { return one.Name == name })
}

// add takes a tracer that watches; one for bursts is switched off.
func (t *tracing) add(one trace.Tracer, running trace.Running) {
	added := tracer{Tracer: one, running: running, sums: newSums(t.hosts)}
	if watch, ok := running.(trace.Sparing); ok && one.Level == trace.Light {
		t.addSparing(&sparing{tracer: added, watch: watch})
	} else if inBursts(one) {
		t.bursty = append(t.bursty, &bursty{tracer: added})
	} else {
		t.steady = append(t.steady, &added)
	}
}

// tellMarks has the tracer that can tell the probes which processes have done nothing since they were read.
func (t *tracing) tellMarks() {
	for _, one := range t.all() {
		if marker, ok := one.running.(host.Marker); ok {
			for _, h := range t.hosts {
				h.SetMarker(marker)
			}
		}
	}
}

// has says whether tracers of a level of theirs watch.
func (l TraceLevel) has(of trace.Level) bool {
	return l == TraceFull || of == trace.Light || of == trace.Auto && l == TraceAuto
}

func inBursts(t trace.Tracer) bool { return t.InBursts || t.Level == trace.Full }

// start starts a tracer; one for bursts waits for its first.
func (t *tracing) start(one trace.Tracer) (trace.Running, error) {
	if err := one.MayRun(); err != nil {
		return nil, err
	}
	attach := one.Start
	switch {
	case one.Level == trace.Auto && t.level == TraceAuto:
		attach = func() (trace.Running, error) { return one.StartFor(t.hosts, t.more) }
	case one.StartInRun != nil:
		attach = one.StartInRun
	}
	running, err := attach()
	if err != nil || !inBursts(one) {
		return running, err
	}
	if err := running.Pause(); err != nil {
		return nil, errors.Join(err, running.Close())
	}
	return running, nil
}

// mark records what became of a tracer's signals at a time.
func (t *tracing) mark(of trace.Tracer, at time.Time, status func(*model.Signal) model.Status) {
	var names []string
	for _, h := range t.hosts {
		names = append(names, h.Name)
	}
	var every time.Duration // steady ones are read in each round
	if inBursts(of) {
		every = burstEvery
	}
	for _, s := range of.Signals {
		t.rec.Book.Set(names, s, status(s), at, every)
	}
}

// failed says that a tracer was not read, or not switched on, at a time; what it
// counted stays, and the next time may be better.
func (t *tracing) failed(one *tracer, at time.Time, err error) {
	if !one.failing {
		t.rec.Note(fmt.Sprintf("tracer %s failed at %s: %v", one.Name, at.UTC().Format("15:04:05"), err))
	}
	one.failing = true
	t.mark(one.Tracer, at, func(*model.Signal) model.Status { return host.StatusOf(err) })
}

// seen says that a tracer works at a time.
func (t *tracing) seen(one *tracer, at time.Time) {
	one.failing = false
	status := one.running.Status()
	t.mark(one.Tracer, at, func(s *model.Signal) model.Status { return status[s.Name] })
}

// ignore leaves processes of ours out of everything.
func (t *tracing) ignore(pids ...int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ours = append(t.ours, pids...)
	var errs []error
	for _, one := range t.all() {
		errs = append(errs, one.running.Ignore(t.ours...))
	}
	return errors.Join(errs...)
}

func (t *tracing) all() []*tracer {
	all := slices.Clone(t.steady)
	for _, b := range t.bursty {
		all = append(all, &b.tracer)
	}
	for _, s := range t.sparing {
		all = append(all, &s.tracer)
	}
	return all
}

// apart is what those have used that do their work in a process of their own.
func (t *tracing) apart() (cpuSeconds float64, maxRSS int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.steady {
		if a, is := one.running.(trace.Apart); is {
			cpu, rss := a.Used()
			cpuSeconds, maxRSS = cpuSeconds+cpu, maxRSS+rss
		}
	}
	return cpuSeconds, maxRSS
}

// Settle ends the bursts of the hold window, and none is begun until the next one.
func (t *tracing) Settle() {
	t.mu.Lock()
	bursts := t.bursts
	t.bursts = nil
	t.mu.Unlock()
	if bursts != nil {
		bursts.end()
	}
}

// Round records what the steady tracers have counted and, at an edge, what those that
// watched in bursts are estimated to have until then.
func (t *tracing) Round(_ context.Context, r Round) error {
	if r.Edge {
		t.Settle()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.steady {
		t.readSteady(one, r.Time)
	}
	for _, one := range t.sparing {
		t.readSparing(one, r.Time)
	}
	if r.Edge && t.holding {
		for _, b := range t.bursty {
			t.estimate(b, r.Time)
		}
	}
	return nil
}

func (t *tracing) readSteady(one *tracer, at time.Time) {
	if err := one.read(); err != nil {
		t.failed(one, at, err)
		return
	}
	if one.failing {
		t.seen(one, at)
	}
	one.sums.each(func(s *sum) {
		t.sample(s, at, s.value)
		if s.signal == one.Busy {
			t.busy[s.labels[0]] = s.value
		}
	})
}

func (t *tracer) read() error {
	t.sums.begin()
	return t.running.Read(t.sums)
}

func (t *tracing) sample(s *sum, at time.Time, v float64) {
	t.rec.Sample(s.host, at.UnixMilli(), s.signal, v, s.labels...)
}

// Phase begins the bursts and the stacks of the hold window, or takes the stacks of one
// that is over.
func (t *tracing) Phase(window string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holding {
		t.keepStacks()
	}
	t.holding = window == model.Hold
	if !t.holding {
		return
	}
	for _, one := range t.steady {
		if one.Profile != "" {
			one.before = t.stacksOf(one)
		}
	}
	if len(t.bursty) > 0 {
		t.bursts = t.startBursts()
	}
}

// Close writes the stacks, tells what there was of tracing, and detaches everything.
func (t *tracing) Close() error {
	t.halt()
	if t.level == TraceOff {
		return nil
	}
	said := model.Tracing{Level: string(t.level)}
	var errs []error
	for _, one := range t.all() {
		if one.stacks != nil && len(one.stacks.Sample) > 0 {
			errs = append(errs, t.write(one))
			said.Profiles = append(said.Profiles, one.Profile)
		}
	}
	said.Duty = t.duty()
	t.rec.Traced(said)
	return errors.Join(append(errs, t.detach())...)
}

// halt ends bursts and turns, and none is begun.
func (t *tracing) halt() {
	t.Settle()
	for _, s := range t.sparing {
		t.endTurns(s)
	}
}

// detach detaches everything that was halted, and tells nothing.
func (t *tracing) detach() error {
	var errs []error
	for _, one := range t.all() {
		errs = append(errs, one.running.Close())
	}
	return errors.Join(errs...)
}

// duty is, by tracer, the share of the hold window in which those watched that did not
// watch throughout; nil if all did.
func (t *tracing) duty() map[string]float64 {
	duty := map[string]float64{}
	for _, b := range t.bursty {
		duty[b.Name] = b.duty()
	}
	for _, s := range t.sparing {
		if share := s.duty(); share < 1 {
			duty[s.Name] = share
		}
	}
	if len(duty) == 0 {
		return nil
	}
	return duty
}
