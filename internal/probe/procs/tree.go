package procs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// tree reads files below one /proc. Not safe for concurrent use.
type tree struct {
	fd   int
	dir  string
	buf  []byte
	long []byte // for what may be longer than buf; made when it is needed
	// countBySize says that the size of PID/fd is the number of open descriptors
	// (Linux 6.2); else they are listed.
	countBySize bool
	// delays says that there is PID/schedstat (CONFIG_SCHED_INFO).
	delays bool
	// live says that its numbers of processes are those that system calls take.
	live bool
}

func openTree(dir string) (*tree, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	t := &tree{fd: fd, dir: dir, buf: make([]byte, 16<<10)}
	var st unix.Stat_t
	t.countBySize = unix.Fstatat(fd, "self/fd", &st, 0) == nil && st.Size > 0
	t.delays = unix.Fstatat(fd, "self/schedstat", &st, 0) == nil
	self, err := os.Readlink("/proc/self")
	t.live = dir == "/proc" && err == nil && self == strconv.Itoa(os.Getpid())
	return t, nil
}

func (t *tree) close() error { return unix.Close(t.fd) }

// open opens a file below the tree for pread.
func (t *tree) open(name string) (fd int, err error) {
	for {
		fd, err = unix.Openat(t.fd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, t.error("open", name, err)
		}
	}
}

// pread reads an open file from its start; what is read here often fits the buffer.
func (t *tree) pread(fd int, name string) ([]byte, error) { return t.preadInto(t.buf, fd, name) }

func (t *tree) preadInto(buf []byte, fd int, name string) ([]byte, error) {
	for {
		n, err := unix.Pread(fd, buf, 0)
		if err == nil {
			return buf[:n], nil
		}
		if err != unix.EINTR {
			return nil, t.error("read", name, err)
		}
	}
}

// read reads a file. The bytes are valid until the next call.
func (t *tree) read(name string) ([]byte, error) {
	fd, err := t.open(name)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return t.pread(fd, name)
}

// readLong reads the first 128 KiB of a file: what a program may be started with by
// default (ARG_MAX) is longer than a page. The bytes are valid until the next call.
func (t *tree) readLong(name string) ([]byte, error) {
	fd, err := t.open(name)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if t.long == nil {
		t.long = make([]byte, 128<<10)
	}
	return t.preadInto(t.long, fd, name)
}

// error makes a process that is gone match fs.ErrNotExist, whichever way the
// kernel says it.
func (t *tree) error(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if err == unix.ESRCH {
		err = unix.ENOENT
	}
	return &fs.PathError{Op: op, Path: t.dir + "/" + name, Err: err}
}

// threads lists the threads of a process.
func (t *tree) threads(pid string, tids []int) ([]int, error) {
	f, err := os.Open(t.dir + "/" + pid + "/task")
	if err != nil {
		return tids, err
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(256)
		for _, name := range names {
			if tid, err := strconv.Atoi(name); err == nil {
				tids = append(tids, tid)
			}
		}
		if errors.Is(err, io.EOF) {
			return tids, nil
		}
		if err != nil {
			return tids, err
		}
	}
}

// limits asks for a process's soft limits of descriptors, of its user's tasks and of its address space (0:
// unlimited). The file PID/limits says the same, at ten times the price; but not
// everybody may ask.
func (t *tree) limits(pid int) (l softLimits, ok bool) {
	var f, n, a unix.Rlimit
	if !t.live || unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &f) != nil || unix.Prlimit(pid, unix.RLIMIT_NPROC, nil, &n) != nil ||
		unix.Prlimit(pid, unix.RLIMIT_AS, nil, &a) != nil {
		return softLimits{}, false
	}
	return softLimits{files: soft(f), tasks: soft(n), space: soft(a)}, true
}

func soft(l unix.Rlimit) uint64 {
	if l.Cur == unix.RLIM_INFINITY {
		return 0
	}
	return l.Cur
}

// openFiles counts the descriptors of a process.
func (t *tree) openFiles(pid string) (uint64, error) {
	name := pid + "/fd"
	if t.countBySize {
		var st unix.Stat_t
		err := unix.Fstatat(t.fd, name, &st, 0)
		return uint64(st.Size), t.error("stat", name, err)
	}
	f, err := os.Open(t.dir + "/" + name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var n uint64
	for {
		names, err := f.Readdirnames(1024)
		n += uint64(len(names))
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
}
