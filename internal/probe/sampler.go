package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/host"
)

const (
	// pollEvery is the time between two calls of Poller.Poll, and pollQuiet after
	// quietPolls in a row that saw nothing.
	pollEvery  = 100 * time.Millisecond
	pollQuiet  = 250 * time.Millisecond
	quietPolls = 50
	// patience is how long a round waits for a host before it goes on without it.
	patience = 5 * time.Second
)

// Sampler reads all probes on all hosts, round by round: every host on an OS
// thread of its own in that host's network namespace, and what belongs to the
// machine once, on one more. Its methods are called from one goroutine.
type Sampler struct {
	hosts    []*host.Host
	probes   []Probe
	rec      *StatusBook
	interval time.Duration
	patience time.Duration

	workers []*worker
	extra   []*host.Host // opened by the sampler, to read machines from our own namespace
}

// NewSampler prepares sampling of hosts, which it joins (see host.Join) and does
// not close. interval is the time between rounds that its caller means to
// keep; rec may be shared with other sources.
func NewSampler(hosts []*host.Host, probes []Probe, rec *StatusBook, interval time.Duration) *Sampler {
	host.Join(hosts)
	return &Sampler{hosts: hosts, probes: probes, rec: rec, interval: interval, patience: patience}
}

// Again starts another one that reads the same and knows nothing yet, beside this one, which goes on. A host that does not
// come up within two rounds' patience is left out from t on until it answers. Where there is an error nothing was started.
func (s *Sampler) Again(ctx context.Context, t time.Time) (*Sampler, error) {
	again := &Sampler{hosts: s.hosts, probes: s.probes, rec: s.rec, interval: s.interval, patience: s.patience}
	timeout := time.NewTimer(2 * s.patience)
	defer timeout.Stop()
	if err := again.start(ctx, timeout, t); err != nil {
		return nil, errors.Join(err, again.Close())
	}
	return again, nil
}

// Start opens every probe on every host and records the status of those that
// cannot run. The error says which host could not be entered or described.
func (s *Sampler) Start(ctx context.Context) error {
	return s.start(ctx, &time.Timer{}, time.Time{}) // which never fires: a run waits for its hosts
}

// start starts all workers. Those that are not up when timeout fires are given up from t on.
func (s *Sampler) start(ctx context.Context, timeout *time.Timer, t time.Time) error {
	if err := s.plan(); err != nil {
		return err
	}
	var starts []chan error
	for _, w := range s.workers {
		started := make(chan error, 1)
		starts = append(starts, started)
		w.host.Thread(func(err error) {
			if err != nil {
				started <- err
				close(w.done)
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
			first = w.up(err, first)
		case <-timeout.C:
			timeout.Reset(0)
			select {
			case err := <-started: // it came up while another one was waited for
				first = w.up(err, first)
			default:
				w.running, w.deaf = true, true
				s.giveUp(w, t)
			}
		case <-ctx.Done():
			for _, w := range s.workers[i:] {
				close(w.rounds) // it ends once it is up
			}
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
func (s *Sampler) machineHost(h *host.Host) (*host.Host, error) {
	if h.Recorded() || !h.Elsewhere() {
		return h, nil
	}
	m, err := host.Open(h.Name, "local")
	if err != nil {
		return nil, err
	}
	s.extra = append(s.extra, m)
	return m, nil
}

func (s *Sampler) newWorker(h *host.Host, names []string, probes []*Probe) *worker {
	w := &worker{host: h, names: names, rec: s.rec, interval: s.interval,
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

// giveUp marks everything a worker reads as failed from t on.
func (s *Sampler) giveUp(w *worker, t time.Time) {
	err := fmt.Errorf("%s did not answer within %v (at %s); its numbers are missing from then on", w.title(), s.patience, w.at())
	s.rec.Note(err.Error())
	for _, o := range w.probes {
		for _, sig := range o.probe.Signals {
			s.rec.Set(w.names, sig, host.StatusOf(err), t, o.probe.Every)
		}
	}
}

// Full says whether a probe has no room for names that it did not know.
func (s *Sampler) Full() bool {
	return slices.ContainsFunc(s.workers, func(w *worker) bool { return w.full.Load() })
}

// Late says whether a host did not answer in time, and does not yet.
func (s *Sampler) Late() bool {
	return slices.ContainsFunc(s.workers, func(w *worker) bool { return w.deaf || w.late() })
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
	for _, h := range s.extra {
		if err := h.Close(); err != nil && first == nil {
			first = err
		}
	}
	s.workers, s.extra = nil, nil
	return first
}
