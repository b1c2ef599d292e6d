package load

import (
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// wire is the connection that crypto/tls sees. During the handshake, which a goroutine of
// its own does, its calls wait; afterwards it belongs to the connection's thread, and
// none does: it hands over what the thread has received, and keeps what is to be sent.
type wire struct {
	fd int32
	// ready has a token when the kernel told of something since it was last emptied, nil
	// once the handshake is over; given says that nobody wants the handshake any more.
	ready chan struct{}
	given atomic.Bool

	in    []byte // received and not yet taken; nothing of it outlives a turn
	ended bool   // the peer sends no more
	out   []byte // to be sent
}

// Read gives what has come. syscall.EAGAIN, which crypto/tls takes for temporary, says
// that nothing more has.
func (w *wire) Read(b []byte) (int, error) {
	if w.ready != nil {
		return w.await(func() (int, syscall.Errno) { return sysRecv(w.fd, b, len(b), 0) }, true)
	}
	switch {
	case len(w.in) > 0:
		n := copy(b, w.in)
		w.in = w.in[n:]
		return n, nil
	case w.ended:
		return 0, io.EOF
	}
	return 0, unix.EAGAIN
}

// Write keeps b, or, in the handshake, sends it.
func (w *wire) Write(b []byte) (int, error) {
	if w.ready == nil {
		w.out = append(w.out, b...)
		return len(b), nil
	}
	for sent := 0; sent < len(b); {
		n, err := w.await(func() (int, syscall.Errno) { return sysSend(w.fd, b[sent:]) }, false)
		if err != nil {
			return sent, err
		}
		sent += n
	}
	return len(b), nil
}

// await repeats a call until it does not have to wait.
func (w *wire) await(call func() (int, syscall.Errno), reads bool) (int, error) {
	for {
		switch n, errno := call(); {
		case errno == 0 && n == 0 && reads:
			return 0, io.EOF
		case errno == 0:
			return n, nil
		case errno != unix.EAGAIN:
			return 0, errno
		}
		<-w.ready
		if w.given.Load() {
			return 0, net.ErrClosed
		}
	}
}

// wake lets the handshake go on.
func (w *wire) wake() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

// flush sends what is kept, as far as the kernel takes it; it is empty then, or the errno says why not.
func (w *wire) flush() syscall.Errno {
	for len(w.out) > 0 {
		n, errno := sysSend(w.fd, w.out)
		if errno != 0 {
			return errno
		}
		w.out = w.out[n:]
	}
	w.out = nil
	return 0
}

// The rest of net.Conn is called by nobody, or asks for nothing: the thread closes, and keeps the time.

// Close does nothing.
func (*wire) Close() error { return nil }

// LocalAddr is nil.
func (*wire) LocalAddr() net.Addr { return nil }

// RemoteAddr is nil.
func (*wire) RemoteAddr() net.Addr { return nil }

// SetDeadline does nothing.
func (*wire) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (*wire) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (*wire) SetWriteDeadline(time.Time) error { return nil }
