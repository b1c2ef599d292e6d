package runqueue

import (
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/trace"
	"plimsoll/internal/trace/sched"
	"plimsoll/internal/trace/tracetest"
)

func tracer() trace.Tracer { return Tracer(new(sched.Programs)) }

func TestMain(m *testing.M) { os.Exit(tracetest.Main(m, tracer())) }

// roomy is the tracer with room for all pairs of this machine, however busy it is.
func roomy(t *testing.T) *Trace {
	t.Helper()
	spec, err := sched.Spec()
	if err != nil {
		t.Fatal(err)
	}
	spec.Maps[sched.Pairs].MaxEntries = 1 << 16
	tr, err := begin(sched.UseOf(spec, sched.Queue, needs))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

const burners = 3

// burning starts processes that will compete for one CPU, and returns when all wait
// for their start: what they waited for before they had their name is another's.
func burning(t *testing.T, name string) (pids []int, start func()) {
	t.Helper()
	shell := tracetest.Copy(t, "/bin/sh", name)
	var one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !one.IsSet(cpu) {
		cpu++
	}
	one.Zero()
	one.Set(cpu)
	var inputs []io.Closer
	for range burners {
		c := exec.Command(shell, "-c", "read x; while :; do :; done")
		stdin, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait() // it was killed
		})
		if err := unix.SchedSetaffinity(c.Process.Pid, &one); err != nil {
			t.Fatal(err)
		}
		inputs, pids = append(inputs, stdin), append(pids, c.Process.Pid)
		tracetest.Eventually(t, "it waits for its start", func() bool { return inPipeRead(t, c.Process.Pid) })
	}
	return pids, func() {
		for _, in := range inputs {
			in.Close()
		}
	}
}

// procNumbers returns how long the processes waited, by schedstat, and how often
// they were switched away from against their will.
func procNumbers(t *testing.T, pids []int) (waited time.Duration, involuntary uint64) {
	t.Helper()
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
		if err != nil {
			t.Fatal(err)
		}
		var ran, delay, slices int64
		if _, err := fmt.Sscan(string(text), &ran, &delay, &slices); err != nil {
			t.Fatal(err)
		}
		waited += time.Duration(delay)
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "\nnonvoluntary_ctxt_switches:")
		line, _, _ := strings.Cut(rest, "\n") // newer kernels have more of them
		n, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		involuntary += n
	}
	return waited, involuntary
}

func stopped(t *testing.T, pids []int) func() bool {
	return func() bool {
		for _, pid := range pids {
			if tracetest.State(t, pid) != "T" {
				return false
			}
		}
		return true
	}
}

func group(t *testing.T, tr *Trace, name string) Group {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	tracetest.NothingLost(t, s.Lost)
	for _, g := range s.Groups {
		if g.Name == name {
			return g
		}
	}
	return Group{}
}

// Three processes that never sleep on one CPU wait two thirds of their time; the
// kernel's own sums say how long exactly.
func TestWaitsAgreeWithSchedstat(t *testing.T) {
	tracetest.Need(t, tracer())
	tr := roomy(t)
	tracetest.AllAttached(t, tracer(), tr)
	me := "burn" + strconv.Itoa(os.Getpid())
	pids, start := burning(t, me)
	before := group(t, tr, me)
	before0, involuntary0 := procNumbers(t, pids)
	start()
	tracetest.Eventually(t, "they waited for some seconds", func() bool {
		waited, _ := procNumbers(t, pids)
		return waited > before0+3*time.Second
	})
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	tracetest.Eventually(t, "they are stopped", stopped(t, pids))
	waited, involuntary := procNumbers(t, pids)
	waited, involuntary = waited-before0, involuntary-involuntary0
	g := group(t, tr, me)
	seen, switched := g.Waited-before.Waited, g.Involuntary-before.Involuntary
	t.Logf("waited %v, schedstat says %v; switched away %d times, status says %d", seen, waited, switched, involuntary)
	if off := math.Abs(seen.Seconds()/waited.Seconds() - 1); off > 0.02 {
		t.Errorf("waited %v, schedstat says %v: want within 2 %%", seen, waited)
	}
	if off := math.Abs(float64(switched)/float64(involuntary) - 1); off > 0.05 {
		t.Errorf("switched away %d times, status says %d: want within 5 %%", switched, involuntary)
	}
	checkGroup(t, tr, me, g)
}

// checkGroup looks at the group's numbers beside each other, and through Read.
func checkGroup(t *testing.T, tr *Trace, me string, g Group) {
	t.Helper()
	if n := g.Histogram.Count(); n != g.Waits {
		t.Errorf("%d waits in the histogram, %d counted", n, g.Waits)
	}
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var pairs uint64
	for _, p := range s.Pairs {
		if p.Victim == me {
			pairs += p.Count
		}
	}
	if pairs == 0 || pairs > g.Involuntary {
		t.Errorf("%d preemptions by somebody, %d switches against their will", pairs, g.Involuntary)
	}
	samples := tracetest.Sink{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	for series, want := range map[string]float64{
		netns(t) + "@plimsoll_runqueue_wait_seconds_count{" + me + "}":         float64(g.Waits),
		netns(t) + "@plimsoll_runqueue_wait_seconds_sum{" + me + "}":           g.Waited.Seconds(),
		netns(t) + "@plimsoll_runqueue_wait_seconds_bucket{" + me + ",+Inf}":   float64(g.Waits),
		netns(t) + "@plimsoll_runqueue_switches_total{" + me + ",involuntary}": float64(g.Involuntary),
		"plimsoll_runqueue_lost_total{groups}":                                 0,
	} {
		if got, ok := samples[series]; !ok || got != want {
			t.Errorf("%s = %v (%v), want %v", series, got, ok, want)
		}
	}
}

// netns is the inode of our network namespace.
func netns(t *testing.T) string {
	t.Helper()
	link, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(link, "net:["), "]")
}

