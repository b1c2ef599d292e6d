package load

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// burst is how many connects or queued requests are started before the
	// thread looks for events again.
	burst = 64
	// longestWait bounds a wait in which nothing is planned.
	longestWait = 1_000_000_000
)

// run is the thread's life, on an OS thread of its own (onOwnThread).
func (t *thread) run() {
	defer close(t.gone)
	t.setUpThread()
	for !t.shared.quit.Load() {
		t.turn()
	}
	for i := range t.conns {
		t.hangUp(&t.conns[i])
	}
	t.poller.close()
}

// setUpThread names the OS thread, asks for wake-ups within a microsecond, and takes a table of descriptors where one is not
// enough for all threads. All are a help, never a need: connects for which there is no room say so.
func (t *thread) setUpThread() {
	if t.shared.ownTables {
		_ = unix.Unshare(unix.CLONE_FILES)
	}
	if r := t.poller.ring; r != nil {
		r.begin(t.poller.wake)
	}
	name := append(fmt.Appendf(nil, "load-%d", t.id), 0)
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1000, 0, 0, 0)
}

// turn waits for something to do and does it.
func (t *thread) turn() {
	n := t.await()
	t.woke = t.shared.clock()
	t.now = t.woke
	if stop := t.shared.stopAt.Load(); stop < t.end {
		t.end = stop
	}
	t.holding = t.sockets != nil || t.protocol == protocol(t)
	for i := range n {
		if e := &t.poller.events[i]; e.Fd != woken {
			t.protocol.event(e.Fd, e.Events)
			if t.sockets == nil { // else all that is told was received before the wait returned
				t.now = t.shared.clock()
			}
		}
	}
	t.beginHeld()
	t.meetShaken()
	t.expire()
	t.wake()
	t.admit()
	if t.shared.openLoop {
		t.dispatch()
	}
	t.soon = t.protocol.turned()
	if t.want.Load() {
		t.handOver()
	}
	if t.inFlight+t.ending == 0 && !t.settled.Load() && t.finished() {
		t.settled.Store(true)
		t.shared.notify()
	}
}

// beginHeld has the connections that were held begin their next requests.
func (t *thread) beginHeld() {
	t.holding = false
	if t.sockets != nil && len(t.held) > 0 {
		t.now = t.shared.clock()
	}
	for _, c := range t.held {
		t.next(c, t.woke)
		if t.sockets == nil {
			t.now = t.shared.clock()
		}
	}
	t.held = t.held[:0]
}

// meetShaken goes on with the connections whose TLS handshake is over.
func (t *thread) meetShaken() {
	for h := t.shaken.take(); h != nil; {
		next := h.next
		if c := &t.conns[h.name]; c.secure.hand == h { // else it is given up
			t.protocol.shook(h)
			t.now = t.shared.clock()
		}
		h = next
	}
}

