package load

import (
	"cmp"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stays is a thread's HTTP/1.1 on connections that stay, by io_uring: what came is there when the wait returns, and what is to be
// sent leaves with the next wait, so that a batch of requests costs one system call, and not two each. All else is the thread's own.
type stays struct {
	*thread
	ring    *ring
	sockets []socket // by the names of the thread's connections
	queued  int      // requests that leave with the next call
}

// socket is what a connection's needs besides.
type socket struct {
	age   uint16 // which of the connection's sockets it is: the ends of calls of another one are passed over
	armed bool   // the kernel watches it, or receives from it
	stops bool   // but is told not to, since the rest of a long body is to be thrown away
}

// steps, as calls are named
const (
	stayCancel = iota
	stayPoll
	staySend
	stayQuiet
	stayReceive
)

const (
	// quietSend is how long a request is at most that the kernel surely takes as a whole, since the one before it is answered.
	quietSend = 4 << 10
	// sendAtOnce is how many requests leave in one call at most: they are told as begun when it began.
	sendAtOnce = 8
	// longestSkip bounds what one receive throws away.
	longestSkip = 1 << 30
)

// newStays has t use io_uring.
func newStays(t *thread) (*stays, error) {
	r, err := newRing(0)
	if err != nil {
		return nil, err
	}
	t.poller.ring = r
	if err := r.addBuffers(len(t.conns)); err != nil {
		return nil, fmt.Errorf("io_uring: buffers to receive into: %w", err)
	}
	return &stays{thread: t, ring: r, sockets: make([]socket, len(t.conns))}, nil
}

// call is one of c's.
func (h *stays) call(c *conn, op, flags uint8, step uint64) *call {
	q := h.ring.add()
	*q = call{op: op, flags: flags, fd: c.fd, name: h.name(c, step)}
	return q
}

// name is that of a call for the socket that c has.
func (h *stays) name(c *conn, step uint64) uint64 {
	return uint64(h.sockets[c.name].age)<<40 | step<<32 | uint64(c.name)
}

// carry sends c's request, or connects first.
func (h *stays) carry(c *conn) {
	if c.state == idle && !c.unasked {
		h.send(c)
		return
	}
	h.thread.carry(c)
}

// send queues c's request.
func (h *stays) send(c *conn) {
	request := c.asked.bytes
	q := h.call(c, opSend, 0, staySend)
	q.addr, q.length, q.more = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(request)))), uint32(len(request)), unix.MSG_NOSIGNAL|unix.MSG_WAITALL
	c.state = sending
	if len(request) <= quietSend {
		q.flags, q.name = callQuiet, h.name(c, stayQuiet)
		h.sent(c, len(request))
	}
	if h.queued++; h.queued >= sendAtOnce {
		h.queued = 0
		h.ring.submit()
		h.now = h.shared.clock()
	}
}

// sent takes note that n bytes of c's request went.
func (h *stays) sent(c *conn, n int) {
	c.sent += n
	h.count(c.phase).sent += int64(n)
	if c.sent == len(c.asked.bytes) {
		c.state = awaiting
	}
}

// poll watches c's connect.
func (h *stays) poll(c *conn) {
	h.sockets[c.name].armed = true
	q := h.call(c, opPoll, 0, stayPoll)
	q.more = unix.POLLIN | unix.POLLOUT
}

// receive has what comes put into buffers of the ring, or, of a long body, thrown away.
func (h *stays) receive(c *conn) {
	s := &h.sockets[c.name]
	s.armed, s.stops = true, false
	q := h.call(c, opRecv, 0, stayReceive)
	if rest := c.reply.skippable(); c.state != idle && rest > h.skips {
		// No address: what does not know MSG_TRUNC fails, and writes nowhere.
		q.how, q.length, q.more = recvPollFirst, uint32(min(rest, longestSkip)), unix.MSG_TRUNC
		return
	}
	q.flags, q.how = callBuffer, recvPollFirst|recvMulti
	if c.stamped {
		q.op, q.addr = opRecvMsg, uint64(uintptr(unsafe.Pointer(&h.ring.buffers.message)))
	}
}

// close closes c's socket. Its calls end by the shutdown, without a search for them; its descriptor is free when what is queued for it
// has been handed over.
func (h *stays) close(c *conn) {
	s := &h.sockets[c.name]
	if s.armed || c.state == sending {
		sysShutdown(c.fd)
	}
	h.call(c, opClose, callQuiet, stayCancel)
	*s = socket{age: s.age + 1}
}

// event takes the end of a call.
func (h *stays) event(name int32, events uint32) {
	e := h.ring.end(events)
	c, current := &h.conns[name], uint16(e.name>>40) == h.sockets[name].age
	switch step := e.step(); {
	case step == stayReceive:
		if current {
			h.received(c, e)
		}
		h.ring.giveBack(e)
	case step == staySend:
		h.went(c, e, current)
	case step == stayQuiet && current:
		h.failed(c, e)
	case step == stayPoll && current:
		h.polled(c, e)
	}
}

// polled takes what a connect came to.
func (h *stays) polled(c *conn, e *end) {
	h.sockets[c.name].armed = false
	n, errno := e.told()
	if errno != 0 {
		h.fail(c, failure(connectFailed, int(errno)))
		return
	}
	switch stands, o := h.connected(c, uint32(n)); {
	case o != 0:
		h.fail(c, o)
	case stands:
		h.receive(c)
		h.send(c)
	default:
		h.poll(c)
	}
}

// went takes the end of the send of a long request, which a timeout may have cut off.
func (h *stays) went(c *conn, e *end, current bool) {
	n, errno := e.told()
	if !current {
		h.count(c.phase).sent += int64(n)
		return
	}
	if h.sent(c, n); c.sent < len(c.asked.bytes) {
		c.lost = cmp.Or(uint16(errno), uint16(syscall.EPIPE))
	}
}

// failed takes the end of the send of a short request, of which only a failure is told.
func (h *stays) failed(c *conn, e *end) {
	n, errno := e.told()
	h.count(c.phase).sent -= int64(c.sent - n)
	c.sent, c.lost = n, cmp.Or(uint16(errno), uint16(syscall.EPIPE))
}

// received takes what came, or what became of receiving.
func (h *stays) received(c *conn, e *end) {
	s := &h.sockets[c.name]
	s.armed = e.flags&endFollows != 0
	n, errno := e.told()
	if errno == unix.ENOBUFS || errno == unix.ECANCELED {
		h.receive(c)
		return
	}
	b, at := h.ring.data(e), int64(0)
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
	switch {
	case c.state == closed:
	case !s.armed:
		h.receive(c)
	case goesOn && !s.stops && c.reply.skippable() > h.skips:
		s.stops = true
		q := h.call(c, opCancel, callQuiet, stayCancel)
		q.fd, q.addr = -1, h.name(c, stayReceive)
	}
}
