package load

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// next finds c, which has no request, something to do; ready is since when it could.
func (t *thread) next(c *conn, ready int64) {
	if t.paced() {
		c.freed = t.now
		t.free.push(c)
		return
	}
	if t.holding {
		t.held = append(t.held, c)
		return
	}
	p := t.phase()
	if p == drain || !t.protocol.accepts(c) {
		return
	}
	if t.shared.gap > 0 && t.mustWait(c) {
		return
	}
	if p == hold && !t.spend() {
		return
	}
	t.count(p).begun++
	c.asked = t.choose()
	t.begin(c, p, t.now, ready)
}

// choose is what the next request of a closed loop asks for.
func (t *thread) choose() *request {
	job := t.shared.job
	if job.rows == 0 {
		return job.choose(t.random())
	}
	row := t.row % int64(job.rows)
	t.row += t.shared.stride
	return job.ofRow(row, t.random())
}

// planned is what request k of an open loop asks for.
func (t *thread) planned(k int64) *request {
	switch job := t.shared.job; {
	case job.rows > 0:
		return job.ofRow(k%int64(job.rows), t.random())
	case job.replayed != nil && k >= t.shared.arrivals.ramp():
		return &job.requests[job.replayed[k-t.shared.arrivals.ramp()]]
	default:
		return job.choose(t.random())
	}
}

// begin begins the request that c asks for. ready is the moment from which it could have begun.
func (t *thread) begin(c *conn, p phase, intended, ready int64) {
	c.phase, c.intended, c.start = p, intended, t.now
	c.sent, c.lost, c.heard, c.early = 0, 0, false, false
	c.booked = intended
	t.book(c, queued, min(c.freed, t.now))
	t.book(c, late, t.now)
	c.reply.reset(c.asked.toHEAD)
	c.reply.text, c.reply.upgrade = c.asked.text, c.asked.upgrade
	t.flights.push(c)
	t.inFlight++
	t.count(c.phase).add(delay, t.now-ready)
	t.protocol.carry(c)
}

// accepts is true: a connection without a request takes one.
func (*thread) accepts(*conn) bool { return true }

// opens says whether c is closed.
func (*thread) opens(c *conn) bool { return c.state == closed }

// reserve does nothing: c has its connection for itself.
func (*thread) reserve(*conn) {}

// turned asks for another turn where few replies came and more are about to, so that the thread lingers. A server that is
// the limit wakes who sleeps at its sockets for each reply that it sends, and pays for it; nobody is woken who sleeps by the clock.
func (t *thread) turned() bool {
	came := t.came
	t.came = 0
	return came > 0 && came < worthGathering && t.inFlight >= worthGathering && !t.paced() && t.moment() > 0
}

// busy are all that have a request, but those that connect.
func (t *thread) busy() int64 { return t.inFlight - t.connecting }

// carry sends c's request, or connects first.
func (t *thread) carry(c *conn) {
	switch {
	case c.unasked:
		c.unasked = false
		t.fail(c, failure(protocolFailed, int(unaskedReply)))
	case c.state == idle:
		t.send(c)
	default:
		if o := t.open(c); o != 0 {
			t.fail(c, o)
		}
	}
}

// open starts a connect, whose end is an event. An outcome says that it failed at once.
func (t *thread) open(c *conn) outcome {
	c.tried = true
	t.attempted(t.now)
	t.count(c.phase).attempts++
	fd, errno := sysSocket(t.shared.family)
	if errno == unix.EMFILE && t.sockets != nil { // those that are closed are still queued
		t.sockets.submit()
		fd, errno = sysSocket(t.shared.family)
	}
	if errno != 0 {
		return failure(connectFailed, int(errno))
	}
	c.fd = fd
	c.state = connecting
	t.connecting++
	sysSetOption(fd, unix.SOL_TCP, unix.TCP_NODELAY, 1)
	if t.shared.brief {
		sysSetCongestion(fd, "reno")
	}
	if len(t.shared.sources) > 0 {
		if errno = t.bind(fd); errno != 0 {
			return failure(connectFailed, int(errno))
		}
	}
	if c.stamped {
		sysSetOption(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE)
	}
	called := t.shared.clock()
	errno = sysConnect(fd, t.shared.address)
	t.now = t.shared.clock()
	t.count(c.phase).connectCalls.add(t.now - called)
	switch {
	case errno != 0 && errno != unix.EINPROGRESS:
	case t.sockets != nil:
		t.sockets.poll(fd, c.name)
		errno = 0
	default:
		errno = t.poller.add(fd, c.name)
	}
	if errno != 0 {
		return failure(connectFailed, int(errno))
	}
	return 0
}

// hangUp closes c's socket, if it has one.
func (t *thread) hangUp(c *conn) {
	switch c.state {
	case closed:
		return
	case connecting:
		t.connecting--
	default:
		t.established--
	}
	switch {
	case t.sockets != nil:
		if t.sockets.close(c.fd, c.name) {
			t.ending++
		}
	case c.secure == nil || c.secure.wire == nil || t.release(c):
		sysClose(c.fd)
	}
	c.fd, c.state = -1, closed
}

