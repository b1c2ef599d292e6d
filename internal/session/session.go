// Package session makes one run, from plan to closed directory: it has collectors
// observe the hosts, drives our own load or the user's command beside that, and
// walks through the windows. What a run means is not its business: it only fills
// the directory.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/collect"
	"plimsoll/internal/collect/pipe"
	"plimsoll/internal/loadtool"
	"plimsoll/internal/model"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/secret"
	"plimsoll/internal/trace"
)

// HostSpec is a host as the user named it.
type HostSpec = collect.HostSpec

// Options are what every kind of session needs.
type Options struct {
	// Hosts to observe; empty means this one, as "local".
	Hosts []HostSpec
	// Interval is the time between two sampling rounds.
	Interval time.Duration
	// Trace says which tracers watch; "" is off.
	Trace collect.TraceLevel
	// Packets is the interface of each host whose packets are captured, or any; "" for none.
	Packets string
	// Program is the one program of the first host that is asked about, or the command (model.ProgramCommand); "" for none.
	Program string
	// Tracers are all that there are, of every level.
	Tracers []trace.Tracer
	// CommandLine are the words that make such a run again (model.Plan); nil where nobody typed them.
	CommandLine []string
	// Dir is the run directory to make; it must not exist yet.
	Dir     string
	Version string
	// Site is what the site changed about the rules, nil for nothing; it is
	// recorded, so that the run is judged alike elsewhere.
	Site *model.Site
	// Engine is what plays a load.
	Engine collect.Engines
	// From are the hosts from which the load comes, by name, all of which are observed; none is this machine.
	From []string
	// Holder is the command line of a process that calls Hold with the path and the
	// words of a command, which follow.
	Holder []string
	// Reach starts a collector where a host's Via says that there is to be one. When ctx
	// is done before it stands, it is given up. Nil where no host has a Via.
	Reach func(ctx context.Context, via string) (Way, error)
	// Listen, if set, is called in a goroutine of its own with a listener to all that is
	// recorded, and waited for at the end.
	Listen func(*writer.Listener)
	// Ours are the sockets, by inode, on which the run is shown while it lasts: they are
	// not observed.
	Ours []uint32
	// Aside are processes of ours on this machine that show the run: they are not traced.
	Aside []int
	// Progress, if set, is told about the course now and then, from one goroutine.
	Progress func(Progress)
}

// Way is a pipe to a collector, whose closing ends it.
type Way struct {
	io.ReadWriteCloser
	// Note says what the collector runs without, "" if it has all that it may want.
	Note string
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
	all     collectors
	own     *collect.Local // that of all which is in this process, and has the load
	here    string         // the host from which the load comes, if it comes from here; "" when there is none
	from    []string       // the hosts from which it comes
	load    *collect.Load
	started time.Time
	opened  time.Time // when the open window began
	held    bool      // there is, or was, a hold window
	notes   []string  // of the way to hosts
	brings  bool      // a command is run, and nobody knows what programs it brings
	hearing sync.WaitGroup
}

// listenerRoom is how many rounds a listener may be behind.
const listenerRoom = 8

