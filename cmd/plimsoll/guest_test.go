package main

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// Who sends a guest is heard as long as he is there, and is gone when nothing is heard any more, though the connection stands.
func TestAGuestWhoseSenderIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		done, gone := make(chan struct{}), make(chan struct{})
		go tell(out, done)
		go func() {
			defer close(gone)
			untilSilent(in, guestSilence)
		}()
		isGone := func() bool {
			synctest.Wait()
			select {
			case <-gone:
				return true
			default:
				return false
			}
		}
		time.Sleep(10 * guestSilence)
		if isGone() {
			t.Error("it is taken for gone while it says something")
		}
		close(done)
		time.Sleep(guestSilence + guestPing)
		if !isGone() {
			t.Error("it says nothing any more, and is waited for")
		}
		_ = out.Close()
	})
}

// One that closes its end is gone at once.
func TestAGuestWhoseInputEnds(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		in, out := io.Pipe()
		_ = out.Close()
		untilSilent(in, guestSilence)
	})
}
