// Package tracetest is what the tests of tracers share: when they may be
// skipped, and that a tracer leaves nothing behind.
package tracetest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"plimsoll/internal/model"
	"plimsoll/internal/orphans/heldtest"
	"plimsoll/internal/trace"
)

const hold = "PLIMSOLL_TEST_HOLD_TRACER"

// patience is how long something that must happen may take on a busy machine.
const patience = time.Minute

// Main runs the tests, or, as a process that is there to be killed, the tracer.
func Main(m *testing.M, t trace.Tracer) int {
	if os.Getenv(hold) == "" {
		heldtest.Tests()
		return m.Run()
	}
	if _, err := t.Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent is done with us
	return 0
}

// Need skips the test where BPF cannot be: without root, or without the kernel's
// types. On a kernel that is new enough any other refusal is a failure.
func Need(t *testing.T, tracer trace.Tracer) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("BPF needs root")
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); errors.Is(err, fs.ErrNotExist) {
		t.Skip("this kernel has no type information")
	}
	err := tracer.CanRun()
	if err == nil {
		return
	}
	if Running(t).Less(tracer.FirstKernel) {
		t.Skip(err)
	}
	t.Fatalf("%s declares Linux %s, and this one is newer and refuses: %v", tracer.Name, tracer.FirstKernel, err)
}

// Running returns the running kernel's version.
func Running(t *testing.T) trace.Kernel {
	t.Helper()
	k, err := trace.RunningKernel()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// AllAttached fails unless every program and every signal of a tracer is there.
func AllAttached(t *testing.T, tracer trace.Tracer, r trace.Running) {
	t.Helper()
	for _, p := range r.Programs() {
		if p.Err != nil {
			t.Errorf("%s on %s: %v", p.Name, p.Tracepoint, p.Err)
		}
	}
	status := r.Status()
	for _, s := range tracer.Signals {
		if st, ok := status[s.Name]; !ok || st.State != model.Read {
			t.Errorf("signal %s: %v", s.Name, st)
		}
	}
	if len(status) != len(tracer.Signals) {
		t.Errorf("%d statuses for %d signals", len(status), len(tracer.Signals))
	}
}

// NothingLost fails if something was lost that is not allowed for. Recursion misses
// are of anybody, and not ours to rule out.
func NothingLost(t *testing.T, lost map[string]uint64, allowed ...string) {
	t.Helper()
	for what, n := range lost {
		switch {
		case n == 0 || slices.Contains(allowed, what):
		case what == "recursion_misses":
			t.Logf("%d events met a program that ran already", n)
		default:
			t.Errorf("%d %s were lost", n, what)
		}
	}
}

// OwnName is the name that the kernel has for this process: that of the test's binary, cut off.
func OwnName(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "\n")
}

// State is the letter of a process in /proc/PID/stat.
func State(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	state, _, _ := strings.Cut(rest, " ")
	return state
}

// Skipped is at how many events at most, of those that come no more often than once in
// a millisecond, the kernel may have skipped our programs so far: there are kernels that
// do in what interrupts process 1 (see lost_ends in disk.bpf.c). That may be once whenever
// it got a CPU, and once in each millisecond that it kept it.
func Skipped(t *testing.T) (n uint64) {
	t.Helper()
	threads, err := filepath.Glob("/proc/1/task/*/schedstat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		var ran, delay, slices uint64
		if _, err := fmt.Sscan(string(text), &ran, &delay, &slices); err != nil {
			t.Fatal(err)
		}
		n += slices + ran/1e6
	}
	return n
}

// Detaches starts and closes the tracer, and starts it in a process that is
// killed: afterwards no program of its and no descriptor may be left.
func Detaches(t *testing.T, tracer trace.Tracer) {
	t.Helper()
	start := func() trace.Running {
		r, err := tracer.Start()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if err := start().Close(); err != nil { // what the libraries open once and keep is open from here on
		t.Fatal(err)
	}
	runtime.GC() // what an earlier test let go is not counted as open before
	before := descriptors(t)
	r := start()
	ids, want := held(t, os.Getpid()), len(r.Programs())
	if len(ids) < want {
		t.Errorf("we hold the programs %v, want %d of them", ids, want)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors are open after, %d before", after, before)
	}
	waitGone(t, ids)
	killed(t, want)
}

// killed starts the tracer in a process of its own and kills that.
func killed(t *testing.T, want int) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), hold+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	if strings.TrimSpace(line) != "ready" {
		t.Errorf("the process that holds the tracer says %q", line)
	}
	ids := held(t, cmd.Process.Pid)
	if len(ids) < want {
		t.Errorf("it holds the programs %v, want %d of them", ids, want)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // it was killed
	waitGone(t, ids)
}

// held lists the BPF programs that a process and its children hold by
// descriptors: nobody else's, since others may trace the same meanwhile.
func held(t *testing.T, pid int) []ebpf.ProgramID {
	t.Helper()
	ids := map[ebpf.ProgramID]bool{}
	infos, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fdinfo/*", pid)) // the pattern is sound
	for _, path := range infos {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it was closed meanwhile
		}
		_, rest, found := strings.Cut(string(text), "prog_id:")
		var id ebpf.ProgramID
		if n, _ := fmt.Sscan(rest, &id); found && n == 1 {
			ids[id] = true
		}
	}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // a list for each thread that forked
	for _, path := range lists {
		children, _ := os.ReadFile(path) // a thread may have ended
		for _, child := range strings.Fields(string(children)) {
			n, err := strconv.Atoi(child)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range held(t, n) {
				ids[id] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// waitGone waits until the kernel, which frees programs in its own time, has none
// of these any more.
func waitGone(t *testing.T, ids []ebpf.ProgramID) {
	t.Helper()
	Eventually(t, fmt.Sprintf("the programs %v are gone", ids), func() bool {
		return !slices.ContainsFunc(ids, func(id ebpf.ProgramID) bool {
			p, err := ebpf.NewProgramFromID(id)
			if err == nil {
				p.Close()
			}
			return !errors.Is(err, fs.ErrNotExist)
		})
	})
}

// Eventually waits until something is so.
func Eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !so(); {
		if time.Now().After(end) {
			t.Fatalf("waited %v, but not: %s", patience, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// Copy copies a program into a folder of the test's, under a name of its own, so
// that its processes are told apart from all others on the machine.
func Copy(t *testing.T, program, name string) string {
	t.Helper()
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Sink keeps what is put, by "name{label values}"; what is put in a network
// namespace has its inode and @ before that.
type Sink map[string]float64

// In is where to put what belongs to a network namespace.
func (s Sink) In(netns uint32) model.Sink { return inside{s, strconv.Itoa(int(netns)) + "@"} }

// Net is In.
func (s Sink) Net(netns uint32) model.Sink { return s.In(netns) }

type inside struct {
	sink   Sink
	prefix string
}

// Put keeps a value of a network namespace.
func (i inside) Put(signal *model.Signal, value float64, labels ...string) {
	i.sink.put(i.prefix, signal, value, labels)
}

// Put keeps a value; the same series twice in a round, or the wrong number of
// labels, is a fault of the tracer's.
func (s Sink) Put(signal *model.Signal, value float64, labels ...string) {
	s.put("", signal, value, labels)
}

func (s Sink) put(prefix string, signal *model.Signal, value float64, labels []string) {
	key := prefix + signal.Name + "{" + strings.Join(labels, ",") + "}"
	if _, twice := s[key]; twice || len(labels) != len(signal.Labels) {
		panic(fmt.Sprintf("%s was put twice, or with %d labels in place of %v", key, len(labels), signal.Labels))
	}
	s[key] = value
}
