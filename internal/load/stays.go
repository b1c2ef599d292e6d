package load

import (
	"cmp"
	"syscall"

	"golang.org/x/sys/unix"
)

// stays is a thread's HTTP/1.1 on connections that stay, by io_uring: what came is there when the wait returns, and what is to be
// sent leaves with the next wait, so that a batch of requests costs one system call, and not two each. All else is the thread's own.
type stays struct{ *thread }

// sendAtOnce is how many requests leave in one call at most: they are told as begun when it began.
const sendAtOnce = gridBatch

// newStays has t use io_uring.
func newStays(t *thread) (s stays, err error) {
	if t.sockets, err = newRingSockets(len(t.conns), t.shared.job.plan.Threads); err != nil {
		return s, err
	}
	t.poller.ring = t.sockets.ring
	return stays{t}, nil
}

// carry sends c's request, or connects first.
func (h stays) carry(c *conn) {
	if c.state == idle && !c.unasked {
		h.send(c)
		return
	}
	h.thread.carry(c)
}

// send queues c's request.
func (h stays) send(c *conn) {
	c.state = sending
	if h.sockets.send(c.fd, c.name, c.asked.bytes) {
		h.sent(c, len(c.asked.bytes))
	}
	if n := h.sockets.queued; n > sendAtOnce || n == sendAtOnce && (!h.shared.openLoop || h.head < h.due) { // a step's last leave with the wait
		h.sockets.submit()
		h.sockets.queued, h.now = 0, h.shared.clock()
	}
}

// sent takes note that n bytes of c's request went.
func (h stays) sent(c *conn, n int) {
	c.sent += n
	h.count(c.phase).sent += int64(n)
	if c.sent == len(c.asked.bytes) {
		c.state = awaiting
	}
}

// turned says what the thread's does; the next wait hands over what is queued.
func (h stays) turned() bool {
	h.sockets.queued = 0
	return h.thread.turned()
}

// receive has more come.
func (h stays) receive(c *conn) {
	s := &h.sockets.list[c.name]
	if s.watched = s.watched || h.sockets.long; s.watched {
		h.sockets.watch(c.fd, c.name)
	} else {
		h.sockets.receive(c.fd, c.name, c.stamped)
	}
}

// event takes the end of a call.
func (h stays) event(name int32, events uint32) {
	e := h.sockets.end(events)
	c, current := &h.conns[name], h.sockets.isOf(name, e)
	switch step := e.step(); {
	case step == ringReceive:
		if current {
			h.received(c, e)
		}
		h.sockets.buffers.giveBack(e)
	case step == ringWatch && current:
		h.seen(c, e)
	case step == ringSend:
		h.went(c, e, current)
	case step == ringQuietSend && current:
		h.failed(c, e)
	case step == ringPoll && current:
		h.polled(c, e)
	}
}

// polled takes what a connect came to.
func (h stays) polled(c *conn, e *end) {
	h.sockets.list[c.name].armed = false
	n, errno := e.told()
	if errno != 0 {
		h.fail(c, failure(connectFailed, int(errno)))
		return
	}
	switch stands, o := h.connected(c, uint32(n)); {
	case o != 0:
		h.fail(c, o)
	case stands:
		h.sockets.keep(c.fd, c.name)
		h.receive(c)
		h.send(c)
	default:
		h.sockets.poll(c.fd, c.name)
	}
}

// went takes the end of the send of a long request, which a timeout may have cut off.
func (h stays) went(c *conn, e *end, current bool) {
	n, errno := e.told()
	if !current {
		h.ending--
		h.count(c.phase).sent += int64(n)
		return
	}
	h.sockets.list[c.name].sending = false
	if h.sent(c, n); c.sent < len(c.asked.bytes) {
		h.cut(c, errno)
	}
}

// failed takes the end of the send of a short request, of which only a failure is told.
func (h stays) failed(c *conn, e *end) {
	n, errno := e.told()
	h.count(c.phase).sent -= int64(c.sent - n)
	c.sent = n
	h.cut(c, errno)
}

// cut takes note that c's request did not go as a whole, 0 for no reason that is known. Where a reply has begun, the rest is waited
// for; else what the server said before is read, and then the end: the socket is shut, since not every reason ends it.
func (h stays) cut(c *conn, errno syscall.Errno) {
	c.lost = cmp.Or(uint16(errno), uint16(syscall.EPIPE))
	if c.state == idle || !c.heard { // idle: all of the reply has come
		sysShutdown(c.fd)
		return
	}
	c.state = awaiting
}

// received takes what came, or what became of receiving.
func (h stays) received(c *conn, e *end) {
	s := &h.sockets.list[c.name]
	s.armed = e.flags&endFollows != 0
	n, errno := e.told()
	if errno == unix.ENOBUFS || errno == unix.ECANCELED {
		h.receive(c)
		return
	}
	b, at := h.sockets.buffers.data(e), int64(0)
	if c.stamped && b != nil {
		b, at = unwrapped(b)
		n = len(b)
	}
	c.at = max(h.now, c.booked)
	if c.state == idle {
		h.hangUp(c)
		if errno == 0 {
			h.disturbed(c, b)
		}
		return
	}
	h.dated(c, at)
	goesOn := h.got(c, b, n, errno, false)
	long := n >= longPiece || goesOn && c.reply.skippable() > h.skips
	if b != nil {
		h.sockets.long = long
	}
	switch {
	case c.state == closed:
	case long && s.armed && !s.watched:
		s.watched = true
		h.sockets.stop(c.name, ringReceive)
	case !s.armed:
		h.receive(c)
	}
}

// seen receives what came on a socket that is watched.
func (h stays) seen(c *conn, e *end) {
	s := &h.sockets.list[c.name]
	s.armed, h.now = e.flags&endFollows != 0, h.shared.clock()
	defer func() { h.now = h.woke }() // what else is told had been received when the wait returned
	n, errno := e.told()
	closing := errno != 0 || n&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
	switch {
	case errno == unix.ECANCELED: // as it was to be: see took
		s.watched, s.short, h.sockets.long = false, 0, false
	case c.state == idle:
		h.spokenTo(c, closing)
	case c.at > h.woke && !closing && s.armed: // told twice: what was there when the wait returned has been received
		return
	default:
		h.took(c, closing)
	}
	if c.state != closed && !s.armed {
		h.receive(c)
	}
}

// took receives on a socket that is watched, and leaves that to the kernel again when replies have been short for long enough.
func (h stays) took(c *conn, closing bool) {
	s, first, phase := &h.sockets.list[c.name], !c.heard, c.phase
	before := h.count(phase).received
	goesOn := h.thread.receive(c, closing)
	if c.state == closed {
		return
	}
	if goesOn || !first || h.count(phase).received-before >= longPiece {
		s.short = 0
		return
	}
	if s.short = min(s.short+1, shortInARow+1); s.short == shortInARow {
		h.sockets.stop(c.name, ringWatch)
	}
}