// event is called with what epoll says about a connection.
func (t *thread) event(name int32, events uint32) {
	c := &t.conns[name]
	const incoming = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	closing := events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
	switch c.state {
	case closed:
		return
	case idle:
		if events&incoming != 0 {
			t.spokenTo(c, closing)
		}
		return
	case connecting:
		switch stands, o := t.connected(c, events); {
		case o != 0:
			t.fail(c, o)
			return
		case !stands || !t.send(c):
			return
		}
	case shaking:
		c.secure.wire.wake()
		return
	case sending:
		if events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 && !t.send(c) {
			return
		}
	}
	if events&incoming != 0 {
		t.receive(c, closing)
	}
}

// spokenTo closes an idle connection on which something has come. Mostly it is its
// end, perhaps after a word about why (a 408): no request is lost, the next one
// opens anew. Anything else would have passed for the reply to the next request,
// which is told.
func (t *thread) spokenTo(c *conn, closing bool) {
	n, errno := t.heardIdle(c, closing)
	if errno == unix.EAGAIN && (c.secure != nil || t.sockets != nil) {
		return // TLS's own: a session for later, new keys; or what came was read before io_uring told of it
	}
	t.hangUp(c)
	if errno == 0 {
		t.disturbed(c, t.buffer[:n])
	}
}

// disturbed takes note of what came on a connection without a request, if it was anything.
func (*thread) disturbed(c *conn, b []byte) {
	if len(b) == 0 {
		return
	}
	c.reply.reset(false)
	c.reply.feed(b)
	c.unasked = c.reply.status < firstError
}

// heardIdle reads what came on a connection without a request.
func (t *thread) heardIdle(c *conn, closing bool) (int, syscall.Errno) {
	if c.secure == nil {
		return sysRecv(c.fd, t.buffer, len(t.buffer), 0)
	}
	c.secure.told(closing)
	return t.opened(c)
}

// connected takes an event of a connect. It returns true when the connection stands; over
// TLS the handshake begins then, and shook is called when it is over. An outcome
// says that the connect failed.
func (t *thread) connected(c *conn, events uint32) (bool, outcome) {
	if events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		t.told(c, connectPart, connectLag)
	}
	if events&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		if errno := socketError(c.fd); errno != 0 {
			return false, failure(connectFailed, int(errno))
		}
	}
	if events&unix.EPOLLOUT == 0 {
		return false, 0
	}
	t.connecting--
	t.established++
	t.count(c.phase).add(connect, t.now-c.start)
	if t.shared.job.tls != nil {
		t.shake(c)
		return false, 0
	}
	c.stood = true
	c.early = events&unix.EPOLLIN != 0
	return true, 0
}

// shook goes on after a TLS handshake: what came before the request was sent is read first.
func (t *thread) shook(h *handshake) {
	c := &t.conns[h.name]
	if !t.secured(c, h) {
		t.fail(c, c.secure.failed)
		return
	}
	c.stood, c.early, c.state, c.at = true, true, sending, t.now
	if !t.receive(c, false) {
		return
	}
	c.early = c.heard
	t.send(c)
}

// send gives the kernel as much of the request as it takes; it returns false
// when that ended the request.
func (t *thread) send(c *conn) bool {
	c.state = sending
	for request := c.asked.bytes; c.sent < len(request) || c.unsent(); {
		n, errno := t.write(c, request[c.sent:])
		switch errno {
		case 0:
			c.sent += n
		case unix.EAGAIN:
			return true // epoll tells when there is room again
		default:
			c.lost = uint16(errno)
			return t.receive(c, true)
		}
	}
	c.state = awaiting
	return true
}

func (t *thread) write(c *conn, b []byte) (n int, errno syscall.Errno) {
	if c.secure != nil {
		n, errno = t.sealed(c, b)
	} else {
		n, errno = sysSend(c.fd, b)
	}
	if errno == 0 {
		t.count(c.phase).sent += int64(n)
	}
	return n, errno
}

// receive reads what has come; closing says that the connection's end is near,
// so that reading must go on until it. It returns false when the request ended.
func (t *thread) receive(c *conn, closing bool) bool {
	if c.secure != nil {
		c.secure.told(closing)
	}
	for {
		n, asked, errno := t.read(c)
		if errno == unix.EAGAIN && (c.lost == 0 || c.heard) {
			if c.lost != 0 { // the rest of a reply comes all the same, and nothing more is sent
				c.state = awaiting
			}
			return true
		}
		if !t.got(c, t.buffer, n, errno, closing) {
			return false
		}
		if n < asked && !closing && c.secure == nil {
			return true // the socket is empty; more is another edge
		}
	}
}

