package exec

import (
	"errors"
	"fmt"
	"math"
	"os"
	osexec "os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/trace"
	"plimsoll/internal/trace/tracetest"
)

const workload = "PLIMSOLL_TEST_WORKLOAD"

// The workload's ends, by exit: 1,009 in all. Each is a prime.
const (
	endWell   = 601
	endThree  = 307
	endKilled = 101
	all       = endWell + endThree + endKilled
	subshells = 211
	// kernelMayForget is how many of them may be freed without our seeing it, until
	// their memory is used again; see process_fork in exec.bpf.c.
	kernelMayForget = 29
)

func TestMain(m *testing.M) {
	if os.Getenv(workload) != "" {
		os.Exit(work())
	}
	os.Exit(tracetest.Main(m, Tracer()))
}

// work starts 1,009 programs one after the other, and prints how much CPU time
// they used, in nanoseconds, as wait4 tells it.
func work() int {
	var used time.Duration
	run := func(times int, args ...string) {
		for range times {
			c := osexec.Command(args[0], args[1:]...)
			_ = c.Run() // that some fail is the point
			used += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		}
	}
	run(endWell, "/bin/true", "first", "second word")
	run(endThree, "/bin/sh", "-c", "exit 3")
	run(endKilled, "/bin/sh", "-c", "kill -9 $$")
	fmt.Println(used.Nanoseconds())
	return 0
}

// run runs a command and returns what it says.
func run(t *testing.T, env string, args ...string) string {
	t.Helper()
	c := osexec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), env)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// children adds up the groups right below a command.
func children(t *testing.T, tr *Trace, parent string) map[string]Group {
	t.Helper()
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	tracetest.NothingLost(t, s.Lost, "frees")
	of := map[string]Group{}
	for _, g := range s.Groups {
		if g.Chain.Above[0] == parent {
			of[g.Chain.Command] = g
		}
	}
	return of
}

