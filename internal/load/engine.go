package load

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"plimsoll/internal/model"
)

// engine is what the threads share. It does not change while they run, save
// for the atomic fields.
type engine struct {
	job      *job
	target   string // "address:port"
	family   int
	address  []byte // struct sockaddr
	timeline timeline
	arrivals arrivals
	openLoop bool
	stride   int64 // number of threads
	timeout  int64 // nanoseconds
	base     time.Time
	threads  []*thread

	budget atomic.Int64 // requests of the hold phase that no thread has taken
	stopAt atomic.Int64 // nothing begins from then on
	quit   atomic.Bool
	// settled has a token when a thread has settled since it was last emptied.
	settled chan struct{}
}

// Run drives the load of a plan from calm through ramp and hold to the last
// outcome, and calls emit with each record, always from the calling goroutine.
// It blocks until the load is over. When ctx ends, nothing more is sent; what
// is in flight ends as it does (by timeout at the latest), and the final record
// is still emitted. An error means that the load could not start or that emit
// returned it. See the package comment for what it does to its process.
func Run(ctx context.Context, plan model.LoadPlan, emit func(Record) error) error {
	j, err := prepare(plan)
	if err != nil {
		return err
	}
	e, err := newEngine(ctx, j)
	if err != nil {
		return err
	}
	raiseFileLimit()
	// The hot threads never give their processors back, so the collector and
	// the runtime's own goroutines need some besides.
	threads := len(e.threads)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), threads+2)))
	e.base = time.Now()
	for _, t := range e.threads {
		go t.run()
	}
	err = newCollector(e, emit).collect(ctx)
	e.shutDown()
	return err
}

func newEngine(ctx context.Context, j *job) (*engine, error) {
	addr, err := j.resolve(ctx)
	if err != nil {
		return nil, err
	}
	e := &engine{
		job: j, target: addr.String(),
		timeline: newTimeline(j.plan),
		openLoop: j.plan.Rate > 0,
		stride:   int64(j.plan.Threads),
		timeout:  millis(j.plan.TimeoutMS),
		settled:  make(chan struct{}, 1),
	}
	e.family, e.address = sockaddr(addr)
	if e.openLoop {
		e.arrivals = newArrivals(j.plan, e.timeline)
	}
	e.budget.Store(j.plan.Requests)
	e.stopAt.Store(never)
	for id := range j.plan.Threads {
		t, err := newThread(e, id)
		if err != nil {
			for _, t := range e.threads {
				t.poller.close()
			}
			return nil, fmt.Errorf("prepare load thread %d of %d: %w", id+1, j.plan.Threads, err)
		}
		e.threads = append(e.threads, t)
	}
	return e, nil
}

// raiseFileLimit raises the soft limit of open files to the hard one. Where
// that is not enough, or not allowed, the connects that fail say so.
func raiseFileLimit() {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err == nil && l.Cur < l.Max {
		l.Cur = l.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &l)
	}
}

// clock is the time since the start of the run, in nanoseconds.
func (e *engine) clock() int64 { return int64(time.Since(e.base)) }

// takeBudget takes some requests of the hold phase for one thread: many while
// there are many, so that threads rarely meet here, and few towards the end, so
// that none sits on what another could send.
func (e *engine) takeBudget() int64 {
	const most = 64
	for {
		left := e.budget.Load()
		n := min(max(left/(4*e.stride), 1), most, left)
		if n == 0 || e.budget.CompareAndSwap(left, left-n) {
			return n
		}
	}
}

// notify tells the collector that a thread has settled.
func (e *engine) notify() {
	select {
	case e.settled <- struct{}{}:
	default:
	}
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
	}
}
