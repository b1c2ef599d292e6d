package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
)

const (
	// pollEvery is the time between two calls of Poller.Poll.
	pollEvery = 100 * time.Millisecond
	// patience is how long a round waits for a host before it goes on without it.
	patience = 5 * time.Second
	// blink is for how long a signal may be unreadable, beside the time between
	// its reads, and still count as read: a gauge then has its neighbours, and a
	// counter loses nothing.
	blink = 3 * time.Second
)

// Sampler reads all probes on all hosts, round by round: every host on an OS
// thread of its own in that host's network namespace, and what belongs to the
// machine once, on one more. Its methods are called from one goroutine.
type Sampler struct {
	hosts    []*Host
	probes   []Probe
	rec      Recorder
	interval time.Duration
	patience time.Duration

	workers []*worker
	extra   []*Host // opened by the sampler, to read machines from our own namespace
	status  statusBook
}

// NewSampler prepares sampling of hosts, which it joins (see Join) and does
// not close. interval is the time between rounds that its caller means to
// keep; rec must be safe for concurrent use.
func NewSampler(hosts []*Host, probes []Probe, rec Recorder, interval time.Duration) *Sampler {
	Join(hosts)
	return &Sampler{hosts: hosts, probes: probes, rec: rec, interval: interval, patience: patience,
		status: statusBook{rec: rec, known: map[statusKey]*standing{}}}
}

// Start opens every probe on every host and records the status of those that
// cannot run. The error says which host could not be entered or described.
func (s *Sampler) Start(ctx context.Context) error {
	if err := s.plan(); err != nil {
		return err
	}
	var starts []chan error
	for _, w := range s.workers {
		started := make(chan error, 1)
		starts = append(starts, started)
		w.host.thread(func(err error) {
			if err != nil {
				started <- err
				return
			}
			w.open(time.Now())
			started <- nil
			w.serve()
		})
	}
	var first error
	for i, started := range starts {
		w := s.workers[i]
		select {
		case err := <-started:
			w.running = err == nil
			if first == nil {
				first = err
			}
		case <-ctx.Done():
			return fmt.Errorf("open probes on %s (at %s): %w", w.title(), w.at(), ctx.Err())
		}
	}
	if first != nil {
		return errors.Join(first, s.Close())
	}
	return nil
}

// plan makes a worker for each host and one for each machine.
func (s *Sampler) plan() error {
	perHost, perMachine := s.byScope()
	machines := map[string]*worker{}
	var order []*worker
	for _, h := range s.hosts {
		if len(perHost) > 0 {
			order = append(order, s.newWorker(h, []string{h.Name}, perHost))
		}
		if len(perMachine) == 0 {
			continue
		}
		info, err := h.Info()
		if err != nil {
			return err
		}
		w := machines[info.Machine]
		if w == nil {
			reader, err := s.machineHost(h)
			if err != nil {
				return err
			}
			w = s.newWorker(reader, nil, perMachine)
			machines[info.Machine] = w
			order = append(order, w)
		}
		w.names = append(w.names, h.Name)
	}
	s.workers = order
	return nil
}

func (s *Sampler) byScope() (perHost, perMachine []*Probe) {
	for i := range s.probes {
		p := &s.probes[i]
		if p.Scope == PerMachine {
			perMachine = append(perMachine, p)
		} else {
			perHost = append(perHost, p)
		}
	}
	return perHost, perMachine
}

// machineHost is the host through which h's machine is read: from where we
// run, since a child namespace lacks some of the machine's sysctls.
func (s *Sampler) machineHost(h *Host) (*Host, error) {
	if h.Recorded() || h.ns < 0 {
		return h, nil
	}
	m, err := OpenHost(h.Name, "local")
	if err != nil {
		return nil, err
	}
	s.extra = append(s.extra, m)
	return m, nil
}

func (s *Sampler) newWorker(h *Host, names []string, probes []*Probe) *worker {
	w := &worker{host: h, names: names, rec: s.rec, status: &s.status, interval: s.interval,
		rounds: make(chan *round), done: make(chan struct{})}
	for _, p := range probes {
		w.probes = append(w.probes, &opened{probe: p})
	}
	return w
}

// Round reads every probe that is due on all hosts at once and returns when
// all have finished; every sample is stamped t. force reads those that are not
// due, too: for the edges of windows. A host that takes longer than some
// seconds is left out, with its signals marked failed and a note, until it
// answers again. The error is ctx's.
func (s *Sampler) Round(ctx context.Context, t time.Time, force bool) error {
	var asked []*round
	timeout := time.NewTimer(s.patience)
	defer timeout.Stop()
	for _, w := range s.workers {
		if w.late() {
			continue
		}
		r := &round{worker: w, t: t, force: force, done: make(chan struct{})}
		if w.ask(r, timeout) {
			asked = append(asked, r)
		} else if !w.deaf {
			w.deaf = true
			s.giveUp(w, t)
		}
	}
	for i, r := range asked {
		select {
		case <-r.done:
		case <-timeout.C:
			r.expire()
			s.giveUp(r.worker, t)
			timeout.Reset(0)
		case <-ctx.Done():
			for _, r := range asked[i:] {
				r.expire()
			}
			return ctx.Err()
		}
	}
	return ctx.Err()
}

