package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
	"plimsoll/internal/trace/exec"
	"plimsoll/internal/trace/runqueue"
)

func chain(command string, above ...string) exec.Chain {
	c := exec.Chain{Command: command}
	copy(c.Above[:], above)
	return c
}

func TestExecText(t *testing.T) {
	lifetimes := make([]uint64, 28)
	lifetimes[13], lifetimes[14] = 600, 274
	s := execSeen{traceSeen: traceSeen{Tracer: "exec", Seconds: 10, CPUs: 2}, Rates: []float64{80, 87, 94}}
	s.Groups = []exec.Group{
		{Chain: chain("stress", "sh", "php-fpm", "php-fpm"), Starts: 874, Ends: 874, Reaped: 874, CPU: 15600 * time.Millisecond,
			Lifetime: 17480 * time.Millisecond, Lifetimes: lifetimes, Exits: map[string]uint64{"1": 874},
			First: &exec.Example{PID: 42, Arguments: []string{"stress", "--cpu", "1\x1b[2J"}, Cut: true}},
		{Chain: chain("sh", "php-fpm"), Forks: 874},
		{Chain: chain("sh", "cron"), ForksOnly: 1, Ends: 3, Exits: map[string]uint64{"0": 2, "SIGKILL": 1}, Lifetimes: make([]uint64, 28)},
	}
	s.Lost = map[string]uint64{"groups": 3, "ends": 0}
	want := `10 s on 2 CPUs: 874 programs started (87/s), 877 processes ended, 1 of them
without having executed anything since their fork.
starts/s  ▇██  94 at most

php-fpm → sh → stress: 87 starts/s, 78 % of the CPU, all fail with exit 1
    lived 20 ms on average, used 17.8 ms of CPU each; 4.1 ms █▄ 16.4 ms
    first: pid 42: stress --cpu 1?[2J …

cron → sh: 1 fork without exec, 2 end well, 1 are killed by SIGKILL
    lived 0 µs on average

note: 3 events were lost (groups)
`
	if d := cmp.Diff(want, execText(s, 80)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// Groups that are written alike are one in the text; the JSON keeps them apart.
func TestChainsWrittenAlikeAreJoined(t *testing.T) {
	one := exec.Group{Chain: chain("sh", "php", "php"), Starts: 2, Ends: 2, Exits: map[string]uint64{"0": 2}, Lifetimes: []uint64{1, 1}}
	two := exec.Group{Chain: chain("sh", "php"), Starts: 3, Ends: 3, Exits: map[string]uint64{"0": 1, "7": 2}, Lifetimes: []uint64{0, 3}}
	got := byChain([]exec.Group{one, two})
	if len(got) != 1 || got[0].Starts != 5 || got[0].Exits["0"] != 3 || got[0].Exits["7"] != 2 || got[0].Lifetimes[1] != 4 {
		t.Errorf("%+v", got)
	}
	if one.Exits["0"] != 2 || one.Lifetimes[1] != 1 {
		t.Error("the group that was joined to is changed in the snapshot as well")
	}
}

func TestRunqueueText(t *testing.T) {
	histogram := make([]uint64, 26)
	histogram[3], histogram[4], histogram[11] = 900, 90, 10
	s := runqueueSeen{traceSeen: traceSeen{Tracer: "runqueue", Seconds: 2, CPUs: 1,
		Programs: []traceProgram{{"wakeup_new", "sched_wakeup_new", model.Status{State: model.Absent, Why: "no such tracepoint"}}}}}
	s.Groups = []runqueue.Group{
		{Name: "nginx", Waits: 1000, Waited: 3 * time.Second, Histogram: histogram, Voluntary: 800, Involuntary: 199},
		{Name: "idle", Voluntary: 1, Histogram: make([]uint64, 26)},
	}
	s.Pairs = []runqueue.Pair{{Victim: "nginx", By: "wrk", Count: 150}}
	want := `2 s on 1 CPU: 1,000 waits for a CPU (500/s); on average 1.5 threads were
waiting.

process  waiting  waits/s  mean  50 % <  99 % <  own/s  forced/s
nginx    1.5      500      3 ms  8 µs    16 µs   400    100
idle     0        0        -     -       -       0.5    0

How long nginx waited
     under 8 µs  ██████████████████████████████  900
    under 16 µs  ███                             90
    under 32 µs                                  0
    under 64 µs                                  0
   under 128 µs                                  0
   under 256 µs                                  0
   under 512 µs                                  0
  under 1.02 ms                                  0
  under 2.05 ms  █                               10

Who takes the CPU from whom
   wrk  takes it from  nginx  75/s

note: not seen: sched_wakeup_new (no such tracepoint)
`
	if d := cmp.Diff(want, runqueueText(s, 80)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// Nothing seen is a sentence, not a fault.
func TestTraceTextOfNothing(t *testing.T) {
	empty := traceSeen{Seconds: 1, CPUs: 4}
	for _, text := range []string{execText(execSeen{traceSeen: empty}, 80), runqueueText(runqueueSeen{traceSeen: empty}, 80)} {
		if !strings.HasPrefix(text, "1 s on 4 CPUs: 0 ") {
			t.Errorf("%q", text)
		}
	}
}

// A table of the longest names there are still fits a terminal.
func TestRunqueueTableFits(t *testing.T) {
	s := runqueueSeen{traceSeen: traceSeen{Seconds: 1, CPUs: 1}}
	h := make([]uint64, 26)
	h[24] = 123_456
	s.Groups = []runqueue.Group{{Name: "exactly15letter", Waits: 123_456, Waited: 12345 * time.Second, Histogram: h, Voluntary: 123_456, Involuntary: 123_456}}
	for _, line := range strings.Split(runqueueText(s, 80), "\n") {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(line), line)
		}
	}
}
