// Package reason says what a blocked thread waits for, and towards whom: the
// words for what reason.h finds out in the kernel.
package reason

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
)

// Reason is what a blocked thread waits for.
type Reason uint8

// The order is that of enum reason in reason.h.
const (
	Other Reason = iota // a terminal's input, a signal, a message queue …
	// Disk is a block device: the thread counts as iowait, or it is in fsync or
	// its like.
	Disk
	// Lock is a futex or a System V semaphore; also of a pool's idle threads.
	Lock
	// SocketRead is data of a peer's, also waited for by poll.
	SocketRead
	// SocketWrite is room for data to a peer.
	SocketWrite
	// Connect is the answer to a connect.
	Connect
	// Accept is a new connection.
	Accept
	// Poll is any event of many files.
	Poll
	// Sleep is the time.
	Sleep
	// PageFault is a page of memory, from disk or from another thread's hands.
	PageFault
	// Pipe is data from the other end of a pipe; who waits so may have nothing to do.
	Pipe
	// PipeWrite is room in a pipe that is full, until whoever has its other end reads.
	PipeWrite
	// Child is the end or the exec of a child.
	Child
	// FileLock is a lock on a file.
	FileLock
	// UninterruptibleOther is D state without I/O of the thread's own: most often a
	// lock inside the kernel.
	UninterruptibleOther
	// Stopped is whoever stopped the thread: a signal, a debugger, a freezer.
	Stopped
	// FileSystem is the answer of a program that serves a file system (FUSE).
	FileSystem
	// DeviceWrite is room in a character device: a terminal or a serial line that is slower than who writes to it.
	DeviceWrite
)

var names = [...]string{
	"other", "disk", "lock", "socket_read", "socket_write", "connect", "accept", "poll", "sleep", "page_fault", "pipe",
	"pipe_write", "child", "file_lock", "uninterruptible_other", "stopped",
	"file_system", "device_write",
}

func (r Reason) String() string {
	if int(r) < len(names) {
		return names[r]
	}
	return names[Other]
}

// Named returns the reason of a name; Other if there is none.
func Named(name string) Reason { return Reason(max(0, slices.Index(names[:], name))) }

// Idle says whether who waits so most often has nothing to do, rather than being
// held up.
func (r Reason) Idle() bool {
	switch r {
	case Poll, Accept, Sleep, Child, Other:
		return true
	}
	return false
}

// What the kernel's side is told of each system call. The order is that of enum
// call in reason.h.
const (
	callOther = iota
	callRead
	callWrite
	callConnect
	callAccept
	callPoll
	callSelect
	callEvents
	callSleep
	callLock
	callChild
	callFileLock
	callDisk
	callSync
	callFile
	callPath
	callStat
)

// Calls returns what each system call of this architecture waits for, by its number.
func Calls() [512]uint8 {
	var of [512]uint8
	for _, list := range []map[uint8][]int{calls, nativeCalls} {
		for call, numbers := range list {
			for _, nr := range numbers {
				of[nr] = call
			}
		}
	}
	return of
}

// OfCall says what a thread waits for by its /proc/TID/syscall, and whether it waits at
// all; link returns what a descriptor of its process leads to, as readlink tells it.
// Towards whom is not looked for, so a poll of one connection is a Poll.
//
// https://man7.org/linux/man-pages/man5/proc_pid_syscall.5.html
func OfCall(line string, link func(fd uint64) string) (r Reason, waits bool) {
	words := strings.Fields(line)
	if len(words) < 2 {
		return Other, false // "running"
	}
	nr, err := strconv.Atoi(words[0])
	if err != nil {
		return Other, false
	}
	of := Calls()
	switch {
	case nr < 0:
		return PageFault, true // it sleeps outside of system calls
	case nr >= len(of):
		return Other, true
	}
	if of[nr] != callRead && of[nr] != callWrite {
		return reasonOf[of[nr]], true
	}
	fd, err := strconv.ParseUint(strings.TrimPrefix(words[1], "0x"), 16, 32)
	if err != nil {
		return Other, true
	}
	kind, _, _ := strings.Cut(link(fd), ":")
	switch {
	case kind == "socket" && of[nr] == callRead:
		return SocketRead, true
	case kind == "socket":
		return SocketWrite, true
	case kind == "pipe" && of[nr] == callRead:
		return Pipe, true
	case kind == "pipe":
		return PipeWrite, true
	case of[nr] == callWrite && isTerminal(kind):
		return DeviceWrite, true
	case strings.HasPrefix(kind, "/") && !strings.HasPrefix(kind, "/dev/"):
		return Disk, true
	}
	return Other, true
}

// isTerminal says whether a descriptor's link is that of a terminal or a serial line.
func isTerminal(link string) bool {
	return strings.HasPrefix(link, "/dev/pts/") || strings.HasPrefix(link, "/dev/tty") || link == "/dev/console"
}