// ask hands the round to the worker; false when it does not take it in time.
// One that did not take the last round (a Poll hangs) is not waited for again.
func (w *worker) ask(r *round, timeout *time.Timer) bool {
	if w.deaf {
		select {
		case w.rounds <- r:
		default:
			return false
		}
	} else {
		select {
		case w.rounds <- r:
		case <-timeout.C:
			timeout.Reset(0)
			return false
		}
	}
	w.deaf, w.current = false, r
	return true
}

// giveUp marks everything a worker reads as failed from t on.
func (s *Sampler) giveUp(w *worker, t time.Time) {
	err := fmt.Errorf("%s did not answer within %v (at %s); its numbers are missing from then on", w.title(), s.patience, w.at())
	s.rec.Note(err.Error())
	for _, o := range w.probes {
		for _, sig := range o.probe.Signals {
			s.status.set(w.names, sig, StatusOf(err), t, o.probe.Every)
		}
	}
}

// Close closes all readers and the threads they were read on. A host that
// hangs is left behind after some seconds.
func (s *Sampler) Close() error {
	timeout := time.NewTimer(s.patience)
	defer timeout.Stop()
	var first error
	for _, w := range s.workers {
		if !w.running {
			continue
		}
		close(w.rounds)
		select {
		case <-w.done:
			if first == nil {
				first = w.closeErr
			}
		case <-timeout.C:
			timeout.Reset(0)
		}
	}
	s.workers = nil
	for _, h := range s.extra {
		if err := h.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// round is one request to a worker.
type round struct {
	worker *worker
	t      time.Time
	force  bool
	done   chan struct{}

	mu      sync.Mutex
	expired bool
	out     *Out
}

// use makes out the one that expire cuts off; false when the round is over.
func (r *round) use(out *Out) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out = out
	return !r.expired
}

func (r *round) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expired = true
	if r.out != nil {
		r.out.expire()
	}
}

// opened is a probe on one worker; reader is nil while it cannot run.
type opened struct {
	probe  *Probe
	reader Reader
	poller Poller
	last   time.Time // of the last read
	failed bool      // the last read failed though an earlier one did not
	wasOK  bool
}

// worker reads one host, or one machine, on one thread.
type worker struct {
	host     *Host
	names    []string
	rec      Recorder
	status   *statusBook
	interval time.Duration
	probes   []*opened
	rounds   chan *round
	done     chan struct{}
	closeErr error // valid once done is closed

	// These three are the Sampler's own.
	running bool
	deaf    bool   // it did not take the last round
	current *round // the round it took last
	where   atomic.Pointer[string]
}

func (w *worker) title() string { return "host " + strings.Join(w.names, ", ") }

func (w *worker) at() string {
	if p := w.where.Load(); p != nil {
		return "probe " + *p
	}
	return "no probe"
}

// late says whether the round asked for last is still being read.
func (w *worker) late() bool {
	if w.current == nil {
		return false
	}
	select {
	case <-w.current.done:
		return false
	default:
		return true
	}
}

// open opens every probe that is not open yet and marks those that cannot run at t.
func (w *worker) open(t time.Time) {
	for _, o := range w.probes {
		if o.reader != nil {
			continue
		}
		w.where.Store(&o.probe.Name)
		if err := o.open(w.host); err != nil {
			w.mark(o.probe, &Out{now: t}, err)
		}
	}
}

func (o *opened) open(h *Host) error {
	if o.probe.CanRun != nil {
		if err := o.probe.CanRun(h); err != nil {
			return err
		}
	}
	r, err := o.probe.Open(h)
	if err != nil {
		return err
	}
	o.reader = r
	o.poller, _ = r.(Poller)
	return nil
}

func (w *worker) serve() {
	defer close(w.done)
	var tick <-chan time.Time
	for _, o := range w.probes {
		if o.poller != nil {
			ticker := time.NewTicker(pollEvery)
			defer ticker.Stop()
			tick = ticker.C
			break
		}
	}
	for {
		select {
		case r, ok := <-w.rounds:
			if !ok {
				w.closeAll()
				return
			}
			w.read(r)
			close(r.done)
		case <-tick:
			w.poll()
		}
	}
}

func (w *worker) poll() {
	for _, o := range w.probes {
		if o.poller != nil {
			w.where.Store(&o.probe.Name)
			o.poller.Poll()
		}
	}
}

