package sockets

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// deferred asks a listener for how long the kernel keeps its connections back while the client says nothing
// (TCP_DEFER_ACCEPT), 0 where it hands them over at once. No list of sockets tells that: the socket is borrowed from
// its process for the question. The error says that it may not be asked, or is somebody else's by now.
func (k *owned) deferred(inode uint32) (seconds int, err error) {
	pid, err := unix.PidfdOpen(k.pid, 0)
	if err != nil {
		return 0, fmt.Errorf("pidfd_open: %w", err)
	}
	defer unix.Close(pid)
	fd, err := unix.PidfdGetfd(pid, k.fd, 0)
	if err != nil {
		return 0, fmt.Errorf("pidfd_getfd (Linux 5.6, and the right to trace the process): %w", err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, err
	}
	if uint32(st.Ino) != inode {
		return 0, fmt.Errorf("descriptor %d of process %d is something else by now: %w", k.fd, k.pid, unix.ESTALE)
	}
	return unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT)
}

// defers is for how long a listener defers, asked once for each that was found; false where that is not known.
func (o *owners) defers(inode uint32) (seconds float64, known bool) {
	k := o.known[inode]
	if k == nil || k.comm == "" || o.host.Recorded() {
		return 0, false
	}
	if !k.asked {
		k.asked = true
		if s, err := k.deferred(inode); err == nil {
			k.defers, k.told = float64(s), true
		}
	}
	return k.defers, k.told
}
