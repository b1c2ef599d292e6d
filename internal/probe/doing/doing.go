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

// call is what a thread waits for in a system call, in a word; read and write depend on what their descriptor is.
type call struct{ what, name string }

// about says of which calls the first argument is the descriptor that they are about.
var about = map[string]bool{
	"accept": true, "connect": true, "file_lock": true, "disk": true, "socket_read": true, "socket_write": true, "read": true, "write": true,
}

var calls = map[uint64]call{
	unix.SYS_ACCEPT: {"accept", "accept"}, unix.SYS_ACCEPT4: {"accept", "accept"}, unix.SYS_CONNECT: {"connect", "connect"},
	unix.SYS_PPOLL: {"poll", "poll"}, unix.SYS_PSELECT6: {"poll", "select"},
	unix.SYS_EPOLL_PWAIT: {"poll", "epoll_wait"}, unix.SYS_EPOLL_PWAIT2: {"poll", "epoll_wait"}, unix.SYS_IO_URING_ENTER: {"poll", "io_uring_enter"},
	unix.SYS_FUTEX: {"lock", "futex"}, unix.SYS_NANOSLEEP: {"sleep", "nanosleep"}, unix.SYS_CLOCK_NANOSLEEP: {"sleep", "nanosleep"},
	unix.SYS_FLOCK: {"file_lock", "flock"}, unix.SYS_FCNTL: {"file_lock", "fcntl"}, unix.SYS_WAIT4: {"child", "wait4"}, unix.SYS_WAITID: {"child", "waitid"},
	unix.SYS_CLONE: {"child", "clone"}, unix.SYS_CLONE3: {"child", "clone"},
	unix.SYS_FSYNC: {"disk", "fsync"}, unix.SYS_FDATASYNC: {"disk", "fdatasync"}, unix.SYS_SYNC: {"disk", "sync"}, unix.SYS_SYNCFS: {"disk", "syncfs"},
	unix.SYS_SYNC_FILE_RANGE: {"disk", "sync_file_range"}, unix.SYS_MSYNC: {"disk", "msync"}, unix.SYS_IO_GETEVENTS: {"disk", "io_getevents"},
	unix.SYS_RECVFROM: {"socket_read", "recv"}, unix.SYS_RECVMSG: {"socket_read", "recv"}, unix.SYS_RECVMMSG: {"socket_read", "recv"},
	unix.SYS_SENDTO: {"socket_write", "send"}, unix.SYS_SENDMSG: {"socket_write", "send"}, unix.SYS_SENDMMSG: {"socket_write", "send"},
	unix.SYS_READ: {"read", "read"}, unix.SYS_READV: {"read", "read"}, unix.SYS_PREAD64: {"read", "read"}, unix.SYS_PREADV: {"read", "read"},
	unix.SYS_WRITE: {"write", "write"}, unix.SYS_WRITEV: {"write", "write"}, unix.SYS_PWRITE64: {"write", "write"}, unix.SYS_PWRITEV: {"write", "write"},
	unix.SYS_SENDFILE: {"write", "sendfile"}, unix.SYS_SPLICE: {"read", "splice"},
	unix.SYS_OPENAT: {"other", "open"}, unix.SYS_OPENAT2: {"other", "open"}, unix.SYS_UNLINKAT: {"other", "unlink"}, unix.SYS_RENAMEAT2: {"other", "rename"},
	unix.SYS_NEWFSTATAT: {"other", "stat"}, unix.SYS_STATX: {"other", "stat"}, unix.SYS_GETDENTS64: {"other", "getdents"},
	unix.SYS_CLOSE: {"other", "close"}, unix.SYS_FALLOCATE: {"other", "fallocate"}, unix.SYS_FTRUNCATE: {"other", "truncate"},
}

// Doing is what a thread is about at the moment.
type Doing struct {
	// What is running, or the reason why it is blocked, "other" for any that has no word.
	What string
	// Call is the name of the system call, "" of one without a word here, and outside of calls.
	Call string
	// NoCall says that it is blocked outside of calls: on a page of memory, or by a signal.
	NoCall bool
	// File is what the descriptor leads to that the call is about, as readlink tells it ("socket:[4711]"); FD is its number, -1 for none.
	File string
	FD   int
	// Args are the call's.
	Args [6]uint64
}

// Running is what a thread does that is blocked by nothing: it has a CPU, or waits for one.
const Running = "running"

// See says what the thread is about whose directory in /proc it is, or the process's, whose first thread it then is.
// The error is that of reading its system call, which takes the right to trace it.
func See(dir string) (Doing, error) {
	b, err := host.ReadFile(dir + "/syscall")
	if err != nil {
		return Doing{FD: -1}, err
	}
	return parse(b, func(fd string) string {
		link, _ := os.Readlink(dir + "/fd/" + fd) // "" where it is closed by now
		return link
	}), nil
}

// parse reads a /proc/TID/syscall; link is what a descriptor leads to.
//
// https://man7.org/linux/man-pages/man5/proc_pid_syscall.5.html
func parse(line []byte, link func(fd string) string) Doing {
	f := bytes.Fields(line)
	d := Doing{What: "other", FD: -1}
	if len(f) > 0 && string(f[0]) == Running {
		d.What = Running
		return d
	}
	if len(f) < 2 {
		d.What = "-"
		return d
	}
	nr, err := strconv.ParseUint(string(f[0]), 10, 32)
	if err != nil { // -1
		d.NoCall = true
		return d
	}
	for i := range d.Args {
		if i+1 < len(f) {
			d.Args[i], _ = strconv.ParseUint(string(f[i+1]), 0, 64) // of what is no number nothing is known
		}
	}
	c, known := calls[nr]
	if !known {
		c, known = oldCalls[nr]
	}
	if !known {
		return d
	}
	d.What, d.Call = c.what, c.name
	if about[c.what] && c.name != "sync" && c.name != "msync" && c.name != "io_getevents" && d.Args[0] < 1<<31 {
		d.FD = int(d.Args[0])
		d.File = link(strconv.Itoa(d.FD))
	}
	if c.what == "read" || c.what == "write" {
		d.What = ofDescriptor(c.what, d.File)
	}
	return d
}

// ofDescriptor is what a read or a write waits for, by what its descriptor leads to.
func ofDescriptor(what, link string) string {
	switch {
	case strings.HasPrefix(link, "socket:"):
		return "socket_" + what
	case strings.HasPrefix(link, "pipe:") && what == "write":
		return "pipe_write"
	case strings.HasPrefix(link, "pipe:"):
		return "pipe"
	case what == "write" && isTerminal(link):
		return "device_write"
	case strings.HasPrefix(link, "/") && !strings.HasPrefix(link, "/dev/"):
		return "disk"
	}
	return "other"
}

// isTerminal says whether a descriptor's link is that of a terminal or a serial line.
func isTerminal(link string) bool {
	return strings.HasPrefix(link, "/dev/pts/") || strings.HasPrefix(link, "/dev/tty") || link == "/dev/console"
}

// Of is what See says a thread is about, or "-" where that may not be seen.
func Of(dir string) string {
	d, err := See(dir)
	if err != nil {
		return "-"
	}
	return d.What
}
