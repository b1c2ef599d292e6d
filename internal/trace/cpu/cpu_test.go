package cpu

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/trace/tracetest"
)

const workload = "PLIMSOLL_TEST_WORKLOAD"

func TestMain(m *testing.M) {
	if os.Getenv(workload) != "" {
		burn()
		os.Exit(0)
	}
	os.Exit(tracetest.Main(m, Tracer()))
}

// The workload: so much CPU time, of which burnTwo takes two parts and burnOne one.
const (
	burned = 2100 * time.Millisecond
	turn   = 7 * time.Millisecond
	// deviations is how many standard deviations a count of samples may be off.
	deviations = 4
)

func burn() {
	for used() < burned {
		burnTwo(used() + 2*turn)
		burnOne(used() + turn)
	}
	fmt.Println("done")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the numbers have been read
}

// used is the CPU time of this process.
func used() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) // every Linux has it
	return time.Duration(ts.Nano())
}

var result uint64

//go:noinline
func burnTwo(until time.Duration) {
	for used() < until {
		for i := range uint64(50_000) {
			result = result*31 + i
		}
	}
}

//go:noinline
func burnOne(until time.Duration) {
	for used() < until {
		for i := range uint64(50_000) {
			result = result*37 + i
		}
	}
}

// begun starts a program under a name of its own; what it prints can be waited for.
func begun(t *testing.T, name, program string, env []string, args ...string) (pid int, out *bufio.Reader) {
	t.Helper()
	c := osexec.Command(tracetest.Copy(t, program, name), args...)
	c.Env = append(os.Environ(), env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its workers end with it
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL)
		_ = c.Wait() // it was killed
	})
	return c.Process.Pid, bufio.NewReader(stdout)
}

func started(t *testing.T) *Trace {
	t.Helper()
	tracetest.Need(t, Tracer())
	tr, err := Start(Hertz)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	tracetest.AllAttached(t, Tracer(), tr)
	return tr
}

// seen looks at it, and returns one group.
func seen(t *testing.T, tr *Trace, name string) Group {
	t.Helper()
	if err := tr.fetch(); err != nil {
		t.Fatal(err)
	}
	for _, g := range tr.taken.list() {
		if g.Name == name {
			return g
		}
	}
	return Group{}
}

func (g Group) function(part string) (n uint64) {
	for _, f := range g.Functions {
		if strings.Contains(f.Name, part) {
			n += f.Samples
		}
	}
	return n
}

// Two functions share the CPU time 2:1, and the sum is the scheduler's. Where the CPU is
// shared with others it is chance whom a sample finds, so it may be off, but not each time.
func TestSharesAndSumAreRight(t *testing.T) {
	tr := started(t)
	const tries = 4
	var off string
	for i := range tries {
		if off = sharesAndSum(t, tr, fmt.Sprintf("burn%d.%d", os.Getpid(), i)); off == "" {
			return
		}
		t.Log(off)
	}
	t.Errorf("%d times: %s", tries, off)
}

// sharesAndSum runs the workload, and returns what is off by more than chance.
func sharesAndSum(t *testing.T, tr *Trace, me string) (off string) {
	t.Helper()
	pid, out := begun(t, me, "/proc/self/exe", []string{workload + "=1"})
	if line, err := out.ReadString('\n'); err != nil || line != "done\n" {
		t.Fatal(line, err)
	}
	g := seen(t, tr, me)
	total := ran(t, pid)
	seconds := float64(g.all()) / Hertz
	two, one := g.function("burnTwo"), g.function("burnOne")
	t.Logf("%.3f s by samples, %.3f s by the scheduler; burnTwo %d, burnOne %d samples", seconds, total.Seconds(), two, one)
	want := total.Seconds() * Hertz
	if math.Abs(float64(g.all())-want) > deviations*math.Sqrt(want) {
		off = fmt.Sprintf("%.3f s by samples, %.3f s by the scheduler", seconds, total.Seconds())
	}
	if share := float64(two) / float64(two+one); math.Abs(share-2.0/3) > deviations*math.Sqrt(2.0/9/float64(two+one)) {
		off = fmt.Sprintf("burnTwo has %.3f of the two functions' samples, want 0.667", share)
	}
	if float64(two+one) < 0.8*float64(g.all()) {
		t.Errorf("%d of %d samples are in the two functions: %+v", two+one, g.all(), g.Functions)
	}
	samples := tracetest.Sink{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	netns := ownNetns(t)
	for series, want := range map[string]float64{
		netns + "@plimsoll_cpu_samples_total{" + me + ",user}":   float64(g.User),
		netns + "@plimsoll_cpu_samples_total{" + me + ",kernel}": float64(g.Kernel),
	} {
		if got := samples[series]; got != want {
			t.Errorf("%s = %v, want %v", series, got, want)
		}
	}
	if got := samples[netns+"@plimsoll_cpu_function_samples_total{"+me+",plimsoll/internal/trace/cpu.burnTwo}"]; got == 0 || got > float64(two) {
		t.Errorf("the series of burnTwo says %v, the report %d", got, two)
	}
	return off
}

// ran is the CPU time of all threads of a process.
func ran(t *testing.T, pid int) (sum time.Duration) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		t.Fatal(tasks, err)
	}
	for _, path := range tasks {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var onCPU, waited, slices int64
		if _, err := fmt.Sscan(string(text), &onCPU, &waited, &slices); err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(onCPU)
	}
	return sum
}

