package load

import (
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"plimsoll/internal/secret"
)

// http2 is a thread's HTTP/2. Its lanes stand where HTTP/1.1 has connections: each is a place for one
// request at a time. The thread's connections carry their streams.
type http2 struct {
	*thread
	over    []h2Conn // by the names of the thread's connections
	dirty   *h2Conn  // has something to send
	batches batches
	partial bool  // of a reply of this turn the rest is about to come
	serving int64 // connections with a request in flight
}

// newHTTP2 has t speak HTTP/2.
func newHTTP2(t *thread) *http2 {
	streams := max(t.shared.job.plan.Streams, 1)
	h := &http2{thread: t, over: make([]h2Conn, len(t.conns))}
	places := make([]conn, len(t.conns)*streams)
	t.makeRoom(len(places))
	text := new(textBuffer)
	for i := range h.over {
		s := &h.over[i]
		s.ids, s.streams = make([]uint32, streams), make([]h2Stream, streams)
		s.in.heads = newHeadDecoder(text)
		s.lay(t, i, places[i*streams:(i+1)*streams])
	}
	slices.Reverse(t.reserves)
	return h
}

// of is the connection of a lane.
func (h *http2) of(c *conn) *h2Conn { return &h.over[c.name] }

// accepts says whether a request could begin at c: that opens the connection, or it stands and the
// server allows one more. Where the server allows none at all, one waits for leave, so that this is told.
func (h *http2) accepts(c *conn) bool {
	s := h.of(c)
	return s.takes(c, s.free() || s.settled && s.mayOpen == 0 && !s.retired && !s.waiting())
}

// opens says whether c's connection is closed.
func (h *http2) opens(c *conn) bool { return h.of(c).carrier.state == closed }

// reserve has c open its connection when it may; others wait for that.
func (h *http2) reserve(c *conn) { h.of(c).opener = c }

// carry sends the request that has just begun at c, or opens the connection first.
func (h *http2) carry(c *conn) {
	s := h.of(c)
	switch stands, o := h.ready(&s.lanes, c); {
	case o != 0:
		h.lost(s, o)
	case stands:
		h.send(s, c)
	}
}

// send opens a stream for c's request, if the server allows it now.
func (h *http2) send(s *h2Conn, c *conn) {
	c.state = sending
	if !s.free() {
		s.held = true
		return
	}
	h.begins(s, c)
	h.soil(s)
}

// begins opens a stream.
func (h *http2) begins(s *h2Conn, c *conn) {
	if s.active == 0 {
		h.serving++
	}
	s.carrier.phase = c.phase
	s.open(c, c.asked.http2)
}

// soil notes that s has something to send, which is sent before anything of another connection is.
func (h *http2) soil(s *h2Conn) {
	if h.dirty != s {
		h.clean()
		h.dirty = s
	}
}

// turned sends what is to be sent. It returns true where more replies are expected at once.
func (h *http2) turned() bool {
	kept := h.batches[:0]
	for _, w := range h.batches {
		if s := h.of(w.carrier); w.waits(h.thread, s.active > 0) {
			kept = append(kept, w)
		} else {
			h.resume(s)
		}
	}
	h.batches = kept
	h.clean()
	more := len(kept) > 0 || h.partial
	h.partial = false
	return more
}

// clean sends what the connection has to send that was used last.
func (h *http2) clean() {
	if h.dirty != nil {
		h.flush(h.dirty)
	}
}

// read goes on after what came on s was taken. Where a reply's head came without its body, which most servers send by a
// call of its own, that is worth a moment, as it is where other replies are about to come (batches).
func (h *http2) read(s *h2Conn) {
	h.partial = h.partial || s.partial && h.inFlight >= worthGathering && !h.paced()
	if !h.batches.takes(h.thread, &s.lanes, s.active > 0) {
		h.resume(s)
	}
}

// resume lets the lanes go on that have their replies, and sends.
func (h *http2) resume(s *h2Conn) {
	h.goOn(&s.lanes)
	h.flush(s)
}

// busy are the connections with a request in flight.
func (h *http2) busy() int64 { return h.serving }

