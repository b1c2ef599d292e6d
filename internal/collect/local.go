package collect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/clock"
	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/all"
	"plimsoll/internal/probe/program"
	"plimsoll/internal/trace"
)

// HostSpec is a host as the user named it.
type HostSpec struct {
	Name string `json:"name"` // the label
	Spec string `json:"spec"` // "local", "netns:NAME", "pid:N", as its collector has it
	// Via is the way to its collector, "" for this process.
	Via string `json:"-"`
}

// Config says what a collector observes, and how.
type Config struct {
	Hosts []HostSpec `json:"hosts"`
	// Here is the name under which the host that the collector runs on is observed, too,
	// unless it is among Hosts under another; "" if it need not be.
	Here string `json:"here,omitempty"`
	// Interval is the time between two rounds.
	Interval time.Duration `json:"interval_ns"`
	// Rounds, if set, says when rounds are taken, in place of a clock of our own: for benchmarks in which a month is short.
	Rounds <-chan time.Time `json:"-"`
	// Trace says which tracers watch; "" is off.
	Trace TraceLevel `json:"trace,omitempty"`
	// Packets is the interface of each host whose packets are captured, or any; "" for none.
	Packets string `json:"packets,omitempty"`
	// Ours are the sockets on which we ourselves listen to show the run, by inode: they
	// are none of a host's services.
	Ours []uint32 `json:"ours,omitempty"`
	// Program is the one program of the first host that is asked about: a PID, a NAME, unit:NAME, container:NAME, or
	// model.ProgramCommand; "" for none.
	Program string `json:"program,omitempty"`
	// Later says that the program need not be there yet.
	Later bool `json:"later,omitempty"`
	// Brings says that a command will be started here, and that nobody knows what programs it brings.
	Brings bool `json:"brings,omitempty"`
}

// Cost is what a collector has used so far, its process and those of its tracers.
type Cost struct {
	CPUSeconds float64 `json:"cpu_seconds"`
	MaxRSS     int64   `json:"max_rss_bytes"` // as of its rounds
}

// garbage is how many per cent the heap may grow between two collections while a host
// is watched: it has some 10 MB, and going through them is dearer than room for more.
const garbage = 300

// Local is a collector in this process. Its methods are called from one goroutine.
type Local struct {
	config  Config
	tracers []trace.Tracer
	now     func() time.Time
	steps   *clock.Steps

	hosts   []*host.Host
	named   []Host
	here    *host.Host // nil: none was asked for
	rec     *Recorder
	tracing *tracing
	probes  probes
	cpu0    float64 // our CPU seconds when it was opened
	percent int     // the garbage collector's before, to be set again
	stop    chan struct{}
	stopped sync.WaitGroup

	mu      sync.Mutex // held in a round
	sources []Source
	ticker  *time.Ticker
	paced   bool      // rounds are taken when Config.Rounds says so
	number  int       // of the newest round
	last    time.Time // its time stamp
	settled time.Time // no round is begun before, but at an edge
	peak    int64     // our largest resident memory
	err     error     // of a round
}

