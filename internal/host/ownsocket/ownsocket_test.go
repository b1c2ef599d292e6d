package ownsocket

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

// A socket of somebody else's is not connected to, under whatever name it is given.
func TestDialIsForTheServiceAlone(t *testing.T) {
	h, err := host.Open("local", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	dir := t.TempDir()
	path := filepath.Join(dir, "own.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other := exec.Command("sleep", "600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	for _, pids := range [][]int{{os.Getpid()}, {other.Process.Pid, os.Getpid()}} {
		c, err := Dial(t.Context(), h, "/", path, pids...)
		if err != nil {
			t.Fatal(pids, err)
		}
		c.Close()
	}
	if err := os.Symlink(path, dir+"/link.sock"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, dir + "/link.sock"} {
		c, err := Dial(t.Context(), h, "/", name, other.Process.Pid)
		if err == nil || !strings.Contains(err.Error(), "no process of the service listens") {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}

	// A name that leads to another socket than the one that was listened at.
	if err := os.Rename(path, dir+"/old.sock"); err != nil {
		t.Fatal(err)
	}
	again, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if c, err := Dial(t.Context(), h, "/", path, os.Getpid()); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	if _, err := Dial(t.Context(), h, "/", dir, os.Getpid()); err == nil {
		t.Error("a directory is a socket")
	}
	if _, err := Dial(t.Context(), h, "/", path); err == nil {
		t.Error("a service without processes listens")
	}
}

// The device of a mount is stat's, on the file systems of a test.
func TestMountDevice(t *testing.T) {
	h, err := host.Open("local", "local")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	if major, minor, ok := mountDevice(h, os.Getpid(), f); !ok || major != unix.Major(st.Dev) || minor != unix.Minor(st.Dev) {
		t.Errorf("%d:%d, %v; stat says %d:%d", major, minor, ok, unix.Major(st.Dev), unix.Minor(st.Dev))
	}
}
