package load

import (
	"encoding/binary"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stampReader holds what recvmsg needs to return the kernel's time stamps.
type stampReader struct {
	msg     unix.Msghdr
	iov     unix.Iovec
	control [128]byte
}

// read reads into b; at is when the kernel received it (see receivedAt).
func (s *stampReader) read(fd int32, b []byte) (n int, at int64, errno syscall.Errno) {
	s.iov.Base = &b[0]
	s.iov.SetLen(len(b))
	s.msg = unix.Msghdr{Iov: &s.iov, Control: &s.control[0]}
	s.msg.SetIovlen(1)
	s.msg.SetControllen(len(s.control))
	n, errno = sysRecvMsg(fd, &s.msg)
	if errno == 0 && n > 0 {
		at = receivedAt(s.control[:min(int(s.msg.Controllen), len(s.control))])
	}
	return n, at, errno
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
