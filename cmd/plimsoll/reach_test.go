package main

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// One connect in three that is refused is a fault to be found by a run, and no
// reason not to begin one.
func TestKnockPassesRefusals(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()

	tries := 0
	d := net.Dialer{Timeout: time.Minute, Control: func(string, string, syscall.RawConn) error {
		if tries++; tries == 3 {
			if l, err = net.Listen("tcp", address); err != nil {
				t.Error(err)
			}
		}
		return nil
	}}
	if err := knock(t.Context(), &d, "tcp", address); err != nil || tries != 3 {
		t.Errorf("after %d tries: %v, want in at the third", tries, err)
	}
	l.Close()

	tries = 3 // nobody listens from now on
	if err := knock(t.Context(), &d, "tcp", address); !errors.Is(err, syscall.ECONNREFUSED) || tries != 3+refusedTries {
		t.Errorf("after %d tries: %v, want %d and a refusal", tries-3, err, refusedTries)
	}
}