func begin(t *testing.T, hasGroupDead func(actual bool) bool) *Trace {
	t.Helper()
	tracetest.Need(t, Tracer())
	spec, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	var told bool
	if err := errors.Join(spec.Variables[bpfVarHasGroupDead].Get(&told), trace.SetConstant(spec, bpfVarHasGroupDead, hasGroupDead(told))); err != nil {
		t.Fatal(err)
	}
	tr, err := start(spec)
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

func TestEveryStartAndEndIsSeen(t *testing.T) {
	for name, has := range map[string]func(bool) bool{
		"as this kernel is":                   func(actual bool) bool { return actual },
		"as a kernel before 6.16, in its way": func(bool) bool { return false },
	} {
		t.Run(name, func(t *testing.T) {
			tr := begin(t, has)
			tracetest.AllAttached(t, Tracer(), tr)
			me := "wl" + strconv.Itoa(os.Getpid())
			used, err := strconv.ParseFloat(run(t, workload+"=1", tracetest.Copy(t, "/proc/self/exe", me)), 64)
			if err != nil {
				t.Fatal(err)
			}
			var of map[string]Group
			var last uint64
			same := 0 // looks without news
			tracetest.Eventually(t, "all are reaped, or all but a few and no more come", func() bool {
				of = children(t, tr, me)
				if n := of["true"].Reaped + of["sh"].Reaped; n != last {
					last, same = n, 0
				}
				same++
				return last >= all || last >= all-kernelMayForget && same > 100
			})
			checkWork(t, of, used)
			checkSamples(t, tr, me)
		})
	}
}

func checkWork(t *testing.T, of map[string]Group, used float64) {
	t.Helper()
	got := map[string][3]uint64{}
	exits := map[string]map[string]uint64{}
	for _, name := range []string{"true", "sh"} {
		g := of[name]
		got[name] = [3]uint64{g.Starts, g.Ends, g.ForksOnly}
		exits[name] = g.Exits
		if n := g.Lifetimes.Count(); n != g.Ends || g.Lifetime <= 0 {
			t.Errorf("%s: %d lifetimes, %v in all, for %d ends", name, n, g.Lifetime, g.Ends)
		}
	}
	want := map[string][3]uint64{"true": {endWell, endWell, 0}, "sh": {all - endWell, all - endWell, 0}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("starts, ends, forks only (-want +got)\n%s", d)
	}
	wantExits := map[string]map[string]uint64{"true": {"0": endWell}, "sh": {"3": endThree, "SIGKILL": endKilled}}
	if d := cmp.Diff(wantExits, exits); d != "" {
		t.Errorf("exits (-want +got)\n%s", d)
	}
	if ours := float64(of["true"].CPU + of["sh"].CPU); math.Abs(ours/used-1) > 0.05 {
		t.Errorf("CPU time %v, wait4 says %v: want within 5 %%", time.Duration(ours), time.Duration(used))
	} else {
		t.Logf("CPU time %v, wait4 says %v", time.Duration(ours), time.Duration(used))
	}
	if e := of["true"].First; e == nil || cmp.Diff([]string{"/bin/true", "first", "second word"}, e.Arguments) != "" || e.Cut {
		t.Errorf("the first true: %+v", e)
	}
}

// checkSamples looks at the same through Read.
func checkSamples(t *testing.T, tr *Trace, me string) {
	t.Helper()
	here := netns(t)
	samples := tracetest.Sink{}
	if err := tr.Read(samples); err != nil {
		t.Fatal(err)
	}
	for series, want := range map[string]float64{
		here + "@plimsoll_exec_starts_total{true," + me + "," + tracetest.OwnName(t) + "}": endWell,
		here + "@plimsoll_exec_ends_total{true," + me + ",0}":                              endWell,
		here + "@plimsoll_exec_ends_total{sh," + me + ",3}":                                endThree,
		here + "@plimsoll_exec_ends_total{sh," + me + ",SIGKILL}":                          endKilled,
		"plimsoll_exec_lost_total{groups}":                                                 0,
	} {
		if got, ok := samples[series]; !ok || got != want {
			t.Errorf("%s = %v (%v), want %v", series, got, ok, want)
		}
	}
	for _, series := range []string{here + "@plimsoll_exec_cpu_seconds_total{true," + me + "}", here + "@plimsoll_exec_lifetime_seconds_total{sh," + me + "}"} {
		if samples[series] <= 0 {
			t.Errorf("%s = %v, want more than 0", series, samples[series])
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

// The same program in two network namespaces is two groups.
func TestNamespacesAreToldApart(t *testing.T) {
	tracetest.Need(t, Tracer())
	tr, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	me := "apart" + strconv.Itoa(os.Getpid())
	program := tracetest.Copy(t, "/bin/true", me)
	for _, flags := range []uintptr{0, syscall.CLONE_NEWNET} {
		c := osexec.Command(program)
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		if err := c.Run(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := tr.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	starts := map[string]uint64{}
	for _, g := range s.Groups {
		if g.Chain.Command == me {
			starts[strconv.Itoa(int(g.Chain.NetNS))] += g.Starts
		}
	}
	if len(starts) != 2 || starts[netns(t)] != 1 {
		t.Errorf("starts by network namespace: %v; want one here (%s) and one elsewhere", starts, netns(t))
	}
}

func TestForksWithoutExec(t *testing.T) {
	tr := begin(t, func(actual bool) bool { return actual })
	me := "sub" + strconv.Itoa(os.Getpid())
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do (:); i=$((i+1)); done", subshells)
	run(t, "A=1", tracetest.Copy(t, "/bin/sh", me), "-c", script)
	g := children(t, tr, me)[me]
	if g.Forks != subshells || g.Ends != subshells || g.ForksOnly != subshells || g.Starts != 0 {
		t.Errorf("forks %d, ends %d, of them without exec %d, starts %d; want %d, %[5]d, %[5]d, 0", g.Forks, g.Ends, g.ForksOnly, g.Starts, subshells)
	}
	if d := cmp.Diff(map[string]uint64{"0": subshells}, g.Exits); d != "" {
		t.Errorf("exits (-want +got)\n%s", d)
	}
}

// What finds no room is counted, and what has room is still right.
func TestLossIsCounted(t *testing.T) {
	tracetest.Need(t, Tracer())
	spec, err := loadBpf()
	if err != nil {
		t.Fatal(err)
	}
	spec.Maps[bpfMapGroups].MaxEntries = 1
	spec.Maps[bpfMapEnds].MaxEntries = 1
	tr, err := start(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	run(t, "A=1", "/bin/sh", "-c", "/bin/true; /bin/false; /bin/echo; exit 0")
	lost, err := tr.Lost()
	if err != nil {
		t.Fatal(err)
	}
	if lost["groups"] == 0 || lost["ends"] == 0 {
		t.Errorf("lost %v: want groups and ends among it", lost)
	}
}

// Our own processes are left out once they are named.
func TestIgnored(t *testing.T) {
	tr := begin(t, func(actual bool) bool { return actual })
	me := "ign" + strconv.Itoa(os.Getpid())
	c := osexec.Command(tracetest.Copy(t, "/bin/sh", me), "-c", "read x; exec /bin/true")
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := tr.Ignore(c.Process.Pid); err != nil {
		t.Fatal(err)
	}
	stdin.Close()
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, g := range children(t, tr, tracetest.OwnName(t)) {
		if g.Chain.Command == me && g.Ends > 0 {
			t.Errorf("it was ignored, and yet its end was counted: %+v", g)
		}
	}
	if err := tr.Ignore(1, 2, 3, 4); err == nil {
		t.Error("there is room for three; four were taken")
	}
}

func TestDetaches(t *testing.T) {
	tracetest.Need(t, Tracer())
	tracetest.Detaches(t, Tracer())
}

func TestExitWord(t *testing.T) {
	for want, status := range map[string]int32{
		"0": 0, "1": 1 << 8, "255": 255 << 8, "SIGKILL": int32(syscall.SIGKILL), "SIGSEGV": int32(syscall.SIGSEGV) | 0x80, "signal 40": 40,
	} {
		if got := exitWord(status); got != want {
			t.Errorf("exitWord(%#x) = %q, want %q", status, got, want)
		}
	}
}

func TestChainIsWrittenFromTheTop(t *testing.T) {
	for want, c := range map[string]Chain{
		"php-fpm → sh → stress": {Command: "stress", Above: [3]string{"sh", "php-fpm", "php-fpm"}},
		"init":                  {Command: "init"},
		"systemd → cron → sh":   {Command: "sh", Above: [3]string{"cron", "systemd", ""}},
	} {
		if got := c.String(); got != want {
			t.Errorf("%+v is written %q, want %q", c, got, want)
		}
	}
}

func FuzzParseExample(f *testing.F) {
	f.Add([]byte{})
	f.Add(make([]byte, 600))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, e, err := parseExample(raw)
		if (e == nil) == (err == nil) {
			t.Errorf("%d bytes: want an example or an error, got %v, %v", len(raw), e, err)
		}
	})
}