// flush sends as much as the kernel takes. Where sending fails, what the server said before is
// read first: the socket is ended, so that epoll tells of it.
func (h *http2) flush(s *h2Conn) {
	if h.dirty == s {
		h.dirty = nil
	}
	for k := s.carrier; k.state == idle && k.lost == 0; {
		if s.sent == len(s.out) && !k.unsent() {
			s.out, s.sent = s.out[:0], 0
			if !h.pump(s) {
				return
			}
		}
		n, errno := h.write(k, s.out[s.sent:])
		switch errno {
		case 0:
			s.sent += n
		case unix.EAGAIN:
			return
		default:
			k.lost = uint16(errno)
			sysShutdown(k.fd)
		}
	}
}

// pump goes on with requests that waited for leave to be sent, or whose bodies did. It returns
// whether there is something to send.
func (h *http2) pump(s *h2Conn) (any bool) {
	if !s.held {
		return false
	}
	s.held = false
	for i := range s.places {
		switch c := &s.places[i]; {
		case c.state != sending:
		case s.id(c) != 0:
			any = s.body(c, c.asked.http2) || any
		case s.free():
			h.begins(s, c)
			any = true
		default:
			s.held = true
		}
	}
	return any
}

// event takes what epoll says about a connection.
func (h *http2) event(name int32, events uint32) {
	const incoming = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	closing := events&(unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0
	s := &h.over[name]
	switch k := s.carrier; k.state {
	case closed:
		return
	case connecting:
		stands, o := h.connected(k, events)
		if o != 0 {
			h.lost(s, o)
			return
		}
		if !stands {
			s.opener.state = k.state
			return
		}
		h.stands(s)
	case shaking:
		k.secure.wire.wake()
		return
	}
	if events&incoming != 0 && !h.receive(s, closing) {
		return
	}
	h.read(s)
}

// shook goes on after a TLS handshake.
func (h *http2) shook(done *handshake) {
	s := &h.over[done.name]
	if !h.secured(s.carrier, done) {
		h.lost(s, s.carrier.secure.failed)
		return
	}
	s.carrier.stood = true
	h.stands(s)
	s.carrier.secure.served = true
	if h.receive(s, false) { // what came with the handshake
		h.read(s)
	}
}

// stands says hello on a connection that stands, and sends the request that it was opened for with it.
func (h *http2) stands(s *h2Conn) {
	c := s.lanes.stands()
	s.reset()
	s.out = appendHello(s.out)
	h.send(s, c)
}

// receive reads what has come; closing says that the connection's end is near, so that
// reading must go on until it. It returns false when the connection is gone.
func (h *http2) receive(s *h2Conn, closing bool) bool {
	k := s.carrier
	if k.secure != nil {
		k.secure.told(closing)
	}
	for {
		n, errno := h.hear(k)
		switch {
		case errno == unix.EAGAIN:
			return true
		case errno != 0:
			h.ended(s, int(errno))
			return false
		case n == 0:
			h.ended(s, sawEOF)
			return false
		}
		s.heardAt = h.now
		s.reads++
		h.count(k.phase).received += int64(n)
		if !h.take(s, h.buffer[:n]) {
			return false
		}
		k.lay = 0
		if n < len(h.buffer) && !closing && k.secure == nil {
			return true
		}
	}
}

// hear reads into the thread's buffer.
func (h *http2) hear(k *conn) (int, syscall.Errno) {
	if k.secure != nil {
		return h.opened(k)
	}
	return h.receiveInto(k, h.buffer)
}

// ended is called when nothing more can be read.
func (h *http2) ended(s *h2Conn, detail int) {
	o := h.readFailure(s.carrier, detail)
	if s.told != 0 && s.told.detail() != noError {
		o = s.told
	}
	h.lost(s, o)
}

// take follows what the server says through b; it returns false when the connection is gone.
func (h *http2) take(s *h2Conn, b []byte) bool {
	for {
		e, used, step := s.in.next(b)
		b = b[used:]
		switch step {
		case more:
			return true
		case broken:
			return h.broke(s, s.in.fault)
		}
		if !h.heed(s, &e) {
			return false
		}
	}
}

// broke ends a connection on which the server did what none may. It returns false, as those do that call it.
func (h *http2) broke(s *h2Conn, f fault) bool {
	if k := s.carrier; s.sent == len(s.out) && !k.unsent() {
		goodbye := appendFrameHead(nil, 8, frameGoAway, 0, 0)
		goodbye = append(goodbye, 0, 0, 0, 0, 0, 0, 0, byte(errorCode(f)))
		_, _ = h.write(k, goodbye) // a courtesy
	}
	if s.active == 0 {
		s.owed = failure(protocolFailed, int(f))
	}
	h.lost(s, failure(protocolFailed, int(f)))
	return false
}

// mostIdle is how many frames may come that bring no reply on.
const mostIdle = 10_000

// mostUnsent bounds what we owe to a server that does not read: answers to its PINGs and SETTINGS.
const mostUnsent = 4 << 20

// heed does what something that the server said asks for; false means that the connection is gone.
func (h *http2) heed(s *h2Conn, e *incoming) bool {
	if !s.settled && (e.kind != frameSettings || e.ack) {
		return h.broke(s, badFrame)
	}
	if s.idleFrames++; s.idleFrames > mostIdle || len(s.out) > mostUnsent {
		return h.broke(s, frameFlood)
	}
	switch e.kind {
	case frameData, frameHeaders, frameResetStream:
		return h.heedStream(s, e)
	case frameSettings:
		return h.heedSettings(s, e)
	case framePing:
		if !e.ack {
			s.out = append(appendFrameHead(s.out, 8, framePing, flagAck, 0), e.text...)
		}
	case frameGoAway:
		return h.heedGoAway(s, e)
	case frameWindowUpdate:
		return h.heedWindow(s, e)
	}
	return true
}

// heedSettings takes settings, and lets lanes begin that waited for them.
func (h *http2) heedSettings(s *h2Conn, e *incoming) bool {
	if e.ack {
		return true
	}
	if f := s.set(e.text); f != noFault {
		return h.broke(s, f)
	}
	s.out = appendFrameHead(s.out, 0, frameSettings, flagAck, 0)
	s.settled = true
	h.pump(s)
	h.soil(s)
	h.unpark(&s.lanes)
	return true
}

// heedGoAway ends the requests that the server will not answer; the connection ends with the others.
func (h *http2) heedGoAway(s *h2Conn, e *incoming) bool {
	s.retired, s.told = true, coded(goneAway, e.number)
	if len(e.text) > 0 {
		h.tally.cause(s.told, goodbye(e.text))
	}
	var left []*conn
	for i, id := range s.ids {
		if id > e.last {
			left = append(left, &s.places[i])
		}
	}
	for _, c := range left {
		h.leave(s, c)
		h.unanswered(c, s.told)
		c.state = idle
	}
	for _, c := range left {
		h.after(c, s.told)
	}
	return h.stays(s)
}

// goodbye is what a server says in its GOAWAY.
type goodbye []byte

// Error masks all of it before it cuts it: half a key has no longer the looks of one.
func (g goodbye) Error() string {
	text := secret.Text(string(g))
	return "the server said " + strconv.Quote(text[:min(len(text), 100)])
}

// heedWindow lets more of bodies be sent.
func (h *http2) heedWindow(s *h2Conn, e *incoming) bool {
	c := s.lane(e.stream)
	switch {
	case e.stream == 0:
		if s.window += int64(e.number); s.window > maxWindow {
			return h.broke(s, badWindow)
		}
	case c == nil:
		return h.known(s, e.stream)
	default:
		if s.streams[c.place].window += int64(e.number); s.streams[c.place].window > maxWindow || e.number == 0 {
			return h.spoiled(s, c, badWindow)
		}
	}
	if h.pump(s) {
		h.soil(s)
	}
	return true
}

// known passes over what is about a stream that is over, and ends the connection where there never was one.
func (h *http2) known(s *h2Conn, stream uint32) bool {
	if stream > s.lastID || stream%2 == 0 {
		return h.broke(s, badFrame)
	}
	return true
}

// heedStream takes a part of a reply, or the end of a stream without one.
func (h *http2) heedStream(s *h2Conn, e *incoming) bool {
	c := s.lane(e.stream)
	if e.kind == frameData && !s.take(c, e.flow) {
		return h.broke(s, badWindow)
	}
	if c == nil {
		if e.kind != frameResetStream && !s.resets && e.stream%2 == 1 && e.stream <= s.lastID {
			return h.broke(s, unaskedReply) // its stream had its reply
		}
		return h.known(s, e.stream)
	}
	h.heardOf(s, c)
	st := &s.streams[c.place]
	switch {
	case e.kind == frameResetStream:
		h.leave(s, c)
		return h.failed(s, c, coded(streamReset, e.number))
	case e.kind == frameHeaders:
		if f := st.takeHead(e, &c.reply); f != noFault {
			return h.spoiled(s, c, f)
		}
		s.idleFrames, s.partial = 0, true
	case !st.head:
		return h.spoiled(s, c, badFrame)
	case e.body > 0:
		s.idleFrames = 0
		c.reply.look(e.text)
		if st.got += int64(e.body); st.tooLong(c.asked.toHEAD) {
			return h.spoiled(s, c, excessData)
		}
	}
	if e.end {
		s.partial = false
		return h.complete(s, c)
	}
	return true
}

// takeHead takes a header block of a reply.
func (st *h2Stream) takeHead(e *incoming, r *reply) fault {
	switch status := e.head.status; {
	case e.head.fault != noFault:
		return e.head.fault
	case st.head && (status != 0 || !e.end):
		return badHeader
	case st.head: // trailers
	case status == 0, status == 101:
		return badStatus
	case status < 200:
		if st.inters++; e.end {
			return badHeader
		} else if st.inters > maxInterim {
			return tooManyInterim
		}
	default:
		st.head, st.length, r.status = true, e.head.length, status
	}
	return noFault
}

// tooLong says that more of the body came than can be.
func (st *h2Stream) tooLong(toHEAD bool) bool { return toHEAD || st.length >= 0 && st.got > st.length }

// heardOf books the time of c until now, that something of its reply came.
func (h *http2) heardOf(s *h2Conn, c *conn) {
	k := s.carrier
	c.at = max(k.at, c.booked)
	st := &s.streams[c.place]
	if k.stamped && !h.shared.openLoop && st.read != s.reads {
		sum := &h.count(c.phase).unread
		if sum.nanos += k.lay; !c.heard {
			sum.n++
		}
	}
	st.read = s.reads
	h.heard(c)
}

// complete ends a request with its reply.
func (h *http2) complete(s *h2Conn, c *conn) bool {
	st, toHEAD := &s.streams[c.place], c.asked.toHEAD
	if !st.head || st.length >= 0 && st.got != st.length && !toHEAD && c.reply.status != 304 {
		h.leave(s, c)
		return h.failed(s, c, failure(protocolFailed, int(badContentLength)))
	}
	if c.state == sending { // it did not want the rest
		s.cancel(c, noError)
		h.left(s)
		h.soil(s)
	} else {
		h.leave(s, c)
	}
	c.reply.length = st.got
	h.answered(c)
	c.state = idle
	s.done = append(s.done, c)
	s.retired = s.retired || !h.shared.job.plan.KeepAlive
	return h.stays(s)
}

// leave ends c's stream on our side.
func (h *http2) leave(s *h2Conn, c *conn) {
	s.leave(c)
	h.left(s)
}

func (h *http2) left(s *h2Conn) {
	if s.active == 0 {
		h.serving--
	}
}

// spoiled ends a request whose reply is wrong, and says so to the server.
func (h *http2) spoiled(s *h2Conn, c *conn, f fault) bool {
	s.cancel(c, errorCode(f))
	h.left(s)
	h.soil(s)
	return h.failed(s, c, failure(protocolFailed, int(f)))
}

// failed ends a request that has no stream any more. It returns false when the connection is gone.
func (h *http2) failed(s *h2Conn, c *conn, o outcome) bool {
	h.unanswered(c, o)
	c.state = idle
	h.after(c, o)
	return h.stays(s)
}

// fail ends c's request without a reply. A connection on which nothing was heard all the time is
// taken for dead: it gets no more requests.
func (h *http2) fail(c *conn, o outcome) {
	s := h.of(c)
	if c == s.opener {
		h.lost(s, o)
		return
	}
	if s.id(c) != 0 {
		s.cancel(c, cancelStream)
		h.left(s)
		h.soil(s)
	}
	if s.carrier.state == idle && o.detail() == timedOut && (s.heardAt <= c.start || !s.settled) {
		s.retired = true
	}
	h.failed(s, c, o)
}

// stays closes a connection that takes no more requests once it has none, and says whether it stays.
func (h *http2) stays(s *h2Conn) bool {
	if s.carrier.state != idle {
		return false
	}
	if !s.retired || s.active > 0 {
		return true
	}
	h.flush(s)
	h.lost(s, failure(goneAway, noError))
	return false
}

// lost ends a connection. The requests on it end with an outcome.
func (h *http2) lost(s *h2Conn, o outcome) {
	if s.active > 0 {
		h.serving--
	}
	if h.dirty == s {
		h.dirty = nil
	}
	s.reset()
	h.drop(&s.lanes, o)
}
