package load

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// lateAttempts is how much of what was missed of a rate of connects is made up for, in nanoseconds: enough for the times
// between which a thread wakes, and no burst for a listener's queue.
const lateAttempts = 2_000_000

// mustWait has c wait, which could begin a request, if it needs a connection and the next attempt may not yet be made.
func (t *thread) mustWait(c *conn) bool {
	if t.now >= t.attemptAt || !t.protocol.opens(c) {
		return false
	}
	t.protocol.reserve(c)
	t.waiting.push(c)
	return true
}

// attempted takes note of an attempt to connect.
func (t *thread) attempted(now int64) {
	if gap := t.shared.gap; gap > 0 {
		t.attemptAt = max(t.attemptAt, now-lateAttempts) + gap
	}
}

// takeFree takes a connection for a planned request, nil for none: one that waits to connect when it is time, so that
// all get their turn, else one that stands.
func (t *thread) takeFree() *conn {
	if t.waiting.n > 0 && t.now >= t.attemptAt {
		c := t.waiting.pop()
		c.freed = max(c.freed, t.attemptAt)
		return c
	}
	for t.free.n > 0 {
		c := t.free.pop()
		switch {
		case t.shared.gap == 0 || !t.protocol.opens(c):
			return c
		case t.now >= t.attemptAt:
			c.freed = max(c.freed, t.attemptAt)
			return c
		case t.protocol.accepts(c): // else it is told when its connection stands
			t.mustWait(c)
		}
	}
	return t.grow()
}

// mayGrow says whether one more connection may be opened now.
func (t *thread) mayGrow() bool { return len(t.reserves) > 0 && t.now >= t.attemptAt }

// grow takes a place in reserve, nil for none.
func (t *thread) grow() *conn {
	if !t.mayGrow() {
		return nil
	}
	c := t.reserves[len(t.reserves)-1]
	t.reserves = t.reserves[:len(t.reserves)-1]
	return c
}

// wantsConnection says whether those that wait to connect have something to do when they may.
func (t *thread) wantsConnection() bool {
	if t.paced() {
		return t.head < t.due
	}
	return t.now < t.end
}

// bind gives a socket the source whose turn it is. Its port is chosen by connect, for this target alone; bind would
// take one for all targets, and each only once.
func (t *thread) bind(fd int32) syscall.Errno {
	sysSetOption(fd, unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	from := t.shared.sources[t.sourceTurn]
	t.sourceTurn = (t.sourceTurn + int(t.shared.stride)) % len(t.shared.sources)
	return sysBind(fd, from)
}
