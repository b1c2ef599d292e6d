package probe

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll/internal/host"
)

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
	host     *host.Host
	names    []string
	rec      *StatusBook
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
	full    atomic.Bool // see Out.Full
}

func (w *worker) title() string { return "host " + strings.Join(w.names, ", ") }

func (w *worker) at() string {
	if p := w.where.Load(); p != nil {
		return "probe " + *p
	}
	return "no probe"
}

// up takes whether it came up, and gives the first error of all.
func (w *worker) up(err, first error) error {
	w.running = err == nil
	if first != nil {
		return first
	}
	return err
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

func (o *opened) open(h *host.Host) error {
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
	var ticker *time.Ticker
	var tick <-chan time.Time
	if slices.ContainsFunc(w.probes, func(o *opened) bool { return o.poller != nil }) {
		ticker = time.NewTicker(pollEvery)
		defer ticker.Stop()
		tick = ticker.C
	}
	quiet, every := 0, pollEvery // how many polls in a row saw nothing
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
			if w.poll() {
				quiet = 0
			} else {
				quiet++
			}
			if next := pollAfter(quiet); next != every {
				every = next
				ticker.Reset(every)
			}
		}
	}
}

// pollAfter is the time to the next poll after so many that saw nothing: each wakes
// several threads of ours, which costs more than the poll itself.
func pollAfter(quiet int) time.Duration {
	if quiet < quietPolls {
		return pollEvery
	}
	return pollQuiet
}

// poll says whether one of the probes saw something.
func (w *worker) poll() (busy bool) {
	for _, o := range w.probes {
		if o.poller != nil {
			w.where.Store(&o.probe.Name)
			busy = o.poller.Poll() || busy
		}
	}
	return busy
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
		out := &Out{rec: w.rec, hosts: w.names, now: r.t, every: w.interval, forced: r.force, full: &w.full}
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
	all := host.StatusOf(err)
	for _, sig := range p.Signals {
		if _, ok := out.marked[sig]; !ok && !out.kept[sig] {
			w.rec.Set(w.names, sig, all, out.now, p.Every)
		}
	}
	for sig, st := range out.marked {
		w.rec.Set(w.names, sig, st, out.now, p.Every)
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
