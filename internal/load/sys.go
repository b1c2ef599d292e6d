package load

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls below are raw: they tell the Go scheduler nothing, which saves the
// price of giving the processor away and winning it back around each of them.
// All but wait return at once. wait blocks; while it does, only a signal (which
// the Go runtime sends when it wants to stop the world) gets the thread's
// attention, and it then returns EINTR.

func sysSend(fd int32, b []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
	return int(n), e
}

// sysRecv reads up to n bytes; with MSG_TRUNC in flags they are thrown away and
// b is not written.
func sysRecv(fd int32, b []byte, n int, flags int) (int, syscall.Errno) {
	r, _, e := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(n), uintptr(flags), 0, 0)
	return int(r), e
}

func sysRecvMsg(fd int32, m *unix.Msghdr) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(m)), 0)
	return int(n), e
}

func sysSocket(family int) (int32, syscall.Errno) {
	fd, _, e := syscall.RawSyscall(unix.SYS_SOCKET, uintptr(family), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	return int32(fd), e
}

func sysBind(fd int32, addr []byte) syscall.Errno {
	_, _, e := syscall.RawSyscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(addr))), uintptr(len(addr)))
	return e
}

func sysConnect(fd int32, addr []byte) syscall.Errno {
	_, _, e := syscall.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(addr))), uintptr(len(addr)))
	return e
}

func sysSetOption(fd int32, level, name int, value int32) {
	// What is set by it is a help (no delay, time stamps), never a need.
	syscall.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name), uintptr(unsafe.Pointer(&value)), unsafe.Sizeof(value), 0)
}

// sysSetCongestion has the kernel go by another congestion control than the host's.
func sysSetCongestion(fd int32, name string) {
	syscall.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_TCP, unix.TCP_CONGESTION, uintptr(unsafe.Pointer(unsafe.StringData(name))), uintptr(len(name)), 0)
}

// sysShutdown ends both directions of a connection, whoever else has its descriptor.
func sysShutdown(fd int32) {
	syscall.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_RDWR, 0)
}

func sysClose(fd int32) {
	syscall.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
}

// sysSleep blocks for ns nanoseconds, or until a signal comes.
func sysSleep(ns int64) {
	t := unix.NsecToTimespec(ns)
	syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
}

// socketError takes the pending error off a socket.
func socketError(fd int32) syscall.Errno {
	var value, size int32 = 0, 4
	_, _, e := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_ERROR, uintptr(unsafe.Pointer(&value)), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return e
	}
	return syscall.Errno(value)
}
