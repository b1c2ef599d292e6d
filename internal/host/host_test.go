package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestPathsOfALiveAndOfARecordedHost(t *testing.T) {
	live, recorded := &Host{ns: -1}, Recorded("server", "tree")
	for _, c := range []struct{ got, want string }{
		{live.Path("proc", "stat"), "/proc/stat"},
		{live.Path("proc/net/tcp"), "/proc/thread-self/net/tcp"},
		{live.Path("proc", "net", "stat", "nf_conntrack"), "/proc/thread-self/net/stat/nf_conntrack"},
		{live.Path("proc/netfoo"), "/proc/netfoo"},
		{live.ServicePath(42, "/var/log/x"), "/proc/42/root/var/log/x"},
		{live.ServicePath(42, "/../../etc/x"), "/proc/42/root/etc/x"},
		{recorded.Path("proc/net/tcp"), "tree/proc/net/tcp"},
		{recorded.ServicePath(42, "/var/log/x"), "tree/var/log/x"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}

func TestOpenHostSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		spec, want string
		is         error
	}{
		{"remote", `"remote" is none of local, netns:NAME, pid:N, unit:NAME, container:NAME`, nil},
		{"netns:", "is none of", nil},
		{"netns:../x", "is none of", nil},
		{"netns:plimsoll-none", `no network namespace "plimsoll-none"; th`, fs.ErrNotExist},
		{"pid:x", "pid:x: want the number of a running process", nil},
		{"pid:0", "want the number of a running process", nil},
		{"pid:4194400", "no process 4194400; ps -e lists", fs.ErrNotExist},
		{"pid:" + strconv.Itoa(os.Getpid()), "use local", nil},
	} {
		_, err := Open("server", c.spec)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.spec, err, c.want)
		}
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want it to be %v", c.spec, err, c.is)
		}
	}
}

func TestInfoOfThisMachine(t *testing.T) {
	h := openLocal(t)
	info, err := h.Info()
	if err != nil {
		t.Fatal(err)
	}
	if info.Machine == "" || info.Kernel == "" || info.NetNS == 0 || info.CPUs < 1 {
		t.Errorf("%+v, want boot id, kernel, namespace and CPUs", info)
	}
}

