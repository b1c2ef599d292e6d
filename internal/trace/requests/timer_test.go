package requests

import (
	"net"
	"os/exec"
	"testing"
	"time"
)

// TestTimers: which replies of an event loop follow from a timer of its own, and for how
// long their requests had stood until that ended.
func TestTimers(t *testing.T) { eachWay(t, followFromTimers) }

func followFromTimers(t *testing.T, w way) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err) // scripts/install-deps tests installs it
	}
	tr, ns := begin(t, w, everything)
	at := startProcess(t, python, "", "testdata/timers.py")
	asked := map[string]int{"timer": 7, "opened": 5, "kept": 3, "event": 11, "now": 13}
	for line, n := range asked {
		for range n { // on the same one the next might come before the reply's own event
			askOnce(t, at, line)
		}
	}
	p := wait(t, tr, ns, at, "all are answered", func(p Place) bool { return p.answered() == 7+5+3+11+13 })
	var got Group
	for _, c := range p.Groups {
		if len(c.Timers) > 0 {
			got = c
		}
	}
	// The other timer may end just when a partner is asked, or answers; few are taken for its own so, and stood for little.
	if n := got.Timers["replied"]; n < 7 || n > 7+4 {
		t.Errorf("%d replies followed from a timer at once, want 7", n)
	}
	if n := got.Timers["asked"]; n < 5+3 || n > 5+3+4 {
		t.Errorf("%d replies followed from what was asked after a timer, want 8", n)
	}
	within(t, "stood until the timer ended", got.Timer["asked"], 8*50*time.Millisecond, 8*60*time.Millisecond)
}

func askOnce(t *testing.T, address, line string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask(t, c, line)
}

// answered is how many were, by whomever.
func (p Place) answered() int {
	var n uint64
	for _, c := range p.Groups {
		n += c.InHand.Buckets.Count()
	}
	return int(n)
}
