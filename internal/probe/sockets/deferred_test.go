package sockets

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

// How long a listener defers is asked of its own socket, and of no other that has its number by now.
func TestDefers(t *testing.T) {
	h, err := host.Open("here", "local")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 3); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	inode := uint32(st.Ino)
	o := newOwners(h, searchShare, map[int]uint64{})
	if _, known := o.defers(inode); known {
		t.Error("told of a listener that nobody has looked for")
	}
	if err := o.find([]uint32{inode}, time.Unix(1000, 0)); err != nil {
		t.Fatal(err)
	}
	if s, known := o.defers(inode); !known || s < 3 { // the kernel counts in SYN-ACKs sent again: 1, 3, 7 s
		_, err := o.known[inode].deferred(inode)
		t.Errorf("it defers %v s, known %v (%v); want 3 or more", s, known, err)
	}
	if _, err := o.known[inode].deferred(inode + 1); err == nil {
		t.Error("a socket that is another one was asked")
	}
}
