package wait

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/trace"
	"plimsoll/internal/trace/sched"
	"plimsoll/internal/trace/tracetest"
	"plimsoll/internal/trace/wait/reason"
)

func tracer() trace.Tracer { return Tracer(new(sched.Programs)) }

func TestMain(m *testing.M) { os.Exit(tracetest.Main(m, tracer())) }

// serve answers each connection in its own way, until the test ends.
func serve(t *testing.T, each func(net.Conn)) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			each(c)
			c.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// answer sends each byte back, 11 ms later.
func answer(c net.Conn) {
	b := make([]byte, 1)
	for {
		if _, err := io.ReadFull(c, b); err != nil {
			return
		}
		time.Sleep(11 * time.Millisecond)
		if _, err := c.Write(b); err != nil {
			return
		}
	}
}

// swallow reads all that comes, 101 ms late.
func swallow(c net.Conn) {
	time.Sleep(101 * time.Millisecond)
	_, _ = io.Copy(io.Discard, c) // a client that goes is the end of it
}

// measured is what the workload says of itself.
type measured struct {
	blocked time.Duration
	waits   uint64
	taken   time.Duration // of blocked, by the host of a virtual machine, at most
}

// schedule builds testdata/schedule.c and runs it under a name.
func schedule(t *testing.T, name string, port, other int) map[string]measured {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("the workload needs a C compiler")
	}
	dir := t.TempDir()
	program, file := filepath.Join(dir, "schedule"), filepath.Join(dir, "file")
	if out, err := exec.Command(cc, "-O2", "-pthread", "-o", program, "testdata/schedule.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(file, make([]byte, 2<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	out, err := exec.CommandContext(ctx, program, name, file, strconv.Itoa(port), strconv.Itoa(other)).Output()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]measured{}
	for line := range strings.Lines(string(out)) {
		var kind string
		var m measured
		if _, err := fmt.Sscan(line, &kind, &m.blocked, &m.waits, &m.taken); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		kinds[kind] = m
	}
	return kinds
}