// Open opens the hosts. tracers are all that there are, of every level; now is the
// collector's clock, which must not run back.
func Open(c Config, tracers []trace.Tracer, now func() time.Time) (_ *Local, err error) {
	c.Trace = cmp.Or(c.Trace, TraceOff)
	l := &Local{config: c, tracers: tracers, now: now, steps: clock.NewSteps(), percent: debug.SetGCPercent(garbage), stop: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.release())
		}
	}()
	if l.cpu0, _, err = probe.SelfCost(); err != nil {
		return nil, err
	}
	for _, spec := range c.Hosts {
		h, err := host.Open(spec.Name, spec.Spec)
		if err != nil {
			return nil, err
		}
		l.hosts = append(l.hosts, h)
	}
	if c.Here != "" {
		if err := l.openHere(); err != nil {
			return nil, err
		}
	}
	if err := l.askAbout(c.Program, c.Later); err != nil {
		return nil, err
	}
	for _, h := range l.hosts {
		h.Ours = c.Ours
		if err := l.describe(h); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// askAbout has the probe of one program follow it on the first host; the command on the one where it will run. The error
// says that there is no such program, unless it may come later.
func (l *Local) askAbout(word string, later bool) error {
	if word == "" || len(l.hosts) == 0 {
		return nil
	}
	h := l.hosts[0]
	if word == model.ProgramCommand && l.here != nil {
		h = l.here
	}
	h.Program = word
	if later {
		return nil
	}
	return program.Find(h, word)
}

// openHere finds the host on which we run among the others, else opens it.
func (l *Local) openHere() error {
	here, err := host.Open(l.config.Here, "local")
	if err != nil {
		return err
	}
	own, err := here.Info()
	if err != nil {
		return errors.Join(err, here.Close())
	}
	for _, h := range l.hosts {
		info, err := h.Info()
		if err != nil {
			return errors.Join(err, here.Close())
		}
		if info.NetNS == own.NetNS && info.Machine == own.Machine {
			l.here = h
			return here.Close()
		}
	}
	l.here = here
	l.hosts = append(l.hosts, here)
	return nil
}

func (l *Local) describe(h *host.Host) error {
	info, err := h.Info()
	if err != nil {
		return err
	}
	addresses, err := h.Addresses()
	if err != nil {
		return err
	}
	named := Host{Host: info}
	for _, a := range addresses {
		named.Addresses = append(named.Addresses, a.String())
	}
	l.named = append(l.named, named)
	return nil
}

// Hosts are those that it observes.
func (l *Local) Hosts() []Host { return l.named }

// Here is the name of the host on which the collector runs, "" if it was not asked for.
func (l *Local) Here() string {
	if l.here == nil {
		return ""
	}
	return l.here.Name
}

// Start begins to observe, and to write to log. Rounds are taken from the first edge on.
func (l *Local) Start(ctx context.Context, log Log) error {
	l.rec = newRecorder(log)
	if len(l.hosts) == 0 {
		return nil
	}
	l.tracing, l.probes = l.looks()
	// The tracers come first: what the probes read of a process holds while its mark does.
	err := errors.Join(l.Add(ctx, l.tracing), l.Add(ctx, l.probes))
	if l.config.Packets != "" {
		err = errors.Join(err, l.Add(ctx, newPackets(l.config.Packets, l.hosts, l.rec)))
	}
	return err
}

// looks makes what looks at the hosts.
func (l *Local) looks() (*tracing, probes) {
	tracing := newTracing(l.config.Trace, l.tracers, l.hosts, l.rec, l.now)
	tracing.more = l.config.Brings
	return tracing, probes{probe.NewSampler(l.hosts, all.All(), l.rec.Book, l.config.Interval)}
}

// Full says whether names that were not met before find no room, since those that went away keep theirs.
func (l *Local) Full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.probes.sampler != nil && l.probes.sampler.Full()
}

// Anew has tracers and probes forget everything, which is to start others and to end those of before: processes, containers and
// destinations that went away long ago keep their places in them, else, and those of today find none. What they count up begins at
// zero again. What cannot be started a second time goes on as it was: begun says whether anything did begin anew, and the error
// what did not. Nothing does while a host does not answer: what hangs would hang once more. Rounds are taken meanwhile.
func (l *Local) Anew(ctx context.Context) (begun bool, err error) {
	if l.tracing == nil {
		return false, nil
	}
	if l.late() {
		return false, errors.New("a host does not answer")
	}
	fresh, lacking := l.tracing.again()
	if fresh == nil {
		return false, lacking
	}
	sampler, err := l.probes.sampler.Again(ctx, l.now())
	if err != nil {
		return false, errors.Join(lacking, err, l.tracing.stay(fresh))
	}
	l.end(l.replace(fresh, probes{sampler}))
	return true, lacking
}

func (l *Local) late() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.probes.sampler.Late()
}

// replace has others look from now on, between two rounds, and gives back those that did.
func (l *Local) replace(tracers *tracing, p probes) ([]trace.Running, probes) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.probes
	for i, s := range l.sources {
		if s == Source(before) {
			l.sources[i] = p
		}
	}
	l.probes = p
	old := l.tracing.replace(tracers)
	text := fmt.Sprintf("all that reads was begun anew, since names of what went away took the room of others: what it counts up begins at zero, and nothing was counted since %s",
		l.last.UTC().Format("15:04:05"))
	for _, name := range l.names() {
		l.rec.Event(model.Event{Time: l.now().UnixMilli(), Host: name, Kind: "watch.anew", Text: text})
	}
	return old, before
}

