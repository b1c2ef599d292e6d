// Package session makes one run, from plan to closed directory: it opens the
// hosts, samples them round by round, drives our own load or the user's
// command beside that, and marks the windows. What a run means is not its
// business: it only fills the directory.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/all"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/secret"
	"plimsoll/internal/trace"
)

// HostSpec is a host as the user named it: Name is the label, Spec one of
// "local", "netns:NAME", "pid:N".
type HostSpec struct{ Name, Spec string }

// Options are what every kind of session needs.
type Options struct {
	// Hosts to observe; empty means this one, as "local".
	Hosts []HostSpec
	// Interval is the time between two sampling rounds.
	Interval time.Duration
	// Trace says which tracers watch; "" is off.
	Trace TraceLevel
	// Tracers are all that there are, of every level.
	Tracers []trace.Tracer
	// Dir is the run directory to make; it must not exist yet.
	Dir     string
	Version string
	// Site is what the site changed about the rules, nil for nothing; it is
	// recorded, so that the run is judged alike elsewhere.
	Site *model.Site
	// Engine is the command line of the load engine's process: it reads a
	// model.LoadPlan from stdin and prints load.Records as JSON lines. It must
	// end when its stdin is closed.
	Engine []string
	// Holder is the command line of a process that calls Hold with the path and the
	// words of a command, which follow.
	Holder []string
	// Progress, if set, is told about the course now and then, from one goroutine.
	Progress func(Progress)
}

// DirError says that the run directory could not be made.
type DirError struct{ Err error }

func (e DirError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e DirError) Unwrap() error { return e.Err }

// Progress is what a person who waits wants to know.
type Progress struct {
	Window  string // the one that is open
	Elapsed time.Duration
	Planned time.Duration // of that window; 0 when it ends with a command
	// The rest is 0 without our own load.
	RPS, GoodRPS float64 // over the last second
	Failed       int64   // requests without a good reply so far
	// FailedAttempts is how many attempts to connect failed in a closed loop, where they were no requests.
	FailedAttempts int64
}

// Phases are the lengths of the parts of a run that carry no load; 0 leaves one out.
type Phases struct{ Baseline, Cool time.Duration }

// session is one run in the making.
type session struct {
	opt     Options
	out     *writer.Writer
	hosts   []*host.Host
	here    *host.Host // where the load comes from; nil when there is none
	sampler *probe.Sampler
	tracing *tracing
	last    time.Time // time stamp of the newest round
	opened  time.Time // when the open window began
	started time.Time
	loadAt  int64   // time stamp of the load's newest samples, Unix milliseconds
	holding bool    // the open window is hold
	held    bool    // there is, or was, a hold window
	cpu0    float64 // our CPU seconds when the run began
	peak    int64   // our largest resident memory, in bytes
	loadCPU float64 // the engine's own
	garbage int     // the garbage collector's percentage before, to be set again
}

// garbage is how many per cent the heap may grow between two collections while a host
// is watched: it has some 10 MB, and going through them is dearer than room for more.
const garbage = 300

// open makes the run directory and starts sampling; the first round is taken.
func open(ctx context.Context, opt Options, plan model.Plan) (_ *session, err error) {
	if len(opt.Hosts) == 0 {
		opt.Hosts = []HostSpec{{Name: "local", Spec: "local"}}
	}
	s := &session{opt: opt, started: time.Now(), garbage: debug.SetGCPercent(garbage)}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	if err := s.openHosts(&plan); err != nil {
		return nil, err
	}
	if plan.Load != nil {
		public := plan.Load.WithoutSecrets()
		plan.Load = &public
	}
	plan.Command = secret.Args(plan.Command)
	run := model.Run{Version: opt.Version, Started: s.started.UnixMilli(), Plan: plan, Site: opt.Site}
	for _, h := range s.hosts {
		info, err := h.Info()
		if err != nil {
			return nil, err
		}
		run.Hosts = append(run.Hosts, info)
	}
	if s.out, err = writer.Create(opt.Dir, run); err != nil {
		return nil, DirError{err}
	}
	s.cpu0, _, err = probe.SelfCost()
	if err != nil {
		return nil, err
	}
	s.sampler = probe.NewSampler(s.hosts, all.All(), s.out, opt.Interval)
	// The tracers come first: what the probes read of a process holds while its mark does.
	s.tracing = startTracing(cmp.Or(opt.Trace, TraceOff), opt.Tracers, s.hosts, s.out, s.now)
	s.mark()
	if err := s.sampler.Start(ctx); err != nil {
		_, e := s.tracing.close()
		return nil, errors.Join(err, e)
	}
	return s, nil
}

// mark lets the probes know from a tracer, if one can tell, which processes have
// done nothing since they were read.
func (s *session) mark() {
	for _, one := range s.tracing.all() {
		marker, ok := one.running.(host.Marker)
		if !ok {
			continue
		}
		for _, h := range s.hosts {
			h.SetMarker(marker)
		}
	}
}

