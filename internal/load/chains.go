package load

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// chains is a thread's HTTP/1.1 with a connection for each request, by io_uring: the calls of which a request's life consists are
// handed over together.
//
// The kernel begins them in the order in which they lie, one connection after the other, and what has to wait goes on later: a
// send whose connection does not stand yet, and the receiving, which is linked to it. Were all linked, the kernel would make all
// connects of a turn before the first send, and a server that is quicker than a connect would fall asleep, and be woken, at each of them.
type chains struct {
	*thread
	ring   *ring
	links  []link // by the names of the thread's connections
	queued bool   // requests are, that is, their calls
}

// link is what a connection needs besides.
type link struct {
	buffer   []byte  // what is received, by the kernel, at any time
	open     bool    // its slot holds a socket
	connects bool    // the end of its connect is still to come
	runs     bool    // and that of its receiving
	given    outcome // its request ended before these, with this outcome
	early    bool    // receiving ended before the connect's end was told
	came     end     // with that
	stood    int64   // when it was told that the request had gone, before the connect's end was: by then that stood
	// broke is the error that the connect met with though the request had gone: it broke the connection after that.
	broke syscall.Errno
}

// busy says whether ends of its calls are still to come.
func (l *link) busy() bool { return l.connects || l.runs }

// steps of a request's life, as its calls are named
const (
	stepCancel = iota
	stepSocket
	stepConnect
	stepSend
	stepReceive
)

// chainBuffer is what each connection's holds.
const chainBuffer = 16 << 10

// longestSkip bounds what one receive throws away.
const longestSkip = 1 << 30

// newChains has t use io_uring.
func newChains(t *thread) (*chains, error) {
	r, err := newRing(chainEntries, len(t.conns))
	if err != nil {
		return nil, err
	}
	t.poller.ring = r
	h := &chains{thread: t, ring: r, links: make([]link, len(t.conns))}
	buffers := make([]byte, len(t.conns)*chainBuffer)
	for i := range h.links {
		h.links[i].buffer = buffers[i*chainBuffer : (i+1)*chainBuffer]
	}
	return h, nil
}

// call is one of c's.
func (h *chains) call(c *conn, op, flags uint8, step uint64) *call {
	q := h.ring.add()
	*q = call{op: op, flags: flags, fd: c.name, name: step<<32 | uint64(c.name)}
	return q
}

// carry connects, sends c's request and receives; first the socket is closed that the slot held.
func (h *chains) carry(c *conn) {
	c.tried, c.state = true, connecting
	h.connecting++
	h.attempted(h.now)
	h.count(c.phase).attempts++
	h.ring.room(5)
	l := &h.links[c.name]
	if l.open {
		h.close(c)
	}
	l.open, l.connects, l.runs, l.given, l.early, l.broke = true, true, true, 0, false, 0
	q := h.call(c, opSocket, callQuiet, stepSocket)
	q.fd, q.off, q.slot = int32(h.shared.family), unix.SOCK_STREAM, uint32(c.name)+1
	q = h.call(c, opConnect, callFixed, stepConnect)
	if len(c.asked.bytes) > quietSend { // it may not go at once, and what breaks it meanwhile is not to be the connect's
		q.flags |= callLink
	}
	q.addr, q.off = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(h.shared.address)))), uint64(len(h.shared.address))
	q = h.call(c, opSend, callLink|callFixed, stepSend)
	q.addr, q.length, q.more = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(c.asked.bytes)))), uint32(len(c.asked.bytes)), unix.MSG_NOSIGNAL|unix.MSG_WAITALL
	h.receive(c)
	h.queued = true
}

// turned says what the thread's does. Requests are handed over before that, so that what goes at once is told before the wait. Other
// calls leave with the wait: a cancel, which ends at once, would have it return each time before the kernel goes on with anything.
func (h *chains) turned() bool {
	if h.queued {
		h.ring.submit()
		h.queued = false
	}
	return h.thread.turned()
}

// receive has what comes put into c's buffer, or, of a long body, thrown away by the kernel.
func (h *chains) receive(c *conn) {
	b := h.links[c.name].buffer
	q := h.call(c, opRecv, callFixed, stepReceive)
	q.addr, q.length = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), uint32(len(b))
	if rest := c.reply.skippable(); rest > chainBuffer {
		// No address: a socket that does not know MSG_TRUNC (in a BPF sockmap) fails, and writes nowhere.
		q.addr, q.length, q.more = 0, uint32(min(rest, longestSkip)), unix.MSG_TRUNC
	}
	if c.lost != 0 && !c.heard { // no more than what is there: who has not got all of a request may say nothing ever
		q.more |= unix.MSG_DONTWAIT
	}
}

// close closes the socket of c's slot.
func (h *chains) close(c *conn) {
	q := h.call(c, opClose, callQuiet, stepCancel)
	q.fd, q.slot = 0, uint32(c.name)+1
	h.links[c.name].open = false
}

// event takes the end of a call.
func (h *chains) event(name int32, events uint32) {
	c, l := &h.conns[name], &h.links[name]
	e := h.ring.end(events)
	n, errno := e.told()
	switch e.step() {
	case stepCancel:
		if l.given != 0 && l.busy() { // a call that was yet to begin was not found; it has begun since, or does until the next one
			h.cancel(c)
		}
	case stepSocket: // it failed, and so do the calls behind it
		if l.open = false; l.given == 0 {
			h.giveUp(c, failure(connectFailed, int(errno)))
		}
	case stepConnect:
		h.connectEnded(c, errno)
	case stepSend:
		h.sendEnded(c, n, errno)
	case stepReceive:
		h.received(c, e)
	}
}

