package requests

import (
	"errors"
	"net"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/trace/tracetest"
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

// TestTimersOfWhoIsAwake: what ends while its thread was woken by something else, and waits for
// a CPU, is not what the reply follows from.
func TestTimersOfWhoIsAwake(t *testing.T) { eachWay(t, followFromNone) }

func followFromNone(t *testing.T, w way) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err) // scripts/install-deps tests installs it
	}
	tr, ns := begin(t, w, everything)
	at := startProcess(t, python, "", "testdata/awake.py")
	p := wait(t, tr, ns, at, "all are answered", func(p Place) bool { return p.answered() == 10 })
	for _, c := range p.Groups {
		if n := c.Timers["replied"]; n > 0 {
			t.Errorf("%d of 10 replies followed from a timer, want none", n)
		}
	}
}

// TestTimersAreCounted: programs that look at timers are called often where those are many, and
// that has to be seen.
func TestTimersAreCounted(t *testing.T) {
	tracetest.Need(t, Tracer())
	tr, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	var at uint64
	if err := tr.Maps.Variables[bpfVarWakeupAt].Get(&at); err != nil {
		t.Fatal(err)
	}
	t.Logf("timers of sleeps are told by their function, at %#x (0: the kernel does not tell)", at)
	before := calls(t, tr)
	for range 1000 {
		if err := unix.Nanosleep(&unix.Timespec{Nsec: 1000}, nil); err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
	if n := calls(t, tr) - before; n < 1000 {
		t.Errorf("1,000 timers ended, and the programs are said to have been called %d times", n)
	}
}

func calls(t *testing.T, tr *Trace) uint64 {
	t.Helper()
	by, err := tr.Calls()
	if err != nil {
		t.Fatal(err)
	}
	var all uint64
	for _, n := range by {
		all += n
	}
	return all
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