func (w *worker) read(r *round) {
	if r.force {
		w.open(r.t) // what was absent may have come: a module loaded, a service started
	}
	for _, o := range w.probes {
		if o.reader == nil || !r.force && !o.due(r.t, w.interval) {
			continue
		}
		w.where.Store(&o.probe.Name)
		out := &Out{rec: w.rec, hosts: w.names, now: r.t, every: w.interval, forced: r.force}
		if !o.last.IsZero() {
			out.since = r.t.Sub(o.last)
		}
		if !r.use(out) {
			return
		}
		err := o.reader.Read(out)
		o.last = r.t
		if !r.use(nil) {
			return
		}
		w.mark(o.probe, out, err)
		w.noteGap(o, r.t, err)
	}
}

// due says whether the probe is to be read at t. Half an interval of
// tolerance keeps a probe of every 5 s from being read every 6.
func (o *opened) due(t time.Time, interval time.Duration) bool {
	return o.last.IsZero() || t.Sub(o.last) >= o.probe.Every-interval/2
}

// mark records what became of a probe's signals in the read that out was for.
func (w *worker) mark(p *Probe, out *Out, err error) {
	all := StatusOf(err)
	for _, sig := range p.Signals {
		if _, ok := out.marked[sig]; !ok && !out.kept[sig] {
			w.status.set(w.names, sig, all, out.now, p.Every)
		}
	}
	for sig, st := range out.marked {
		w.status.set(w.names, sig, st, out.now, p.Every)
	}
}

// noteGap notes when a probe that worked stops working: the status says only
// how it ended.
func (w *worker) noteGap(o *opened, t time.Time, err error) {
	if err != nil && o.wasOK && !o.failed {
		w.rec.Note(fmt.Sprintf("%s: %s could not be read at %s: %v", w.title(), o.probe.Name, t.UTC().Format("15:04:05"), err))
	}
	o.failed = err != nil
	o.wasOK = o.wasOK || err == nil
}

func (w *worker) closeAll() {
	for _, o := range w.probes {
		if o.reader == nil {
			continue
		}
		if err := o.reader.Close(); err != nil && w.closeErr == nil {
			w.closeErr = fmt.Errorf("close %s on %s: %w", o.probe.Name, w.title(), err)
		}
	}
}

// statusBook passes on the statuses that changed. The last one is what the run
// is judged by, so it must hold for all of it.
type statusBook struct {
	rec   Recorder
	mu    sync.Mutex
	known map[statusKey]*standing
}

type statusKey struct{ host, signal string }

// standing is how a signal stands on a host.
type standing struct {
	model.Status
	read bool      // it was, once
	dark time.Time // since when it could not be read although it is there; zero while it can
	gap  string    // says when it could not be read for long
}

// set records st for the signal, read at t, on each host unless it stands
// already. every is the time between its reads.
func (b *statusBook) set(hosts []string, s *model.Signal, st model.Status, t time.Time, every time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range hosts {
		key := statusKey{h, s.Name}
		is, known := b.known[key]
		if !known {
			is = &standing{}
			b.known[key] = is
		}
		now := is.become(st, t, blink+every)
		if known && now == is.Status {
			continue
		}
		is.Status = now
		b.rec.Status(h, s.Name, now)
	}
}

// become is what st makes of a signal's status. One that was read and then is
// not there any more has failed: absent would say that there never was one. One
// that is read again has failed, too, when it was unreadable for longer than a
// blink: having seen nothing means nothing when nobody looked.
func (is *standing) become(st model.Status, t time.Time, blink time.Duration) model.Status {
	if st.State == model.Read {
		if !is.dark.IsZero() && is.gap == "" && t.Sub(is.dark) > blink {
			is.gap = fmt.Sprintf("it could not be read for %v until %s: %s",
				t.Sub(is.dark).Round(time.Second), t.UTC().Format("15:04:05"), strings.TrimPrefix(is.Why, gone))
		}
		is.read, is.dark = true, time.Time{}
		if is.gap != "" {
			return model.Status{State: model.Failed, Why: is.gap}
		}
		return st
	}
	if is.read {
		st = model.Status{State: model.Failed, Why: gone + st.Why}
	}
	if is.dark.IsZero() && st.State != model.Absent {
		is.dark = t
	}
	return st
}

// gone begins the sentence of a signal that was read before.
const gone = "it was read before, but not to the end: "

// SelfCost is what this process has used so far: user and system CPU seconds
// of all its threads, and its resident memory in bytes.
func SelfCost() (cpuSeconds float64, rss int64, err error) {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return 0, 0, fmt.Errorf("read our own CPU time: %w", err)
	}
	cpu := time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0, fmt.Errorf("read our own memory: %w", err)
	}
	f := strings.Fields(string(statm))
	if len(f) < 2 {
		return 0, 0, fmt.Errorf("read our own memory: /proc/self/statm: want 7 fields, got %q: %w", statm, fs.ErrInvalid)
	}
	pages, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("read our own memory: /proc/self/statm: %w", err)
	}
	return cpu.Seconds(), pages * int64(os.Getpagesize()), nil
}
