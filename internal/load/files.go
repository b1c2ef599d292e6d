package load

import (
	"math"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
)

// spareFiles is how many files the generator opens besides its connections, two a thread not counted: standard streams,
// the runtime's, and some to spare.
const spareFiles = 16

// FileLimit is how many descriptors a table of this process may hold (the hard limit), 0 where that is not known.
func FileLimit() int64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || l.Max > math.MaxInt64 {
		return 0
	}
	return int64(l.Max)
}

// NeededFiles is how many descriptors a load's fullest table holds: that of the process, or, with own tables, of a thread.
func NeededFiles(p model.LoadPlan, own bool) int64 {
	n, threads := p.Part.Of(int64(p.MostConnections())), int64(max(p.Threads, 1))
	if own {
		n = (n + threads - 1) / threads
	}
	return n + 2*threads + spareFiles
}

// OwnTables says whether each thread of a load can have a table of descriptors of its own. The limit is one of a table and not of a
// process, so that a load can have as many times more connections. Handshakes of TLS are done by other threads, so there it cannot;
// and a container's filter of system calls may forbid it.
func OwnTables(p model.LoadPlan) bool {
	if strings.HasPrefix(p.URL, "https:") {
		return false
	}
	got := make(chan error)
	go onOwnThread(func() { got <- unix.Unshare(unix.CLONE_FILES) })
	return <-got == nil
}

// ThreadsFor is with how many threads, those of the plan at least, each of their tables has room for its connections; 0: with none.
func ThreadsFor(p model.LoadPlan, limit int64) int {
	for p.Threads = max(p.Threads, 1); p.Threads <= min(maxThreads, p.MostConnections()); p.Threads++ {
		if NeededFiles(p, true) <= limit {
			return p.Threads
		}
	}
	return 0
}

// onOwnThread calls f on an OS thread that ends with it, and all that f sets for it. It is not the main thread: that one's name and
// descriptors are what others see of the process, and it does not end.
func onOwnThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	// While this goroutine holds the main thread and waits, another one gets another thread.
	defer runtime.UnlockOSThread()
	done := make(chan struct{})
	go func() {
		defer close(done)
		onOwnThread(f)
	}()
	<-done
}
