package asuser

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDialUnix looks at what the kernel tells the one who is asked, and that nobody
// else of this process got other rights.
func TestDialUnix(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be somebody else")
	}
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "socket")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	shown, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, err := DialUnix(path, 65534, 65533)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	raw, err := s.(*net.UnixConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var peer *unix.Ucred
	if e := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil || err != nil {
		t.Fatal(e, err)
	}
	if peer.Uid != 65534 || peer.Gid != 65533 {
		t.Errorf("the listener hears of user %d and group %d, want 65534 and 65533", peer.Uid, peer.Gid)
	}
	if os.Geteuid() != 0 || os.Getegid() != 0 {
		t.Errorf("we are user %d and group %d now, want root", os.Geteuid(), os.Getegid())
	}
	if now, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || now != shown {
		t.Errorf("the process is shown to others as %d, was %d (%v)", now, shown, err)
	}
	if _, err := DialUnix(path, 65532, 65532); !errors.Is(err, unix.EACCES) {
		t.Errorf("as one who may not: %v, want %v", err, unix.EACCES)
	}

	// Our own groups open nothing for that user.
	groups, err := unix.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	const ours = 4711
	t.Cleanup(func() { _ = syscall.Setgroups(groups) })
	if err := errors.Join(syscall.Setgroups([]int{ours}), os.Chown(path, 0, ours), os.Chmod(path, 0o660)); err != nil {
		t.Fatal(err)
	}
	if _, err := DialUnix(path, 65534, 65533); !errors.Is(err, unix.EACCES) {
		t.Errorf("by a group of ours: %v, want %v", err, unix.EACCES)
	}
	if now, err := unix.Getgroups(); err != nil || !slices.Equal(now, []int{ours}) {
		t.Errorf("our groups are %v now: %v", now, err)
	}
}