// openHosts opens what the user named and, when requests will come from this
// host and nobody named it, this host too: the requests pass through it.
func (s *session) openHosts(plan *model.Plan) error {
	seen := map[string]bool{}
	for _, spec := range s.opt.Hosts {
		if seen[spec.Name] {
			return fmt.Errorf("host %s: named twice; give each --host a name of its own", spec.Name)
		}
		seen[spec.Name] = true
		h, err := host.Open(spec.Name, spec.Spec)
		if err != nil {
			return err
		}
		s.hosts = append(s.hosts, h)
	}
	if plan.Load == nil && len(plan.Command) == 0 {
		return nil
	}
	here, err := s.generator()
	if err != nil {
		return err
	}
	s.here, plan.Generator = here, here.Name
	return nil
}

// HereName is the name under which this host is observed when the user did not
// name it and a load comes from it, "" where one of the hosts is this one.
func HereName(hosts []HostSpec) string {
	name := "local"
	for _, h := range hosts {
		if h.Spec == "local" {
			return ""
		}
		if h.Name == name {
			name = "generator"
		}
	}
	return name
}

func (s *session) generator() (*host.Host, error) {
	here, err := host.Open(cmp.Or(HereName(s.opt.Hosts), "local"), "local")
	if err != nil {
		return nil, err
	}
	own, err := here.Info()
	if err != nil {
		here.Close()
		return nil, err
	}
	for _, h := range s.hosts {
		info, err := h.Info()
		if err != nil {
			here.Close()
			return nil, err
		}
		if info.NetNS == own.NetNS && info.Machine == own.Machine {
			return h, here.Close()
		}
	}
	s.hosts = append(s.hosts, here)
	return here, nil
}

// now is the wall clock as it stood when the run began plus what has passed
// since: time must not run back in a series when somebody sets the clock.
func (s *session) now() time.Time {
	return s.started.Add(time.Since(s.started)).Truncate(time.Millisecond)
}

// round reads everything that is due, stamped with the time it begins: a tick
// that had to wait for the last round tells an earlier one. A host that does
// not answer ends no run.
func (s *session) round(ctx context.Context, force bool) error {
	t := s.now()
	if !t.After(s.last) {
		t = s.last.Add(time.Millisecond)
	}
	s.last = t
	if err := s.sampler.Round(ctx, t, force); err != nil {
		return err
	}
	s.tracing.read(t)
	_, rss, err := probe.SelfCost()
	s.peak = max(s.peak, rss)
	return err
}

// window closes the open window and opens the one called name ("" opens
// none). A round is taken at the boundary, so that counters differ by whole readings.
func (s *session) window(ctx context.Context, name string, with func(t int64)) error {
	if s.holding {
		s.tracing.endBursts()
	}
	if err := s.round(ctx, true); err != nil {
		return err
	}
	if s.holding {
		s.tracing.keepStacks()
	}
	s.holding = name == model.Hold
	s.held = s.held || s.holding
	t := s.last.UnixMilli()
	if with != nil {
		with(t)
	}
	s.opened = s.last
	if err := s.out.Commit(); err != nil {
		return err
	}
	if s.holding {
		s.tracing.hold()
	}
	cost, err := s.cost()
	if err != nil {
		return err
	}
	return s.out.Update(func(r *model.Run) {
		r.Cost = cost
		if n := len(r.Windows); n > 0 && r.Windows[n-1].End == 0 {
			r.Windows[n-1].End = t
		}
		if name != "" {
			r.Windows = append(r.Windows, model.Window{Name: name, Start: t})
		}
	})
}

// cost is what observing took since the run began.
func (s *session) cost() (model.Cost, error) {
	cpu, _, err := probe.SelfCost()
	cpu -= s.cpu0
	wall := time.Since(s.started).Seconds()
	return model.Cost{CPUSeconds: cpu, WallSeconds: wall, CPUShare: cpu / wall, MaxRSS: s.peak, LoadCPUSeconds: s.loadCPU}, err
}

// close ends the run: no window stays open, the directory is complete.
func (s *session) close(ctx context.Context) error {
	s.noteGone()
	err := s.window(ctx, "", nil)
	for _, h := range s.hosts {
		h.SetMarker(nil)
	}
	traced, e := s.tracing.close()
	err = errors.Join(err, e, s.out.Update(func(r *model.Run) { r.Tracing = traced }))
	if e := s.release(); err == nil {
		err = e
	}
	return err
}

// release gives everything back; what was recorded stays readable.
func (s *session) release() error {
	debug.SetGCPercent(s.garbage)
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	if s.sampler != nil {
		keep(s.sampler.Close())
	}
	for _, h := range s.hosts {
		keep(h.Close())
	}
	if s.out != nil {
		keep(s.out.Close())
	}
	return first
}

func (s *session) progress(p Progress) {
	if s.opt.Progress == nil {
		return
	}
	if p.Elapsed == 0 {
		p.Elapsed = s.last.Sub(s.opened)
	}
	s.opt.Progress(p)
}