// end ends what others have replaced. That one cannot be ended is no reason to end them, too.
func (l *Local) end(old []trace.Running, p probes) {
	errs := []error{p.Close()}
	for _, one := range old {
		errs = append(errs, one.Close())
	}
	if err := errors.Join(errs...); err != nil {
		l.rec.Note(fmt.Sprintf("what was begun anew could not be ended as it was before: %v", err))
	}
}

// Recorder is what its sources write to, once it is started.
func (l *Local) Recorder() *Recorder { return l.rec }

// Add starts one more source. Close closes it, whatever came of that.
func (l *Local) Add(ctx context.Context, s Source) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sources = append(l.sources, s)
	return s.Start(ctx)
}

// Burst has the tracers of the full level watch for a while as well, as they do in a hold window; the window that
// goes on afterwards is rest. What is started for it is given back.
func (l *Local) Burst(ctx context.Context, d time.Duration, rest string) error {
	if l.config.Trace == TraceOff {
		return errors.New("tracing is off")
	}
	full := slices.DeleteFunc(slices.Clone(l.tracers), func(t trace.Tracer) bool { return t.Level == trace.Light })
	extra := newTracing(TraceFull, full, l.hosts, l.rec, l.now)
	if err := extra.Start(ctx); err != nil { // beside the rounds: the kernel takes its time to look at them
		return errors.Join(err, extra.Close())
	}
	l.mu.Lock()
	l.sources = append(l.sources, extra)
	l.mu.Unlock()
	_, err := l.Edge(ctx, Edge{Time: l.now(), Window: model.Hold})
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	l.Settle()
	_, err2 := l.Edge(context.WithoutCancel(ctx), Edge{Time: l.now(), Window: rest})
	l.mu.Lock()
	l.sources = slices.DeleteFunc(l.sources, func(s Source) bool { return s == Source(extra) })
	l.mu.Unlock()
	return errors.Join(err, err2, extra.Close())
}

// quiet is for how long at least no round is begun after Settle: other collectors settle,
// too, before all have their edge.
const quiet = 3 * time.Second

// Settle ends what sources do between rounds, and takes none for a while, so that the
// edge that follows comes after everything else. It returns a time after all that was
// recorded.
func (l *Local) Settle() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.sources {
		s.Settle()
	}
	now := l.after()
	l.settled = now.Add(max(quiet, l.config.Interval))
	return now
}

// Edge takes a round in which everything is read, and begins a window. Where its time is
// not after everything before, the round has the time at which it is taken; what it had is
// returned.
func (l *Local) Edge(ctx context.Context, e Edge) (time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := e.Time
	if !at.After(l.last) {
		at = l.after()
	}
	l.settled = time.Time{}
	err := l.round(ctx, at, true)
	for _, s := range l.sources {
		s.Phase(e.Window)
	}
	l.tick(ctx, e.Window != "")
	return at, err
}

// after is now, or just after the last round.
func (l *Local) after() time.Time {
	t := l.now().Truncate(time.Millisecond)
	if !t.After(l.last) {
		t = l.last.Add(time.Millisecond)
	}
	return t
}

// round reads everything that is due. A host that does not answer ends no run.
func (l *Local) round(ctx context.Context, at time.Time, edge bool) error {
	if l.err != nil {
		return l.err
	}
	l.number++
	l.last = at
	l.noteStep()
	r := Round{Number: l.number, Time: at, Edge: edge}
	for _, s := range l.sources {
		if l.err = s.Round(ctx, r); l.err != nil {
			return l.err
		}
	}
	var rss int64
	_, rss, l.err = probe.SelfCost()
	_, apart := l.apart()
	l.peak = max(l.peak, rss+apart)
	l.err = errors.Join(l.err, l.rec.Commit(r))
	return l.err
}

// tick begins to take rounds by itself, one interval from now on, or ends it.
func (l *Local) tick(ctx context.Context, on bool) {
	switch {
	case l.config.Rounds != nil:
		if on && !l.paced {
			l.paced = true
			l.takeRounds(ctx, l.config.Rounds)
		}
	case !on && l.ticker != nil:
		l.ticker.Stop()
	case on && l.ticker != nil:
		l.ticker.Reset(l.config.Interval)
	case on:
		l.ticker = time.NewTicker(l.config.Interval)
		l.takeRounds(ctx, l.ticker.C)
	}
}

