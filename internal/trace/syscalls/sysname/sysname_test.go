package sysname

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestCall(t *testing.T) {
	for nr, want := range map[uint32]string{
		unix.SYS_READ: "read", unix.SYS_PREAD64: "pread64", unix.SYS_EPOLL_PWAIT: "epoll_pwait", unix.SYS_IO_URING_ENTER: "io_uring_enter",
		1 << 30: "syscall 1073741824", 100_000: "syscall 100000",
	} {
		if got := Call(nr); got != want {
			t.Errorf("call %d is %q, want %q", nr, got, want)
		}
	}
}

func TestError(t *testing.T) {
	for errno, want := range map[uint32]string{
		uint32(unix.ENOENT): "ENOENT", uint32(unix.EAGAIN): "EAGAIN", 512: "ERESTARTSYS", 4000: "errno 4000",
	} {
		if got := Error(errno); got != want {
			t.Errorf("error %d is %q, want %q", errno, got, want)
		}
	}
}