// reasonOf is what waits in a call are for that need no look at a descriptor.
var reasonOf = [...]Reason{
	callOther: Other, callConnect: Connect, callAccept: Accept, callPoll: Poll, callSelect: Poll, callEvents: Poll,
	callSleep: Sleep, callLock: Lock, callChild: Child, callFileLock: FileLock, callDisk: Disk,
	callSync: Disk, callFile: Other, callPath: Other, callStat: Other,
}

// futexWait has no name in the library yet; its number is the same everywhere.
const futexWait = 455

var calls = map[uint8][]int{
	callRead:    {unix.SYS_READ, unix.SYS_READV, unix.SYS_PREAD64, unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_RECVMMSG},
	callWrite:   {unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_PWRITE64, unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_SENDMMSG, unix.SYS_SENDFILE},
	callConnect: {unix.SYS_CONNECT},
	callAccept:  {unix.SYS_ACCEPT, unix.SYS_ACCEPT4},
	callPoll:    {unix.SYS_PPOLL},
	callSelect:  {unix.SYS_PSELECT6},
	callEvents:  {unix.SYS_EPOLL_PWAIT, unix.SYS_EPOLL_PWAIT2, unix.SYS_IO_URING_ENTER},
	callSleep:   {unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP},
	callLock:    {unix.SYS_FUTEX, unix.SYS_FUTEX_WAITV, futexWait, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP},
	callChild:   {unix.SYS_WAIT4, unix.SYS_WAITID, unix.SYS_CLONE, unix.SYS_CLONE3},
	callFileLock: {
		unix.SYS_FLOCK, unix.SYS_FCNTL,
	},
	callDisk: {unix.SYS_SYNC, unix.SYS_MSYNC, unix.SYS_IO_GETEVENTS, unix.SYS_IO_PGETEVENTS},
	callSync: {unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNC_FILE_RANGE, unix.SYS_SYNCFS},
	callFile: {
		unix.SYS_FSTAT, unix.SYS_GETDENTS64, unix.SYS_LSEEK, unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FCHMOD, unix.SYS_FCHOWN,
		unix.SYS_FSTATFS, unix.SYS_COPY_FILE_RANGE,
	},
	callPath: {
		unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINKAT, unix.SYS_MKDIRAT, unix.SYS_UNLINKAT,
		unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_FCHMODAT, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
		unix.SYS_TRUNCATE, unix.SYS_STATFS, unix.SYS_CHDIR, unix.SYS_GETXATTR, unix.SYS_LGETXATTR,
	},
	callStat: {unix.SYS_NEWFSTATAT, unix.SYS_STATX},
}

// Kinds of peers; the order is that of enum peer in reason.h.
const (
	peerNone = iota
	peerIPv4
	peerIPv6
	peerUnix
	peerFileSystem
	peerDevice
	peerOther
)

// Peer is the far side of a connection, as struct cause in reason.h tells it.
type Peer struct {
	Addr   [16]byte
	Port   uint16
	Kind   uint8
	Client bool // it connects to us, and the address is our own
}

// Towards words a peer as the label towards: "10.0.0.5:5432" whom we connected
// to, "clients@10.0.0.1:9000" who connects to us there, "unix:/run/x.sock" and
// "unix:@name" (an abstract one) likewise; "fuse" for a file system that a program serves; a device's path; "other" for one beyond the tracer's bound, "" for none. path returns the path of
// a Unix socket by its key.
func (p Peer) Towards(path func(key uint64) string) string {
	var at string
	switch p.Kind {
	case peerIPv4:
		at = netip.AddrPortFrom(netip.AddrFrom4([4]byte(p.Addr[:4])), p.Port).String()
	case peerIPv6:
		at = netip.AddrPortFrom(netip.AddrFrom16(p.Addr).Unmap(), p.Port).String()
	case peerUnix:
		at = "unix:" + path(binary.NativeEndian.Uint64(p.Addr[:]))
	case peerFileSystem:
		return "fuse"
	case peerDevice:
		return devicePath(binary.NativeEndian.Uint32(p.Addr[:]))
	case peerOther:
		return "other"
	default:
		return ""
	}
	if p.Client {
		return "clients@" + at
	}
	return at
}

// Path makes a Unix socket's path, as the kernel keeps it, text; a name that is
// no path begins with @.
func Path(raw []byte, length int) string {
	raw = raw[:max(0, min(length, len(raw)))]
	if len(raw) == 0 {
		return ""
	}
	prefix := ""
	if raw[0] == 0 {
		prefix, raw = "@", raw[1:]
	}
	text := strings.TrimRight(string(raw), "\x00")
	return prefix + strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
