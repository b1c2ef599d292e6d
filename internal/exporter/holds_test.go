package exporter

import (
	"runtime/debug"
	"testing"
)

// Of two who hold more, as a burst and a renewal, the first to end leaves little garbage to the other.
func TestTwoHoldMore(t *testing.T) {
	was := debug.SetGCPercent(garbage)
	defer debug.SetGCPercent(was)
	percent := func() int {
		p := debug.SetGCPercent(garbage)
		debug.SetGCPercent(p)
		return p
	}
	first, second := holdsMore(), holdsMore()
	first()
	if p := percent(); p != garbageOfMore {
		t.Errorf("while one of both holds more it is %d, want %d", p, garbageOfMore)
	}
	if second(); percent() != garbage {
		t.Errorf("when both have ended it is %d, want %d", percent(), garbage)
	}
}
