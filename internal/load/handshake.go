package load

import (
	"crypto/tls"
	"sync/atomic"
)

// handshake is one TLS handshake under way. A goroutine of its own does it, since its
// signatures take longer than many replies; the connection's thread tells it when
// something has come (wire.wake), and finds it in its mailbox when it is over.
type handshake struct {
	shared *shared
	name   int32 // of the connection
	fd     int32
	wire   *wire
	tls    *tls.Conn
	begun  int64 // when the connection stood

	over  atomic.Bool // it has ended, or nobody waits for it: who sets it first leaves the socket to the other
	ended int64
	err   error
	next  *handshake // in the mailbox
}

// run does the handshake. Where nobody waits for it any more, it closes the socket.
func (h *handshake) run(to *mailbox) {
	h.err = h.tls.Handshake()
	h.ended = h.shared.clock()
	if !h.over.CompareAndSwap(false, true) {
		sysClose(h.fd)
		return
	}
	to.put(h)
}

// give up a handshake; false means that it is over, and the socket is still the caller's.
func (h *handshake) giveUp() bool {
	if !h.over.CompareAndSwap(false, true) {
		return false
	}
	h.wire.given.Store(true)
	h.wire.wake()
	return true
}

// mailbox holds handshakes that are over until their thread looks.
type mailbox struct {
	newest atomic.Pointer[handshake]
	poller *poller
}

func (m *mailbox) put(h *handshake) {
	for {
		h.next = m.newest.Load()
		if m.newest.CompareAndSwap(h.next, h) {
			break
		}
	}
	if h.next == nil {
		m.poller.interrupt() // else somebody else has
	}
}

// take empties it; the newest is first.
func (m *mailbox) take() *handshake {
	if m.newest.Load() == nil {
		return nil
	}
	return m.newest.Swap(nil)
}
