package load

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// restNanos is how long a connection rests after a failed connect, give or
	// take a fifth, so that a refusing port does not become a busy loop.
	restNanos = 100_000_000
	// burst is how many connects or queued requests are started before the
	// thread looks for events again.
	burst = 64
	// stampEvery takes kernel time stamps on one connection of so many.
	stampEvery = 8
	bufferSize = 64 << 10
	// longestWait bounds a wait in which nothing is planned.
	longestWait = 1_000_000_000
)

// thread is one of the load's OS threads. Everything in it belongs to that
// thread alone, save the fields at the end.
type thread struct {
	e      *engine
	id     int
	poller *poller
	conns  []conn
	buffer []byte // shared by all connections: nothing outlives one read
	stamps stampReader

	now  int64 // nanoseconds since the start of the run, read once for each event
	woke int64 // when the last wait returned
	end  int64 // from when on nothing begins
	seed uint64
	// oversleep is by how much timers wake us late, on average over the last ones.
	oversleep int64

	flights     flightList // requests in flight, oldest first: all have the same timeout
	sleepers    sleepers   // connections that wait for their time
	inFlight    int64
	connecting  int64
	established int64
	quota       int64 // requests taken from the budget and not yet begun

	// Open loop: requests are numbered, each thread has every threads-th of them.
	due, head     int64   // the next to come due; the next to be sent; in between is the queue
	dueAt, headAt int64   // their planned times
	free          connsIn // connections without a request

	tally *tally // where this thread counts now
	spare *tally // what it counts in next

	want    atomic.Bool // the collector wants the tally
	handed  chan *tally
	settled atomic.Bool // no request is in flight and none will begin
	gone    chan struct{}
}

func newThread(e *engine, id int) (*thread, error) {
	p, err := newPoller()
	if err != nil {
		return nil, err
	}
	plan := &e.job.plan
	t := &thread{
		e: e, id: id, poller: p,
		conns:  make([]conn, (plan.Connections-id+plan.Threads-1)/plan.Threads),
		buffer: make([]byte, bufferSize),
		end:    e.timeline.hold,
		seed:   uint64(id)*0x9e3779b97f4a7c15 + 1,
		due:    int64(id), head: int64(id),
		tally: newTally(), spare: newTally(),
		handed: make(chan *tally, 1),
		gone:   make(chan struct{}),
	}
	t.dueAt, t.headAt = e.arrivals.at(t.due), e.arrivals.at(t.head)
	t.sleepers = make(sleepers, 0, len(t.conns))
	t.free.ring = make([]*conn, len(t.conns))
	for i := range t.conns {
		c := &t.conns[i]
		global := i*plan.Threads + id
		c.fd, c.name = -1, int32(i)
		c.stamped = e.openLoop || global%stampEvery == 0
		c.wakes = e.timeline.opens(global, plan.Connections)
		if e.openLoop && global > 0 {
			// Every thread must have a connection for its first request; only
			// connection 0 is there in the calm phase.
			c.wakes = max(e.timeline.opens(global-id, plan.Connections), e.timeline.calm)
		}
		t.sleepers.push(c)
	}
	return t, nil
}

// run is the thread's life. The goroutine ends locked, which ends the OS thread with its settings.
func (t *thread) run() {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// Not on the main thread: its name is the process's. While this
		// goroutine holds it and waits, another one gets another thread.
		defer runtime.UnlockOSThread()
		go t.run()
		<-t.gone
		return
	}
	defer close(t.gone)
	t.setUpThread()
	for !t.e.quit.Load() {
		t.turn()
	}
	for i := range t.conns {
		t.hangUp(&t.conns[i])
	}
	t.poller.close()
}

// setUpThread names the OS thread and, for an open loop, asks for wake-ups
// within a microsecond. Both are a help, never a need.
func (t *thread) setUpThread() {
	name := append(fmt.Appendf(nil, "load-%d", t.id), 0)
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
	if t.e.openLoop {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0)
	}
}

