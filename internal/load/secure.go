package load

import (
	"crypto/tls"
	"errors"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxSealed is how much of a request is sealed at once: a record's most.
const maxSealed = 16 << 10

// shake begins the handshake on c, which has just been connected.
func (t *thread) shake(c *conn) {
	base := t.shared.job.tls
	if c.secure == nil {
		c.secure = &secure{config: base}
		if t.shared.job.resumes {
			c.secure.config = base.Clone()
			c.secure.config.ClientSessionCache = new(session)
		}
	}
	s := c.secure
	s.wire = &wire{fd: c.fd, ready: make(chan struct{}, 1)}
	s.tls = tls.Client(s.wire, s.config)
	s.served, s.failed = false, 0
	s.hand = &handshake{shared: t.shared, name: c.name, fd: c.fd, wire: s.wire, tls: s.tls, begun: t.now}
	c.state = shaking
	go s.hand.run(&t.shaken)
}

// secured takes note of c's handshake, which is over; false means that it failed.
func (t *thread) secured(c *conn, h *handshake) bool {
	n := t.count(c.phase)
	c.secure.hand = nil
	h.wire.ready = nil
	t.book(c, tlsPart, min(h.ended, t.now))
	t.book(c, tlsLag, t.now)
	if h.err != nil {
		c.secure.failed = tlsFailure(h.err, true)
		t.tally.cause(c.secure.failed, h.err)
		return false
	}
	agreed := h.tls.ConnectionState()
	if t.shared.job.plan.HTTP2 && agreed.NegotiatedProtocol != "h2" {
		c.secure.failed = failure(tlsFailed, int(noHTTP2))
		t.tally.cause(c.secure.failed, errors.New("the server did not choose h2 by ALPN"))
		return false
	}
	kind := fullHandshake
	if agreed.DidResume {
		kind = resumedHandshake
	}
	n.add(kind, h.ended-h.begun)
	n.handshakes[agreement{agreed.Version, agreed.CipherSuite, agreed.DidResume}]++
	return true
}

// release gives up c's TLS, and says whether the socket is still to be closed. A peer that
// has not ended the connection itself is told that it ends, so that it need not
// take it for an attack.
func (t *thread) release(c *conn) bool {
	s := c.secure
	closes := true
	switch {
	case s.hand != nil:
		t.poller.remove(c.fd)
		if closes = !s.hand.giveUp(); !closes {
			sysShutdown(c.fd)
		}
	case s.failed == 0 && !s.wire.ended && c.stood:
		_ = s.tls.CloseWrite() // which fails after a read that failed: then there is nothing to say
		_ = s.wire.flush()
	}
	s.hand, s.tls, s.wire = nil, nil, nil
	return closes
}

// sealed sends b, or some of it, as TLS. What the kernel did not take is kept.
func (t *thread) sealed(c *conn, b []byte) (int, syscall.Errno) {
	w := c.secure.wire
	if errno := w.flush(); errno != 0 || len(b) == 0 {
		return 0, errno
	}
	w.out = t.outgoing[:0]
	requests := int64(1)
	if c.carries {
		requests, c.unsealed = int64(c.unsealed), 0
	}
	began := t.crypto(c)
	n, err := c.secure.tls.Write(b[:min(len(b), maxSealed)])
	t.sealing(c, began, requests)
	t.outgoing = w.out[:0]
	if err != nil {
		return 0, unix.EPIPE
	}
	errno := w.flush()
	if w.out = slices.Clone(w.out); errno == unix.EAGAIN {
		errno = 0 // it is asked for when flush is called again
	}
	return n, errno
}

// opened reads what the peer sent over TLS into the thread's buffer. Errors that are
// none of the system's are in secure.failed, as EPROTO.
func (t *thread) opened(c *conn) (int, syscall.Errno) {
	for s := c.secure; ; {
		began := t.crypto(c)
		n, err := s.tls.Read(t.buffer)
		t.sealing(c, began, 0)
		if len(s.wire.out) > 0 {
			_ = s.wire.flush() // an answer to a request for new keys; what is left goes with the next request
		}
		switch {
		case n > 0:
			return n, 0
		case errors.Is(err, unix.EAGAIN) && s.empty:
			return 0, unix.EAGAIN
		case errors.Is(err, unix.EAGAIN):
			n, errno := t.receiveInto(c, t.incoming)
			if errno != 0 {
				return 0, errno
			}
			s.wire.in, s.wire.ended = t.incoming[:n], n == 0
			s.empty = n < len(t.incoming) && !s.ending
		default:
			return 0, t.openFailed(c, err)
		}
	}
}

// nothingMore says that no more of what was received is a reply; the connection may be at its end.
func (t *thread) nothingMore(c *conn) bool {
	c.secure.served, c.secure.empty = true, true
	n, _ := t.opened(c)
	return n == 0
}

// openFailed says how the reading ended: 0 for an end that was announced, or came between
// two records.
func (t *thread) openFailed(c *conn, err error) syscall.Errno {
	s := c.secure
	s.failed = tlsFailure(err, false)
	if s.failed == failure(readFailed, sawEOF) {
		return 0
	}
	if s.failed.kind() == readAlert && !s.served && !c.heard {
		// In TLS 1.3 the server judges our end of the handshake when we have done with it.
		s.failed = failure(tlsAlert, s.failed.detail())
	}
	t.tally.cause(s.failed, err)
	return unix.EPROTO
}

// crypto begins to measure what sealing and opening cost, where time is stamped.
func (t *thread) crypto(c *conn) int64 {
	if !c.stamped {
		return 0
	}
	return t.shared.clock()
}

// sealing adds what it cost since it began, and how many requests were sent.
func (t *thread) sealing(c *conn, began, requests int64) {
	if c.stamped {
		sum := &t.count(c.phase).crypto
		sum.n += requests
		sum.nanos += t.shared.clock() - began
	}
}