// sleeps is a prime number.
const sleeps = 1009

// A process that sleeps so many times switches and is woken as often as the
// kernel's own counts say; meanwhile it is moved from CPU to CPU.
func TestSwitchesAgreeWithProc(t *testing.T) {
	tracetest.Need(t, tracer())
	perl, err := exec.LookPath("perl")
	if err != nil {
		t.Skip("the test's sleeper is written in perl, which is not here")
	}
	tr := roomy(t)
	me := "doze" + strconv.Itoa(os.Getpid())
	c := exec.Command(tracetest.Copy(t, perl, me), "-e", fmt.Sprintf("<STDIN>; select(undef, undef, undef, 0.001) for 1..%d; <STDIN>", sleeps))
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = c.Wait() // however it ends
	})
	pid := c.Process.Pid
	// Before, and when it has done its work, it waits for a line.
	asleep := func() bool { return inPipeRead(t, pid) }
	tracetest.Eventually(t, "it waits for its start", asleep)
	before, counted, first := procSwitches(t, pid), group(t, tr, me), tracetest.Skipped(t)
	if _, err := stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	tracetest.Eventually(t, "it has slept", func() bool {
		moveAbout(t, pid)
		return procSwitches(t, pid)["voluntary_ctxt_switches"] >= before["voluntary_ctxt_switches"]+sleeps && asleep()
	})
	after, g := procSwitches(t, pid), group(t, tr, me)
	for what, n := range map[string][2]uint64{
		"voluntary_ctxt_switches":    {g.Voluntary, counted.Voluntary},
		"nonvoluntary_ctxt_switches": {g.Involuntary, counted.Involuntary},
		"se.nr_migrations":           {g.Migrations, counted.Migrations},
	} {
		if _, there := after[what]; !there {
			continue // this kernel has no /proc/PID/sched
		}
		if got, want := n[0]-n[1], after[what]-before[what]; got != want {
			t.Errorf("%s: counted %d, /proc says %d", what, got, want)
		}
	}
	got, want, last := g.Wakeups-counted.Wakeups, g.Voluntary-counted.Voluntary, tracetest.Skipped(t)
	if got > want || first+want-got > last {
		t.Errorf("woken %d times, but fell asleep %d times; at most %d wakeups were hidden", got, want, int64(last-first))
	}
}

func inPipeRead(t *testing.T, pid int) bool {
	t.Helper()
	call, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.HasPrefix(string(call), fmt.Sprintf("%d 0x0 ", unix.SYS_READ))
}

// procSwitches returns numbers of /proc/PID/status and, where there is one, /proc/PID/sched.
func procSwitches(t *testing.T, pid int) map[string]uint64 {
	t.Helper()
	numbers := map[string]uint64{}
	for _, file := range []string{"status", "sched"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(text), "\n") {
			key, value, _ := strings.Cut(line, ":")
			if n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64); err == nil {
				numbers[strings.TrimSpace(key)] = n
			}
		}
	}
	return numbers
}

// lastCPU is the one that a process ran on last.
func lastCPU(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	cpu, err := strconv.Atoi(strings.Fields(rest)[36]) // the 39th of all
	if err != nil {
		t.Fatal(err)
	}
	return cpu
}

// moveAbout puts the process on each CPU in turn, and lets it choose again.
func moveAbout(t *testing.T, pid int) {
	t.Helper()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := range 64 {
		if !all.IsSet(cpu) {
			continue
		}
		var one unix.CPUSet
		one.Set(cpu)
		if err := unix.SchedSetaffinity(pid, &one); err != nil {
			t.Fatal(err)
		}
		tracetest.Eventually(t, "it runs there, or has done its work", func() bool { return lastCPU(t, pid) == cpu || inPipeRead(t, pid) })
	}
	if err := unix.SchedSetaffinity(pid, &all); err != nil {
		t.Fatal(err)
	}
}

func TestLossIsCounted(t *testing.T) {
	tracetest.Need(t, tracer())
	spec, err := sched.Spec()
	if err != nil {
		t.Fatal(err)
	}
	spec.Maps[sched.Commands].MaxEntries = 1
	tr, err := begin(sched.UseOf(spec, sched.Queue, needs))
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	tracetest.Eventually(t, "some group finds no room", func() bool {
		lost, err := tr.Lost()
		if err != nil {
			t.Fatal(err)
		}
		return lost["groups"] > 0
	})
}

func TestDetaches(t *testing.T) {
	tracetest.Need(t, tracer())
	tracetest.Detaches(t, tracer())
}

func TestSumOverCPUs(t *testing.T) {
	var a, b sched.Queued
	a.Waits, a.WaitNs, a.Wait[3], a.Voluntary = 2, 10_000, 2, 5
	b.Waits, b.WaitNs, b.Wait[25], b.Involuntary = 1, 40e9, 1, 7
	a.Wakeups, b.Migrations = 3, 4
	g := sum(sched.Command{Netns: 7}, []sched.Queued{a, b})
	if g.NetNS != 7 || g.Wakeups != 3 || g.Migrations != 4 {
		t.Errorf("%+v", g)
	}
	if g.Waits != 3 || g.Waited != 40*time.Second+10*time.Microsecond || g.Voluntary != 5 || g.Involuntary != 7 || g.Histogram.Count() != 3 {
		t.Errorf("%+v", g)
	}
}
