package syscalls

import (
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/trace/tracetest"
)

const workload = "PLIMSOLL_TEST_WORKLOAD"

// The workload's calls. Each is a prime.
const (
	asks    = 1009 // getppid
	missing = 307  // faccessat of a file that is not there
	empties = 211  // read from an empty pipe that does not block
	sleeps  = 53   // nanosleep
	nap     = 2 * time.Millisecond
)

func TestMain(m *testing.M) {
	if os.Getenv(workload) != "" {
		os.Exit(work())
	}
	os.Exit(tracetest.Main(m, Tracer()))
}

// work makes its calls, and prints how long its sleeps took by its own clock.
func work() int {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_NONBLOCK); err != nil {
		return 1
	}
	for range asks {
		unix.Getppid()
	}
	for range missing {
		_ = unix.Faccessat(unix.AT_FDCWD, "/does/not/exist", unix.R_OK, 0) // that it fails is the point
	}
	var one [1]byte
	for range empties {
		_, _ = unix.Read(ends[0], one[:]) // as above
	}
	begin := time.Now()
	for range sleeps {
		ts := unix.NsecToTimespec(nap.Nanoseconds())
		_ = unix.Nanosleep(&ts, nil)
	}
	fmt.Println(time.Since(begin).Nanoseconds())
	return 0
}

// run runs a command and returns what it says.
func run(t *testing.T, args ...string) string {
	t.Helper()
	c := osexec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), "LC_ALL=C", workload+"=1")
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v", args[0], err)
	}
	return string(out)
}

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

// group returns the calls of the processes of a name, by the call's.
func group(t *testing.T, tr *Trace, name string) map[string]Call {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	tracetest.NothingLost(t, s.Lost, "compat")
	calls := map[string]Call{}
	for _, g := range s.Groups {
		for _, c := range g.Calls {
			if g.Name == name {
				calls[c.Name] = c
			}
		}
	}
	return calls
}

func TestCallsErrorsAndTime(t *testing.T) {
	tr := begin(t)
	tracetest.AllAttached(t, Tracer(), tr)
	me := "calls" + strconv.Itoa(os.Getpid())
	slept, err := strconv.ParseInt(strings.TrimSpace(run(t, tracetest.Copy(t, "/proc/self/exe", me))), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	calls := group(t, tr, me)
	if n := calls["getppid"].Count; n != asks {
		t.Errorf("%d getppid, want %d", n, asks)
	}
	if n := calls["faccessat"].Errors["ENOENT"]; n != missing {
		t.Errorf("%d faccessat failed with ENOENT, want %d", n, missing)
	}
	if n := calls["read"].Errors["EAGAIN"]; n != empties {
		t.Errorf("%d read failed with EAGAIN, want %d", n, empties)
	}
	naps := calls["nanosleep"] // the runtime of Go sleeps as well
	t.Logf("%d naps took %v; those of the program %v by its own clock", naps.Count, naps.Time, time.Duration(slept))
	if naps.Count < sleeps || naps.Time < sleeps*nap {
		t.Errorf("%d naps took %v, want at least %d and %v", naps.Count, naps.Time, sleeps, sleeps*nap)
	}
	for name, c := range calls {
		if n := c.Histogram.Count(); n != c.Count {
			t.Errorf("%s: %d in the histogram, %d counted", name, n, c.Count)
		}
	}
	samples := tracetest.Sink{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/net", &st); err != nil {
		t.Fatal(err)
	}
	ns := fmt.Sprint(st.Ino) + "@"
	for series, want := range map[string]float64{
		ns + "plimsoll_syscalls_calls_total{" + me + ",getppid}":           asks,
		ns + "plimsoll_syscalls_seconds_total{" + me + ",getppid}":         calls["getppid"].Time.Seconds(),
		ns + "plimsoll_syscalls_errors_total{" + me + ",faccessat,ENOENT}": missing,
		ns + "plimsoll_syscalls_seconds_bucket{" + me + ",getppid,+Inf}":   asks,
		"plimsoll_syscalls_lost_total{calls}":                              0,
	} {
		if got, ok := samples[series]; !ok || got != want {
			t.Errorf("%s = %v (%v), want %v", series, got, ok, want)
		}
	}
}

// counted is what strace -c and we tell of a call.
type counted struct{ Calls, Errors uint64 }

// straced runs a command under strace -c.
func straced(t *testing.T, args ...string) map[string]counted {
	t.Helper()
	file := filepath.Join(t.TempDir(), "calls")
	run(t, append([]string{"strace", "-c", "-f", "-U", "name,calls,errors", "-o", file}, args...)...)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]counted{}
	for _, line := range strings.Split(string(text), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] == "total" {
			continue
		}
		n, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			continue // a heading
		}
		c := counted{Calls: n}
		if len(fields) > 2 {
			if c.Errors, err = strconv.ParseUint(fields[2], 10, 64); err != nil {
				t.Fatalf("strace says %q", line)
			}
		}
		calls[fields[0]] = c
	}
	return calls
}

