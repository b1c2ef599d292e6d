package load

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// poller is one thread's epoll, and the eventfd by which others wake it.
type poller struct {
	epoll, wake int32
	events      [64]unix.EpollEvent
	timeout     unix.Timespec
	coarse      bool  // the kernel has no epoll_pwait2 (before 5.11): whole milliseconds
	ring        *ring // what is waited at in place of epoll, nil for none
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
	if p.ring != nil {
		p.ring.close()
	}
	sysClose(p.epoll)
	sysClose(p.wake)
}

// add watches fd for everything, edge by edge, under the given name: one call in a socket's life.
func (p *poller) add(fd, name int32) syscall.Errno {
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | edges, Fd: name}
	_, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(p.epoll), unix.EPOLL_CTL_ADD, uintptr(fd), uintptr(unsafe.Pointer(&ev)), 0, 0)
	return e
}

// remove watches fd no more, which closing it does by itself.
func (p *poller) remove(fd int32) {
	syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(p.epoll), unix.EPOLL_CTL_DEL, uintptr(fd), 0, 0, 0)
}

// wait returns how many events came within ns nanoseconds; 0 also when a signal cut it short.
func (p *poller) wait(ns int64) int {
	if p.ring != nil {
		return p.ring.wait(ns, p.events[:])
	}
	if !p.coarse {
		p.timeout = unix.NsecToTimespec(ns)
		n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(unsafe.Pointer(&p.timeout)), 0, 0)
		if e == 0 {
			return int(n)
		}
		p.coarse = e == unix.ENOSYS
		return 0
	}
	ms := (ns + 999_999) / 1_000_000
	n, _, e := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(p.epoll), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(ms), 0, 0)
	if e != 0 {
		return 0
	}
	return int(n)
}

// sleep leaves events alone for ns nanoseconds; to whom they come is not woken by them.
func (p *poller) sleep(ns int64) {
	if p.ring != nil {
		p.ring.sleep(ns)
	} else {
		sysSleep(ns)
	}
}

// interrupt makes wait return. Any goroutine may call it.
func (p *poller) interrupt() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	// The eventfd is never read: each write is an edge, and its 64 bits outlast us.
	_, _ = unix.Write(int(p.wake), one[:])
}
