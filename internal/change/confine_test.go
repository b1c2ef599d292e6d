package change

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What a container's program does when we execute it is held in by what holds the
// container in.
func TestWhatAContainerHasExecutedStaysInItsGroups(t *testing.T) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	dir, line := "", ""
	for _, line = range []string{"1:pids:/plimsoll-test-" + strconv.Itoa(os.Getpid()), "0::/plimsoll-test-" + strconv.Itoa(os.Getpid())} {
		if dir, err = groupDir(string(mounts), line); err == nil {
			break
		}
	}
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if os.Geteuid() != 0 || errors.Is(err, ErrNotPossible) || errors.Is(err, unix.EROFS) {
		t.Skipf("no control groups of our own here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := impostor(t, "8080", nil, "unshare", "-p", "-f", "--kill-child")
	t.Cleanup(func() {
		s.Signal(unix.SIGKILL) // unshare -f waits on when it is told to end
		s.Until("the group is empty", func() bool { err := os.Remove(dir); return err == nil || errors.Is(err, os.ErrNotExist) })
	})
	step, err := Prepare(s.Host, Change{Kind: Nginx, Name: "worker_connections", To: "99"})
	if err != nil {
		t.Fatal(err)
	}
	of := step.service
	if err := os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(of.PID)), 0); err != nil {
		t.Fatal(err)
	}
	if err := of.test(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	_, name, _ := strings.Cut(line, "/")
	if groups := read(t, s.Dir+"/executed"); !strings.Contains(groups, "/"+name+"\n") {
		t.Errorf("it ran in the groups\n%s", groups)
	}
	h, err := of.hold()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.rights.Filtered = true
	if _, err := h.confinement(h.rights); !errors.Is(err, ErrNotPossible) {
		t.Errorf("with a filter of system calls: %v", err)
	}
}

func TestGroupDirectories(t *testing.T) {
	const mounts = `cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw,nsdelegate 0 0
`
	for line, want := range map[string]string{
		"3:cpu,cpuacct:/a/b":   "/sys/fs/cgroup/cpu,cpuacct/a/b",
		"1:name=systemd:/x":    "/sys/fs/cgroup/systemd/x",
		"0::/user.slice/x":     "/sys/fs/cgroup/unified/user.slice/x",
		"0::/../outside":       "",
		"5:devices:/docker/12": "", // not mounted
		"nonsense":             "",
		"0::relative":          "",
	} {
		got, err := groupDir(mounts, line)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v; want %q", line, got, err, want)
		}
	}
}

func FuzzRights(f *testing.F) {
	f.Add([]byte("Uid:\t0\t0\t0\t0\nGid:\t1\t1\t1\t1\nGroups:\t7 8 \nCapPrm:\t000001fffeffffff\nSeccomp:\t2\n"))
	f.Add([]byte("Uid:\t0\nGid:\nGroups:\nCapPrm:\tzz\n"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := parseRights(b); err == nil && len(r.Groups) > len(b) {
			t.Errorf("%q: %+v", b, r)
		}
	})
}