// open makes the run directory and starts to observe.
func open(ctx context.Context, opt Options, plan model.Plan) (_ *session, err error) {
	if len(opt.Hosts) == 0 {
		opt.Hosts = []HostSpec{{Name: "local", Spec: "local"}}
	}
	s := &session{opt: opt, started: time.Now()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	s.brings = len(plan.Command) > 0 && loadtool.New(plan.Command) == nil
	if err := s.openHosts(ctx, plan.Load != nil && len(opt.From) == 0 || len(plan.Command) > 0, len(plan.Command) > 0); err != nil {
		return nil, err
	}
	if s.from = []string{s.here}; plan.Load != nil && len(opt.From) > 0 {
		s.from = opt.From
	}
	if s.out, err = writer.Create(opt.Dir, s.run(plan)); err != nil {
		return nil, DirError{err}
	}
	for _, n := range s.notes {
		s.out.Note(n)
	}
	if opt.Listen != nil {
		l := s.out.Listen(listenerRoom)
		s.hearing.Go(func() { opt.Listen(l) })
	}
	if err := s.all.start(ctx, collect.Into(s.out)); err != nil {
		return nil, err
	}
	for _, pid := range opt.Aside {
		if err := s.all.ignore(pid); err != nil {
			s.out.Note(fmt.Sprintf("the process that shows the run is traced with all others: %v", err))
		}
	}
	return s, nil
}

// run is the manifest as the run begins.
func (s *session) run(plan model.Plan) model.Run {
	if s.opt.Program != model.ProgramCommand { // that is asked about, and is no load
		plan.Generator = s.from[0]
	}
	if plan.Load != nil {
		plan.Generators = s.opt.From
		public := plan.Load.WithoutSecrets()
		plan.Load = &public
	}
	plan.Command, plan.Packets = secret.Args(plan.Command), s.opt.Packets
	run := model.Run{Version: s.opt.Version, Started: s.started.UnixMilli(), Plan: plan, Site: s.opt.Site}
	for _, h := range s.all.hosts(s.opt.Hosts) {
		h.Spec = spelled(h.Spec, h.Name, s.opt.Hosts)
		run.Hosts = append(run.Hosts, h.Host)
	}
	return run
}

// openHosts has collectors open what the user named and, when requests will come from
// this host and nobody named it, this host too: the requests pass through it.
func (s *session) openHosts(ctx context.Context, requests, commanded bool) (err error) {
	here := ""
	if requests {
		here = cmp.Or(HereName(s.opt.Hosts), "local")
	}
	seen := map[string]bool{}
	var ways []string
	hosts := map[string][]HostSpec{} // by the way there
	for _, spec := range s.opt.Hosts {
		if seen[spec.Name] {
			return fmt.Errorf("host %s: named twice; give each --host a name of its own", spec.Name)
		}
		seen[spec.Name] = true
		if hosts[spec.Via] == nil && spec.Via != "" {
			ways = append(ways, spec.Via)
		}
		hosts[spec.Via] = append(hosts[spec.Via], spec)
	}
	for _, via := range ways {
		c := s.config(hosts[via])
		if via == OwnProcess {
			c.Here, here = here, "" // what is on this machine is one collector's
			c.Brings = s.brings
		}
		s.askAbout(&c, commanded)
		if err := s.reach(ctx, via, c); err != nil {
			return err
		}
	}
	c := s.config(hosts[""])
	c.Here, c.Brings = here, here != "" && s.brings
	s.askAbout(&c, commanded)
	if s.own, err = collect.Open(c, s.opt.Tracers, s.now); err != nil {
		return err
	}
	s.all = append(s.all, member{s.own, "", nil})
	s.here = s.all.here()
	return s.all.apart()
}

// config is a collector's, for these hosts.
func (s *session) config(hosts []HostSpec) collect.Config {
	return collect.Config{Hosts: hosts, Interval: s.opt.Interval, Trace: s.opt.Trace, Packets: s.opt.Packets, Ours: s.opt.Ours}
}

// askAbout has the collector of the first host follow the program that is asked about; of the command, the one where that runs.
func (s *session) askAbout(c *collect.Config, commanded bool) {
	isCommand := s.opt.Program == model.ProgramCommand
	if isCommand && c.Here != "" || !isCommand && slices.ContainsFunc(c.Hosts, func(h HostSpec) bool { return h.Name == s.opt.Hosts[0].Name }) {
		c.Program, c.Later = s.opt.Program, commanded
	}
}

// reach has a collector at the far end of a pipe open hosts.
func (s *session) reach(ctx context.Context, via string, c collect.Config) error {
	way, err := s.opt.Reach(ctx, via)
	if err != nil {
		return pipe.DialError{Via: via, Err: err}
	}
	r, err := pipe.Dial(way, via, s.clock)
	if err != nil {
		return err
	}
	if way.Note != "" {
		s.notes = append(s.notes, fmt.Sprintf("hosts %q are observed there as %s: what belongs to others was not seen", hostNames(c.Hosts), way.Note))
	}
	metered, _ := way.ReadWriteCloser.(meter)
	s.all = append(s.all, member{r, via, metered})
	return r.Open(c)
}

// spelled is a host's spec as the user spelled it where it is on another machine.
func spelled(spec, name string, hosts []HostSpec) string {
	for _, h := range hosts {
		if h.Name == name && !near(h.Via) {
			spec = h.Via
			if h.Spec != "local" {
				spec += "/" + h.Spec
			}
		}
	}
	return spec
}

func hostNames(hosts []HostSpec) (list []string) {
	for _, h := range hosts {
		list = append(list, h.Name)
	}
	return list
}

// HereName is the name under which this host is observed when the user did not
// name it and a load comes from it, "" where one of the hosts is this one.
func HereName(hosts []HostSpec) string {
	name := "local"
	for _, h := range hosts {
		if h.Spec == "local" && near(h.Via) {
			return ""
		}
		if h.Name == name {
			name = "generator"
		}
	}
	return name
}

// clock is the wall clock as it stood when the run began plus what has passed
// since: time must not run back in a series when somebody sets the clock.
func (s *session) clock() time.Time { return s.started.Add(time.Since(s.started)) }

// now is clock as series have it, in whole milliseconds.
func (s *session) now() time.Time { return s.clock().Truncate(time.Millisecond) }

// window closes the open window and opens the one called name ("" opens
// none). A round is taken at the boundary, so that counters differ by whole readings.
func (s *session) window(ctx context.Context, name string) error {
	settled := s.all.settle()
	at := s.now()
	if !at.After(settled) {
		at = settled.Add(time.Millisecond)
	}
	if err := s.all.edge(context.WithoutCancel(ctx), collect.Edge{Time: at, Window: name}); err != nil {
		return err
	}
	s.held = s.held || name == model.Hold
	s.opened = at
	cost, err := s.cost()
	if err != nil {
		return err
	}
	t := at.UnixMilli()
	about := s.all.about()
	return s.out.Update(func(r *model.Run) {
		r.Cost, r.Collectors = cost, about
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
	c, err := s.all.cost()
	wall := time.Since(s.started).Seconds()
	cost := model.Cost{CPUSeconds: c.CPUSeconds, WallSeconds: wall, CPUShare: c.CPUSeconds / wall, MaxRSS: c.MaxRSS}
	if s.load != nil {
		cost.LoadCPUSeconds = s.load.CPUSeconds()
	}
	return cost, err
}

// failed is why the run cannot go on, nil while it can.
func (s *session) failed() error {
	if err := s.all.err(); err != nil {
		return err
	}
	return s.out.Err()
}

// close ends the run: no window stays open, the directory is complete.
func (s *session) close(ctx context.Context) error {
	err := s.window(ctx, "")
	if e := s.release(); err == nil {
		err = e
	}
	return err
}

// release gives everything back; what was recorded stays readable.
func (s *session) release() error {
	err := s.all.close()
	if s.out == nil {
		return err
	}
	about := s.all.about()
	err = errors.Join(err, s.out.Update(func(r *model.Run) { r.Collectors = about }), s.out.Close())
	s.hearing.Wait()
	return err
}

func (s *session) progress(p Progress) {
	if s.opt.Progress == nil {
		return
	}
	if p.Elapsed == 0 {
		p.Elapsed = s.now().Sub(s.opened)
	}
	s.opt.Progress(p)
}
