package procs

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
)

// unpack makes dir hold the files of a recorded /proc, and nothing else.
func unpack(t testing.TB, dir, archive string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, "proc")); err != nil {
		t.Fatal(err)
	}
	a, err := txtar.ParseFile(filepath.Join("testdata", archive))
	if err != nil {
		t.Fatal(err)
	}
	if err := txtar.Write(a, dir); err != nil {
		t.Fatal(err)
	}
	stats, err := filepath.Glob(filepath.Join(dir, "proc/[0-9]*/stat"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stats { // an archive holds no empty directory
		if err := os.MkdirAll(filepath.Join(filepath.Dir(name), "fd"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// openRecorded opens a recorded tree; without kept descriptors, since the files
// of a tree are replaced and not written anew. The clock stands still until
// the test moves it.
func openRecorded(t testing.TB, dir string) (r *reader, clock *time.Time) {
	t.Helper()
	list := func() ([]host.Proc, error) { return host.Recorded("srv", dir).Procs() }
	r, err := open(host.Recorded("srv", dir), list)
	if err != nil {
		t.Fatal(err)
	}
	// The tree is opened by descriptor, and unpack replaces it.
	r.mayKeep = 0
	now := time.Unix(1000, 0)
	r.now = func() time.Time { return now }
	t.Cleanup(func() { r.Close() })
	return r, &now
}

// swap lets the reader see another tree.
func (r *reader) swap(t testing.TB, dir, archive string) {
	t.Helper()
	unpack(t, dir, archive)
	tree, err := openTree(filepath.Join(dir, "proc"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.tree.close(); err != nil {
		t.Fatal(err)
	}
	r.tree = tree
}

func TestRecorded(t *testing.T) {
	dir := t.TempDir()
	unpack(t, dir, "first.txtar")
	r, clock := openRecorded(t, dir)
	first := read(t, r, 1000)
	for name, v := range first.values {
		if v != 0 && strings.Contains(name, "_total{") {
			t.Errorf("first reading: %s is %v; what was used before is not ours to count", name, v)
		}
		if strings.Contains(name, "busiest") {
			t.Errorf("first reading: %s was put, but there is no time between readings yet", name)
		}
	}
	r.swap(t, dir, "second.txtar")
	*clock = clock.Add(time.Second)
	second := read(t, r, 1001)
	if diff := cmp.Diff(wanted(t), second.values); diff != "" {
		t.Errorf("second reading (-want +got):\n%s", diff)
	}
	if len(second.notes) > 0 {
		t.Errorf("notes %q", second.notes)
	}
}

// wanted reads the lines "series<tab>value" of want.txt.
func wanted(t *testing.T) map[string]float64 {
	t.Helper()
	b, err := os.ReadFile("testdata/want.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{}
	for line := range strings.Lines(string(b)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			continue
		}
		if want[name], err = strconv.ParseFloat(value, 64); err != nil {
			t.Fatal(err)
		}
	}
	return want
}

// fakeProc writes a single-threaded process by hand.
type fakeProc struct {
	pid, ppid               int
	comm                    string
	user, system            int // ticks
	childrenUser            int
	start                   int
	children                string
	voluntary, nonvoluntary int
	runNanos, delayNanos    int
	policy, nice            int
	cgroup, autogroup       string // the files
}

// stat is its stat file, with so many threads.
func (p fakeProc) stat(threads int) string {
	return fmt.Sprintf("%d (%s) S %d 1 1 0 -1 0 0 0 0 0 %d %d %d 0 20 %d %d 0 %d 4096 1%s %d 0\n",
		p.pid, p.comm, p.ppid, p.user, p.system, p.childrenUser, p.nice, threads, p.start, strings.Repeat(" 0", 16), p.policy)
}

func (p fakeProc) write(t testing.TB, dir string) {
	t.Helper()
	base := filepath.Join(dir, "proc", fmt.Sprint(p.pid))
	task := filepath.Join(base, "task", fmt.Sprint(p.pid))
	if err := os.MkdirAll(task, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(base, "fd"), 0o755); err != nil {
		t.Fatal(err)
	}
	run := p.runNanos
	if run == 0 {
		run = (p.user + p.system) * int(tickNanos)
	}
	for name, text := range map[string]string{
		"stat":   p.stat(1),
		"cgroup": p.cgroup, "autogroup": p.autogroup,
		"cmdline":   p.comm + "\x00",
		"schedstat": fmt.Sprintf("%d %d 1\n", run, p.delayNanos),
		"status":    fmt.Sprintf("Name:\t%s\nvoluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n", p.comm, p.voluntary, p.nonvoluntary),
		"io":        "rchar: 1\nwchar: 0\nsyscr: 1\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\n",
		"limits":    "Max open files            10                   20                   files\n",
		filepath.Join("task", fmt.Sprint(p.pid), "children"): p.children,
	} {
		if err := os.WriteFile(filepath.Join(base, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// fakeTree is a tree whose uptime is 10 s (tick 1000).
func fakeTree(t testing.TB, procs ...fakeProc) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "proc/self"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"uptime": "10.00 5.00\n", "self/schedstat": "0 0 0\n"} {
		if err := os.WriteFile(filepath.Join(dir, "proc", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range procs {
		p.write(t, dir)
	}
	return dir
}

func remove(t testing.TB, dir string, pid int) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, "proc", fmt.Sprint(pid))); err != nil {
		t.Fatal(err)
	}
}

// A process number that is used again is another process, also between two
// looks at the same number.
func TestReusedPID(t *testing.T) {
	dir := fakeTree(t, fakeProc{pid: 7, comm: "old", user: 500, start: 100})
	r, clock := openRecorded(t, dir)
	read(t, r, 1000)
	fakeProc{pid: 7, comm: "new", user: 3, start: 1100}.write(t, dir)
	*clock = clock.Add(time.Second)
	got := read(t, r, 1001).values
	for name, want := range map[string]float64{
		"plimsoll_process_ends_total{old}":                   1,
		"plimsoll_process_starts_total{new}":                 1,
		"namedprocess_namegroup_num_procs{old}":              0,
		"namedprocess_namegroup_cpu_seconds_total{old,user}": 0,
		"namedprocess_namegroup_cpu_seconds_total{new,user}": 0.03,
		"plimsoll_process_busiest_thread_cpu_ratio{new}":     0.03,
		"namedprocess_namegroup_worst_fd_ratio{new}":         0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (%v), want %v", name, v, ok, want)
		}
	}
}

// exec gives a process another name: what it uses from then on belongs to that.
func TestChangedName(t *testing.T) {
	dir := fakeTree(t, fakeProc{pid: 7, comm: "sh", start: 100, user: 10})
	r, clock := openRecorded(t, dir)
	read(t, r, 1000)
	fakeProc{pid: 7, comm: "sh", start: 100, user: 20}.write(t, dir)
	*clock = clock.Add(time.Second)
	read(t, r, 1001)
	fakeProc{pid: 7, comm: "nginx", start: 100, user: 50}.write(t, dir)
	*clock = clock.Add(time.Second)
	got := read(t, r, 1002).values
	sh, nginx := got["namedprocess_namegroup_cpu_seconds_total{sh,user}"], got["namedprocess_namegroup_cpu_seconds_total{nginx,user}"]
	if sh != 0.1 || nginx != 0.3 {
		t.Errorf("CPU seconds: sh %v, nginx %v; want 0.1, 0.3", sh, nginx)
	}
	if n := got["plimsoll_process_starts_total{nginx}"] + got["plimsoll_process_ends_total{sh}"]; n != 0 {
		t.Errorf("%v starts and ends; exec is neither", n)
	}
}

// The list may name a process that is gone by the time it is read.
func TestVanished(t *testing.T) {
	dir := fakeTree(t, fakeProc{pid: 7, comm: "stays", start: 100})
	r, _ := openRecorded(t, dir)
	list := r.list
	r.list = func() ([]host.Proc, error) {
		all, err := list()
		return append(all, host.Proc{PID: 8, Comm: "gone"}), err
	}
	got := read(t, r, 1000).values
	if got["namedprocess_namegroup_num_procs{stays}"] != 1 {
		t.Errorf("the process that is there was not read: %v", got)
	}
	if _, ok := got["namedprocess_namegroup_num_procs{gone}"]; ok {
		t.Error("a process that is gone was reported")
	}
}

// A program is examined at least every 5 s even when it uses less than a tick.
func TestIdleProcessIsExamined(t *testing.T) {
	p := fakeProc{pid: 5, comm: "idle", start: 100, runNanos: 1}
	dir := fakeTree(t, p)
	r, clock := openRecorded(t, dir)
	read(t, r, 1000)
	p.runNanos, p.delayNanos, p.voluntary = 9_000_000, 2_000_000_000, 90
	p.write(t, dir)
	key := "plimsoll_process_run_delay_seconds_total{idle}"
	for second := int64(1); second <= 5; second++ {
		*clock = clock.Add(time.Second)
		got := read(t, r, 1000+second).values[key]
		if want := map[bool]float64{true: 2}[second == 5]; got != want {
			t.Errorf("after %d s: run delay %v, want %v", second, got, want)
		}
	}
}

// What threads of a lower priority wait is told by their nice value; of others, and of the idle class, nothing is.
func TestNicedRunDelay(t *testing.T) {
	procs := []fakeProc{
		{pid: 5, comm: "low", start: 100, runNanos: 1, nice: 19, cgroup: "0::/"},
		{pid: 6, comm: "usual", start: 100, runNanos: 1, cgroup: "0::/"},
		{pid: 7, comm: "high", start: 100, runNanos: 1, nice: -5, cgroup: "0::/"},
		{pid: 8, comm: "idle", start: 100, runNanos: 1, nice: 19, policy: policyIdle, cgroup: "0::/"},
	}
	dir := fakeTree(t, procs...)
	r, clock := openRecorded(t, dir)
	read(t, r, 1000)
	for _, p := range procs {
		p.runNanos, p.delayNanos, p.user = 29_000_000, 2_000_000_000, p.user+2
		p.write(t, dir)
	}
	*clock = clock.Add(time.Second)
	got := read(t, r, 1001).values
	for _, p := range procs {
		if waited := got["plimsoll_process_run_delay_seconds_total{"+p.comm+"}"]; waited != 2 {
			t.Errorf("%s waited %v s, want 2", p.comm, waited)
		}
	}
	niced := map[string]float64{}
	for key, value := range got {
		if strings.HasPrefix(key, nicedDelay.Name) {
			niced[key] = value
		}
	}
	if diff := cmp.Diff(map[string]float64{nicedDelay.Name + "{low,19}": 2}, niced); diff != "" {
		t.Errorf("by nice value (-want +got):\n%s", diff)
	}
}

// A nice value counts only against who is weighed with it: in the same control group, and in the same session where these have shares.
func TestNicedRunDelayIsWithinAGroup(t *testing.T) {
	for name, c := range map[string]struct {
		low, usual, lowIn, usualIn string // control groups, and sessions
		want                       float64
	}{
		"one session":        {"0::/", "0::/", "/autogroup-1 nice 0", "/autogroup-1 nice 0", 2},
		"two sessions":       {"0::/", "0::/", "/autogroup-1 nice 0", "/autogroup-2 nice 0", 0},
		"two control groups": {"2:cpu,cpuacct:/a", "2:cpu,cpuacct:/b", "/autogroup-1 nice 0", "/autogroup-1 nice 0", 0},
		"nothing is known":   {"", "", "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			low := fakeProc{pid: 5, comm: "low", start: 100, nice: 19, cgroup: c.low, autogroup: c.lowIn}
			usual := fakeProc{pid: 6, comm: "usual", start: 100, cgroup: c.usual, autogroup: c.usualIn}
			dir := fakeTree(t, low, usual)
			switchFile := filepath.Join(dir, "proc/sys/kernel/sched_autogroup_enabled")
			if err := os.MkdirAll(filepath.Dir(switchFile), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(switchFile, []byte("1\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			r, clock := openRecorded(t, dir)
			read(t, r, 1000)
			low.user, low.delayNanos, usual.user = 2, 2_000_000_000, 98
			low.write(t, dir)
			usual.write(t, dir)
			*clock = clock.Add(time.Second)
			if got := read(t, r, 1001).values[nicedDelay.Name+"{low,19}"]; got != c.want {
				t.Errorf("waited %v s, want %v", got, c.want)
			}
		})
	}
}

// addThread makes a process of dir have one thread more.
func addThread(t testing.TB, dir string, p fakeProc, tid, user int) {
	t.Helper()
	base := filepath.Join(dir, "proc", fmt.Sprint(p.pid))
	first := p.user
	stat := func(ticks int) string {
		p.user = ticks
		return p.stat(2)
	}
	files := map[string]string{"stat": stat(p.user + user)}
	for id, ticks := range map[int]int{p.pid: first, tid: user} {
		task := filepath.Join("task", fmt.Sprint(id))
		if err := os.MkdirAll(filepath.Join(base, task), 0o755); err != nil {
			t.Fatal(err)
		}
		files[filepath.Join(task, "stat")] = stat(ticks)
		files[filepath.Join(task, "schedstat")] = fmt.Sprintf("%d 0 1\n", ticks*int(tickNanos))
		files[filepath.Join(task, "status")] = "voluntary_ctxt_switches:\t0\nnonvoluntary_ctxt_switches:\t0\n"
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(base, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A second thread must not make all that the first one ever used look new.
func TestFirstThreadOfManyIsCountedFromThen(t *testing.T) {
	p := fakeProc{pid: 5, comm: "svc", start: 100, user: 5000}
	dir := fakeTree(t, p)
	r, clock := openRecorded(t, dir)
	read(t, r, 1000)
	p.user += 10
	addThread(t, dir, p, 6, 30)
	*clock = clock.Add(time.Second)
	got := read(t, r, 1001).values["namedprocess_namegroup_thread_cpu_seconds_total{svc,svc,user}"]
	if got != 0.3 { // the new thread's; the old one's 0.1 s were the process's alone
		t.Errorf("CPU seconds of the threads %v, want 0.3", got)
	}
	p.user += 20
	addThread(t, dir, p, 6, 40)
	*clock = clock.Add(time.Second)
	got = read(t, r, 1002).values["namedprocess_namegroup_thread_cpu_seconds_total{svc,svc,user}"]
	if got != 0.6 {
		t.Errorf("CPU seconds of the threads %v, want 0.6", got)
	}
}

// stat shows no less than 10 ms of user and of system time; what a process used
// below that is taken from schedstat, once, and not from before we watched.
func TestWorkBelowATickIsCounted(t *testing.T) {
	p := fakeProc{pid: 5, comm: "svc", start: 100, user: 3, runNanos: 44e6}
	dir := fakeTree(t, p)
	r, clock := openRecorded(t, dir)
	read(t, r, 1000)
	for i, step := range []struct {
		user, system, runNanos int
		want                   float64
	}{
		{3, 0, 48e6, 0.004},
		{4, 0, 51e6, 0.007}, // a tick that was given in part before
		{4, 1, 59e6, 0.015},
		{6, 1, 71e6, 0.027},
		{6, 1, 71e6, 0.027},
		{9, 4, 130e6, 0.086},
	} {
		p.user, p.system, p.runNanos = step.user, step.system, step.runNanos
		p.write(t, dir)
		*clock = clock.Add(detailEvery)
		got := read(t, r, clock.Unix()).values
		user, system := got["namedprocess_namegroup_cpu_seconds_total{svc,user}"], got["namedprocess_namegroup_cpu_seconds_total{svc,system}"]
		if math.Abs(user+system-step.want) > 1e-9 {
			t.Errorf("step %d: CPU time %v user, %v system, want %v together", i, user, system, step.want)
		}
	}
}

// What could not be examined in one round is examined in the next, and until
// then its busiest thread is not known.
func TestProcessesThatArePutOffComeFirst(t *testing.T) {
	a, b := fakeProc{pid: 5, comm: "a", start: 100}, fakeProc{pid: 6, comm: "b", start: 100}
	dir := fakeTree(t, a, b)
	r, clock := openRecorded(t, dir)
	read(t, r, 1000)
	busiest := "plimsoll_process_busiest_thread_cpu_ratio{%s}"
	other := map[string]string{"a": "b", "b": "a"}
	want := "" // whichever the folder lists first: a tmpfs lists what is newest, unlike /proc
	for round := range 3 {
		a.user, b.user = a.user+50, b.user+50
		a.write(t, dir)
		b.write(t, dir)
		*clock = clock.Add(time.Second)
		r.threadsPerRound = 1
		got := read(t, r, clock.Unix())
		if want = other[want]; want == "" {
			want = "a"
			if _, ok := got.values[fmt.Sprintf(busiest, "b")]; ok {
				want = "b"
			}
		}
		if _, ok := got.values[fmt.Sprintf(busiest, other[want])]; ok {
			t.Errorf("round %d: %s was not examined, yet its busiest thread was put", round, other[want])
		}
		if _, ok := got.values[fmt.Sprintf(busiest, want)]; !ok || len(got.notes) != 1 {
			t.Errorf("round %d: want %s examined and a note, got %v, %q", round, want, got.values, got.notes)
		}
	}
}

// A command's process is often met before the host's list, up to a second old,
// has it: nothing of it may be lost.
func TestProcessOfTheCommandIsCountedOnceItIsListed(t *testing.T) {
	dir := fakeTree(t, fakeProc{pid: 20, ppid: 1, comm: "sh", start: 1050, user: 10})
	r, clock := openRecorded(t, dir)
	r.host.SetCommand(20)
	list := r.list
	r.list = func() ([]host.Proc, error) { return nil, nil }
	read(t, r, 1000)
	r.list = list
	fakeProc{pid: 20, ppid: 1, comm: "sh", start: 1050, user: 15}.write(t, dir)
	*clock = clock.Add(time.Second)
	got := read(t, r, 1001).values
	for name, want := range map[string]float64{
		"plimsoll_process_starts_total{sh}":                 1,
		"namedprocess_namegroup_cpu_seconds_total{sh,user}": 0.15,
		"plimsoll_command_cpu_seconds_total{user}":          0.15,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (%v), want %v", name, v, ok, want)
		}
	}
}

func TestCommandTree(t *testing.T) {
	sum := func(r *readings) float64 {
		return r.values["plimsoll_command_cpu_seconds_total{user}"]
	}
	dir := fakeTree(t, fakeProc{pid: 1, comm: "init", start: 1}, fakeProc{pid: 5, comm: "other", start: 1, user: 900})
	r, clock := openRecorded(t, dir)
	r.host.SetCommand(20)
	step := func() float64 {
		*clock = clock.Add(time.Second)
		return sum(read(t, r, clock.Unix()))
	}
	if _, ok := read(t, r, 1000).values["plimsoll_command_cpu_seconds_total{user}"]; ok {
		t.Error("a command that was not found has CPU time")
	}
	fakeProc{pid: 20, ppid: 1, comm: "sh", start: 1050, user: 10, children: "21 "}.write(t, dir)
	fakeProc{pid: 21, ppid: 20, comm: "make", start: 1050, user: 20, children: "22 "}.write(t, dir)
	fakeProc{pid: 22, ppid: 21, comm: "cc", start: 1050, user: 30}.write(t, dir)
	if got := step(); got != 0.6 {
		t.Errorf("three processes: %v s, want 0.6", got)
	}
	remove(t, dir, 22) // used 35 in the end, and its parent waited for it
	fakeProc{pid: 21, ppid: 20, comm: "make", start: 1050, user: 21, childrenUser: 35}.write(t, dir)
	if got := step(); got != 0.66 {
		t.Errorf("a child was waited for: %v s, want 0.66", got)
	}
	remove(t, dir, 20) // the first process ends before its child, which init takes over
	fakeProc{pid: 21, ppid: 1, comm: "make", start: 1050, user: 31, childrenUser: 35}.write(t, dir)
	if got := step(); got != 0.76 {
		t.Errorf("the first process ended: %v s, want 0.76", got)
	}
	remove(t, dir, 21)
	fakeProc{pid: 20, ppid: 1, comm: "stranger", start: 1400, user: 500}.write(t, dir)
	if got := step(); got != 0.76 {
		t.Errorf("all ended, and a stranger has the number: %v s, want 0.76", got)
	}
}

// Files that we may not read make their signals denied and leave no number.
func TestDeniedIO(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("as root alone can a test take its own rights away and get them back")
	}
	dir := fakeTree(t, fakeProc{pid: 7, comm: "theirs", start: 100})
	if err := os.Chmod(filepath.Join(dir, "proc/7/io"), 0); err != nil {
		t.Fatal(err)
	}
	for d := dir; d != "/"; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o005 == 0o005 {
			continue // open already; /tmp above all must stay as it is
		}
		if err := os.Chmod(d, info.Mode().Perm()|0o055); err != nil {
			t.Fatal(err)
		}
	}
	r, _ := openRecorded(t, dir)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Setfsuid(65534); err != nil {
		t.Fatal(err)
	}
	list, err := r.list()
	if err == nil {
		r.scan(list)
	}
	if err := errors.Join(err, unix.Setfsuid(0)); err != nil {
		t.Fatal(err)
	}
	if p := r.procs[7]; p == nil || !errors.Is(p.ioErr, fs.ErrPermission) || p.filesErr != nil {
		t.Fatalf("process 7 %+v; want its io denied and its descriptors read", p)
	}
	rec := newReadings()
	r.report(probe.NewOut(rec, "srv", time.Unix(1000, 0), 0))
	if v, ok := rec.values["namedprocess_namegroup_open_filedesc{theirs}"]; !ok || v != 0 {
		t.Errorf("descriptors %v (%v), want 0", v, ok)
	}
}

func TestGroupsAreBounded(t *testing.T) {
	gs := groups{byName: map[string]*group{}}
	for i := range maxGroups + 50 {
		gs.of(fmt.Appendf(nil, "p%d", i), false).starts++
	}
	if len(gs.order) != maxGroups+1 || !gs.cut || gs.byName[otherName].starts != 50 {
		t.Errorf("%d groups, cut %v, %d in %s; want %d, true, 50", len(gs.order), gs.cut, gs.byName[otherName].starts, otherName, maxGroups+1)
	}
}

func TestGroupNames(t *testing.T) {
	gs := groups{byName: map[string]*group{}}
	for _, tc := range []struct {
		comm   string
		kernel bool
		want   string
	}{
		{"php-fpm8.2", false, "php-fpm8.2"},
		{"kworker/0:1-events", true, "kworker"},
		{"ksoftirqd/1", true, "ksoftirqd"},
		{"kswapd0", true, "kswapd0"},
		{"a/b", false, "a/b"},
		{"", false, "(none)"},
		{"bad\xff", false, "bad\ufffd"},
	} {
		if got := gs.of([]byte(tc.comm), tc.kernel).name; got != tc.want {
			t.Errorf("group of %q (kernel %v) is %q, want %q", tc.comm, tc.kernel, got, tc.want)
		}
	}
}

// Every signal is declared once and names its labels as it is put.
func TestSignals(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range All() {
		for _, s := range p.Signals {
			if seen[s.Name] || s.Help == "" || s.Source == "" || s.ByHand == "" || s.Unit == "" {
				t.Errorf("signal %q: declared twice, or something is missing: %+v", s.Name, s)
			}
			seen[s.Name] = true
			if (s.Kind == model.Counter) != strings.HasSuffix(s.Name, "_total") {
				t.Errorf("signal %s is a %s", s.Name, s.Kind)
			}
		}
	}
}

// Of several processes the one that is nearest to its limit counts; who has none is left out.
func TestAddressSpaceAgainstTheLimit(t *testing.T) {
	var l level
	for _, p := range []*process{
		{virtual: 900, limitsKnown: true, soft: softLimits{space: 1000}},
		{virtual: 100, limitsKnown: true, soft: softLimits{space: 1000}},
		{virtual: 1 << 40, limitsKnown: true},
	} {
		l.add(p)
	}
	if l.worstSpace != 0.9 {
		t.Errorf("want 0.9 of the limit, got %v", l.worstSpace)
	}
}

// All processes of a user count against the limit of each of them; root has none.
func TestTasksOfAUserAgainstTheLimit(t *testing.T) {
	web, root := &group{name: "web"}, &group{name: "root"}
	r := &reader{procs: map[int]*process{
		1: {group: web, owner: 33, ownerKnown: true, threads: 6, soft: softLimits{tasks: 10}, tasksKnown: true},
		2: {group: web, owner: 33, ownerKnown: true, threads: 1, state: 'Z'},
		3: {group: root, threads: 90, ownerKnown: true, soft: softLimits{tasks: 10}, tasksKnown: true},
	}}
	r.addTasks()
	if !web.now.tasksKnown || web.now.worstTasks != 0.7 {
		t.Errorf("want 0.7 of the limit, got %+v", web.now)
	}
	if !root.now.tasksKnown || root.now.worstTasks != 0 {
		t.Errorf("want 0 for root, got %+v", root.now)
	}
}
