package procs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/pace"
	"plimsoll/internal/trace/tasks"
	"plimsoll/internal/trace/tracetest"
)

// readings is a probe.Recorder that keeps the last value of every series.
type readings struct {
	values map[string]float64
	notes  []string
}

func newReadings() *readings { return &readings{values: map[string]float64{}} }

func (r *readings) Sample(_ string, _ int64, s *model.Signal, v float64, labels ...string) {
	r.values[s.Name+"{"+strings.Join(labels, ",")+"}"] = v
}
func (r *readings) Event(model.Event)                   {}
func (r *readings) Status(string, string, model.Status) {}
func (r *readings) Note(s string)                       { r.notes = append(r.notes, s) }

// child is a process of ours that does what it is told.
type child struct {
	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

const childEnv = "PLIMSOLL_TEST_PROCS"

func startChild(t testing.TB) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childEnv+"=1", "GOMAXPROCS=2")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, in: in, lines: bufio.NewScanner(out)}
	t.Cleanup(c.end)
	return c
}

// end lets the child end, and waits for that.
func (c *child) end() {
	if c.cmd == nil {
		return
	}
	c.in.Close()
	_ = c.cmd.Wait()
	c.cmd = nil
}

// do has the child take a step, and returns its answer.
func (c *child) do(step string) string {
	c.t.Helper()
	fmt.Fprintln(c.in, step)
	for c.lines.Scan() {
		if answer, ok := strings.CutPrefix(c.lines.Text(), step+": "); ok {
			return answer
		}
	}
	c.t.Fatalf("child ended in step %q", step)
	return ""
}

// TestChild is no test: it is the child's main function.
func TestChild(t *testing.T) {
	if os.Getenv(childEnv) == "" {
		t.Skip("only as the child of another test")
	}
	var files []*os.File
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		step, arg, _ := strings.Cut(in.Text(), " ")
		answer := "done"
		switch step {
		case "name":
			if err := os.WriteFile("/proc/self/comm", []byte(arg), 0o644); err != nil {
				answer = err.Error()
			}
		case "open":
			n, _ := strconv.Atoi(arg)
			for range n {
				if f, err := os.Open("/dev/null"); err == nil {
					files = append(files, f)
				}
			}
		case "burn":
			ms, _ := strconv.Atoi(arg)
			burn(time.Duration(ms) * time.Millisecond)
		case "run": // a child of the child that burns and is waited for
			cmd := exec.Command("/proc/self/exe", "-test.run=^TestChild$")
			cmd.Stdin = strings.NewReader("burn " + arg + "\n")
			if err := cmd.Run(); err != nil {
				answer = err.Error()
			}
		case "used":
			answer = fmt.Sprint(used(unix.RUSAGE_SELF) + used(unix.RUSAGE_CHILDREN))
		}
		fmt.Printf("\n%s: %s\n", in.Text(), answer)
	}
}

// burn uses so much CPU time on one thread.
func burn(d time.Duration) {
	for start := used(unix.RUSAGE_SELF); used(unix.RUSAGE_SELF) < start+d.Seconds(); {
	}
}

// used is CPU time in seconds.
func used(who int) float64 {
	var ru unix.Rusage
	if unix.Getrusage(who, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano()).Seconds()
}

func openLive(t testing.TB) (*reader, *host.Host) {
	t.Helper()
	h, err := host.Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	// Each reading is to have a list of its own, however soon it comes.
	r, err := open(h, func() ([]host.Proc, error) {
		fresh, err := host.Open("here", "local")
		if err != nil {
			return nil, err
		}
		defer fresh.Close()
		return fresh.Procs()
	})
	if err != nil {
		t.Fatal(err)
	}
	r.pace.Share = 1000 // a busy machine must not make it leave readings out
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if r.kept != 0 {
			t.Errorf("%d stat files still open after Close", r.kept)
		}
	})
	return r, h
}

func read(t testing.TB, r *reader, second int64) *readings {
	t.Helper()
	rec := newReadings()
	if err := r.Read(probe.NewOut(rec, "here", time.Unix(second, 0), time.Second)); err != nil {
		t.Fatal(err)
	}
	return rec
}

// within compares CPU seconds; stat cuts them to clock ticks of 10 ms, user and
// system and those of children apart.
func within(got, want float64) bool { return got > want-0.05 && got < want+0.03 }

