package change

import (
	"errors"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// Between finding who holds a listener and borrowing it the descriptor may have
// become another's, and the process another one: neither is told to listen.
func TestADescriptorThatIsAnotherSocketNowIsLeftAlone(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 3)); err != nil {
		t.Fatal(err)
	}
	is, err := idOf(fd)
	if err != nil {
		t.Fatal(err)
	}
	ino := strconv.FormatUint(is.Ino, 10)
	h, ok := holdersOf([]string{ino})[ino]
	if !ok || h.PID != os.Getpid() {
		t.Fatalf("held by %+v", h)
	}
	listen := func(fd int) error { return unix.Listen(fd, 9) }
	limit := func(fd int) uint32 {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			t.Fatal(err)
		}
		return info.Sacked
	}
	later := h
	later.Start++
	if err := later.borrow(listen); !errors.Is(err, errGone) || limit(fd) != 3 {
		t.Errorf("another process of that number: %v; the queue is %d long", err, limit(fd))
	}
	other, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(other)
	if err := errors.Join(unix.Bind(other, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(other, 4)); err != nil {
		t.Fatal(err)
	}
	kept, err := unix.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(kept)
	if err := unix.Dup3(other, fd, unix.O_CLOEXEC); err != nil { // the number is reused
		t.Fatal(err)
	}
	if err := h.borrow(listen); !errors.Is(err, errGone) || limit(other) != 4 || limit(kept) != 3 {
		t.Errorf("another socket of that number: %v; the queues are %d and %d long", err, limit(kept), limit(other))
	}
}
