package load

import (
	"crypto/tls"
	"sync/atomic"
)

// secure is what a connection needs for TLS. Between two connections the configuration
// remains, with the session to be resumed.
type secure struct {
	config *tls.Config
	hand   *handshake // under way, else nil
	tls    *tls.Conn
	wire   *wire
	empty  bool // the socket was, when it was last read
	ending bool // the connection's end is near, so that reading goes on until it
	served bool // a reply has come since the handshake
	// failed is the outcome of the error that ended the reading.
	failed outcome
}

// told of c's socket that there is something to read, or that its end is near.
func (s *secure) told(ending bool) { s.empty, s.ending = false, ending }

// ended says that nothing more can be read, for good or bad.
func (s *secure) ended() bool { return s.failed != 0 }

// truncated says, of a connection that ended, that its end was not announced by a
// close_notify alert: somebody between could have cut it off.
func (s *secure) truncated() bool { return s.wire.ended }

// session keeps a connection's own TLS session, as a user's browser does: what its next
// handshake resumes. It is a tls.ClientSessionCache for one.
type session struct {
	newest atomic.Pointer[tls.ClientSessionState]
}

// Get returns the session.
func (s *session) Get(string) (*tls.ClientSessionState, bool) {
	found := s.newest.Load()
	return found, found != nil
}

// Put replaces the session.
func (s *session) Put(_ string, found *tls.ClientSessionState) { s.newest.Store(found) }
