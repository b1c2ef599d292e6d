package offcpu

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"plimsoll/internal/trace"
	"plimsoll/internal/trace/stacks"
	"plimsoll/internal/trace/symbol"
	"plimsoll/internal/trace/tracetest"
)

func TestMain(m *testing.M) { os.Exit(tracetest.Main(m, Tracer())) }

func begin(t *testing.T) *Trace {
	t.Helper()
	tracetest.Need(t, Tracer())
	tr, err := Start()
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

// serve answers each connection in its own way, until the test ends.
func serve(t *testing.T, each func(net.Conn)) string {
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
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
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

func compile(t *testing.T, source string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("the workload needs a C compiler")
	}
	program := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command(cc, "-O2", "-fno-omit-frame-pointer", "-pthread", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// interrupt is what wakes who waits for the time.
const interrupt = "interrupt"

// said is how long the workload says that it was blocked, and how much of that the
// host of a virtual machine may have taken.
type said struct{ blocked, taken time.Duration }

// schedule runs the other tracer's workload, and returns what it says, and how often
// it waited for a lock.
func schedule(t *testing.T, program, name, port, other string) (kinds map[string]said, locks float64) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, make([]byte, 2<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	out, err := exec.CommandContext(ctx, program, name, file, port, other).Output()
	if err != nil {
		t.Fatal(err)
	}
	kinds = map[string]said{}
	for line := range strings.Lines(string(out)) {
		var kind string
		var d said
		var times float64
		if _, err := fmt.Sscan(line, &kind, &d.blocked, &times, &d.taken); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		kinds[kind] = d
		if kind == "lock" {
			locks = times
		}
	}
	for _, also := range []string{"unix_read", "served_read"} {
		kinds["socket_read"] = said{kinds["socket_read"].blocked + kinds[also].blocked, kinds["socket_read"].taken + kinds[also].taken}
		delete(kinds, also)
	}
	return kinds, locks
}

// of returns what threads of one command slept on.
func of(t *testing.T, tr *Trace, name string) []slept {
	t.Helper()
	all, err := tr.slept()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(s slept) bool { return s.Labels[stacks.Group] != name })
}

func sum(all []slept, that func(slept) bool) time.Duration {
	var sum time.Duration
	for _, s := range all {
		if that(s) {
			sum += s.blocked()
		}
	}
	return sum
}

// A program that blocks by a schedule measures its waits by its own clock; we say
// the same of each reason, within 2 %, with the kernel's function and who woke it.
// Time that the host of a virtual machine takes looks like a wait to the program, so
// that a busy host gets more than one try.
func TestBlockedTimeIsWhatTheProgramMeasures(t *testing.T) {
	tr := begin(t)
	tracetest.AllAttached(t, Tracer(), tr)
	program := compile(t, "../wait/testdata/schedule.c")
	port, other := serve(t, answer), serve(t, swallow)
	for try := 1; ; try++ {
		me := fmt.Sprintf("off%d.%d", os.Getpid(), try)
		var want map[string]said
		var locks float64
		done := make(chan struct{})
		go func() {
			defer close(done)
			want, locks = schedule(t, program, me, port, other)
		}()
		reading(t, tr, done)
		all := of(t, tr, me)
		wrong := compare(t, all, want)
		if len(wrong) == 0 {
			wakers(t, all)
			samples(t, tr, me, all, locks)
			return
		}
		if try == 5 {
			t.Error(strings.Join(wrong, "\n"))
			counts, err := tr.Lost()
			t.Fatal(counts, err)
		}
		t.Log("again, since ", strings.Join(wrong, "; "))
	}
}

// reading reads the tracer now and then, as a run does.
func reading(t *testing.T, tr *Trace, done chan struct{}) {
	t.Helper()
	for {
		select {
		case <-done:
			return
		case <-time.After(500 * time.Millisecond):
			if err := tr.Read(tracetest.Sink{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// compare returns in what we do not say as the program does. Disks and pages wait
// for some ten microseconds, where the clocks around a call say too little.
func compare(t *testing.T, all []slept, want map[string]said) (wrong []string) {
	t.Helper()
	for kind, d := range want {
		got := sum(all, func(s slept) bool { return s.Labels["reason"] == kind })
		t.Logf("%-13s %12v; it says %12v: %+.2f %%", kind, got, d.blocked, 100*(got.Seconds()/d.blocked.Seconds()-1))
		slack := 0.02
		if kind == "disk" || kind == "page_fault" {
			slack = 0.1
		}
		if math.Abs(got.Seconds()-d.blocked.Seconds()) > slack*d.blocked.Seconds()+d.taken.Seconds() {
			wrong = append(wrong, fmt.Sprintf("%s: %v, it says %v", kind, got, d.blocked))
		}
	}
	return wrong
}

// wakers looks where the program slept, and who woke it: nine times in ten at least,
// since a thread may be interrupted while it wakes another.
func wakers(t *testing.T, all []slept) {
	t.Helper()
	for kind, want := range map[string]struct{ in, waker string }{
		"sleep":       {"nanosleep", interrupt},
		"lock":        {"futex", "helper"},
		"pipe":        {"pipe_read", "helper"},
		"file_lock":   {"lock", "helper"},
		"child":       {"wait", "helper"},
		"socket_read": {"", tracetest.OwnName(t)},
	} {
		of := func(s slept) bool { return s.Labels["reason"] == kind }
		there := func(s slept) bool {
			by := s.Labels["waker"] == want.waker || kind == "socket_read" && s.Labels["waker"] == "helper"
			named := func(f symbol.Frame) bool { return f.Kernel && strings.Contains(f.Function, want.in) }
			poll := kind == "sleep" && slices.ContainsFunc(s.Frames, func(f symbol.Frame) bool { return strings.Contains(f.Function, "poll") })
			return of(s) && by && (poll || slices.ContainsFunc(s.Frames, named))
		}
		if got, whole := sum(all, there), sum(all, of); float64(got) < 0.9*float64(whole) {
			t.Errorf("%s: %v of %v in %s, woken by %s", kind, got, whole, want.in, want.waker)
			for _, s := range all {
				if of(s) && !there(s) {
					t.Logf("%v woken by %q: %v", s.blocked(), s.Labels["waker"], longest([]slept{s})[0].Frames)
				}
			}
		}
	}
}

// samples looks at the same through Read.
func samples(t *testing.T, tr *Trace, me string, all []slept, locks float64) {
	t.Helper()
	sink := tracetest.Sink{}
	if err := tr.Read(sink); err != nil {
		t.Fatal(err)
	}
	netns, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	at := strings.TrimSuffix(strings.TrimPrefix(netns, "net:["), "]") + "@plimsoll_offcpu_"
	for reason, waker := range map[string]string{"sleep": interrupt, "lock": "helper"} {
		want := sum(all, func(s slept) bool { return s.Labels["reason"] == reason && s.Labels["waker"] == waker })
		series := at + "seconds_total{" + me + "," + reason + "," + waker + "}"
		if got, ok := sink[series]; !ok || math.Abs(got-want.Seconds()) > 1e-9 {
			t.Errorf("%s = %v (%v), want %v", series, got, ok, want.Seconds())
		}
	}
	if n := sink[at+"blocks_total{"+me+",lock,helper}"]; n < 0.9*locks || n > locks { // as in wakers
		t.Errorf("%v waits for the lock, want %v, or nearly", n, locks)
	}
}

// A mutex that has a name is named, in a process that lives, and its user stack
// leads to main.
func TestLocksAreNamed(t *testing.T) {
	tr := begin(t)
	cmd := exec.Command(compile(t, "testdata/lock.c"))
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var most, least time.Duration
	var waits uint64
	if _, err := fmt.Sscan(line, &most, &least, &waits); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	r, err := tr.Report(time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, g := range r.(Seen).Groups {
		if slices.Contains(g.PIDs, cmd.Process.Pid) {
			at := slices.IndexFunc(g.Locks, func(l Lock) bool { return l.Name == "the_lock" })
			if at < 0 {
				t.Fatalf("no lock has a name: %+v", g.Locks)
			}
			// The program cannot tell what the host of a virtual machine took while it ran
			// or queued from being blocked: hence the tenth.
			if l := g.Locks[at]; l.Blocked > most || l.Blocked < least*9/10 || l.Waits == 0 || uint64(l.Waits) > waits {
				t.Errorf("%v in %d waits, it says %v to %v in %d", l.Blocked, l.Waits, least, most, waits)
			}
			text.WriteString(r.(Seen).group(g, 80))
		}
	}
	if !strings.Contains(text.String(), "(lock), woken by program") || !strings.Contains(text.String(), "lock the_lock: ") {
		t.Error(text.String())
	}
	hasMain := func(s Stack) bool { return s.Reason == "lock" && slices.Contains(s.Frames, "main") }
	if all := longest(of(t, tr, "program")); !slices.ContainsFunc(all, hasMain) {
		t.Errorf("no stack of its leads to main: %v", all)
	}
	if whole := r.Text(80); !strings.HasSuffix(whole, "\n") || !strings.Contains(whole, "Where they were held up") {
		t.Error(whole)
	}
}

// What lasts when the tracer is paused counts as far as it has come, once; what
// began before or during the pause does not count.
func TestPause(t *testing.T) {
	tr := begin(t)
	name := "pause" + strconv.Itoa(os.Getpid())
	c := exec.Command(tracetest.Copy(t, "/bin/sleep", name), "1009")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	total := func() time.Duration {
		return sum(of(t, tr, name), func(s slept) bool { return s.Labels["reason"] == "sleep" })
	}
	var lasting time.Duration
	tracetest.Eventually(t, "it has slept for a while, and still does", func() bool {
		lasting = total()
		return lasting > 200*time.Millisecond
	})
	sink := tracetest.Sink{}
	if err := tr.Read(sink); err != nil {
		t.Fatal(err)
	}
	for series := range sink {
		if strings.Contains(series, "{"+name+",sleep") {
			t.Errorf("%s counts before it ended", series)
		}
	}
	if err := tr.Pause(); err != nil {
		t.Fatal(err)
	}
	cut := total()
	if cut < lasting {
		t.Errorf("%v after the pause, %v before", cut, lasting)
	}
	if err := tr.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Kill(); err != nil { // its wait ends, half seen
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed
	if again := total(); again != cut {
		t.Errorf("%v more of a wait that began before the pause", again-cut)
	}
}

func TestLossIsCounted(t *testing.T) {
	tracetest.Need(t, Tracer())
	spec, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	spec.Maps[bpfMapWaits].MaxEntries, spec.Maps[bpfMapUserStacks].MaxEntries = 1, 1
	tr, err := start(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	tracetest.Eventually(t, "some wait and some stack find no room", func() bool {
		if err := exec.Command("/bin/sh", "-c", "sleep 0.001; /bin/true").Run(); err != nil {
			t.Fatal(err)
		}
		lost, err := tr.Lost()
		if err != nil {
			t.Fatal(err)
		}
		return lost["waits"] > 0 && lost["stacks"] > 0
	})
}

func TestProfileOpensInPprof(t *testing.T) {
	tr := begin(t)
	tracetest.Eventually(t, "something slept", func() bool {
		all, err := tr.slept()
		if err != nil {
			t.Fatal(err)
		}
		return len(all) > 0
	})
	p, err := tr.Profile()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	if p, err = profile.Parse(&b); err != nil {
		t.Fatal(err)
	}
	if p.SampleType[0].Type != "offcpu" || p.SampleType[0].Unit != "nanoseconds" || len(p.Sample) == 0 || p.TimeNanos == 0 {
		t.Errorf("%v, %d samples", p.SampleType, len(p.Sample))
	}
}

func TestDetaches(t *testing.T) {
	tracetest.Need(t, Tracer())
	tracetest.Detaches(t, Tracer())
}

func TestSleepersStacksBeginWhereTheySleep(t *testing.T) {
	frame := func(name string) symbol.Frame { return symbol.Frame{Function: name, Kernel: true} }
	got := asleep([]symbol.Frame{frame("bpf_trace_run4"), frame("__traceiter_sched_switch"), frame("__schedule"), frame("schedule"), frame("futex_do_wait"), frame("schedule")})
	if len(got) != 2 || got[0].Function != "futex_do_wait" {
		t.Errorf("%v", got)
	}
	if got := asleep(nil); got != nil {
		t.Errorf("%v", got)
	}
}

func FuzzParseLasting(f *testing.F) {
	f.Add(make([]byte, binary.Size(bpfLasting{})))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, err := parseLasting(raw)
		if err == nil && len(list)*binary.Size(bpfLasting{}) != len(raw) {
			t.Errorf("%d of %d bytes", len(list), len(raw))
		}
	})
}

// What the document and the text are made of, from waits that are made up.
func TestGroupsAreSummedUp(t *testing.T) {
	one := func(netns uint32, name, reason, waker, in string, d time.Duration) slept {
		return slept{stacks.Sample{
			Frames: []symbol.Frame{{Function: in, Kernel: true}}, Values: []int64{int64(d), 1},
			Labels: map[string]string{stacks.Group: name, "reason": reason, "waker": waker},
		}, netns}
	}
	all := []slept{
		one(1, "a", "lock", "b", "futex_wait", 3*time.Second), one(1, "a", "lock", "b", "futex_wait", time.Second),
		one(1, "a", "poll", interrupt, "ep_poll", 4*time.Second), one(2, "a", "accept", "", "inet_csk_accept", 9*time.Second),
	}
	pids := map[who]map[int]bool{{1, "a"}: {8: true, 7: true}, {2, "a"}: {9: true}}
	got := groups(all, []Lock{{PID: 8, Name: "m", Blocked: time.Second}, {PID: 9, Name: "n"}}, pids)
	if len(got) != 2 || got[0].NetNS != 1 || got[0].Blocked != 8*time.Second || got[0].HeldUp != 4*time.Second ||
		!slices.Equal(got[0].PIDs, []int{7, 8}) || len(got[0].Causes) != 2 || got[0].Causes[0].Blocked != 4*time.Second || len(got[0].Locks) != 1 {
		t.Fatalf("%+v", got)
	}
	text := Seen{Elapsed: 10 * time.Second, Groups: got, slept: all}.Text(60)
	for _, want := range []string{"a, 2 processes: 0.8 threads blocked on average", "50 % of the time in futex_wait (lock), woken by b", "accept"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if len([]rune(line)) > 61 {
			t.Errorf("%q is wider than 60", line)
		}
	}
}

var _ trace.Profiler = (*Trace)(nil)
