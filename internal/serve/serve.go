// Package serve shows pages of runs to a browser: those of a directory, and one that
// changes while a run lasts. Whoever has not the token sees nothing, nothing can be
// changed through it, and who is slow or comes too often is dropped.
package serve

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"

	"plimsoll/internal/input"
)

// Bounds of what a client may ask for and take.
const (
	maxConnections = 200      // of all clients
	maxViewers     = 50       // who look at a run that lasts
	maxHeader      = 16 << 10 // bytes
	headerPatience = 5 * time.Second
	replyPatience  = 90 * time.Second // a report of a long run takes its time to be made
	idlePatience   = 30 * time.Second
	endPatience    = 2 * time.Second
	// sendBuffer is how many bytes of a reply the kernel holds: a slow viewer is
	// to see what is, and not what was minutes ago.
	sendBuffer = 64 << 10
)

// Options say where a server listens.
type Options struct {
	// Listen is HOST:PORT; port 0 is one that is free.
	Listen string
	// Cert and Key are files of a certificate (PEM) and its key, for TLS; "" for none.
	Cert, Key string
	// Insecure lets others than this machine reach it without TLS.
	Insecure bool
}

// Server shows pages.
type Server struct {
	tcp      *net.TCPListener
	listener net.Listener // the same with what stands before it
	guard    guard
	http     http.Server
}

// Listen opens a server for what handler shows. Without TLS it listens on this
// machine's loopback alone, unless Insecure says otherwise.
func Listen(opt Options, handler http.Handler) (*Server, error) {
	host, _, err := net.SplitHostPort(opt.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: want HOST:PORT, like 127.0.0.1:8080: %w", opt.Listen, err)
	}
	var config *tls.Config
	var leaf *x509.Certificate
	if opt.Cert != "" || opt.Key != "" {
		if config, leaf, err = certificate(opt.Cert, opt.Key); err != nil {
			return nil, err
		}
	}
	if config == nil && !opt.Insecure && !Loopback(host) {
		return nil, fmt.Errorf("listen on %s: others than this machine could read along; give --cert and --key, or --insecure", opt.Listen)
	}
	l, err := net.Listen("tcp", opt.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", opt.Listen, err)
	}
	s := &Server{tcp: l.(*net.TCPListener), guard: guard{name: host, token: rand.Text() + rand.Text(), place: rand.Text(), leaf: leaf, next: handler}}
	s.guard.port = l.Addr().(*net.TCPAddr).Port
	l = netutil.LimitListener(smallBuffers{l}, maxConnections)
	if config != nil {
		l = tls.NewListener(l, config)
	}
	s.listener = l
	s.http = http.Server{
		Handler: &s.guard, MaxHeaderBytes: maxHeader, ReadHeaderTimeout: headerPatience, ReadTimeout: headerPatience,
		WriteTimeout: replyPatience, IdleTimeout: idlePatience,
		ErrorLog: log.New(io.Discard, "", 0), // what clients do wrong is theirs to know
	}
	return s, nil
}

func certificate(cert, key string) (*tls.Config, *x509.Certificate, error) {
	if cert == "" || key == "" {
		return nil, nil, errors.New("TLS needs both a certificate and its key: give --cert and --key")
	}
	pair, err := input.KeyPair(cert, key)
	if err != nil {
		return nil, nil, fmt.Errorf("the certificate %s with the key %s: %w", cert, key, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}, pair.Leaf, nil
}

// Loopback says whether only this machine reaches what listens there. A name is looked
// up nowhere: but for localhost it is not trusted.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// smallBuffers listens, and has the kernel hold little of what a client does not take.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // a larger one only shows older things
	}
	return c, err
}

// URL is where the server is found, with the token.
func (s *Server) URL() string {
	u := url.URL{Scheme: "http", Host: s.guard.host(), Path: s.guard.path(), RawQuery: tokenName + "=" + s.guard.token}
	if s.guard.leaf != nil {
		u.Scheme = "https"
	}
	return u.String()
}

// Socket is Socket's of the server's own.
func (s *Server) Socket() uint32 { return Socket(s.tcp) }

// Socket is the inode of a socket that is listened on, 0 where the kernel does not tell.
func Socket(l *net.TCPListener) uint32 {
	raw, err := l.SyscallConn()
	if err != nil {
		return 0
	}
	var st unix.Stat_t
	if raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &st) }) != nil || err != nil {
		return 0
	}
	return uint32(st.Ino)
}

// Serve answers until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		last, done := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
		defer done()
		if s.http.Shutdown(last) != nil {
			_ = s.http.Close() // what a client still waits for is not waited for
		}
	})
	defer stop()
	s.http.BaseContext = func(net.Listener) context.Context { return ctx }
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.listener.Addr(), err)
	}
	return nil
}
