package load

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// pipelined is a thread's HTTP/1.1 with several requests on each connection at once, which are answered in their order. Its
// lanes stand where else connections are: each is a place for one request at a time.
type pipelined struct {
	*thread
	pipes   []pipe // by the names of the thread's connections
	dirty   *pipe  // has something to send
	batches batches
	serving int64 // connections with a request in flight
}

// newPipelined has t send so many requests at once on each connection.
func newPipelined(t *thread, depth int) *pipelined {
	h := &pipelined{thread: t, pipes: make([]pipe, len(t.conns))}
	places := make([]conn, len(t.conns)*depth)
	t.makeRoom(len(places))
	for i := range h.pipes {
		p := &h.pipes[i]
		p.order.ring = make([]*conn, depth)
		p.lay(t, i, places[i*depth:(i+1)*depth])
	}
	slices.Reverse(t.reserves)
	return h
}

// of is the connection of a lane.
func (h *pipelined) of(c *conn) *pipe { return &h.pipes[c.name] }

// accepts says whether a request could begin at c: that opens the connection, or it stands.
func (h *pipelined) accepts(c *conn) bool {
	p := h.of(c)
	return p.takes(c, !p.retired)
}

// opens says whether c's connection is closed.
func (h *pipelined) opens(c *conn) bool { return h.of(c).carrier.state == closed }

// reserve has c open its connection when it may; others wait for that.
func (h *pipelined) reserve(c *conn) { h.of(c).opener = c }

// busy are the connections with a request in flight.
func (h *pipelined) busy() int64 { return h.serving }

// carry sends the request that has just begun at c, or opens the connection first.
func (h *pipelined) carry(c *conn) {
	p := h.of(c)
	switch stands, o := h.ready(&p.lanes, c); {
	case o != 0:
		h.lost(p, o)
	case stands:
		h.send(p, c)
	}
}

// send has c's request sent, before anything of another connection is.
func (h *pipelined) send(p *pipe, c *conn) {
	if p.active == 0 {
		h.serving++
	}
	p.put(c)
	if h.dirty != p {
		h.clean()
		h.dirty = p
	}
}

// turned sends what is to be sent. It returns true where more replies are expected at once.
func (h *pipelined) turned() bool {
	kept := h.batches[:0]
	for _, w := range h.batches {
		if p := h.of(w.carrier); w.waits(h.thread, p.active > 0) {
			kept = append(kept, w)
		} else {
			h.resume(p)
		}
	}
	h.batches = kept
	h.clean()
	return len(kept) > 0
}

// clean sends what the connection has to send that was used last.
func (h *pipelined) clean() {
	if h.dirty != nil {
		h.flush(h.dirty)
	}
}

// read goes on after what came on p was taken.
func (h *pipelined) read(p *pipe) {
	if !h.batches.takes(h.thread, &p.lanes, p.active > 0) {
		h.resume(p)
	}
}

// resume lets the lanes go on that have their replies, and sends.
func (h *pipelined) resume(p *pipe) {
	h.goOn(&p.lanes)
	h.flush(p)
}

// flush sends as much as the kernel takes. Where sending fails, what the server said before is
// read first: the socket is ended, so that epoll tells of it.
func (h *pipelined) flush(p *pipe) {
	if h.dirty == p {
		h.dirty = nil
	}
	for k := p.carrier; k.state == idle && k.lost == 0 && (p.sent < len(p.out) || k.unsent()); {
		n, errno := h.write(k, p.out[p.sent:])
		switch errno {
		case 0:
			p.sent, p.gone = p.sent+n, p.gone+n
		case unix.EAGAIN:
			return
		default:
			k.lost = uint16(errno)
			sysShutdown(k.fd)
		}
	}
	if p.sent == len(p.out) {
		p.out, p.sent = p.out[:0], 0
	}
}

// event takes what epoll says about a connection.
func (h *pipelined) event(name int32, events uint32) {
	const incoming = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	closing := events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
	p := &h.pipes[name]
	switch k := p.carrier; k.state {
	case closed:
		return
	case connecting:
		stands, o := h.connected(k, events)
		if o != 0 {
			h.lost(p, o)
			return
		}
		if !stands {
			p.opener.state = k.state
			return
		}
		h.stands(p)
	case shaking:
		k.secure.wire.wake()
		return
	}
	if events&incoming != 0 && !h.receive(p, closing) {
		return
	}
	h.read(p)
}

// shook goes on after a TLS handshake: what came before the request was sent is read first.
func (h *pipelined) shook(done *handshake) {
	p := &h.pipes[done.name]
	if !h.secured(p.carrier, done) {
		h.lost(p, p.carrier.secure.failed)
		return
	}
	p.carrier.stood, p.carrier.early = true, false
	h.stands(p)
	if h.receive(p, false) {
		h.read(p)
	}
}

// stands sends the request that a connection was opened for, which stands now, and lets others follow.
func (h *pipelined) stands(p *pipe) {
	c := p.lanes.stands()
	p.reset()
	h.send(p, c)
	h.unpark(&p.lanes)
}