// await waits until there is something to do and returns how many events came.
// In an open loop it is back a little before the next request is due, so that the
// request leaves when it is due; what remains of the time passes in short turns, or,
// on a grid, is not waited for.
func (t *thread) await() int {
	if t.soon {
		if ns := t.moment(); ns > 0 {
			t.poller.sleep(ns)
		}
		return t.poller.wait(0)
	}
	ns := t.idleFor()
	if !t.shared.openLoop {
		return t.poller.wait(ns)
	}
	ns = max(ns-t.oversleep, 0)
	asked := t.shared.clock() + ns
	if t.nap(ns) {
		t.poller.sleep(ns)
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
	late := min(max(t.shared.clock()-asked, 0), mostEarly)
	t.oversleep += (late - t.oversleep) / 16
}

// nap says whether to leave events alone for a time in which nothing is due: at
// high rates most of the CPU time would go into waking for one reply after the
// other. When a reply came is told by the kernel's stamp, so no latency changes by
// it; but as soon as connections are scarce, each reply is wanted at once.
func (t *thread) nap(ns int64) bool {
	s := t.duePlan.stretch
	return ns > 0 && ns <= s.grid+s.early && t.now < t.end && t.head == t.due && t.paced() &&
		int64(t.free.n) >= 2*(int64(s.rate*float64(s.grid)/1e9)/t.shared.stride+1)
}

// idleFor is how long nothing is planned, in nanoseconds.
func (t *thread) idleFor() int64 {
	next := t.now + longestWait
	if c := t.flights.oldest; c != nil {
		next = min(next, c.start+t.shared.timeout)
	}
	if len(t.sleepers) > 0 {
		next = min(next, t.sleepers[0].wakes)
	}
	if t.now < t.end {
		next = min(next, t.end)
	}
	if t.shared.openLoop {
		if t.dueAt < t.end {
			next = min(next, t.dueAt)
		}
		if t.head < t.due {
			next = min(next, t.headAt+t.shared.timeout)
			switch {
			case t.free.n > 0 || t.mayGrow():
				next = t.now
			case len(t.reserves) > 0:
				next = min(next, t.attemptAt)
			}
		}
	}
	if t.waiting.n > 0 && t.wantsConnection() {
		next = min(next, t.attemptAt)
	}
	return max(next-t.now, 0)
}

// wake gives the connections whose time has come something to do.
func (t *thread) wake() {
	for range burst {
		if len(t.sleepers) == 0 || t.sleepers[0].wakes > t.now {
			return
		}
		c := t.sleepers.pop()
		t.next(c, c.wakes)
		t.now = t.shared.clock()
	}
}

// admit lets those go on that wait to connect, when it is time. What waits for planned requests is dispatch's.
func (t *thread) admit() {
	for range burst {
		if t.waiting.n == 0 || t.now < t.attemptAt || t.paced() {
			return
		}
		t.next(t.waiting.pop(), t.attemptAt)
		t.now = t.shared.clock()
	}
}

// dispatch gives queued requests to free connections, in the order in which
// they were planned, and ends those that waited too long.
func (t *thread) dispatch() {
	for t.dueAt <= t.now+t.duePlan.stretch.early && t.dueAt < t.end {
		t.count(t.shared.timeline.at(t.dueAt)).begun++
		t.due += t.shared.stride
		t.dueAt = t.duePlan.at(t.due)
	}
	cancelAll := t.now >= t.end && t.end < t.shared.timeline.hold
	for t.head < t.due && (cancelAll || t.headAt+t.shared.timeout <= t.now) {
		detail := timedOut
		if cancelAll {
			detail = cancelled
		}
		n := t.count(t.shared.timeline.at(t.headAt))
		n.end(failure(queueFailed, detail), t.now-t.headAt)
		n.parts[queued] += max(t.now-t.headAt, 0)
		n.add(failed, t.now-t.headAt)
		t.tally.apart(t.shared.timeline.at(t.headAt), t.planned(t.head), t.headPlan.stretch.stage, failure(queueFailed, detail), t.now-t.headAt)
		t.pass()
	}
	for range burst {
		if t.head == t.due {
			return
		}
		c := t.takeFree()
		if c == nil {
			return
		}
		if !t.protocol.accepts(c) {
			continue
		}
		p, at := t.shared.timeline.at(t.headAt), min(t.headAt, t.now)
		c.inStage, c.asked = t.headPlan.stretch.stage, t.planned(t.head)
		t.pass()
		t.tally.behind(p, c.inStage, t.now-max(at, c.freed))
		t.begin(c, p, at, at)
		t.now = t.shared.clock()
	}
}

// pass moves the head of the queue on.
func (t *thread) pass() {
	t.head += t.shared.stride
	t.headAt = t.headPlan.at(t.head)
}

// finished says, when nothing is in flight, whether nothing will begin either.
func (t *thread) finished() bool {
	switch {
	case t.now >= t.end:
		return !t.shared.openLoop || t.head == t.due && t.dueAt >= t.end
	case t.shared.job.plan.Requests == 0 || t.phase() != hold:
		return false
	case t.shared.openLoop:
		return t.head >= t.shared.arrivals.total
	}
	return t.quota == 0 && t.shared.budget.Load() == 0
}

// expire fails the requests whose time is up, some of them in a turn: each is
// followed by a connect, and those take time.
func (t *thread) expire() {
	for range burst {
		c := t.flights.oldest
		if c == nil || c.start+t.shared.timeout > t.now {
			return
		}
		kind := readFailed
		switch c.state {
		case connecting:
			kind = connectFailed
		case shaking:
			kind = tlsFailed
		case sending:
			kind = writeFailed
		}
		t.protocol.fail(c, failure(kind, timedOut))
		t.now = t.shared.clock()
	}
}