// turn waits for something to do and does it.
func (t *thread) turn() {
	n := t.await()
	t.woke = t.e.clock()
	t.now = t.woke
	if stop := t.e.stopAt.Load(); stop < t.end {
		t.end = stop
	}
	for i := range n {
		if e := &t.poller.events[i]; e.Fd != woken {
			t.event(&t.conns[e.Fd], e.Events)
			t.now = t.e.clock()
		}
	}
	t.expire()
	t.wake()
	if t.e.openLoop {
		t.dispatch()
	}
	if t.want.Load() {
		t.handOver()
	}
	if t.inFlight == 0 && !t.settled.Load() && t.finished() {
		t.settled.Store(true)
		t.e.notify()
	}
}

// await waits until there is something to do and returns how many events came.
// In an open loop it is back a little before the next request is due, so that the
// request leaves when it is due; what remains of the time passes in short turns, or,
// on a grid, is not waited for.
func (t *thread) await() int {
	ns := t.idleFor()
	if !t.e.openLoop {
		return t.poller.wait(ns)
	}
	ns = max(ns-t.oversleep, 0)
	asked := t.e.clock() + ns
	if t.nap(ns) {
		sysSleep(ns)
		t.overslept(asked)
		return t.poller.wait(0)
	}
	n := t.poller.wait(ns)
	if n == 0 && ns > 0 {
		t.overslept(asked)
	}
	return n
}

// overslept takes note of a wait that was to end at a moment and ends now.
func (t *thread) overslept(asked int64) {
	late := min(max(t.e.clock()-asked, 0), mostEarly)
	t.oversleep += (late - t.oversleep) / 16
}

// nap says whether to leave events alone for a time in which nothing is due: at
// high rates most of the CPU time would go into waking for one reply after the
// other. When a reply came is told by the kernel's stamp, so no latency changes by
// it; but as soon as connections are scarce, each reply is wanted at once.
func (t *thread) nap(ns int64) bool {
	a := &t.e.arrivals
	return ns > 0 && ns <= a.grid+a.early && t.now < t.end && t.head == t.due && t.paced() &&
		int64(t.free.n) >= 2*(int64(a.rate*float64(a.grid)/1e9)/t.e.stride+1)
}

// idleFor is how long nothing is planned, in nanoseconds.
func (t *thread) idleFor() int64 {
	next := t.now + longestWait
	if c := t.flights.oldest; c != nil {
		next = min(next, c.start+t.e.timeout)
	}
	if len(t.sleepers) > 0 {
		next = min(next, t.sleepers[0].wakes)
	}
	if t.now < t.end {
		next = min(next, t.end)
	}
	if t.e.openLoop {
		if t.dueAt < t.end {
			next = min(next, t.dueAt)
		}
		if t.head < t.due {
			next = min(next, t.headAt+t.e.timeout)
			if t.free.n > 0 {
				next = t.now
			}
		}
	}
	return max(next-t.now, 0)
}

// phase is the phase of a request that would begin now.
func (t *thread) phase() phase {
	if t.now >= t.end {
		return drain
	}
	return t.e.timeline.at(t.now)
}

// paced says whether requests begin at planned times. In the calm phase they never do.
func (t *thread) paced() bool {
	return t.e.openLoop && t.phase() != calm
}

// next finds c, which has no request, something to do; ready is since when it could.
func (t *thread) next(c *conn, ready int64) {
	if t.paced() {
		c.freed = t.now
		t.free.push(c)
		return
	}
	p := t.phase()
	if p == drain || p == hold && !t.spend() {
		return
	}
	t.count(p).begun++
	t.begin(c, p, t.now, ready)
}

// count is where requests that began in p are counted.
func (t *thread) count(p phase) *phaseTally { return &t.tally.phases[p] }