// Programs that do the same each time they are run make the same calls under
// strace and under us.
func TestCountsEqualStrace(t *testing.T) {
	if _, err := osexec.LookPath("strace"); err != nil {
		t.Skip(err)
	}
	var missed []string
	for i := range missing {
		missed = append(missed, "/does/not/exist/"+strconv.Itoa(i))
	}
	for name, args := range map[string][]string{
		"dd":   {"/bin/dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=" + strconv.Itoa(asks), "status=none"},
		"test": append([]string{"/bin/sh", "-c", `for f; do test -e "$f"; done; exit 0`, "sh"}, missed...),
	} {
		t.Run(name, func(t *testing.T) {
			me := name + strconv.Itoa(os.Getpid())
			args[0] = tracetest.Copy(t, args[0], me)
			want := straced(t, args...)
			tr := begin(t)
			run(t, args...)
			got := map[string]counted{}
			var total uint64
			for name, c := range group(t, tr, me) {
				got[name] = counted{c.Count, c.Failed}
				total += c.Count
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-strace +ours\n%s", d)
			}
			t.Logf("%d calls of %d kinds", total, len(got))
		})
	}
}

// reader is a process that waits for its input.
type reader struct {
	t   *testing.T
	cmd *osexec.Cmd
	in  io.WriteCloser
}

func startReader(t *testing.T, name string) *reader {
	t.Helper()
	c := osexec.Command(tracetest.Copy(t, "/bin/cat", name))
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	r := &reader{t, c, in}
	t.Cleanup(r.finish)
	r.waits()
	return r
}

// waits returns once it sleeps in read(0, …).
func (r *reader) waits() {
	r.t.Helper()
	want := fmt.Sprintf("%d 0x0 ", unix.SYS_READ)
	tracetest.Eventually(r.t, "it waits for input", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", r.cmd.Process.Pid))
		return err == nil && strings.HasPrefix(string(text), want)
	})
}

func (r *reader) give() {
	r.t.Helper()
	if _, err := r.in.Write([]byte("x")); err != nil {
		r.t.Fatal(err)
	}
}

// finish ends it; more often than once does no harm.
func (r *reader) finish() {
	_ = r.in.Close()
	_ = r.cmd.Wait()
}

