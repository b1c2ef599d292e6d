package runqueue

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/trace"
	"plimsoll/internal/trace/tracetest"
)

func TestMain(m *testing.M) { os.Exit(tracetest.Main(m, Tracer())) }

const burners = 3

// burning starts processes that compete for one CPU, lets them burn, and stops
// them so that their numbers stand still.
func burning(t *testing.T, name string) []int {
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
	var pids []int
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
		defer stdin.Close() // all begin to burn together
		pids = append(pids, c.Process.Pid)
	}
	return pids
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
		n, err := strconv.ParseUint(strings.TrimSpace(rest), 10, 64)
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
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), ") T ") {
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
	for what, n := range s.Lost {
		if n > 0 {
			t.Errorf("%d %s were lost", n, what)
		}
	}
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
	tracetest.Need(t, Tracer())
	kernel, err := trace.KernelTypes()
	if err != nil {
		t.Fatal(err)
	}
	args, err := trace.Arguments(kernel, "sched_switch")
	if err != nil {
		t.Fatal(err)
	}
	for name, hasPrevState := range map[string]bool{"as this kernel is": args > 3, "as a kernel before 5.18": false} {
		t.Run(name, func(t *testing.T) {
			spec, err := loadBpf()
			if err != nil {
				t.Fatal(err)
			}
			tr, err := start(spec, hasPrevState)
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			tracetest.AllAttached(t, Tracer(), tr)
			me := "burn" + strconv.Itoa(os.Getpid())
			pids := burning(t, me)
			tracetest.Eventually(t, "they waited for some seconds", func() bool {
				waited, _ := procNumbers(t, pids)
				return waited > 3*time.Second
			})
			for _, pid := range pids {
				if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			tracetest.Eventually(t, "they are stopped", stopped(t, pids))
			compare(t, tr, me, pids)
		})
	}
}

func compare(t *testing.T, tr *Trace, me string, pids []int) {
	t.Helper()
	waited, involuntary := procNumbers(t, pids)
	g := group(t, tr, me)
	t.Logf("waited %v, schedstat says %v; switched away %d times, status says %d", g.Waited, waited, g.Involuntary, involuntary)
	if off := math.Abs(g.Waited.Seconds()/waited.Seconds() - 1); off > 0.05 {
		t.Errorf("waited %v, schedstat says %v: want within 5 %%", g.Waited, waited)
	}
	if off := math.Abs(float64(g.Involuntary)/float64(involuntary) - 1); off > 0.05 {
		t.Errorf("switched away %d times, status says %d: want within 5 %%", g.Involuntary, involuntary)
	}
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
		"plimsoll_runqueue_wait_seconds_count{" + me + "}":         float64(g.Waits),
		"plimsoll_runqueue_wait_seconds_sum{" + me + "}":           g.Waited.Seconds(),
		"plimsoll_runqueue_wait_seconds_bucket{" + me + ",+Inf}":   float64(g.Waits),
		"plimsoll_runqueue_switches_total{" + me + ",involuntary}": float64(g.Involuntary),
		"plimsoll_runqueue_lost_total{groups}":                     0,
	} {
		if got, ok := samples[series]; !ok || got != want {
			t.Errorf("%s = %v (%v), want %v", series, got, ok, want)
		}
	}
}

func TestLossIsCounted(t *testing.T) {
	tracetest.Need(t, Tracer())
	spec, err := loadBpf()
	if err != nil {
		t.Fatal(err)
	}
	spec.Maps[bpfMapGroups].MaxEntries = 1
	tr, err := start(spec, true)
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
	tracetest.Need(t, Tracer())
	tracetest.Detaches(t, Tracer())
}

func TestSumOverCPUs(t *testing.T) {
	var a, b bpfGroup
	a.Waits, a.WaitNs, a.Wait[3], a.Voluntary = 2, 10_000, 2, 5
	b.Waits, b.WaitNs, b.Wait[25], b.Involuntary = 1, 40e9, 1, 7
	g := sum("x", []bpfGroup{a, b})
	if g.Waits != 3 || g.Waited != 40*time.Second+10*time.Microsecond || g.Voluntary != 5 || g.Involuntary != 7 || g.Histogram.Count() != 3 {
		t.Errorf("%+v", g)
	}
}
