package tasks

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll/internal/trace/tracetest"
)

func TestMain(m *testing.M) { os.Exit(tracetest.Main(m, Tracer())) }

func started(t *testing.T) *Trace {
	t.Helper()
	tracetest.Need(t, Tracer())
	tr, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	tracetest.AllAttached(t, Tracer(), tr)
	return tr
}

func snapshot(t *testing.T, tr *Trace) Snapshot {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// netns is the inode of our network namespace.
func netns(t *testing.T) uint32 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/net", &st); err != nil {
		t.Fatal(err)
	}
	return uint32(st.Ino)
}

// perl runs a script under a name of its own.
func perl(t *testing.T, name, script string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("perl")
	if err != nil {
		t.Skip("what is looked at is written in perl, which is not here")
	}
	c := exec.Command(tracetest.Copy(t, path, name), "-e", script)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // its children, too
		_ = c.Wait()                                      // it was killed
	})
	return c
}

// unreaped is a prime number.
const unreaped = 31

// Who is left out has a mark that is never the same, whoever sleeps one that stays.
func TestMarksOfProcesses(t *testing.T) {
	tr := started(t)
	ours, other := perl(t, "ours", "sleep 1000"), perl(t, "other", "sleep 1000")
	if err := tr.Ignore(ours.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Marks(); errors.Is(err, fs.ErrNotExist) {
		t.Skip(err) // in a PID namespace of our own
	} else if err != nil {
		t.Fatal(err)
	}
	tracetest.Eventually(t, "a process that sleeps has a mark", func() bool {
		marks, err := tr.Marks()
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range []int{os.Getpid(), ours.Process.Pid} {
			if mark, there := marks[pid]; mark != running || !there {
				t.Errorf("process %d, which is left out, has the mark %d (there: %v), want %d", pid, mark, there, running)
			}
		}
		return marks[other.Process.Pid] != running
	})
}

// A parent that does not reap is named with the number of its children.
func TestZombiesHaveTheirParent(t *testing.T) {
	tr := started(t)
	me := "lazy" + strconv.Itoa(os.Getpid())
	c := perl(t, me, fmt.Sprintf("for (1..%d) { fork or exit } sleep 100", unreaped))
	var found Parent
	tracetest.Eventually(t, "all zombies are there", func() bool {
		for _, p := range snapshot(t, tr).Parents {
			if p.Name == me {
				found = p
			}
		}
		return found.Zombies == unreaped
	})
	if found.PID != uint32(c.Process.Pid) || found.NetNS != netns(t) {
		t.Errorf("%+v; want pid %d in netns %d", found, c.Process.Pid, netns(t))
	}
	samples := tracetest.Sink{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	series := fmt.Sprintf("%d@plimsoll_tasks_zombies{%s,%d}", netns(t), me, c.Process.Pid)
	if samples[series] != unreaped {
		t.Errorf("%s = %v, want %d", series, samples[series], unreaped)
	}
}

// One that burns is runnable all the time, one that sleeps never.
func TestStatesAreTimed(t *testing.T) {
	tr := started(t)
	burns, sleeps := "burn"+strconv.Itoa(os.Getpid()), "doze"+strconv.Itoa(os.Getpid())
	perl(t, burns, "1 while 1")
	perl(t, sleeps, "sleep 100")
	var first, last map[string]Group
	groups := func() map[string]Group {
		of := map[string]Group{}
		for _, g := range snapshot(t, tr).Groups {
			of[g.Name] = g
		}
		return of
	}
	tracetest.Eventually(t, "both are there", func() bool {
		first = groups()
		return first[burns].Now["runnable"] == 1 && first[sleeps].Now["sleeping"] == 1
	})
	tracetest.Eventually(t, "they are looked at again", func() bool {
		last = groups()
		return last[burns].States["runnable"] > first[burns].States["runnable"]
	})
	burned := last[burns].States["runnable"] - first[burns].States["runnable"]
	slept := last[sleeps].States["sleeping"] - first[sleeps].States["sleeping"]
	if burned <= 0 || burned != slept {
		t.Errorf("one was runnable for %v, the other asleep for %v; want the same time", burned, slept)
	}
}

// A storm of switches in the threads of a process, whose main thread sleeps, is
// told from the main thread.
func TestSwitchesByThread(t *testing.T) {
	tr := started(t)
	me := "storm" + strconv.Itoa(os.Getpid())
	perl(t, me, `use threads;
		my @t = map { threads->create(sub { select(undef, undef, undef, 0.0005) for 1..1009; sleep 100 }) } 1..3;
		sleep 100`)
	roles := map[string]uint64{}
	tracetest.Eventually(t, "the storm is seen", func() bool {
		clear(roles)
		for _, th := range snapshot(t, tr).Threads {
			if th.Name == me {
				roles[th.Role] += th.Voluntary
			}
		}
		return roles["other"] >= 3*1009
	})
	if roles["other"] > 3*1009+100 || roles["main"] > 100 {
		t.Errorf("voluntary switches by role: %v; want %d and a few by the others, a few by the main thread", roles, 3*1009)
	}
}

// A process that has called vfork waits for its child uninterruptibly.
func TestBlockedHasItsFunction(t *testing.T) {
	tr := started(t)
	if tr.symbols.KernelErr() != nil {
		t.Skip(tr.symbols.KernelErr())
	}
	me := "vfork" + strconv.Itoa(os.Getpid())
	perl(t, me, fmt.Sprintf("syscall(%d); sleep 100", unix.SYS_VFORK))
	var found Wait
	tracetest.Eventually(t, "it is seen", func() bool {
		for _, w := range snapshot(t, tr).Waits {
			if w.Name == me && w.Time > 0 {
				found = w
			}
		}
		return found.Looks > 0
	})
	if found.Syscall != "vfork" || found.Function != "kernel_clone" || found.NetNS != netns(t) {
		t.Errorf("%+v; want vfork to wait in kernel_clone", found)
	}
	samples := tracetest.Sink{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	for _, series := range []string{"blocked_seconds_total{" + me + ",kernel_clone,vfork}", "state_seconds_total{" + me + ",uninterruptible}"} {
		if series = fmt.Sprintf("%d@plimsoll_tasks_%s", netns(t), series); samples[series] <= 0 {
			t.Errorf("%s = %v, want more than 0", series, samples[series])
		}
	}
}

func TestDetaches(t *testing.T) {
	tracetest.Need(t, Tracer())
	tracetest.Detaches(t, Tracer())
}

func FuzzParseRow(f *testing.F) {
	f.Add(make([]byte, 100))
	whole := make([]byte, unsafe.Sizeof(bpfRow{})+16)
	f.Add(whole)
	f.Fuzz(func(t *testing.T, b []byte) {
		_, stack, rest, whole := parseRow(b, nil)
		if whole && (len(rest) >= len(b) || len(stack) > maxFrames) || !whole && len(rest) != len(b) {
			t.Errorf("of %d bytes %d are left, %d frames", len(b), len(rest), len(stack))
		}
	})
}

// BenchmarkLook says what a look costs in CPU time, with what is running.
func BenchmarkLook(b *testing.B) {
	tr, err := Start()
	if err != nil {
		b.Skip(err)
	}
	defer tr.Close()
	runtime.LockOSThread() // for the thread's CPU time
	defer runtime.UnlockOSThread()
	for name, look := range map[string]func() error{
		"look": func() error { return tr.look(0) },
		"marks": func() error {
			tr.marks = nil
			_, err := tr.Marks()
			return err
		},
	} {
		before := cpuTime()
		for range b.N {
			if err := look(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), name+"-cpu-µs/op")
	}
	b.ReportMetric(float64(len(tr.sums.threads)), "threads")
}