// What began before a pause is not counted after it, nor what went on in it.
func TestPause(t *testing.T) {
	tr := begin(t)
	me := "pause" + strconv.Itoa(os.Getpid())
	r := startReader(t, me)
	before := group(t, tr, me)
	if before["read"].Count == 0 {
		t.Fatal("no read is seen before the pause")
	}
	if err := tr.Pause(); err != nil {
		t.Fatal(err)
	}
	r.give()
	tracetest.Eventually(t, "it has written", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", r.cmd.Process.Pid))
		return err == nil && strings.Contains(string(text), "wchar: 1\n")
	})
	r.waits()
	if d := cmp.Diff(before, group(t, tr, me)); d != "" {
		t.Errorf("counted in the pause: %s", d)
	}
	if err := tr.Resume(); err != nil {
		t.Fatal(err)
	}
	r.give()   // ends a read that began in the pause
	r.finish() // ends one that began after it
	after := group(t, tr, me)
	if got := after["read"].Count - before["read"].Count; got != 1 {
		t.Errorf("%d reads are counted after the pause, want 1", got)
	}
	if got := after["write"].Count; got != 1 {
		t.Errorf("%d writes are counted, want that after the pause", got)
	}
}

// Pause and Resume with a thread in one and the same call throughout.
func TestCallThatOutlastsAPause(t *testing.T) {
	tr := begin(t)
	me := "outlast" + strconv.Itoa(os.Getpid())
	r := startReader(t, me)
	before := group(t, tr, me)["read"].Count
	if err := tr.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := tr.Resume(); err != nil {
		t.Fatal(err)
	}
	r.finish()
	if after := group(t, tr, me); after["read"].Count != before || after["close"].Count == 0 {
		t.Errorf("%d reads were counted before the pause and %d after; %d close", before, after["read"].Count, after["close"].Count)
	}
}

func TestOnly(t *testing.T) {
	tr := begin(t)
	mine, other := "only"+strconv.Itoa(os.Getpid()), "other"+strconv.Itoa(os.Getpid())
	one, two := startReader(t, mine), startReader(t, other)
	if err := tr.Only(one.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	before := group(t, tr, other)
	one.give()
	two.give()
	one.finish()
	two.finish()
	if n := group(t, tr, mine)["write"].Count; n != 1 {
		t.Errorf("%d writes of the one, want 1", n)
	}
	// The read that it was in began while everybody counted.
	if n := group(t, tr, other)["write"].Count; n != 0 || before["write"].Count != 0 {
		t.Errorf("%d writes of the other, want none", n)
	}
}

func TestLossIsCounted(t *testing.T) {
	tracetest.Need(t, Tracer())
	spec, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	spec.Maps[bpfMapPairs].MaxEntries, spec.Maps[bpfMapFailures].MaxEntries = 1, 1
	tr, err := start(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	run(t, tracetest.Copy(t, "/proc/self/exe", "loss"+strconv.Itoa(os.Getpid())))
	lost, err := tr.Lost()
	if err != nil {
		t.Fatal(err)
	}
	if lost["calls"] < asks {
		t.Errorf("%d calls were lost, want at least %d", lost["calls"], asks)
	}
}

// Histograms of pairs beyond the bound are not recorded, and that is counted.
func TestBucketsAreBounded(t *testing.T) {
	tr := &Trace{bucketed: map[pair]bool{}}
	for i := range maxBuckets {
		if !tr.hasBuckets(pair{group: strconv.Itoa(i)}) {
			t.Fatalf("pair %d has no buckets", i)
		}
	}
	if tr.hasBuckets(pair{group: "late"}) || !tr.hasBuckets(pair{group: "0"}) {
		t.Error("a pair beyond the bound is let in, or one is dropped")
	}
}

func TestDetaches(t *testing.T) {
	tracetest.Need(t, Tracer())
	tracetest.Detaches(t, Tracer())
}

func TestSumOverCPUs(t *testing.T) {
	var a, b bpfCalls
	a.Count, a.Ns, a.Time[3] = 2, 10_000, 2
	b.Count, b.Ns, b.Time[25] = 1, 40e9, 1
	c := sum(unix.SYS_READ, []bpfCalls{a, b}, map[string]uint64{"EAGAIN": 1, "EINTR": 1})
	if c.Name != "read" || c.Count != 3 || c.Time != 40*time.Second+10*time.Microsecond || c.Failed != 2 || c.Histogram.Count() != 3 {
		t.Errorf("%+v", c)
	}
}
