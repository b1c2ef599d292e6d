package load

import (
	"strings"
	"testing"
)

// The kernel refuses a ring with more slots than there can be files: that says so, and leaves nothing open.
func TestARingThatIsRefused(t *testing.T) {
	before := openFiles(t)
	if r, err := newRing(ringEntries, 1<<30); err == nil || !strings.Contains(err.Error(), "slots for sockets") {
		t.Errorf("%v, %v: want an error about the slots", r, err)
	}
	if got := openFiles(t); got != before {
		t.Errorf("%d files are open, %d were before", got, before)
	}
}