// got takes n bytes of c's reply, which are in b or were thrown away, or what came instead of them; it returns false when the
// request ended.
func (t *thread) got(c *conn, b []byte, n int, errno syscall.Errno, closing bool) bool {
	t.heard(c)
	switch {
	case errno != 0:
		t.fail(c, t.readFailure(c, int(errno)))
		return false
	case n > 0:
		t.count(c.phase).received += int64(n)
		return t.take(c, b, n, closing)
	case c.reply.state == inBodyUntilEOF && c.secure != nil && c.secure.truncated():
		t.fail(c, failure(readFailed, int(noCloseNotify)))
	case c.reply.eof():
		t.succeed(c, true)
	default:
		t.fail(c, t.readFailure(c, sawEOF))
	}
	return false
}

// readFailure is how a request ends that will get no complete reply.
func (t *thread) readFailure(c *conn, detail int) outcome {
	if c.lost != 0 {
		return failure(writeFailed, int(c.lost))
	}
	if c.secure != nil && c.secure.failed != 0 && detail == int(unix.EPROTO) {
		return c.secure.failed
	}
	return failure(readFailed, detail)
}

// read reads into the thread's buffer. Of a body that would not fit it only
// counts the bytes: the kernel throws them away.
func (t *thread) read(c *conn) (n, asked int, errno syscall.Errno) {
	if c.secure != nil {
		n, errno = t.opened(c)
		return n, len(t.buffer), errno
	}
	if rest := c.reply.skippable(); rest > t.skips {
		asked, c.at = int(min(rest, 1<<30)), t.now
		n, errno = sysRecv(c.fd, nil, asked, unix.MSG_TRUNC)
		return n, asked, errno
	}
	n, errno = t.receiveInto(c, t.buffer)
	return n, len(t.buffer), errno
}

// take follows the reply through n bytes read; it returns false when the request ended.
func (t *thread) take(c *conn, b []byte, n int, closing bool) bool {
	var s step
	if c.secure == nil && c.reply.skippable() > t.skips {
		s = c.reply.skip(int64(n))
	} else {
		var used int
		used, s = t.known.feed(&c.reply, b[:n], t.now)
		if s == done && used < n {
			c.reply.fault, s = excessData, broken
		}
	}
	switch s {
	case done:
		if c.secure == nil {
			t.succeed(c, closing)
		} else if t.nothingMore(c) {
			t.succeed(c, closing || c.secure.ended())
		} else {
			t.fail(c, failure(protocolFailed, int(excessData)))
		}
		return false
	case broken:
		t.fail(c, failure(protocolFailed, int(c.reply.fault)))
		return false
	}
	t.came++
	return true
}

// succeed ends a request with the reply's status class.
func (t *thread) succeed(c *conn, closing bool) {
	if c.early && c.reply.status < firstError { // an error may be about the connection: too many of them
		t.fail(c, failure(protocolFailed, int(unaskedReply)))
		return
	}
	t.answered(c)
	if closing || !t.shared.job.plan.KeepAlive || c.sent < len(c.asked.bytes) || c.unsent() || !c.reply.reusable() {
		t.hangUp(c)
	} else {
		c.state = idle
	}
	t.next(c, t.woke)
}

// fail ends a request without a reply, and its connection.
func (t *thread) fail(c *conn, o outcome) {
	t.unanswered(c, o)
	t.hangUp(c)
	t.after(c, o)
}

// answered counts a request that has its reply.
func (t *thread) answered(c *conn) {
	n, o := t.count(c.phase), c.asked.judge(&c.reply)
	n.statuses.add(c.reply.status, 1)
	if !o.isReply() { // not the one that was wanted
		n.add(failed, c.at-c.intended)
		t.finish(c, o, c.at)
		return
	}
	t.came++
	took := c.at - c.start
	t.quickest = min(took, t.quickest+(took-t.quickest)/1024)
	n.add(firstWait, c.waited)
	n.add(transfer, c.at-c.first)
	n.add(service, took)
	if t.shared.openLoop {
		n.add(response, c.at-c.intended)
	}
	t.finish(c, o, c.at)
}

// unanswered counts a request that will have none.
func (t *thread) unanswered(c *conn, o outcome) {
	t.count(c.phase).add(failed, t.now-c.intended)
	t.finish(c, o, t.now)
}

// after a failure c goes on, or rests first.
func (t *thread) after(c *conn, o outcome) {
	if (o.kind() == connectFailed || o.kind() == tlsFailed || o.kind() == tlsAlert) && !t.paced() {
		t.rest(c)
		return
	}
	t.next(c, t.woke)
}

// finish ends a request at a moment; what was booked, by a stamp of the kernel's, may be younger.
func (t *thread) finish(c *conn, o outcome, at int64) {
	at = max(at, c.booked)
	t.book(c, c.stage(), at)
	t.count(c.phase).end(o, at-c.intended)
	t.tally.apart(c.phase, c.asked, c.inStage, o, at-c.intended)
	t.flights.remove(c)
	t.inFlight--
}
