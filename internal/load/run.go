package load

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
	"plimsoll/internal/model"
)

// Run drives the load of a plan from calm through ramp and hold to the last
// outcome, and calls emit with each record, always from the calling goroutine.
// It blocks until the load is over. When ctx ends, nothing more is sent; what
// is in flight ends as it does (by timeout at the latest), and the final record
// is still emitted. An error means that the load could not start or that emit
// returned it. See the package comment for what it does to its process.
func Run(ctx context.Context, plan model.LoadPlan, emit func(Record) error) error {
	r, err := Prepare(ctx, plan)
	if err != nil {
		return err
	}
	return r.Run(ctx, time.Now(), emit)
}

// Ready is a load that has all it needs to begin. It runs once, or is closed.
type Ready struct{ engine *engine }

// Prepare finds the target, and makes all that a load needs.
func Prepare(ctx context.Context, plan model.LoadPlan) (*Ready, error) {
	j, err := prepare(plan)
	if err != nil {
		return nil, err
	}
	raiseFileLimit() // slots for sockets are counted by it, too
	e, err := newEngine(ctx, j)
	if err != nil {
		return nil, err
	}
	return &Ready{e}, nil
}

// Run begins at a moment; see the function Run. If it is later by then, the load is that late, and says so.
func (r *Ready) Run(ctx context.Context, at time.Time, emit func(Record) error) error {
	e := r.engine
	// The hot threads never give their processors back, so the collector and
	// the runtime's own goroutines need some besides; TLS handshakes need many.
	threads, besides := len(e.threads), 2
	if e.job.tls != nil {
		besides = max(besides, runtime.NumCPU())
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), threads+besides)))
	if !waitUntil(ctx, at) {
		r.Close()
		return context.Cause(ctx)
	}
	e.base = at
	for _, t := range e.threads {
		go onOwnThread(t.run)
	}
	e.late = time.Since(at)
	err := newCollector(e, emit).collect(ctx)
	e.shutDown()
	return err
}

// Close gives back what a load that does not run was given.
func (r *Ready) Close() { r.engine.closeAll() }

// lastStretch is waited for awake: a sleep ends when the machine pleases.
const lastStretch = time.Millisecond

// waitUntil waits for a moment, to some microseconds; false when ctx ended before.
func waitUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at) - lastStretch)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return time.Until(at) <= 0
	case <-timer.C:
	}
	for time.Until(at) > 0 {
		runtime.Gosched()
	}
	return true
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