// TestLive holds what is read of a real child against what that child says of itself.
func TestLive(t *testing.T) {
	r, h := openLive(t)
	read(t, r, 100)
	c := startChild(t)
	const name = "a) (b c" // a name that parsers trip over
	c.do("name " + name)
	h.SetCommand(c.cmd.Process.Pid)
	first := read(t, r, 101)
	c.do("open 40")
	c.do("burn 300")
	c.do("run 200")
	used, err := strconv.ParseFloat(c.do("used"), 64)
	if err != nil {
		t.Fatal(err)
	}
	second := read(t, r, 102)
	own := second.values["namedprocess_namegroup_cpu_seconds_total{"+name+",user}"] + second.values["namedprocess_namegroup_cpu_seconds_total{"+name+",system}"]
	if own < 0.27 || own > used-0.15 {
		t.Errorf("CPU seconds of the group %v; the child burned 0.3 itself, of %v with its child", own, used)
	}
	command := second.values["plimsoll_command_cpu_seconds_total{user}"] + second.values["plimsoll_command_cpu_seconds_total{system}"]
	if !within(command, used) {
		t.Errorf("CPU seconds of the command %v, its own count %v", command, used)
	}
	if got := second.values["plimsoll_command_busiest_thread_cpu_ratio{}"]; got <= 0 || got > 1 {
		t.Errorf("busiest thread of the command %v, want above 0 and at most 1", got)
	}
	key := "namedprocess_namegroup_open_filedesc{" + name + "}"
	if got := second.values[key] - first.values[key]; got < 40 {
		t.Errorf("descriptors grew by %v, want the 40 that were opened", got)
	}
	for key, want := range map[string]float64{
		"namedprocess_namegroup_num_procs{" + name + "}":      1,
		"plimsoll_process_starts_total{" + name + "}":         1,
		"plimsoll_process_ends_total{" + name + "}":           0,
		"plimsoll_process_told_cpus{" + name + ",GOMAXPROCS}": 2,
	} {
		if got, ok := second.values[key]; !ok || got != want {
			t.Errorf("%s %v, want %v", key, got, want)
		}
	}
	if got := second.values["namedprocess_namegroup_context_switches_total{"+name+",voluntary}"]; got < 1 {
		t.Errorf("voluntary switches %v, want some", got)
	}
	c.end()
	third := read(t, r, 103)
	for key, want := range map[string]float64{
		"namedprocess_namegroup_num_procs{" + name + "}":              0,
		"plimsoll_process_ends_total{" + name + "}":                   1,
		"namedprocess_namegroup_cpu_seconds_total{" + name + ",user}": second.values["namedprocess_namegroup_cpu_seconds_total{"+name+",user}"],
	} {
		if got, ok := third.values[key]; !ok || got != want {
			t.Errorf("after its end: %s %v, want %v", key, got, want)
		}
	}
}

// BenchmarkRead says what a reading costs in CPU time of the reading thread, a
// second after the one before, with the host's list of processes:
//
//	go test -run '^$' -bench Read -benchtime 10x ./internal/probe/procs
func BenchmarkRead(b *testing.B) {
	for _, sleepers := range []int{0, 200, 1000} {
		b.Run(fmt.Sprintf("sleepers=%d", sleepers), func(b *testing.B) {
			for range sleepers {
				cmd := exec.Command("sleep", "1000")
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() {
					_ = cmd.Process.Kill()
					_ = cmd.Wait()
				})
			}
			benchmark(b)
		})
	}
}

func benchmark(b *testing.B) {
	runtime.LockOSThread() // for the thread's CPU time
	defer runtime.UnlockOSThread()
	h, err := host.Open("here", "local")
	if err != nil {
		b.Fatal(err)
	}
	r, err := open(h, h.Procs)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	measure := func(name string, n int, step func()) {
		start := pace.CPUTime()
		for range n {
			step()
		}
		b.ReportMetric(float64((pace.CPUTime()-start).Microseconds())/float64(n), name+"-cpu-µs/op")
	}
	out := probe.NewOut(newReadings(), "here", time.Unix(100, 0), time.Second)
	scan := func() {
		list, err := r.list()
		if err != nil {
			b.Fatal(err)
		}
		r.scan(list)
		r.report(out)
	}
	measure("first", 1, scan)
	measure("next", b.N, func() {
		time.Sleep(listAge)
		scan()
	})
	measure("detailed", b.N, func() {
		for _, p := range r.procs {
			p.detailAt = time.Time{}
		}
		scan()
	})
	b.ReportMetric(float64(len(r.procs)), "processes")
	marker, err := tasks.Start()
	if err != nil {
		return // no BPF here
	}
	defer marker.Close()
	h.SetMarker(marker)
	marked := func() {
		r.marks = h.Marks()
		scan()
	}
	marked()
	measure("marked", b.N, func() {
		time.Sleep(listAge)
		marked()
	})
}