// sendEnded takes the end of a send.
func (h *chains) sendEnded(c *conn, n int, errno syscall.Errno) {
	if errno != 0 {
		c.lost = uint16(errno)
		return
	}
	c.sent, h.links[c.name].stood = n, h.woke
	h.count(c.phase).sent += int64(n) // cut off by a timeout, too
	switch {
	case h.links[c.name].given != 0:
		return
	case n < len(c.asked.bytes): // the kernel tells of what went, and not why no more did
		c.lost = uint16(syscall.EPIPE)
	case c.state == sending:
		c.state = awaiting
	}
}

// connectEnded takes the end of a connect, and what receiving came to before it. A send that begins when the connect has failed
// meets with its error first, and takes it away.
func (h *chains) connectEnded(c *conn, errno syscall.Errno) {
	l := &h.links[c.name]
	l.connects = false
	if l.given == 0 {
		switch lost := syscall.Errno(c.lost); {
		case errno != 0 && c.sent > 0:
			l.broke, errno = errno, 0
		case errno == unix.ECONNABORTED && lost != 0, errno == 0 && ofConnect(lost): // the latter where the kernel asks for the error alone (6.1)
			errno = lost
		}
		h.connectedBy(c, errno)
	}
	if l.early {
		l.early = false
		h.received(c, &l.came)
	}
}

// ofConnect says whether an error is one that only a connection has that never stood.
func ofConnect(errno syscall.Errno) bool {
	return errno == unix.ECONNREFUSED || errno == unix.ETIMEDOUT || errno == unix.EHOSTUNREACH || errno == unix.ENETUNREACH
}

// connectedBy takes what a connect came to.
func (h *chains) connectedBy(c *conn, errno syscall.Errno) {
	at := h.now
	if c.sent > 0 {
		at = h.links[c.name].stood
		h.book(c, connectPart, at)
	} else {
		h.told(c, connectPart, connectLag)
	}
	if errno != 0 {
		h.giveUp(c, failure(connectFailed, int(errno)))
		return
	}
	h.connecting--
	h.established++
	h.count(c.phase).add(connect, at-c.start)
	c.stood, c.state = true, sending
	if c.sent == len(c.asked.bytes) {
		c.state = awaiting
	}
}

// received takes the end of receiving.
func (h *chains) received(c *conn, e *end) {
	l := &h.links[c.name]
	l.runs = false
	n, errno := e.told()
	switch {
	case l.connects:
		l.early, l.came = true, *e
		return
	case l.given != 0:
		h.goOn(c, l.given)
		return
	case errno == unix.ECANCELED: // not all could be sent; the server may have said something before it stopped listening
		l.runs = true
		h.receive(c)
		return
	case n == 0 && errno == 0:
		errno = l.broke
	}
	c.at = h.now
	h.heard(c)
	used, s := 0, done
	switch {
	case errno != 0:
		h.fail(c, h.readFailure(c, int(errno)))
		return
	case n == 0 && !c.reply.eof():
		h.fail(c, h.readFailure(c, sawEOF))
		return
	case n > 0:
		h.count(c.phase).received += int64(n)
		if c.reply.skippable() > chainBuffer {
			used, s = n, c.reply.skip(int64(n))
		} else {
			used, s = h.known.feed(&c.reply, l.buffer[:n], h.now)
		}
	}
	switch {
	case s == broken:
		h.fail(c, failure(protocolFailed, int(c.reply.fault)))
	case s == more:
		l.runs = true
		h.receive(c)
	case used < n:
		h.fail(c, failure(protocolFailed, int(excessData)))
	default:
		h.answered(c)
		h.hangUp(c)
		h.next(c, h.woke)
		h.tidy(c)
	}
}

// fail ends c's request without a reply. What the kernel still does for it is cancelled first.
func (h *chains) fail(c *conn, o outcome) {
	if !h.links[c.name].busy() {
		h.goOn(c, o)
		return
	}
	h.cancel(c)
	h.giveUp(c, o)
}

// cancel ends what the kernel does for c now. A call that was to begin just then, since the one before it is done, is not found;
// so how it ended is told, and as long as ends of c's calls are to come it is tried again.
func (h *chains) cancel(c *conn) {
	q := h.call(c, opCancel, 0, stepCancel)
	q.more = cancelAll | cancelSlot
}

// giveUp ends c's request, which goes on when its calls have ended.
func (h *chains) giveUp(c *conn, o outcome) {
	h.unanswered(c, o)
	h.hangUp(c)
	h.links[c.name].given = o
	h.ending++
}

// goOn gives c, none of whose calls is under way, something to do after a failure.
func (h *chains) goOn(c *conn, o outcome) {
	if l := &h.links[c.name]; l.given == 0 {
		h.unanswered(c, o)
		h.hangUp(c)
	} else {
		l.given = 0
		h.ending--
	}
	h.after(c, o)
	h.tidy(c)
}

// hangUp counts c's connection as closed.
func (h *chains) hangUp(c *conn) {
	if c.state == connecting {
		h.connecting--
	} else {
		h.established--
	}
	c.state = closed
}

// tidy closes a socket that no new one follows at once.
func (h *chains) tidy(c *conn) {
	if l := &h.links[c.name]; l.open && !l.runs {
		h.close(c)
	}
}
