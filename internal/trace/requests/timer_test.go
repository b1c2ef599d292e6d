package requests

import (
	"bytes"
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
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
	var waited time.Duration
	for line, n := range asked {
		began := time.Now()
		for range n { // on the same one the next might come before the reply's own event
			askOnce(t, at, line)
		}
		if line == "opened" || line == "kept" {
			waited += time.Since(began)
		}
	}
	p := wait(t, tr, ns, at, "all are answered", func(p Place) bool { return p.answered() == 7+5+3+11+13 })
	var got Group
	for _, c := range p.Groups {
		if len(c.Timers) > 0 {
			got = c
		}
	}
	// The other timer may end just when a partner is asked, or answers; few are taken for its own so, and stood for little. And on
	// a busy machine an event may wake the loop just before its timer does: few are not, then.
	if n := got.Timers["replied"]; n < 7-2 || n > 7+4 {
		t.Errorf("%d replies followed from a timer at once, want 7", n)
	}
	n := got.Timers["asked"]
	if n < 5+3-2 || n > 5+3+4 {
		t.Errorf("%d replies followed from what was asked after a timer, want 8", n)
	}
	const least = (5 + 3 - 2) * 50 * time.Millisecond // of n some may be the other timer's, which add nothing, and two of the eight missing
	within(t, "stood until the timer ended", got.Timer["asked"], least, waited)
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

// TestTimersAreCounted: the program that looks at timers does so often where those of sleeping threads are many, and that has to
// be seen; the others it passes over at once. It is alone here: what the other programs see of this machine's traffic counts, too.
func TestTimersAreCounted(t *testing.T) {
	tracetest.Need(t, Tracer())
	spec, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(spec.Programs, func(name string, _ *ebpf.ProgramSpec) bool { return name != atTimer && name != atWakeup })
	tr, err := start(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	const timers = 5000
	before := calls(t, tr)
	for range timers {
		if err := unix.Nanosleep(&unix.Timespec{Nsec: 1000}, nil); err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
	if n := calls(t, tr) - before; n < timers {
		t.Errorf("%d timers of a thread that slept ended, and %d were looked at", timers, n)
	}
	var at uint64
	if err := tr.Maps.Variables[bpfVarWakeupAt].Get(&at); err != nil {
		t.Fatal(err)
	}
	if at == 0 {
		if features.HaveProgramHelper(ebpf.Syscall, asm.FnKallsymsLookupName) == nil && hasSymbol(t, "hrtimer_wakeup") {
			t.Fatal("the kernel has hrtimer_wakeup and tells where, and it was not found")
		}
		t.Skip("the kernel does not tell by which function the timers of sleeping threads are known")
	}
	before = calls(t, tr)
	endTimerfd(t, timers)
	if n := calls(t, tr) - before; n >= timers {
		t.Errorf("%d timers that end nobody's sleep ended, and %d were looked at", timers, n)
	}
}

// endTimerfd has a descriptor's timer end so many times.
func endTimerfd(t *testing.T, times int) {
	t.Helper()
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for range times {
		if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Value: unix.Timespec{Nsec: 1000}}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Read(fd, make([]byte, 8)); err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
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

// hasSymbol says whether the kernel shows where that function is, and calls it by no other address (Clang's jump tables).
func hasSymbol(t *testing.T, name string) bool {
	t.Helper()
	list, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`(?m)^0*[1-9a-f][0-9a-f]* . ` + name + `$`)
	return shown.Match(list) && !bytes.Contains(list, []byte(" "+name+".cfi_jt\n"))
}
