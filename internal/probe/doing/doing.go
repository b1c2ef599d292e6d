// Package doing says what a thread is about at the moment, by the system call that it is in, in the words of the wait tracer.
package doing

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

// calls are what a thread waits for in a system call; those about a descriptor depend on what that is.
var calls = map[uint64]string{
	unix.SYS_ACCEPT: "accept", unix.SYS_ACCEPT4: "accept", unix.SYS_CONNECT: "connect",
	unix.SYS_PPOLL: "poll", unix.SYS_PSELECT6: "poll", unix.SYS_EPOLL_PWAIT: "poll", unix.SYS_EPOLL_PWAIT2: "poll",
	unix.SYS_FUTEX: "lock", unix.SYS_NANOSLEEP: "sleep", unix.SYS_CLOCK_NANOSLEEP: "sleep",
	unix.SYS_FLOCK: "file_lock", unix.SYS_FCNTL: "file_lock", unix.SYS_WAIT4: "child", unix.SYS_WAITID: "child",
	unix.SYS_FSYNC: "disk", unix.SYS_FDATASYNC: "disk", unix.SYS_SYNC: "disk",
	unix.SYS_RECVFROM: "socket_read", unix.SYS_RECVMSG: "socket_read", unix.SYS_SENDTO: "socket_write", unix.SYS_SENDMSG: "socket_write",
	unix.SYS_READ: "read", unix.SYS_READV: "read", unix.SYS_PREAD64: "read",
	unix.SYS_WRITE: "write", unix.SYS_WRITEV: "write", unix.SYS_PWRITE64: "write",
}

// Of says what a thread is about: running, why it is blocked, or "-" where that may not be seen. dir is its directory in
// /proc, or that of its process, whose first thread it then is.
func Of(dir string) string {
	b, err := host.ReadFile(dir + "/syscall")
	if err != nil {
		return "-"
	}
	f := bytes.Fields(b)
	if len(f) > 0 && string(f[0]) == "running" {
		return "running"
	}
	if len(f) < 2 {
		return "-"
	}
	nr, err := strconv.ParseUint(string(f[0]), 10, 32)
	if err != nil {
		return "other" // -1: blocked in no call, on a page
	}
	what, known := calls[nr]
	if !known {
		if what, known = oldCalls[nr]; !known {
			return "other"
		}
	}
	if what != "read" && what != "write" {
		return what
	}
	fd, err := strconv.ParseUint(string(f[1]), 0, 31)
	if err != nil {
		return "other"
	}
	link, err := os.Readlink(dir + "/fd/" + strconv.FormatUint(fd, 10))
	switch {
	case err == nil && strings.HasPrefix(link, "socket:"):
		return "socket_" + what
	case err == nil && strings.HasPrefix(link, "pipe:"):
		if what == "write" {
			return "pipe_write"
		}
		return "pipe"
	case err == nil && strings.HasPrefix(link, "/"):
		return "disk"
	}
	return "other"
}
