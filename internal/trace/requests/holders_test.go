package requests

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWhatHoldersDo: what the threads wait for that have a request in hand; not those that
// have answered theirs, and wait for the same.
func TestWhatHoldersDo(t *testing.T) { eachWay(t, whatHoldersDo) }

func whatHoldersDo(t *testing.T, w way) {
	h := startHolders(t, w)
	for _, what := range []string{"lock", "lock", "lock", "pipe", "pipe"} {
		fmt.Fprintln(h.dial(t), what)
	}
	ask(t, h.dial(t), "answer")
	h.want(t, "three wait for the lock, and two for the pipe", map[string]uint64{"lock": 3, "pipe": 2}, 5)
}

// TestHolderInTheKernel: what cannot be interrupted. Not everywhere may a test bring that about.
func TestHolderInTheKernel(t *testing.T) { eachWay(t, holderInTheKernel) }

func holderInTheKernel(t *testing.T, w way) {
	h := startHolders(t, w)
	fmt.Fprintln(h.dial(t), "open "+guarded(t))
	h.want(t, "it waits in the kernel", map[string]uint64{"uninterruptible_other": 1}, 1)
}

// holding is a server whose threads hold requests, as it is watched.
type holding struct {
	tr   *Trace
	ns   uint32
	addr string
}

func startHolders(t *testing.T, w way) holding {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err) // scripts/install-deps tests installs it
	}
	tr, ns := begin(t, w, everything)
	if tr.unfound != nil {
		t.Skip(tr.unfound)
	}
	return holding{tr, ns, startProcess(t, python, "", "testdata/threads.py")}
}

func (h holding) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (h holding) want(t *testing.T, what string, doing map[string]uint64, now uint64) {
	t.Helper()
	p := wait(t, h.tr, h.ns, h.addr, what, func(p Place) bool {
		return len(p.Groups) == 1 && maps.Equal(p.Groups[0].Doing, doing)
	})
	if *p.Groups[0].Now != now {
		t.Errorf("%d in hand, want %d", *p.Groups[0].Now, now)
	}
}

// TestHoldersThatAreNotLookedAt: 128 of 200 stand for all of them.
func TestHoldersThatAreNotLookedAt(t *testing.T) {
	d := doing{7: {"lock": 100, "running": 28}}
	d.scale(200.0 / maxHolders)
	if got := d[7]; got["lock"] != 156 || got["running"] != 44 {
		t.Errorf("%v, want 156 and 44 of 200", got)
	}
}

// guarded is a file that nobody may open before a scanner has looked at it, and this one never does.
func guarded(t *testing.T) string {
	t.Helper()
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC, unix.O_RDONLY)
	if err != nil {
		t.Skip("fanotify: ", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	path := filepath.Join(t.TempDir(), "guarded")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err = unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN_PERM, unix.AT_FDCWD, path)
	if errors.Is(err, unix.EINVAL) {
		t.Skip("this kernel asks no scanner (FANOTIFY_ACCESS_PERMISSIONS): ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	return path
}
