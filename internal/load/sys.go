package load

import (
	"encoding/binary"
	"fmt"
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
	n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_NOSIGNAL, 0, 0)
	return int(n), e
}

// sysRecv reads up to n bytes; with MSG_TRUNC in flags they are thrown away and
// b is not written.
func sysRecv(fd int32, b []byte, n int, flags int) (int, syscall.Errno) {
	r, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(n), uintptr(flags), 0, 0)
	return int(r), e
}

func sysRecvMsg(fd int32, m *unix.Msghdr) (int, syscall.Errno) {
	n, _, e := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(m)), 0)
	return int(n), e
}

func sysSocket(family int) (int32, syscall.Errno) {
	fd, _, e := unix.RawSyscall(unix.SYS_SOCKET, uintptr(family), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	return int32(fd), e
}

func sysBind(fd int32, addr []byte) syscall.Errno {
	_, _, e := unix.RawSyscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(addr))), uintptr(len(addr)))
	return e
}

func sysConnect(fd int32, addr []byte) syscall.Errno {
	_, _, e := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(addr))), uintptr(len(addr)))
	return e
}

func sysSetOption(fd int32, level, name int, value int32) {
	// What is set by it is a help (no delay, time stamps), never a need.
	unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name), uintptr(unsafe.Pointer(&value)), unsafe.Sizeof(value), 0)
}

// sysShutdown ends both directions of a connection, whoever else has its descriptor.
func sysShutdown(fd int32) {
	unix.RawSyscall(unix.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_RDWR, 0)
}

func sysClose(fd int32) {
	unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
}

// sysSleep blocks for ns nanoseconds, or until a signal comes.
func sysSleep(ns int64) {
	t := unix.NsecToTimespec(ns)
	unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
}

// socketError takes the pending error off a socket.
func socketError(fd int32) syscall.Errno {
	var value, size int32 = 0, 4
	_, _, e := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_ERROR, uintptr(unsafe.Pointer(&value)), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return e
	}
	return syscall.Errno(value)
}

// poller is one thread's epoll, and the eventfd by which others wake it.
type poller struct {
	epoll, wake int32
	events      [64]unix.EpollEvent
	timeout     unix.Timespec
	coarse      bool // the kernel has no epoll_pwait2 (before 5.11): whole milliseconds
}

// edges asks for edge-triggered events (unix.EPOLLET has the wrong sign for the field).
const edges = 1 << 31

// woken is the Fd of an event that came from wake.
const woken = -1

func newPoller() (*poller, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create epoll for the load: %w", err)
	}
	ev, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(ep)
		return nil, fmt.Errorf("create eventfd for the load: %w", err)
	}
	p := &poller{epoll: int32(ep), wake: int32(ev)}
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, ev, &unix.EpollEvent{Events: unix.EPOLLIN | edges, Fd: woken}); err != nil {
		p.close()
		return nil, fmt.Errorf("watch eventfd for the load: %w", err)
	}
	return p, nil
}

func (p *poller) close() {
	sysClose(p.epoll)
	sysClose(p.wake)
}

// add watches fd for everything, edge by edge, under the given name: one call in a socket's life.
func (p *poller) add(fd, name int32) syscall.Errno {
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | edges, Fd: name}
	_, _, e := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(p.epoll), unix.EPOLL_CTL_ADD, uintptr(fd), uintptr(unsafe.Pointer(&ev)), 0, 0)
	return e
}

// remove watches fd no more, which closing it does by itself.
func (p *poller) remove(fd int32) {
	unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(p.epoll), unix.EPOLL_CTL_DEL, uintptr(fd), 0, 0, 0)
}

// wait returns how many events came within ns nanoseconds; 0 also when a signal cut it short.
func (p *poller) wait(ns int64) int {
	if !p.coarse {
		p.timeout = unix.NsecToTimespec(ns)
		n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(unsafe.Pointer(&p.timeout)), 0, 0)
		if e == 0 {
			return int(n)
		}
		p.coarse = e == unix.ENOSYS
		return 0
	}
	ms := (ns + 999_999) / 1_000_000
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(ms), 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}

// interrupt makes wait return. Any goroutine may call it.
func (p *poller) interrupt() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	// The eventfd is never read: each write is an edge, and its 64 bits outlast us.
	_, _ = unix.Write(int(p.wake), one[:])
}
