package filelocks

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

// maxFiles bounds the descriptors of a process that are looked through for the file.
const maxFiles = 256

// fileOf is the name of that file (DEVICE:INODE) as a process has it open; dir is the process's directory in /proc.
// Nobody asks the file system: one that does not answer would keep whoever asks.
func fileOf(dir, file string) (name string) {
	_, _ = host.EachDescriptor(dir, maxFiles, func(fd int, link []byte, err error) {
		if err != nil || name != "" || len(link) == 0 || link[0] != '/' {
			return
		}
		info, err := host.ReadFile(dir + "/fdinfo/" + strconv.Itoa(fd))
		if err == nil && isFile(info, file, func() ([]byte, error) { return host.ReadFile(dir + "/mountinfo") }) {
			name = strings.TrimSuffix(string(link), " (deleted)")
		}
	})
	return name
}

// isFile says whether an fdinfo is of that file: by a lock that is held through it, or by its inode (since Linux 5.14)
// and the device of its mount; inodes of two file systems have the same numbers.
func isFile(info []byte, file string, mountinfo func() ([]byte, error)) bool {
	device, inode, err := place(file)
	if err != nil {
		return false
	}
	var mount string
	same := false
	for line := range bytes.Lines(info) {
		f := bytes.Fields(line)
		switch {
		case len(f) > 6 && string(f[0]) == "lock:" && string(f[6]) == file:
			return true
		case len(f) == 2 && string(f[0]) == "mnt_id:":
			mount = string(f[1])
		case len(f) == 2 && string(f[0]) == "ino:":
			same = string(f[1]) == strconv.FormatUint(inode, 10)
		}
	}
	if !same {
		return false
	}
	mounts, err := mountinfo()
	if err != nil {
		return false
	}
	for line := range bytes.Lines(mounts) {
		if f := bytes.Fields(line); len(f) > 2 && string(f[0]) == mount {
			return string(f[2]) == device
		}
	}
	return false
}

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

// doing says what the first thread of a process is about: running, why it is blocked, or "-" where that may not be seen.
func doing(dir string) string {
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
		return "pipe"
	case err == nil && strings.HasPrefix(link, "/"):
		return "disk"
	}
	return "other"
}
