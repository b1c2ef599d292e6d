package load

import (
	"sync/atomic"
	"time"
)

// shared is what the threads share. It does not change while they run, save
// for the atomic fields.
type shared struct {
	job      *job
	family   int
	address  []byte   // struct sockaddr
	sources  [][]byte // those from which connections come in turn; none leaves it to the kernel
	timeline timeline
	arrivals arrivals
	openLoop bool
	stride   int64 // number of threads, of all workers
	timeout  int64 // nanoseconds
	gap      int64 // between two attempts of one thread to connect, 0 for none
	// ownTables says that each thread has a table of descriptors of its own.
	ownTables bool
	brief     bool // see job.brief
	base      time.Time

	budget atomic.Int64 // requests of the hold phase that no thread has taken
	stopAt atomic.Int64 // nothing begins from then on
	quit   atomic.Bool
	// settled has a token when a thread has settled since it was last emptied.
	settled chan struct{}
}

// clock is the time since the start of the run, in nanoseconds.
func (s *shared) clock() int64 { return int64(time.Since(s.base)) }

// first is the number of a thread among those of all workers: every stride-th request and connection from it on is its own.
func (s *shared) first(id int) int {
	if p := s.job.plan.Part; p != nil {
		return p.Worker + id*p.All
	}
	return id
}

// takeBudget takes some requests of the hold phase for one thread: many while
// there are many, so that threads rarely meet here, and few towards the end, so
// that none sits on what another could send.
func (s *shared) takeBudget() int64 {
	const most = 64
	for {
		left := s.budget.Load()
		n := min(max(left/(4*int64(s.job.plan.Threads)), 1), most, left)
		if n == 0 || s.budget.CompareAndSwap(left, left-n) {
			return n
		}
	}
}

// notify tells the collector that a thread has settled.
func (s *shared) notify() {
	select {
	case s.settled <- struct{}{}:
	default:
	}
}
