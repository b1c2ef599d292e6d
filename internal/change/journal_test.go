package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

func TestWhatOthersChangedIsLeftAlone(t *testing.T) {
	s := sleeper(t)
	j := open(t)
	e := must(t, j, s.Host, Change{Kind: Sysctl, Name: "net.core.somaxconn", To: "1234"})
	at := e.Parts[0].Target
	if err := at.set("99"); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Undo(t.Context(), e.ID, false); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), `is "99" now`) {
		t.Errorf("undo: %v", err)
	}
	if now, _ := at.get(); now != "99" {
		t.Errorf("it was overwritten with %s", now)
	}
	if _, err := j.Undo(t.Context(), e.ID, true); err != nil {
		t.Error(err)
	}
	if now, _ := at.get(); now != e.Old {
		t.Errorf("it is %s, want %s", now, e.Old)
	}
	if _, err := j.Undo(t.Context(), e.ID, false); err == nil {
		t.Error("it was taken back twice")
	}
}

func TestEditedFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := startNginx(t)
	j := open(t)
	e := must(t, j, w.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99"})
	file := w.Dir + "/nginx.conf"
	edited := read(t, file) + "# mine\n"
	if err := os.WriteFile(file, []byte(edited), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Undo(t.Context(), e.ID, false); !errors.Is(err, ErrChanged) || read(t, file) != edited {
		t.Errorf("undo: %v", err)
	}
	if _, err := j.Undo(t.Context(), e.ID, true); err != nil || read(t, file) != nginxConf {
		t.Errorf("undo by force: %v", err)
	}
}

func TestStepThatIsTooOld(t *testing.T) {
	s := sleeper(t)
	j := open(t)
	step, err := Prepare(s.Host, Change{Kind: Sysctl, Name: "net.core.somaxconn", To: "1234"})
	if err != nil {
		t.Fatal(err)
	}
	if err := step.parts[0].Target.set("55"); err != nil {
		t.Fatal(err)
	}
	if e, err := j.Apply(t.Context(), step); !errors.Is(err, ErrChanged) || e.ID != 0 || len(j.Entries()) > 0 {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestWhatHasEndedIsSaidToHave(t *testing.T) {
	t.Parallel()
	s := sleeper(t)
	j := open(t)
	must(t, j, s.Host, Change{Kind: Sysctl, Name: "net.core.somaxconn", To: "1234"})
	must(t, j, s.Host, Change{Kind: Limit, Name: "nofile", To: "77", PID: s.PID})
	s.Signal(unix.SIGKILL)
	s.Until("it ended", func() bool { st, err := host.StatOf(s.PID); return err != nil || st.State == 'Z' })
	if err := s.Host.Close(); err != nil { // the last one that holds the namespace
		t.Fatal(err)
	}
	for _, r := range undoAll(t, j) {
		if len(r.Sentences) != 1 || !strings.Contains(r.Sentences[0], "is gone") || r.Entry.State != Undone {
			t.Errorf("%+v", r)
		}
	}
}

// After a reboot settings are gone, files have stayed, and what runs now was
// started with the changed file.
func TestAfterAReboot(t *testing.T) {
	t.Parallel()
	w := startNginx(t)
	before := snap(t, w.Host, w.Dir, w.PID)
	j := open(t)
	must(t, j, w.Host, Change{Kind: Sysctl, Name: "net.core.somaxconn", To: "1234"})
	must(t, j, w.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99"})
	for i := range j.entries {
		j.entries[i].Boot = "another"
		if s := j.entries[i].Service; s != nil {
			s.Start++
		}
	}
	results := undoAll(t, j)
	if len(results) != 2 || !strings.Contains(results[1].Sentences[0], "a reboot has taken /proc/sys/net/core/somaxconn back") {
		t.Errorf("%+v", results)
	}
	w.answers(t)
	now := snap(t, w.Host, w.Dir, w.PID)
	if now["/proc/sys/net/core/somaxconn"] != "1234\n" {
		t.Error("a setting of another boot was written")
	}
	delete(before, "/proc/sys/net/core/somaxconn")
	delete(now, "/proc/sys/net/core/somaxconn")
	if d := cmp.Diff(before, now); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
}

func TestLeaveOut(t *testing.T) {
	t.Parallel()
	w := startNginx(t)
	before := snap(t, w.Host, w.Dir, w.PID)
	j := open(t)
	one := must(t, j, w.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99"})
	two := must(t, j, w.Host, Change{Kind: Nginx, Name: "worker_processes", To: "2"})
	other := must(t, j, w.Host, Change{Kind: Sysctl, Name: "net.core.somaxconn", To: "1234"})
	if _, err := j.Undo(t.Context(), one.ID, true); err == nil || !strings.Contains(err.Error(), "change 2 was made upon it") {
		t.Errorf("what lies beneath was undone: %v", err)
	}
	again, err := j.LeaveOut(t.Context(), one.ID)
	if err != nil || len(again) != 1 || again[two.ID].Change != two.Change || again[two.ID].State != Done {
		t.Errorf("%+v, %v", again, err)
	}
	got := read(t, w.Dir+"/nginx.conf")
	if !strings.Contains(got, "worker_processes 2;") || !strings.Contains(got, "worker_connections 64;") {
		t.Errorf("the file:\n%s", got)
	}
	if e, err := j.find(other.ID); err != nil || e.State != Done {
		t.Errorf("%+v, %v", e, err)
	}
	undoAll(t, j)
	if d := cmp.Diff(before, snap(t, w.Host, w.Dir, w.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
}

func TestNoRoomForTheJournal(t *testing.T) {
	s := sleeper(t)
	dir := t.TempDir()
	if err := unix.Mount("plcg", dir, "tmpfs", 0, "size=8k,mode=700"); err != nil {
		t.Fatalf("mount a small file system: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	before := snap(t, s.Host, s.Dir, s.PID)
	j, err := Open(dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	step, err := Prepare(s.Host, Change{Kind: Sysctl, Name: "net.core.somaxconn", To: "1234"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/full", make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := j.Apply(t.Context(), step)
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "nothing was changed") || e.ID != 0 {
		t.Errorf("%+v, %v", e, err)
	}
	if d := cmp.Diff(before, snap(t, s.Host, s.Dir, s.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
	if list, _, err := ReadEntries(dir); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestFilesThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := startNginx(t)
	before := snap(t, w.Host, w.Dir, w.PID)
	change := Change{Kind: Nginx, Name: "worker_connections", To: "99"}
	j := open(t)
	step, err := Prepare(w.Host, change)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(w.Dir, w.Dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatalf("mount a directory on itself: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(w.Dir, unix.MNT_DETACH) })
	if err := unix.Mount("", w.Dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(w.Host, change); !errors.Is(err, unix.EROFS) {
		t.Errorf("look at a file on a read-only file system: %v", err)
	}
	if e, err := j.Apply(t.Context(), step); !errors.Is(err, unix.EROFS) || e.State != Failed {
		t.Errorf("change it all the same: %+v, %v", e, err)
	}
	w.answers(t)
	if d := cmp.Diff(before, snap(t, w.Host, w.Dir, w.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
}

func TestKernelSaysNo(t *testing.T) {
	t.Parallel()
	s := sleeper(t)
	before := snap(t, s.Host, s.Dir, s.PID)
	j := open(t)
	step, err := Prepare(s.Host, Change{Kind: Sysctl, Name: "net.ipv4.ip_local_port_range", To: "60000 20"})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := j.Apply(t.Context(), step); !errors.Is(err, unix.EINVAL) || !errors.Is(err, ErrValue) || e.State != Failed {
		t.Errorf("%+v, %v", e, err)
	}
	if d := cmp.Diff(before, snap(t, s.Host, s.Dir, s.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
}

// The kernel says "no such file" of the name of an algorithm that it does not have: the
// setting is there, and is not what it was.
func TestAValueThatIsGoneIsNoSettingThatIs(t *testing.T) {
	s := sleeper(t)
	j := open(t)
	step, err := Prepare(s.Host, Change{Kind: Sysctl, Name: "net.ipv4.tcp_congestion_control", To: "plcg-nosuch"})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := j.Apply(t.Context(), step); !errors.Is(err, ErrValue) || errors.Is(err, fs.ErrNotExist) || e.State != Failed {
		t.Errorf("%+v, %v", e, err)
	}
	p := step.parts[0]
	p.Old, p.New = p.New, p.Old
	if err := restoreValues([]*part{&p}); !errors.Is(err, ErrValue) {
		t.Errorf("%v; it was not taken back", err)
	}
}

func TestInterfacesOfANamespace(t *testing.T) {
	s := sleeper(t)
	if err := s.Host.Do(exec.Command("ip", "link", "add", "plcg0", "type", "veth", "peer", "name", "plcg1").Run); err != nil {
		t.Fatalf("make an interface: %v", err)
	}
	j := open(t)
	must(t, j, s.Host, Change{Kind: TxQueue, Name: "plcg0", To: "333"})
	e := must(t, j, s.Host, Change{Kind: RPS, Name: "plcg0", To: "0-1"})
	made := j.Entries()
	if len(e.Parts) == 0 || string(e.Parts[0].New) != "3" {
		t.Errorf("%+v", e)
	}
	for _, p := range j.Entries() {
		for _, part := range p.Parts {
			if now, err := part.Target.get(); err != nil || now != string(part.New) {
				t.Errorf("%s: %q, %v", part.Target, now, err)
			}
		}
	}
	undoAll(t, j)
	for _, p := range made {
		for _, part := range p.Parts {
			if now, err := part.Target.get(); err != nil || now != string(part.Old) {
				t.Errorf("%s: %q, %v", part.Target, now, err)
			}
		}
	}
	if _, err := Prepare(s.Host, Change{Kind: Ring, Name: "plcg0 rx", To: "64"}); !errors.Is(err, ErrNotPossible) {
		t.Errorf("the rings of a veth: %v", err)
	}
}

// cpuGroupForTest makes a control group of this process's, and returns its directory.
func cpuGroupForTest(t *testing.T) (dir, group string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may make a control group")
	}
	v1, v2 := cpuMounts(read(t, "/proc/self/mounts"))
	dir = v1
	if dir == "" {
		dir = v2
	}
	if dir == "" {
		t.Skip("no control groups for CPUs are mounted here")
	}
	group = fmt.Sprintf("/plcg-test-%d", os.Getpid())
	dir += group
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, unix.EROFS) {
		t.Skip(err) // in a container
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir, group
}

// halved gives a group half of a CPU, in a process of its own.
func halved(dir, group string) error {
	j, err := Open(dir, filepath.Dir(dir))
	if err != nil {
		return err
	}
	h, err := host.Open("local", "local")
	if err != nil {
		return err
	}
	defer h.Close()
	s, err := Prepare(h, Change{Kind: Quota, Cgroup: group, To: "50000 100000"})
	if err == nil {
		_, err = j.Apply(context.Background(), s)
	}
	return err
}

// "ip netns exec" puts a /sys of its own before the control groups. What was
// changed from there is found again by a process that sees them.
func TestQuotaBehindAnotherSys(t *testing.T) {
	_, group := cpuGroupForTest(t)
	dir := filepath.Join(t.TempDir(), "changes")
	cmd := exec.Command("unshare", "--mount", "sh", "-c", "umount -l /sys && mount -t sysfs plcg /sys && exec "+os.Args[0])
	cmd.Env = append(os.Environ(), child+"=quota "+dir+" "+group)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	j, err := Open(dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, p := range j.Entries()[0].Parts {
		if now, err := p.Target.get(); err != nil || now != string(p.New) || now == string(p.Old) {
			t.Errorf("%s: %q, %v; want %q", p.Target, now, err, p.New)
		}
	}
	if r := undoAll(t, j); len(r) != 1 || strings.Contains(strings.Join(r[0].Sentences, " "), "gone") {
		t.Errorf("%+v", r)
	}
}

func TestQuotaOfAControlGroup(t *testing.T) {
	dir, group := cpuGroupForTest(t)
	h, err := host.Open("local", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	j := open(t)
	s, err := Prepare(h, Change{Kind: Quota, Cgroup: group, To: "50000 200000"})
	if notes := strings.Join(s.Notes, " "); err != nil || strings.HasPrefix(s.Old, "max ") && !strings.Contains(notes, "100000 µs, becomes 200000 µs") {
		t.Errorf("its period is another, and the plan does not say so: %q, %v", notes, err)
	}
	e := must(t, j, h, Change{Kind: Quota, Cgroup: group, To: "50000 200000"})
	if e.Scope != Cgroup {
		t.Errorf("%+v", e)
	}
	undoAll(t, j)
	for _, p := range e.Parts {
		if now, err := p.Target.get(); err != nil || now != string(p.Old) {
			t.Errorf("%s: %q, %v", p.Target, now, err)
		}
	}
	must(t, j, h, Change{Kind: Quota, Cgroup: group, To: "50000 200000"})
	// Another group of the same name is none of ours.
	if err := errors.Join(os.Remove(dir), os.Mkdir(dir+"x", 0o755), os.Mkdir(dir, 0o755), os.Remove(dir+"x")); err != nil {
		t.Fatal(err)
	}
	for _, r := range undoAll(t, j) {
		if !strings.Contains(strings.Join(r.Sentences, " "), "is gone") {
			t.Errorf("%+v", r)
		}
	}
	if _, err := Prepare(h, Change{Kind: Quota, Cgroup: "/plcg-nosuch", To: "max"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such group: %v", err)
	}
	if _, err := Prepare(h, Change{Kind: IRQ, Name: "999999", To: "0"}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such interrupt: %v", err)
	}
}

// A quota that holds somebody down is not lifted for him, nor for us.
func TestQuotaOfWhoIsHeldDown(t *testing.T) {
	dir, group := cpuGroupForTest(t)
	h, err := host.Open("local", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	lift := func(want string, notes ...string) {
		t.Helper()
		s, err := Prepare(h, Change{Kind: Quota, Cgroup: group, To: "50000 100000"})
		if want != "" {
			if !errors.Is(err, ErrNotPossible) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			return
		}
		if err != nil || len(s.Notes) < 1+len(notes) {
			t.Errorf("%v, %q", err, s.Notes)
		}
		for _, note := range notes {
			if !strings.Contains(strings.Join(s.Notes, "\n"), note) {
				t.Errorf("%q, want %q", s.Notes, note)
			}
		}
	}
	enter := func(to string, pid int) {
		t.Helper()
		if err := os.WriteFile(to+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0); err != nil {
			t.Fatal(err)
		}
	}
	begin := func(words ...string) int {
		t.Helper()
		cmd := exec.Command(words[0], words[1:]...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd.Process.Pid
	}
	top := filepath.Dir(dir)
	master := begin("sleep", "600")
	enter(dir, master)
	lift("")
	user := begin("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sleep", "600")
	for read(t, proc(user, "comm")) != "sleep\n" {
		time.Sleep(time.Millisecond) // it becomes that user first
	}
	enter(dir, user)
	lift("user 65534's")
	enter(top, user)
	enter(top, master)

	// We alone, and with a service.
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), child+"=lift "+t.TempDir()+" "+group)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "holds plimsoll itself and no service") {
		t.Errorf("%v: %s", err, out)
	}
	enter(dir, master)
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), child+"=lift "+t.TempDir()+" "+group)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "plimsoll itself runs in it, too") {
		t.Errorf("%v: %s", err, out)
	}

	// What was handed to a user, also further up.
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	lift("user 65534's, who can name it")
	if _, err := Prepare(h, Change{Kind: Quota, Cgroup: "/user.slice/user-7.slice", To: "max"}); err == nil {
		t.Error("a user's slice may have more")
	}
	if _, err := mayLift(dir, "/user.slice/user-7.slice/x"); !errors.Is(err, ErrNotPossible) || !strings.Contains(err.Error(), "holds user 7") {
		t.Error(err)
	}
	enter(top, master)
}

// lifted enters a group and says what lifting its quota would be.
func lifted(group string) error {
	v1, v2 := "", ""
	b, err := os.ReadFile("/proc/self/mounts")
	if err == nil {
		v1, v2 = cpuMounts(string(b))
		if v1 == "" {
			v1 = v2
		}
		err = os.WriteFile(v1+group+"/cgroup.procs", []byte("0"), 0)
	}
	if err != nil {
		return err
	}
	h, err := host.Open("local", "local")
	if err != nil {
		return err
	}
	defer h.Close()
	s, err := Prepare(h, Change{Kind: Quota, Cgroup: group, To: "50000 100000"})
	fmt.Println(s.Notes)
	return err
}

// No change without a note of it; one that was taken back while there was no room
// for the note is recognised later.
func TestJournalOnAFullDisk(t *testing.T) {
	s := sleeper(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=40960,mode=700"); err != nil {
		t.Fatalf("mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	before := snap(t, s.Host, s.Dir, s.PID)
	j, err := Open(filepath.Join(dir, "j"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	must(t, j, s.Host, Change{Kind: Sysctl, Name: "net.core.somaxconn", To: "1234"})
	other, err := Prepare(s.Host, Change{Kind: Sysctl, Name: "net.ipv4.tcp_tw_reuse", To: "0"})
	if err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 40960), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if e, err := j.Apply(t.Context(), other); !errors.Is(err, unix.ENOSPC) || e.ID != 0 || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("a change without a note: %+v, %v", e, err)
	}
	if _, err := j.UndoAll(t.Context(), false); !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "could not be noted") {
		t.Errorf("undo without a note: %v", err)
	}
	if d := cmp.Diff(before, snap(t, s.Host, s.Dir, s.PID)); d != "" {
		t.Errorf("(-before +after):\n%s", d)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if results := undoAll(t, j); len(results) != 1 {
		t.Errorf("once there is room: %+v", results)
	}
	if results := undoAll(t, j); len(results) != 0 {
		t.Errorf("once more: %+v", results)
	}
}
