package workers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

func newKey(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1)}
	raw, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

func gateOf(t *testing.T, key tls.Certificate, workers int) (*Gate, string) {
	t.Helper()
	g, err := OpenGate("127.0.0.1:0", key, workers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g, g.listener.Addr().String()
}

// Workers that call in, in any order, play one load as those that are started do.
func TestWorkersCallIn(t *testing.T) {
	s, key := serve(t), newKey(t)
	g, at := gateOf(t, key, 3)
	var places []Place
	ended := make(chan error, 3)
	for _, k := range []int{2, 0, 1} {
		go func() {
			conn, err := Call(t.Context(), at, key, k)
			if err == nil {
				err = Serve(t.Context(), conn, conn, goodWorker())
			}
			ended <- err
		}()
	}
	for k := range 3 {
		places = append(places, Place{Name: string(rune('a' + k)), Spec: "pod:x", Dial: func(ctx context.Context) (io.ReadWriteCloser, error) { return g.Await(ctx, k) }})
	}
	f := New(places)
	f.Version = "v"
	last, err := play(t, f, model.LoadPlan{URL: s.URL, Connections: 6, Requests: 100, KeepAlive: true, TimeoutMS: 60_000}, func(load.Record) {})
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []int64{34, 33, 33} {
		if w := last.Workers[k]; w.Requests != want || w.Gone != "" {
			t.Errorf("worker %d: %+v, want %d requests", k, w.Worker, want)
		}
	}
	if got := s.asked.Load(); got != 100 || last.Totals.Requests != 100 {
		t.Errorf("%d and %d requests, want 100", got, last.Totals.Requests)
	}
	f.Close()
	for range 3 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// Who has not the key, is no worker, says nothing sensible or comes twice is not let in, and keeps nobody out.
func TestGateIsShut(t *testing.T) {
	key := newKey(t)
	g, at := gateOf(t, key, 1)
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := Call(short, at, newKey(t), 0); err == nil {
		t.Error("another key was taken")
	}
	if _, err := call(t.Context(), at, key, 1); err == nil {
		t.Error("worker 1 of 1 was taken")
	}
	plain, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	bare := &tls.Config{InsecureSkipVerify: true}
	if conn, err := tls.Dial("tcp", at, bare); err == nil {
		_, _ = conn.Write([]byte{0, 0, 0, 0})
		if _, err = conn.Read(make([]byte, 1)); err == nil {
			t.Error("none was taken for the key")
		}
		conn.Close()
	}
	// Nor does a worker listen to somebody who only claims to be the gate.
	other, otherAt := gateOf(t, newKey(t), 1)
	if _, err := call(t.Context(), otherAt, key, 0); err == nil {
		t.Error("a gate with another key was taken")
	}
	if len(other.places[0]) > 0 {
		t.Error("a worker with another key was let in")
	}
	conn, err := Call(t.Context(), at, key, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := g.Await(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if _, err := Call(t.Context(), at, key, 0); !errors.Is(err, errTwice) {
		t.Errorf("it called twice: %v", err)
	}
}