func beginOn(t *testing.T, hasPrevState bool) *Trace {
	t.Helper()
	tracetest.Need(t, tracer())
	spec, err := sched.Spec()
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.SetConstant(spec, sched.HasPrevState, hasPrevState); err != nil {
		t.Fatal(err)
	}
	tr, err := begin(sched.UseOf(spec, sched.Blocked, needs))
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

// newer says whether this kernel's sched_switch tells the state.
func newer(t *testing.T) bool {
	t.Helper()
	tracetest.Need(t, tracer())
	kernel, err := trace.KernelTypes()
	if err != nil {
		t.Fatal(err)
	}
	n, err := trace.Arguments(kernel, "sched_switch")
	if err != nil {
		t.Fatal(err)
	}
	return n > 3
}

// of returns the targets of one command, by reason, and how many waits were lost
// so far, of any command. The kernel remembers no new thread while another program
// on its CPU is at the storage of threads.
func of(t *testing.T, tr *Trace, name string) (groups map[string]Group, lost uint64) {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for what, n := range s.Lost {
		if what != "switches" && what != "recursion_misses" {
			lost += n
		}
	}
	groups = map[string]Group{}
	for _, g := range s.Groups {
		if g.Name == name {
			groups[g.Reason] = g
		}
	}
	return groups, lost
}

// A program that blocks by a schedule measures its waits by its own clock; we say
// the same of each reason, within 2 %. Time that the host of a virtual machine
// takes looks like a wait to the program, so that a busy host gets more than one try.
func TestBlockedTimeIsWhatTheProgramMeasures(t *testing.T) {
	kinds := map[string]*Trace{"as this kernel is": beginOn(t, newer(t)), "as a kernel before 5.18": beginOn(t, false)}
	port, other := serve(t, answer), serve(t, swallow)
	before := map[string]uint64{}
	for try := 1; ; try++ {
		me := fmt.Sprintf("sched%d.%d", os.Getpid(), try)
		want := schedule(t, me, port, other)
		var wrong []string
		for name, tr := range kinds {
			tracetest.AllAttached(t, tracer(), tr)
			groups, lost := of(t, tr, me)
			samples(t, tr, me, groups)
			if n := lost - before[name]; n > 0 {
				wrong = append(wrong, fmt.Sprintf("%s: %d waits were lost", name, n))
			}
			before[name] = lost
			for _, w := range append(compare(t, groups, want), towards(groups, port, other, want)...) {
				wrong = append(wrong, name+": "+w)
			}
		}
		if len(wrong) == 0 {
			return
		}
		if try == 5 {
			t.Fatal(strings.Join(wrong, "\n"))
		}
		t.Log("again, since ", strings.Join(wrong, "; "))
	}
}

// compare returns in what the groups are not as the program measured.
func compare(t *testing.T, groups map[string]Group, want map[string]measured) (wrong []string) {
	t.Helper()
	for kind, m := range want {
		switch kind {
		case "unix_read", "served_read":
			continue
		case "socket_read":
			m.blocked += want["unix_read"].blocked + want["served_read"].blocked
			m.waits += want["unix_read"].waits + want["served_read"].waits
			m.taken += want["unix_read"].taken + want["served_read"].taken
		}
		g := groups[kind]
		got, n := g.Blocked(), g.Lengths.Count()
		t.Logf("%-13s %5d waits, %12v; it says %5d, %12v: %+.2f %%", kind, n, got, m.waits, m.blocked, 100*(got.Seconds()/m.blocked.Seconds()-1))
		// Microseconds a wait are how well its clocks can be read around the call.
		slack := 0.02*m.blocked.Seconds() + 3e-6*float64(m.waits) + m.taken.Seconds()
		if math.Abs(got.Seconds()-m.blocked.Seconds()) > slack || n > m.waits || n+m.waits/50 < m.waits {
			wrong = append(wrong, fmt.Sprintf("%s: %d waits, %v, it says %d, %v", kind, n, got, m.waits, m.blocked))
		}
	}
	return wrong
}

// towards returns in what those whom the program waited for are not as it says.
func towards(groups map[string]Group, port, other int, want map[string]measured) (wrong []string) {
	named := map[string]time.Duration{}
	for _, g := range groups {
		for _, to := range g.Targets {
			label, _, abstract := strings.Cut(to.Towards, "@schedule")
			if abstract {
				label += "@"
			}
			if strings.HasPrefix(label, "clients@127.0.0.1:") || g.Reason == "connect" {
				label = strings.TrimRight(label, "0123456789") // a port that the program was given
			}
			named[g.Reason+" "+label] += to.Blocked
		}
	}
	for label, m := range map[string]measured{
		"socket_read 127.0.0.1:" + strconv.Itoa(port):   want["socket_read"],
		"socket_write 127.0.0.1:" + strconv.Itoa(other): want["socket_write"],
		"socket_read unix:@":                            want["unix_read"],
		"accept clients@127.0.0.1:":                     want["accept"],
		"connect 127.0.0.1:":                            want["connect"],
		"lock ":                                         want["lock"],
		"sleep ":                                        want["sleep"],
	} {
		if got := named[label]; m.blocked == 0 || math.Abs(got.Seconds()-m.blocked.Seconds()) > 0.02*m.blocked.Seconds()+m.taken.Seconds() {
			wrong = append(wrong, fmt.Sprintf("%s: blocked %v, it says %v; there are %v", label, got, m.blocked, named))
		}
	}
	return wrong
}

// samples looks at the same through Read.
func samples(t *testing.T, tr *Trace, me string, groups map[string]Group) {
	t.Helper()
	sink := tracetest.Sink{}
	if err := tr.Read(sink); err != nil {
		t.Fatal(err)
	}
	netns, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	at := strings.TrimSuffix(strings.TrimPrefix(netns, "net:["), "]") + "@plimsoll_wait_"
	sleep := groups["sleep"]
	for series, want := range map[string]float64{
		at + "blocked_seconds_total{" + me + ",sleep,}":      sleep.Blocked().Seconds(),
		at + "blocks_total{" + me + ",sleep,}":               float64(sleep.Lengths.Count()),
		at + "blocked_seconds_bucket{" + me + ",sleep,+Inf}": float64(sleep.Lengths.Count()),
		"plimsoll_wait_lost_total{groups}":                   0,
	} {
		got, ok := sink[series]
		if !ok && strings.HasSuffix(series, "+Inf}") {
			continue // no wait was as long as that
		}
		if !ok || got != want {
			t.Errorf("%s = %v (%v), want %v", series, got, ok, want)
		}
	}
}

// sleeper starts a process that sleeps for long, and waits until it does.
func sleeper(t *testing.T, name string) *os.Process {
	t.Helper()
	c := exec.Command(tracetest.Copy(t, "/bin/sleep", name), "1009")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
	})
	tracetest.Eventually(t, "it sleeps", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", c.Process.Pid))
		return err == nil && !strings.HasPrefix(string(text), "running") && strings.Contains(string(text), " 0x")
	})
	return c.Process
}

func slept(t *testing.T, tr *Trace, name string) time.Duration {
	t.Helper()
	groups, _ := of(t, tr, name)
	g := groups["sleep"]
	if n := g.Lengths.Count(); n > 0 {
		t.Errorf("%d waits of %s have ended", n, name)
	}
	return g.Blocked()
}