// listAge is how old a list of processes, or marks, may be and still be used.
const listAge = time.Second

// A reader that is told who has done nothing reads what a reader of everything
// reads, and does not read those.
func TestMarkedProcessesReadTheSame(t *testing.T) {
	tracetest.Need(t, tasks.Tracer())
	marker, err := tasks.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { marker.Close() })
	if _, err := marker.Marks(); err != nil {
		t.Skip(err)
	}
	all, _ := openLive(t)
	marked, h := openLive(t)
	h.SetMarker(marker)
	for _, r := range []*reader{all, marked} { // mappings are counted in the background, by each when it is done
		r.mappings.rest = time.Now().Add(time.Hour)
	}
	c := startChild(t)
	const name = "marked"
	c.do("name " + name)
	pid := c.cmd.Process.Pid
	for second, step := range []string{"used", "open 40", "burn 100", "used", "used", "run 50", "used", "used"} {
		c.do(step)
		stop(t, pid)
		time.Sleep(100 * time.Millisecond)         // marks are good for half as long
		for _, r := range []*reader{all, marked} { // a detailed look is due
			if p := r.procs[pid]; p != nil {
				p.detailAt = time.Time{}
			}
		}
		want, got := ofGroup(read(t, all, int64(100+second)), name), ofGroup(read(t, marked, int64(100+second)), name)
		if d := cmp.Diff(want, got); d != "" || len(want) == 0 {
			t.Errorf("after %q: -everything read +marked\n%s", step, d)
		}
		if err := unix.Kill(pid, unix.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	stop(t, pid)
	time.Sleep(100 * time.Millisecond)
	for _, r := range []*reader{all, marked} {
		r.procs[pid].detailAt = time.Time{}
		read(t, r, 200)
	}
	before := marked.procs[pid].readAt
	read(t, marked, 201)
	after := marked.procs[pid].readAt
	// Its time to be read all the same: the counters and what the groups have stay.
	p := marked.procs[pid]
	p.readAt, p.detailAt, p.limitsAt = time.Time{}, time.Time{}, time.Time{}
	want, got := ofGroup(read(t, all, 202), name), ofGroup(read(t, marked, 202), name)
	if d := cmp.Diff(want, got); d != "" || p.readAt.IsZero() || p.limitsAt.IsZero() || !p.detailAt.IsZero() {
		t.Errorf("read at rest at %v, its limits at %v, its threads at %v (want the first two only): -everything read +marked\n%s", p.readAt, p.limitsAt, p.detailAt, d)
	}
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if after != before {
		t.Errorf("a process that did nothing was read again, %v after the last time", after.Sub(before))
	}
}

// stop stops a process and waits until all its threads have come to rest.
func stop(t *testing.T, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	tracetest.Eventually(t, "the child is stopped", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range threads {
			if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), ") T ") {
				return false
			}
		}
		return true
	})
}

// ofGroup are the readings of a group that do not depend on the moment.
func ofGroup(r *readings, name string) map[string]float64 {
	of := map[string]float64{}
	for series, v := range r.values {
		if strings.Contains(series, "{"+name) && !strings.HasPrefix(series, "plimsoll_process_busiest") {
			of[series] = v
		}
	}
	return of
}

func TestLimitsAreThoseOfTheFile(t *testing.T) {
	tree, err := openTree("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.close()
	l, ok := tree.limits(os.Getpid()) // of ourselves everybody may ask
	if !ok {
		t.Fatal("our own limits were not told")
	}
	b, err := tree.read("self/limits")
	if err != nil {
		t.Fatal(err)
	}
	for key, got := range map[string]uint64{limitFiles: l.files, limitTasks: l.tasks, limitSpace: l.space} {
		if want, err := parseLimit(b, key); err != nil || got != want {
			t.Errorf("%s: %d, the file says %d, %v", key, got, want, err)
		}
	}
	if got := soft(unix.Rlimit{Cur: unix.RLIM_INFINITY}); got != 0 {
		t.Errorf("no limit is %d, want 0", got)
	}
	if recorded, err := openTree(t.TempDir()); err != nil || recorded.live {
		t.Errorf("a recorded tree is live, or: %v", err)
	}
}