// receive reads what has come; closing says that the connection's end is near, so that
// reading must go on until it. It returns false when the connection is gone.
func (h *pipelined) receive(p *pipe, closing bool) bool {
	k := p.carrier
	if k.secure != nil {
		k.secure.told(closing)
	}
	for {
		n, asked, errno := h.hear(p)
		if errno == 0 {
			p.heardAt = h.now
			h.count(k.phase).received += int64(n)
		}
		switch {
		case errno == unix.EAGAIN:
			return true
		case errno != 0:
			h.lost(p, h.readFailure(k, int(errno)))
			return false
		case n == 0:
			h.ended(p)
			return false
		case asked > len(h.buffer):
			c := p.order.front()
			h.heardOf(p, c)
			if c.reply.skip(int64(n)) == done && !h.complete(p, c) {
				return false
			}
		case !h.take(p, h.buffer[:n]):
			return false
		}
		k.lay = 0
		if n < asked && !closing && k.secure == nil {
			return true // the socket is empty; more is another edge
		}
	}
}

// hear reads into the thread's buffer. Of a body that would not fit it only
// counts the bytes: the kernel throws them away.
func (h *pipelined) hear(p *pipe) (n, asked int, errno syscall.Errno) {
	k := p.carrier
	if k.secure != nil {
		n, errno = h.opened(k)
		return n, len(h.buffer), errno
	}
	if c := p.order.front(); c != nil {
		if rest := c.reply.skippable(); rest > h.skips {
			asked, k.at = int(min(rest, 1<<30)), h.now
			n, errno = sysRecv(k.fd, nil, asked, unix.MSG_TRUNC)
			return n, asked, errno
		}
	}
	n, errno = h.receiveInto(k, h.buffer)
	return n, len(h.buffer), errno
}

// take follows the replies through b; it returns false when the connection is gone.
func (h *pipelined) take(p *pipe, b []byte) bool {
	for len(b) > 0 {
		c := p.order.front()
		if c == nil {
			return h.unasked(p, b)
		}
		h.heardOf(p, c)
		used, s := c.reply.feed(b)
		if b = b[used:]; s == done && len(b) > 0 && p.order.n == 1 {
			c.reply.fault, s = excessData, broken
		}
		switch s {
		case broken: // where the others' replies begin nobody knows
			h.lost(p, failure(protocolFailed, int(c.reply.fault)))
			return false
		case done:
			if !h.complete(p, c) {
				return false
			}
		}
	}
	return true
}

// unasked ends a connection on which something came without a request: mostly a word about why it ends, else
// it would pass for the next request's reply, and is told as that. It returns false, as those do that call it.
func (h *pipelined) unasked(p *pipe, b []byte) bool {
	var r reply
	r.reset(false)
	if r.feed(b); r.status < firstError {
		p.owed = failure(protocolFailed, int(unaskedReply))
	}
	h.lost(p, failure(readFailed, sawEOF))
	return false
}

// heardOf books the time of c until now, that something of its reply came.
func (h *pipelined) heardOf(p *pipe, c *conn) {
	k := p.carrier
	if c.state == idle {
		return // given up
	}
	c.at = max(k.at, c.booked)
	if k.stamped && !h.shared.openLoop {
		sum := &h.count(c.phase).unread
		if sum.nanos += k.lay; !c.heard {
			sum.n++
		}
	}
	h.heard(c)
}

// complete ends the request whose reply is complete. It returns false when the connection is gone.
func (h *pipelined) complete(p *pipe, c *conn) bool {
	p.order.pop()
	if k := p.carrier; k.secure != nil {
		k.secure.served = true
	}
	if c.state != idle {
		if (c.early || !p.begun(c)) && c.reply.status < firstError { // an error may be about the connection: too many of them
			h.lost(p, failure(protocolFailed, int(unaskedReply)))
			return false
		}
		h.left(p)
		h.answered(c)
		c.state = idle
		p.done = append(p.done, c)
	}
	if !c.reply.reusable() || !p.whole(c) || p.retired && p.active == 0 {
		h.lost(p, failure(readFailed, sawEOF)) // which is how those behind it end
		return false
	}
	return true
}

// left takes note that a request has its outcome.
func (h *pipelined) left(p *pipe) {
	if p.active--; p.active == 0 {
		h.serving--
	}
}

// ended is called at the end of what the server sends, which may be that of a reply.
func (h *pipelined) ended(p *pipe) {
	c := p.order.front()
	o := h.readFailure(p.carrier, sawEOF)
	if c != nil && c.reply.state == inBodyUntilEOF && c.state != idle {
		h.heardOf(p, c)
		if s := p.carrier.secure; s != nil && s.truncated() {
			o = failure(readFailed, int(noCloseNotify))
		} else if c.reply.eof() && !h.complete(p, c) {
			return
		}
	}
	h.lost(p, o)
}

// fail ends c's request without a reply. Its reply may come all the same, before those of the others: the connection
// takes no more requests, and goes on for these.
func (h *pipelined) fail(c *conn, o outcome) {
	p := h.of(c)
	if c == p.opener {
		h.lost(p, o)
		return
	}
	sent := c.state == awaiting
	if sent {
		if o == failure(readFailed, timedOut) && !p.whole(c) {
			o = failure(writeFailed, timedOut)
		}
		p.retired = true
		h.left(p)
	}
	h.unanswered(c, o)
	c.state = idle
	if sent && p.active == 0 {
		h.lost(p, o)
	}
	h.after(c, o)
}

// lost ends a connection. The requests on it end with an outcome.
func (h *pipelined) lost(p *pipe, o outcome) {
	if p.active > 0 {
		h.serving--
	}
	if h.dirty == p {
		h.dirty = nil
	}
	p.reset()
	h.drop(&p.lanes, o)
}
