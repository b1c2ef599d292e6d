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
	// the runtime's own goroutines need some besides; TLS handshakes need many.
	threads, besides := len(e.threads), 2
	if j.tls != nil {
		besides = max(besides, runtime.NumCPU())
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), threads+besides)))
	e.base = time.Now()
	for _, t := range e.threads {
		go onOwnThread(t.run)
	}
	err = newCollector(e, emit).collect(ctx)
	e.shutDown()
	return err
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
