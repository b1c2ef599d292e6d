package load

import (
	"context"
	"fmt"
	"time"

	"plimsoll/internal/model"
)

// engine is a load's threads, and what they share.
type engine struct {
	shared
	target  string   // "address:port", or "unix:path"
	dns     *float64 // seconds that it took to find it; nil where it was given
	threads []*thread
	late    time.Duration // by how much it began after its moment
}

func newEngine(ctx context.Context, j *job) (*engine, error) {
	e := &engine{shared: shared{
		job:      j,
		timeline: newTimeline(j.plan),
		openLoop: j.plan.Rate > 0,
		stride:   int64(j.plan.Threads * j.plan.Part.Workers()),
		timeout:  millis(j.plan.TimeoutMS),
		gap:      attemptGap(j.plan),
		settled:  make(chan struct{}, 1),
		brief:    j.brief(),
	}}
	if err := e.findTarget(ctx); err != nil {
		return nil, err
	}
	if e.openLoop {
		e.arrivals = newArrivals(j.plan, e.timeline)
	}
	if limit := FileLimit(); limit > 0 && NeededFiles(j.plan, false) > limit {
		e.ownTables = OwnTables(j.plan)
	}
	e.budget.Store(j.plan.Part.Of(j.plan.Requests))
	e.stopAt.Store(never)
	for id := range j.plan.Threads {
		t, err := newThread(&e.shared, id)
		if err != nil {
			e.closeAll()
			return nil, fmt.Errorf("prepare load thread %d of %d: %w", id+1, j.plan.Threads, err)
		}
		e.threads = append(e.threads, t)
		if err := t.speak(&j.plan); err != nil {
			e.closeAll()
			return nil, err
		}
	}
	return e, nil
}

// speak has t speak a plan's protocol.
func (t *thread) speak(p *model.LoadPlan) (err error) {
	switch {
	case p.HTTP2:
		t.protocol = newHTTP2(t)
	case p.Pipeline > 1:
		t.protocol = newPipelined(t, p.Pipeline)
	case p.Engine == model.IOURing && p.KeepAlive:
		t.protocol, err = newStays(t)
	case p.Engine == model.IOURing:
		t.protocol, err = newChains(t)
	}
	return err
}

// closeAll closes what threads have that have not begun.
func (e *engine) closeAll() {
	for _, t := range e.threads {
		t.poller.close()
	}
}

// findTarget finds out where the load goes to.
func (e *engine) findTarget(ctx context.Context) error {
	if path := e.job.plan.UnixSocket; path != "" {
		e.target = "unix:" + path
		e.family, e.address = socketAddress(path)
		return nil
	}
	addr, dns, err := e.job.resolve(ctx)
	if err != nil {
		return err
	}
	e.target, e.dns = addr.String(), dns
	e.family, e.address = sockaddr(addr)
	if faults := SourceFaults(e.job.sources, addr.Addr()); len(faults) > 0 {
		return fmt.Errorf("source %s: no connection to %s can come from it: %w", faults[0].Source, addr.Addr(), faults[0].Errno)
	}
	e.sources = rawSources(e.job.sources)
	return nil
}

// stop lets nothing begin from now on.
func (e *engine) stop(now int64) {
	e.stopAt.Store(now)
	for _, t := range e.threads {
		t.poller.interrupt()
	}
}

// allSettled says whether every request has its outcome and none will begin.
func (e *engine) allSettled() bool {
	for _, t := range e.threads {
		if !t.settled.Load() {
			return false
		}
	}
	return true
}

// shutDown ends the threads and waits for them.
func (e *engine) shutDown() {
	e.quit.Store(true)
	for _, t := range e.threads {
		t.poller.interrupt()
	}
	for _, t := range e.threads {
		<-t.gone
		if e.ownTables { // it closed what was its own
			t.poller.close()
		}
	}
}
