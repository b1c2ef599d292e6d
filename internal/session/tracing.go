package session

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/pprof/profile"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/trace"
)

// TraceLevel says which tracers watch: none, those that are nearly free, or all,
// the dear ones in bursts.
type TraceLevel string

// The levels.
const (
	TraceOff   TraceLevel = "off"
	TraceLight TraceLevel = "light"
	TraceFull  TraceLevel = "full"
)

// tracing is the tracers of a session. Its methods may be called from several goroutines.
type tracing struct {
	level TraceLevel
	hosts []*host.Host
	out   *writer.Writer
	now   func() time.Time

	status *probe.StatusBook

	mu     sync.Mutex
	light  []*tracer
	dear   []*dear
	busy   map[string]float64 // groupname → the newest value of the tracers' Busy signals
	bursts *bursts            // nil outside the hold window
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

// startTracing starts the tracers of a level. What cannot be traced is a status
// of its signals, never an error.
func startTracing(level TraceLevel, tracers []trace.Tracer, hosts []*host.Host, out *writer.Writer, now func() time.Time) *tracing {
	t := newTracing(level, hosts, out, now)
	if level == TraceOff {
		return t
	}
	defer trace.ForgetTypes()
	for _, one := range tracers {
		if one.Level == trace.Full && level != TraceFull {
			continue
		}
		running, err := start(one)
		if err != nil {
			t.mark(one, t.now(), func(*model.Signal) model.Status { return host.StatusOf(err) })
			continue
		}
		t.add(one, running)
	}
	return t
}

func newTracing(level TraceLevel, hosts []*host.Host, out *writer.Writer, now func() time.Time) *tracing {
	return &tracing{level: level, hosts: hosts, out: out, now: now, status: probe.NewStatusBook(out), busy: map[string]float64{}}
}

// add takes a tracer that watches; a dear one is switched off.
func (t *tracing) add(one trace.Tracer, running trace.Running) {
	added := tracer{Tracer: one, running: running, sums: newSums(t.hosts)}
	if inBursts(one) {
		t.dear = append(t.dear, &dear{tracer: added})
	} else {
		t.light = append(t.light, &added)
	}
	t.seen(&added, t.now())
}

func inBursts(t trace.Tracer) bool { return t.Level == trace.Full && !t.Throughout }

// start starts a tracer; a dear one waits for its first burst.
func start(t trace.Tracer) (trace.Running, error) {
	if err := t.MayRun(); err != nil {
		return nil, err
	}
	attach := t.Start
	if t.StartInRun != nil {
		attach = t.StartInRun
	}
	running, err := attach()
	if err != nil || !inBursts(t) {
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
	var every time.Duration // light ones are read in each round
	if inBursts(of) {
		every = burstEvery
	}
	for _, s := range of.Signals {
		t.status.Set(names, s, status(s), at, every)
	}
}

// failed says that a tracer was not read, or not switched on, at a time; what it
// counted stays, and the next time may be better.
func (t *tracing) failed(one *tracer, at time.Time, err error) {
	if !one.failing {
		t.out.Note(fmt.Sprintf("tracer %s failed at %s: %v", one.Name, at.UTC().Format("15:04:05"), err))
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

// ignore leaves a process of ours out of everything.
func (t *tracing) ignore(pid int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, one := range t.all() {
		errs = append(errs, one.running.Ignore(pid))
	}
	return errors.Join(errs...)
}

func (t *tracing) all() []*tracer {
	all := slices.Clone(t.light)
	for _, d := range t.dear {
		all = append(all, &d.tracer)
	}
	return all
}

// read records what the light tracers have counted, as of at.
func (t *tracing) read(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.light {
		if err := one.read(); err != nil {
			t.failed(one, at, err)
			continue
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
}

func (t *tracer) read() error {
	t.sums.begin()
	return t.running.Read(t.sums)
}

func (t *tracing) sample(s *sum, at time.Time, v float64) {
	t.out.Sample(s.host, at.UnixMilli(), s.signal, v, s.labels...)
}

// hold begins the hold window: its bursts, and the stacks that belong to it.
func (t *tracing) hold() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.light {
		if one.Profile != "" {
			one.before = t.profile(one)
		}
	}
	if len(t.dear) > 0 {
		t.bursts = t.startBursts()
	}
}

// endBursts ends those of the hold window.
func (t *tracing) endBursts() {
	t.mu.Lock()
	bursts := t.bursts
	t.bursts = nil
	t.mu.Unlock()
	if bursts != nil {
		bursts.end()
	}
}

// keepStacks takes the stacks of the hold window, which is over.
func (t *tracing) keepStacks() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.all() {
		if one.Profile == "" {
			continue
		}
		one.stacks = t.profile(one)
		if one.stacks != nil && one.before != nil {
			one.stacks = since(one.stacks, one.before)
		}
	}
}

func (t *tracing) profile(one *tracer) *profile.Profile {
	p, err := one.running.(trace.Profiler).Profile()
	if err != nil {
		t.out.Note(fmt.Sprintf("the stacks of tracer %s could not be read: %v", one.Name, err))
		return nil
	}
	return p
}

// since is what came to a profile since before.
func since(p, before *profile.Profile) *profile.Profile {
	start, length := before.TimeNanos+before.DurationNanos, p.DurationNanos-before.DurationNanos
	before.Scale(-1)
	both, err := profile.Merge([]*profile.Profile{p, before})
	if err != nil {
		return p // they are not of one tracer, which cannot be
	}
	both.Sample = slices.DeleteFunc(both.Sample, func(s *profile.Sample) bool {
		return !slices.ContainsFunc(s.Value, func(v int64) bool { return v > 0 })
	})
	both.TimeNanos, both.DurationNanos = start, length
	return both.Compact()
}

// close writes the stacks, detaches everything, and returns what the run's
// manifest says of tracing; nil if there was none.
func (t *tracing) close() (*model.Tracing, error) {
	if t.level == TraceOff {
		return nil, nil
	}
	said := &model.Tracing{Level: string(t.level)}
	var errs []error
	for _, one := range t.all() {
		if one.stacks != nil && len(one.stacks.Sample) > 0 {
			var data bytes.Buffer
			errs = append(errs, one.stacks.Write(&data), t.out.Profile(one.Profile, data.Bytes()))
			said.Profiles = append(said.Profiles, one.Profile)
		}
		errs = append(errs, one.running.Close())
	}
	for _, d := range t.dear {
		if said.Duty == nil {
			said.Duty = map[string]float64{}
		}
		said.Duty[d.Name] = d.duty()
	}
	return said, errors.Join(errs...)
}