// spend takes one request off the budget of the hold phase.
func (t *thread) spend() bool {
	if t.e.job.plan.Requests == 0 {
		return true
	}
	if t.quota == 0 {
		t.quota = t.e.takeBudget()
	}
	if t.quota == 0 {
		return false
	}
	t.quota--
	return true
}

// rest lets c sleep after a failed connect.
func (t *thread) rest(c *conn) {
	t.seed ^= t.seed << 13
	t.seed ^= t.seed >> 7
	t.seed ^= t.seed << 17
	c.wakes = t.now + restNanos*4/5 + int64(t.seed%(restNanos*2/5))
	t.sleepers.push(c)
}

// wake gives the connections whose time has come something to do.
func (t *thread) wake() {
	for range burst {
		if len(t.sleepers) == 0 || t.sleepers[0].wakes > t.now {
			return
		}
		c := t.sleepers.pop()
		t.next(c, c.wakes)
		t.now = t.e.clock()
	}
}

// dispatch gives queued requests to free connections, in the order in which
// they were planned, and ends those that waited too long.
func (t *thread) dispatch() {
	for t.dueAt <= t.now+t.e.arrivals.early && t.dueAt < t.end {
		t.count(t.e.timeline.at(t.dueAt)).begun++
		t.due += t.e.stride
		t.dueAt = t.e.arrivals.at(t.due)
	}
	cancelAll := t.now >= t.end && t.end < t.e.timeline.hold
	for t.head < t.due && (cancelAll || t.headAt+t.e.timeout <= t.now) {
		detail := timedOut
		if cancelAll {
			detail = cancelled
		}
		n := t.count(t.e.timeline.at(t.headAt))
		n.end(failure(queueFailed, detail), t.now-t.headAt)
		n.parts[queued] += max(t.now-t.headAt, 0)
		n.add(failed, t.now-t.headAt)
		t.pass()
	}
	for range burst {
		if t.head == t.due || t.free.n == 0 {
			return
		}
		p, at, c := t.e.timeline.at(t.headAt), min(t.headAt, t.now), t.free.pop()
		t.pass()
		t.count(p).add(lag, t.now-max(at, c.freed))
		t.begin(c, p, at, at)
		t.now = t.e.clock()
	}
}

// pass moves the head of the queue on.
func (t *thread) pass() {
	t.head += t.e.stride
	t.headAt = t.e.arrivals.at(t.head)
}

// finished says, when nothing is in flight, whether nothing will begin either.
func (t *thread) finished() bool {
	switch {
	case t.now >= t.end:
		return !t.e.openLoop || t.head == t.due && t.dueAt >= t.end
	case t.e.job.plan.Requests == 0 || t.phase() != hold:
		return false
	case t.e.openLoop:
		return t.head >= t.e.arrivals.total
	}
	return t.quota == 0 && t.e.budget.Load() == 0
}

// handOver gives the collector what was counted and goes on counting in the spare.
func (t *thread) handOver() {
	t.want.Store(false)
	full := t.tally
	t.tally, t.spare = t.spare, full
	full.connecting = t.connecting
	full.open = t.established
	full.idle = t.established - (t.inFlight - t.connecting)
	if t.settled.Load() {
		full.missing, full.untried = t.neverStood()
	}
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &use); err == nil {
		full.user, full.system = seconds(use.Utime), seconds(use.Stime)
	}
	t.handed <- full
}

// neverStood is how many connections were tried for in vain, and how many not at all.
// An open loop opens those that it needs; there the latter is nothing to tell.
func (t *thread) neverStood() (failed, untried int64) {
	for i := range t.conns {
		switch c := &t.conns[i]; {
		case c.stood:
		case c.tried:
			failed++
		case !t.e.openLoop:
			untried++
		}
	}
	return failed, untried
}

func seconds(v unix.Timeval) float64 { return float64(v.Sec) + float64(v.Usec)/1e6 }
