package workers

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// callTime is how long is waited for workers that start by themselves: a cluster may have to fetch their image first.
	callTime = 10 * time.Minute
	callPace = 500 * time.Millisecond
	// knockTime is how long one who calls may take to show its key, and maxKnocking how many may be doing so at once.
	knockTime   = 10 * time.Second
	keyTime     = 2 * time.Second // of one who is in: who says nothing takes another's place for no longer
	maxKnocking = 64
)

// Gate is where workers call in that cannot be started from here, such as the pods of a cluster. All have one key, by
// which they know one another: who has it is let in, and nobody else.
type Gate struct {
	listener net.Listener
	key      tls.Certificate
	places   []chan net.Conn // of each worker, until it is asked for
	mu       sync.Mutex
	called   []bool
}

// OpenGate listens at an address for so many workers.
func OpenGate(address string, key tls.Certificate, workers int) (*Gate, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for workers: %w", err)
	}
	g := &Gate{listener: l, key: key, called: make([]bool, workers)}
	for range workers {
		g.places = append(g.places, make(chan net.Conn, 1))
	}
	go g.open()
	return g, nil
}

// Close lets nobody in any more; who is in stays.
func (g *Gate) Close() error { return g.listener.Close() }

func (g *Gate) open() {
	room := make(chan struct{}, maxKnocking)
	for {
		room <- struct{}{}
		conn, err := g.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptor, for now
			time.Sleep(callPace)
			<-room
			continue
		}
		go func() {
			defer func() { <-room }()
			g.admit(conn)
		}()
	}
}

// What one that has shown its key is told.
const (
	welcome = 'y'
	twice   = 'n' // its place is taken
)

// admit takes in who has the key, and whose place is free.
func (g *Gate) admit(plain net.Conn) {
	conn := tls.Server(plain, sameKey(g.key))
	k, err := knocks(conn)
	if err != nil || k >= uint32(len(g.places)) {
		_ = plain.Close()
		return
	}
	said := byte(welcome)
	if g.mark(k, true) {
		said = twice
	}
	_, err = conn.Write([]byte{said})
	if err == nil && said == welcome {
		g.places[k] <- conn
		return
	}
	_ = conn.Close()
	if said == welcome {
		g.mark(k, false) // it did not hear it, and may call again
	}
}

// mark notes whether worker k has called, and returns whether it had.
func (g *Gate) mark(k uint32, called bool) (had bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	had, g.called[k] = g.called[k], called
	return had
}

// knocks is the number of a worker that calls.
func knocks(conn *tls.Conn) (k uint32, err error) {
	if err := conn.SetDeadline(time.Now().Add(keyTime)); err != nil {
		return 0, err
	}
	if err := binary.Read(conn, binary.BigEndian, &k); err != nil {
		return 0, err
	}
	return k, conn.SetDeadline(time.Time{})
}

// Await waits until worker k has called.
func (g *Gate) Await(ctx context.Context, k int) (io.ReadWriteCloser, error) {
	timer := time.NewTimer(callTime)
	defer timer.Stop()
	select {
	case conn := <-g.places[k]:
		return conn, nil
	case <-timer.C:
		return nil, fmt.Errorf("it did not call within %v", callTime)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Call calls in as worker k at the gate of an address, again and again until it is there. What is heard then are Serve's orders.
func Call(ctx context.Context, address string, key tls.Certificate, k int) (net.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callTime, fmt.Errorf("nobody let it in within %v", callTime))
	defer cancel()
	for {
		conn, err := call(ctx, address, key, k)
		if err == nil || errors.Is(err, errTwice) {
			return conn, err
		}
		select {
		case <-time.After(callPace):
		case <-ctx.Done():
			return nil, fmt.Errorf("call %s as worker %d: %w: %w", address, k, context.Cause(ctx), err)
		}
	}
}

var errTwice = errors.New("a worker of that number has called before: each plays once")

func call(ctx context.Context, address string, key tls.Certificate, k int) (net.Conn, error) {
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: knockTime}, Config: sameKey(key)}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	answer := make([]byte, 1)
	err = errors.Join(conn.SetDeadline(time.Now().Add(knockTime)), binary.Write(conn, binary.BigEndian, uint32(k)))
	if err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	if err == nil && answer[0] != welcome {
		err = errTwice
	}
	if err = errors.Join(err, conn.SetDeadline(time.Time{})); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// sameKey has both ends show the same certificate, and so that they have its key. Names and dates do not matter then.
func sameKey(key tls.Certificate) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{key}, ClientAuth: tls.RequireAnyClientCert,
		InsecureSkipVerify: true, // no authority: it is that very certificate, or none
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].Raw, key.Certificate[0]) {
				return errors.New("the other end has another key")
			}
			return nil
		}}
}