func ownNetns(t *testing.T) string {
	t.Helper()
	link, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(link, "net:[]")
}

func TestKernelFunctionsAreNamed(t *testing.T) {
	tr := started(t)
	me := "kern" + strconv.Itoa(os.Getpid())
	begun(t, me, "/bin/dd", nil, "if=/dev/zero", "of=/dev/null", "bs=1M", "status=none")
	var g Group
	tracetest.Eventually(t, "it was found 100 times", func() bool {
		g = seen(t, tr, me)
		return g.all() > 100
	})
	if float64(g.Kernel) < 0.8*float64(g.all()) {
		t.Errorf("it reads zeros and does nothing else: %+v", g)
	}
	all := false
	for _, s := range tr.taken.samples() {
		if s.Labels["groupname"] != me {
			continue
		}
		for _, f := range s.Frames {
			all = all || f.Function == "vfs_read" && f.Kernel
		}
	}
	if !all {
		t.Errorf("no stack goes through vfs_read:\n%s", report(t, tr))
	}
}

func report(t *testing.T, tr *Trace) string {
	t.Helper()
	r, err := tr.Report(time.Since(tr.taken.since))
	if err != nil {
		t.Fatal(err)
	}
	return r.Text(100)
}

// Idle CPUs and ourselves are nobody's time.
func TestIdleAndOurselvesAreLeftOut(t *testing.T) {
	tr := started(t)
	burnOne(used() + 200*time.Millisecond)
	if err := tr.fetch(); err != nil {
		t.Fatal(err)
	}
	for key, g := range tr.taken.groups {
		if strings.HasPrefix(key.name, "swapper") || g.processes[0] {
			t.Errorf("the idle task is in it: %+v", key)
		}
		if g.processes[uint32(os.Getpid())] {
			t.Errorf("we are in it: %+v", key)
		}
	}
}

func TestOnly(t *testing.T) {
	tr := started(t)
	if err := tr.Only(os.Getpid()); err != nil { // who is left out all the same
		t.Fatal(err)
	}
	if err := tr.fetch(); err != nil {
		t.Fatal(err)
	}
	before := len(tr.taken.stacks)
	begun(t, "onlyone", "/bin/dd", nil, "if=/dev/zero", "of=/dev/null", "bs=1M", "status=none")
	burnOne(used() + 100*time.Millisecond)
	if g := seen(t, tr, "onlyone"); g.all() != 0 || len(tr.taken.stacks) != before {
		t.Errorf("%+v", g)
	}
}

// A shell that starts short-lived programs: they are gone when the samples are
// fetched, and have names all the same.
func TestShortLivedProcessesHaveNames(t *testing.T) {
	tr := started(t)
	me := "brief" + strconv.Itoa(os.Getpid())
	shell := tracetest.Copy(t, "/bin/sh", me)
	var g Group
	tracetest.Eventually(t, "they were found 50 times", func() bool {
		if err := osexec.Command(shell, "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done").Run(); err != nil {
			t.Fatal(err)
		}
		g = seen(t, tr, me)
		return g.all() > 50
	})
	if unknown := g.function("[unknown]"); float64(unknown) > 0.3*float64(g.all()) {
		t.Errorf("%d of %d samples have no name: %+v", unknown, g.all(), g)
	}
}