// takeRounds takes a round at each tick until Close.
func (l *Local) takeRounds(ctx context.Context, ticks <-chan time.Time) {
	ctx = context.WithoutCancel(ctx)
	l.stopped.Go(func() {
		for {
			select {
			case <-l.stop:
				return
			case <-ticks:
				l.regular(ctx)
			}
		}
	})
}

// regular is a round between edges. It is stamped with the time it begins: a tick that
// had to wait tells an earlier one.
func (l *Local) regular(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.after()
	if at.Before(l.settled) {
		return
	}
	l.noteGap(at)
	_ = l.round(ctx, at, false) // Err tells
}

// noteGap says so when the round at a time comes long after the one before: we were
// stopped, or had no CPU.
func (l *Local) noteGap(at time.Time) {
	gap := at.Sub(l.last)
	if len(l.named) == 0 || gap <= l.config.Interval+probe.Blink {
		return
	}
	l.rec.Note(fmt.Sprintf("hosts %q: nobody looked for %v until %s: what observes them was held up; what came and went meanwhile was not seen",
		l.names(), gap.Round(100*time.Millisecond), at.UTC().Format("15:04:05")))
}

// noteStep says so when somebody has set the machine's clock.
func (l *Local) noteStep() {
	if by := l.steps.Noticed(); by != 0 && len(l.named) > 0 {
		l.rec.Note(fmt.Sprintf("hosts %q: their machine's clock was set by %+.1f s, or it slept for so long; times here go on as they did, those in its own logs do not",
			l.names(), by.Seconds()))
	}
}

// Err is why no more rounds are taken, nil while they are.
func (l *Local) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// apart is what tracers have used in processes of their own.
func (l *Local) apart() (cpuSeconds float64, maxRSS int64) {
	if l.tracing == nil {
		return 0, 0
	}
	return l.tracing.apart()
}

// Cost is what this process has used since Open, with what tracers have in processes of their own.
func (l *Local) Cost() (Cost, error) {
	cpu, _, err := probe.SelfCost()
	apart, _ := l.apart()
	l.mu.Lock()
	defer l.mu.Unlock()
	return Cost{CPUSeconds: cpu - l.cpu0 + apart, MaxRSS: l.peak}, err
}

// About is what the manifest says of it.
func (l *Local) About() model.Collector {
	l.mu.Lock()
	defer l.mu.Unlock()
	return model.Collector{Hosts: l.names(), Rounds: l.number}
}

func (l *Local) names() (list []string) {
	for _, h := range l.named {
		list = append(list, h.Name)
	}
	return list
}

// Ignore leaves a process of ours out of what tracers tell.
func (l *Local) Ignore(pid int) error {
	if l.tracing == nil {
		return nil
	}
	return l.tracing.ignore(pid)
}

// Command names the root of the process tree of the command that is watched here.
func (l *Local) Command(pid int) error {
	if l.here != nil {
		l.here.SetCommand(pid)
	}
	return nil
}

// Close ends observing; what the sources kept is recorded.
func (l *Local) Close() error {
	close(l.stop)
	l.stopped.Wait()
	if l.ticker != nil {
		l.ticker.Stop()
	}
	for _, h := range l.hosts {
		h.SetMarker(nil)
	}
	if l.rec != nil {
		l.noteGone()
	}
	var errs []error
	for _, s := range l.sources {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, l.release())...)
}

func (l *Local) release() error {
	debug.SetGCPercent(l.percent)
	var errs []error
	for _, h := range l.hosts {
		errs = append(errs, h.Close())
	}
	return errors.Join(errs...)
}

// noteGone says which of the user's hosts are not there any more at the end:
// "there was none of it" then tells little about them.
func (l *Local) noteGone() {
	for i, spec := range l.config.Hosts {
		again, err := host.Open(spec.Name, spec.Spec)
		if err == nil {
			var is model.Host
			if is, err = again.Info(); err == nil && is.NetNS != l.named[i].NetNS {
				err = fmt.Errorf("host %s: %s is another one now", spec.Name, spec.Spec)
			}
			err = errors.Join(err, again.Close())
		}
		if err != nil {
			l.rec.Note(fmt.Sprintf("%v; it was there when the run began, and what was read of it since may be of an empty shell", err))
		}
	}
}
