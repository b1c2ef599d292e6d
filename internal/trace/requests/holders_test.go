package requests

import (
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
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip(err)
	}
	tr, ns := begin(t, w, everything)
	if tr.unfound != nil {
		t.Skip(tr.unfound)
	}
	addr := startProcess(t, python, "", "testdata/threads.py")
	dial := func() net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	for _, what := range []string{"lock", "lock", "lock", "pipe", "pipe", "open " + guarded(t)} {
		fmt.Fprintln(dial(), what)
	}
	ask(t, dial(), "answer")
	want := map[string]uint64{"lock": 3, "pipe": 2, "uninterruptible_other": 1}
	p := wait(t, tr, ns, addr, "three wait for the lock, two for the pipe, and one in the kernel", func(p Place) bool {
		return len(p.Groups) == 1 && maps.Equal(p.Groups[0].Doing, want)
	})
	if *p.Groups[0].Now != 6 {
		t.Errorf("%d in hand, want 6", *p.Groups[0].Now)
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
	if err := unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN_PERM, unix.AT_FDCWD, path); err != nil {
		t.Fatal(err)
	}
	return path
}