func TestProfileOpensInPprof(t *testing.T) {
	goTool, err := osexec.LookPath("go")
	if err != nil {
		t.Skip(err)
	}
	tr := started(t)
	me := "prof" + strconv.Itoa(os.Getpid())
	begun(t, me, "/bin/dd", nil, "if=/dev/zero", "of=/dev/null", "bs=1M", "status=none")
	tracetest.Eventually(t, "it was found 30 times", func() bool { return seen(t, tr, me).all() > 30 })
	p, err := tr.Profile()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Error(err)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "cpu.pb.gz")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := osexec.Command(goTool, "tool", "pprof", "-top", "-cum", "-tagfocus=groupname="+me, file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "vfs_read") || !strings.Contains(string(out), "Type: cpu") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestLossIsCounted(t *testing.T) {
	tracetest.Need(t, Tracer())
	spec, err := loadBpf()
	if err != nil {
		t.Fatal(err)
	}
	spec.Maps[bpfMapSamples].MaxEntries, spec.Maps[bpfMapStacks].MaxEntries = 1, 1
	tr, err := start(spec, Hertz)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	begun(t, "lossone", "/bin/dd", nil, "if=/dev/zero", "of=/dev/null", "bs=1M", "status=none")
	tracetest.Eventually(t, "samples and stacks find no room", func() bool {
		lost, err := tr.Lost()
		if err != nil {
			t.Fatal(err)
		}
		return lost["samples"] > 0 && lost["stacks"] > 0
	})
}

func TestDetaches(t *testing.T) {
	tracetest.Need(t, Tracer())
	tracetest.Detaches(t, Tracer())
}

// Paused, it takes no samples; then it goes on.
func TestPause(t *testing.T) {
	tr := started(t)
	me := "paus" + strconv.Itoa(os.Getpid())
	begun(t, me, "/bin/dd", nil, "if=/dev/zero", "of=/dev/null", "bs=1M", "status=none")
	tracetest.Eventually(t, "it was found", func() bool { return seen(t, tr, me).all() > 0 })
	if err := tr.Pause(); err != nil {
		t.Fatal(err)
	}
	before := seen(t, tr, me).all()
	burnOne(used() + 100*time.Millisecond)
	if after := seen(t, tr, me).all(); after != before {
		t.Errorf("%d samples, then %d while it was paused", before, after)
	}
	if err := tr.Resume(); err != nil {
		t.Fatal(err)
	}
	tracetest.Eventually(t, "it was found again", func() bool { return seen(t, tr, me).all() > before })
}

// What was counted as one of the others stays there when a function becomes a
// series of its own: no counter falls, and each sample is in one of them.
func TestFunctionsBecomeSeries(t *testing.T) {
	tk := newTaken()
	key := groupKey{1, "x"}
	put := func(name string, n uint64) {
		tk.add([]one{{group: key, pid: 1, function: name, count: n}})
	}
	put("slow", 4)
	put("fast", 100)
	put("slow", 4)
	put("slow", 4)
	for i := range 2 * functionsOfGroup {
		put("f"+strconv.Itoa(i), 10)
	}
	put("f"+strconv.Itoa(2*functionsOfGroup-1), 1)
	g := tk.groups[key]
	if f := g.functions["slow"]; !f.shown || f.before != 8 || f.samples != 12 {
		t.Errorf("%+v", f)
	}
	sum, series := g.other, 0
	for _, f := range g.functions {
		if f.shown {
			sum, series = sum+f.samples-f.before, series+1
		}
	}
	if sum != g.user || series != functionsOfGroup {
		t.Errorf("%d samples in %d series, want %d in %d", sum, series, g.user, functionsOfGroup)
	}
	if all := tk.list(); len(all) != 1 || all[0].Functions[0].Name != "fast" || all[0].User != g.user {
		t.Errorf("%+v", all)
	}
	if !slices.ContainsFunc(tk.list()[0].Functions, func(f Function) bool { return f.Name == "slow" && f.Samples == 12 }) {
		t.Errorf("%+v", tk.list())
	}
}