func openLocal(t *testing.T) *Host {
	t.Helper()
	h, err := Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// namespace makes a network namespace for the test.
func namespace(t *testing.T, suffix string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("making a network namespace needs root")
	}
	name := "plimsoll-host-" + suffix + "-" + strconv.Itoa(os.Getpid())
	ip(t, "netns", "add", name)
	t.Cleanup(func() { ip(t, "netns", "delete", name) })
	ip(t, "-n", name, "link", "set", "lo", "up")
	return name
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// sleeper starts a process by command that waits until the test ends, and
// returns once it has said a word.
func sleeper(t *testing.T, command ...string) int {
	t.Helper()
	cmd := exec.Command(command[0], append(command[1:], "sh", "-c", "echo up; read x")...)
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
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func TestDoRunsInsideTheNamespaceAndLeavesOursAlone(t *testing.T) {
	name := namespace(t, "do")
	h, err := Open("server", "netns:"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	own, err := Inode("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		var inside uint64
		if err := h.Do(func() (err error) {
			inside, err = Inode("/proc/thread-self/ns/net")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if inside != h.netns || inside == own {
			t.Fatalf("namespace %d, want the host's %d and not ours, %d", inside, h.netns, own)
		}
	}
	if now, err := Inode("/proc/self/ns/net"); err != nil || now != own {
		t.Errorf("the main thread is in %d now (%v), want it left in %d", now, err, own)
	}
	if now, err := Inode("/proc/thread-self/ns/net"); err != nil || now != own {
		t.Errorf("this thread is in %d now (%v), want it left in %d", now, err, own)
	}
}

func TestAClosedHostIsNotEntered(t *testing.T) {
	h, err := Open("srv", "netns:"+namespace(t, "closed"))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	ran := false
	if err := h.Do(func() error { ran = true; return nil }); !errors.Is(err, fs.ErrClosed) || ran {
		t.Errorf("%v, ran %v; want fs.ErrClosed, and nothing done in our own namespace", err, ran)
	}
	if err := h.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

func TestDialReachesAListenerInsideTheNamespace(t *testing.T) {
	h, err := Open("server", "netns:"+namespace(t, "dial"))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	var l net.Listener
	if err := h.Do(func() (err error) {
		l, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := h.Dial(ctx, "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if c, err := openLocal(t).Dial(ctx, "tcp", l.Addr().String()); err == nil {
		c.Close()
		t.Error("the listener can be reached from outside, so it was not inside")
	}
	if _, err := h.Dial(ctx, "tcp", "localhost:80"); err == nil || !strings.Contains(err.Error(), "want IP:port") {
		t.Errorf("%v, want names to be refused", err)
	}
}

func TestProcessesBelongToTheHostThatClaimsThem(t *testing.T) {
	name := namespace(t, "procs")
	inside := sleeper(t, "ip", "netns", "exec", name)
	contained := sleeper(t, "unshare", "--net", "--pid", "--fork", "--kill-child")
	outside := sleeper(t, "env")

	local, server := openLocal(t), mustOpen(t, "server", "netns:"+name)
	box := mustOpen(t, "box", "pid:"+strconv.Itoa(child(t, contained)))
	Join([]*Host{local, server, box})
	want := []struct {
		pid  int
		host *Host
	}{{inside, server}, {outside, local}, {1, local}, {child(t, contained), box}, {os.Getpid(), local}}
	for _, w := range want {
		for _, h := range []*Host{local, server, box} {
			procs, err := h.Procs()
			if err != nil {
				t.Fatal(err)
			}
			has := slices.ContainsFunc(procs, func(p Proc) bool { return p.PID == w.pid })
			if has != (h == w.host) {
				t.Errorf("process %d on %s: %v, want %v", w.pid, h.Name, has, h == w.host)
			}
		}
	}
}

func mustOpen(t *testing.T, name, spec string) *Host {
	t.Helper()
	h, err := Open(name, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// child is the only child of a process.
func child(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(pid) + "/children")
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(b)))
	if err != nil {
		t.Fatalf("children of %d: %q", pid, b)
	}
	return n
}

func TestAProcessThatSharesOurNetworkIsToldApartByItsPIDNamespace(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("making a PID namespace needs root")
	}
	pid := child(t, sleeper(t, "unshare", "--pid", "--fork", "--kill-child"))
	local, box := openLocal(t), mustOpen(t, "box", "pid:"+strconv.Itoa(pid))
	Join([]*Host{local, box})
	theirs, err := box.Procs()
	if err != nil {
		t.Fatal(err)
	}
	if len(theirs) != 1 || theirs[0].PID != pid {
		t.Errorf("%+v, want process %d alone", theirs, pid)
	}
	ours, err := local.Procs()
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(ours, func(p Proc) bool { return p.PID == pid }) {
		t.Errorf("process %d belongs to the machine, too", pid)
	}
}

// recordProc writes what Procs reads of a process into a tree.
func recordProc(t *testing.T, root string, pid int, stat, cmdline string) {
	t.Helper()
	dir := filepath.Join(root, "proc", strconv.Itoa(pid))
	if err := os.MkdirAll(filepath.Join(dir, "ns"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"stat": stat, "cmdline": cmdline} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_ = os.Symlink("net:[4026531833]", filepath.Join(dir, "ns/net"))
}

const (
	statNginx  = "21 (nginx) S 7 21 21 0 -1 4194368 1 2 3 4 5 6 7 8 20 0 1 0 9000 1 2 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
	statKernel = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
)

func TestProcsOfARecordedTreeAreReadAgainAsTheyAge(t *testing.T) {
	root := t.TempDir()
	recordProc(t, root, 21, statNginx, "nginx: worker process\x00\x00\x00")
	recordProc(t, root, 2, statKernel, "")
	table := newProcTable(filepath.Join(root, "proc"))
	now := time.Unix(1000, 0)
	list := func(at time.Duration) []Proc {
		l, err := table.list(now.Add(at), new(Host).Marks)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(l, func(a, b Proc) int { return a.PID - b.PID })
		return slices.Clone(l)
	}
	nginx := Proc{PID: 21, PPID: 7, Start: 9000, Comm: "nginx", Args: []string{"nginx: worker process"}, NetNS: 4026531833}
	want := []Proc{{PID: 2, Comm: "kthreadd", Kernel: true, NetNS: 4026531833}, nginx}
	same := cmp.AllowUnexported(Proc{})
	if diff := cmp.Diff(want, list(0), same); diff != "" {
		t.Errorf("first sight (-want +got):\n%s", diff)
	}
	// An exec, and the parent ended: the name changes, the parent stays.
	recordProc(t, root, 21, strings.Replace(strings.Replace(statNginx, "nginx", "sh (a) b", 1), "S 7", "S 1", 1), "sh\x00-c\x00\x00x\x00")
	if diff := cmp.Diff(want, list(listYoungest-1), same); diff != "" {
		t.Errorf("in the same round, want the same (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, list(listOldest), same); diff != "" {
		t.Errorf("a name is read again after a second, want the same (-want +got):\n%s", diff)
	}
	want[1].Comm, want[1].Args = "sh (a) b", []string{"sh", "-c", "", "x"}
	if diff := cmp.Diff(want, list(1100*time.Millisecond), same); diff != "" {
		t.Errorf("a second later, want the new name (-want +got):\n%s", diff)
	}
	if err := os.RemoveAll(filepath.Join(root, "proc/21")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[:1], list(2200*time.Millisecond), same); diff != "" {
		t.Errorf("after its end (-want +got):\n%s", diff)
	}
}

// Where somebody tells the marks of processes, /proc need not be listed.
func TestProcsByTheirMarks(t *testing.T) {
	root := t.TempDir()
	record := func(pid int, comm string) {
		recordProc(t, root, pid, strings.Replace(statNginx, "21 (nginx)", fmt.Sprintf("%d (%s)", pid, comm), 1), "")
	}
	table := newProcTable(filepath.Join(root, "proc"))
	names := func(at time.Duration, marks map[int]uint64) (names []string) {
		t.Helper()
		list, err := table.list(time.Unix(1000, 0).Add(at), func() map[int]uint64 { return marks })
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(list, func(a, b Proc) int { return a.PID - b.PID })
		for _, p := range list {
			names = append(names, p.Comm)
		}
		return names
	}
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	record(20, "unmarked")
	record(21, "rests")
	record(22, "runs")
	check("the first list", names(0, map[int]uint64{21: 7, 22: 8}), "unmarked", "rests", "runs")
	record(21, "read all the same") // which its mark says cannot be
	record(22, "ran")
	record(23, "new")
	record(24, "new and unmarked")
	check("from marks; 99 has ended since", names(2*time.Second, map[int]uint64{21: 7, 22: 9, 23: 1, 99: 1}), "unmarked", "rests", "ran", "new")
	for _, pid := range []string{"20", "23"} {
		if err := os.RemoveAll(filepath.Join(root, "proc", pid)); err != nil {
			t.Fatal(err)
		}
	}
	check("without those that ended", names(4*time.Second, map[int]uint64{21: 7, 22: 0}), "rests", "ran")
	check("listed again", names(listEvery, map[int]uint64{21: 7, 22: 0}), "rests", "ran", "new and unmarked")
}

func FuzzParseDirents(f *testing.F) {
	fd, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		f.Fatal(err)
	}
	buf := make([]byte, 1024)
	n, err := unix.Getdents(fd, buf)
	if err != nil {
		f.Fatal(err)
	}
	unix.Close(fd)
	f.Add(buf[:n])
	f.Fuzz(func(t *testing.T, b []byte) {
		if entries, err := parseDirents(b, nil); err != nil && entries != nil {
			t.Errorf("entries and an error: %v, %v", entries, err)
		}
	})
}

// BenchmarkProcs is a scan in which nothing is new.
func BenchmarkProcs(b *testing.B) {
	table := newProcTable("/proc")
	now := time.Unix(1000, 0)
	for b.Loop() {
		now = now.Add(time.Second)
		list, err := table.list(now, new(Host).Marks)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(list)), "processes")
	}
}

// Whose namespaces may not be seen (the right to was lost, say) may be this host's:
// else "no service here" would be taken for a fact. A zombie has nothing to see.
func TestServicesAreThoseThatMayBeOurs(t *testing.T) {
	const ours, others = 1, 2
	program := []string{"nginx: master process nginx"}
	table := &procTable{scanned: time.Now(), good: time.Hour, last: []Proc{
		{PID: 10, NetNS: ours, Args: program}, {PID: 11, NetNS: others, Args: program},
		{PID: 12, Args: program}, {PID: 13}, {PID: 14, Kernel: true},
	}}
	procs, err := (&Host{netns: ours, strays: true, procs: table}).Services()
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, p := range procs {
		pids = append(pids, p.PID)
	}
	if !slices.Equal(pids, []int{10, 12}) {
		t.Errorf("services are %v, want 10 and 12", pids)
	}
}
