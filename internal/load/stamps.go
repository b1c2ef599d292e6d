package load

import (
	"encoding/binary"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stampReader holds what recvmsg needs to return the kernel's time stamps.
type stampReader struct {
	msg     unix.Msghdr
	iov     unix.Iovec
	control [128]byte
}

// readStamped reads, and records how long what it read had been in the kernel.
func (t *thread) readStamped(c *conn) (int, syscall.Errno) {
	s := &t.stamps
	s.iov.Base = &t.buffer[0]
	s.iov.SetLen(len(t.buffer))
	s.msg = unix.Msghdr{Iov: &s.iov, Control: &s.control[0]}
	s.msg.SetIovlen(1)
	s.msg.SetControllen(len(s.control))
	n, errno := sysRecvMsg(c.fd, &s.msg)
	if errno != 0 || n <= 0 {
		return n, errno
	}
	if at := receivedAt(s.control[:min(int(s.msg.Controllen), len(s.control))]); at > 0 {
		now := time.Now()
		lay := now.UnixNano() - at
		t.count(c.phase).add(unread, lay)
		if t.e.openLoop {
			c.at = max(int64(now.Sub(t.e.base))-max(lay, 0), c.booked)
		} else {
			t.addUnread(c, lay-(int64(now.Sub(t.e.base))-t.now))
		}
	}
	return n, 0
}

// addUnread adds what c's reply lay unread until the moment to which its
// latency is counted; bytes that came after it cost the request nothing.
func (t *thread) addUnread(c *conn, ns int64) {
	sum := &t.count(c.phase).unread
	sum.nanos += max(ns, 0)
	if !c.heard {
		sum.n++
	}
}

// receivedAt finds SCM_TIMESTAMPING's software stamp in a control message:
// nanoseconds of the real-time clock, 0 when there is none.
func receivedAt(control []byte) int64 {
	const header = int(unsafe.Sizeof(unix.Cmsghdr{}))
	const stamp = int(unsafe.Sizeof(unix.Timespec{}))
	if len(control) < header+stamp {
		return 0
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	if h.Level != unix.SOL_SOCKET || h.Type != unix.SCM_TIMESTAMPING {
		return 0
	}
	// Both our architectures have 64-bit time stamps.
	seconds := binary.NativeEndian.Uint64(control[header:])
	nanos := binary.NativeEndian.Uint64(control[header+8:])
	return int64(seconds)*1e9 + int64(nanos)
}
