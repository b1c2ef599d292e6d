package load

import (
	"strings"
	"syscall"
	"testing"
)

// The kernel refuses a ring with more slots than there can be files: that says so, and leaves nothing open.
func TestARingThatIsRefused(t *testing.T) {
	before := openFiles(t)
	if r, err := newRing(1 << 30); err == nil || !strings.Contains(err.Error(), "slots for sockets") {
		t.Errorf("%v, %v: want an error about the slots", r, err)
	}
	if got := openFiles(t); got != before {
		t.Errorf("%d files are open, %d were before", got, before)
	}
}

// What a call's end says comes through the word of an event as it was.
func TestWhatTheEndOfACallSays(t *testing.T) {
	for _, c := range []struct {
		result int32
		n      int
		errno  syscall.Errno
	}{{0, 0, 0}, {chainBuffer, chainBuffer, 0}, {100 << 20, 100 << 20, 0}, {-1, 0, 1}, {-int32(syscall.ECANCELED), 0, syscall.ECANCELED}} {
		step, n, errno := told(stepReceive<<resultBits | uint32(c.result)&(1<<resultBits-1))
		if step != stepReceive || n != c.n || errno != c.errno {
			t.Errorf("%+v: step %d, %d, %v", c, step, n, errno)
		}
	}
}