// A wait that lasts counts as far as it has come, but not while the tracer is
// paused; and of one that was there before, what came after.
func TestWaitsThatLast(t *testing.T) {
	tracetest.Need(t, tracer())
	before := "bef" + strconv.Itoa(os.Getpid())
	sleeper(t, before)
	started := time.Now()
	tr := beginOn(t, newer(t))
	during := "dur" + strconv.Itoa(os.Getpid())
	sleeper(t, during)
	for _, name := range []string{before, during} {
		tracetest.Eventually(t, "it has slept for a while", func() bool {
			d := slept(t, tr, name)
			if gone := time.Since(started); d > gone {
				t.Fatalf("%s slept %v in %v", name, d, gone)
			}
			return d > 300*time.Millisecond
		})
	}
	if err := tr.Pause(); err != nil {
		t.Fatal(err)
	}
	one := slept(t, tr, during)
	time.Sleep(50 * time.Millisecond) // the sleep that must not count
	if two := slept(t, tr, during); two != one {
		t.Errorf("%v more while paused", two-one)
	}
	resumed := time.Now()
	if err := tr.Resume(); err != nil {
		t.Fatal(err)
	}
	three := slept(t, tr, during)
	if gone := time.Since(resumed); three < one || three-one > gone {
		t.Errorf("%v more in %v after the pause", three-one, gone)
	}
	tracetest.Eventually(t, "it counts on after the pause", func() bool { return slept(t, tr, during)-three > 200*time.Millisecond })
}

// Whoever is stopped was in a call, and does not wait for what the call is for.
func TestStopped(t *testing.T) {
	tracetest.Need(t, tracer())
	tr := beginOn(t, newer(t))
	name := "stop" + strconv.Itoa(os.Getpid())
	if err := sleeper(t, name).Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	tracetest.Eventually(t, "it counts as stopped", func() bool {
		groups, _ := of(t, tr, name)
		return groups["stopped"].Blocked() > 0
	})
}

func TestOnly(t *testing.T) {
	tr := beginOn(t, newer(t))
	if err := tr.Only(1); err != nil {
		t.Fatal(err)
	}
	name := "only" + strconv.Itoa(os.Getpid())
	pid := sleeper(t, name).Pid
	tracetest.Eventually(t, "it sleeps", func() bool { return tracetest.State(t, pid) == "S" })
	if d := slept(t, tr, name); d != 0 {
		t.Errorf("%v of a process that nobody asked for", d)
	}
}

func TestLossIsCounted(t *testing.T) {
	tracetest.Need(t, tracer())
	spec, err := sched.Spec()
	if err != nil {
		t.Fatal(err)
	}
	spec.Maps[sched.Numbers].MaxEntries = 1
	tr, err := begin(sched.UseOf(spec, sched.Blocked, needs))
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	tracetest.Eventually(t, "some group finds no room", func() bool {
		if err := exec.Command("/bin/sh", "-c", "sleep 0.001; /bin/true").Run(); err != nil {
			t.Fatal(err)
		}
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

// The kernel's side and Go's have the same order.
func TestReasonsAreTheKernelsSide(t *testing.T) {
	header, err := os.Open("reason/reason.h")
	if err != nil {
		t.Fatal(err)
	}
	defer header.Close()
	next := reason.Reason(0)
	for lines := bufio.NewScanner(header); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if name, ok := strings.CutPrefix(line, "REASON_"); ok && strings.HasSuffix(name, ",") {
			if want := strings.ToLower(strings.TrimSuffix(name, ",")); want != next.String() {
				t.Errorf("the kernel's side says %s where Go says %v", want, next)
			}
			next++
		}
	}
	if next != reason.DeviceWrite+1 {
		t.Errorf("the kernel's side has %d reasons", next)
	}
}

func TestText(t *testing.T) {
	lengths := make(trace.Histogram, 26)
	lengths[14] = 100
	s := Seen{Elapsed: 10 * time.Second, Snapshot: Snapshot{Lost: map[string]uint64{"groups": 3}, Groups: []Group{
		{Name: "php-fpm", Reason: "socket_read", Lengths: lengths, Targets: []Target{
			{Towards: "[2001:db8:1234:5678:9abc:def0:1234:5678]:5432", Blocked: 25 * time.Second, Blocks: 100},
			{Towards: "clients@127.0.0.1:9000", Blocked: 7 * time.Second, Blocks: 3},
		}},
		{Name: "sh", Reason: "child", Lengths: make(trace.Histogram, 26), Targets: []Target{{Blocked: 10 * time.Second}}},
	}}}
	text := s.Text(80)
	held, idle, found := strings.Cut(text, "Idle, or asleep on purpose")
	if !found || !strings.Contains(held, "2.5 threads were held up") || !strings.Contains(held, ":5678]:5432") || strings.Contains(held, "clients@") ||
		!strings.Contains(idle, "clients@127.0.0.1:9000") || !strings.Contains(idle, "child") || !strings.Contains(idle, "note: 3 events were lost") {
		t.Error(text)
	}
	for line := range strings.Lines(text) {
		if len([]rune(line)) > 81 {
			t.Errorf("%q is wider than 80", line)
		}
	}
}
