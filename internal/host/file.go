package host

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// File is a small file of the kernel's that is kept open and read from its
// start again and again: half the price of opening it each time. A file under
// /proc/net stays that of the network namespace in which it was opened. Not
// safe for concurrent use.
type File struct {
	path string
	fd   int
	buf  []byte
}

// OpenFile opens path for repeated reading. Errors are *fs.PathError.
func OpenFile(path string) (*File, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		return &File{path: path, fd: fd, buf: make([]byte, 1024)}, nil
	}
}

// maxFile ends the reading of a file that never ends, in bytes.
const maxFile = 64 << 20

// Bytes reads the whole file anew. The bytes are valid until the next call.
// For a file under /proc/PID the error matches unix.ESRCH once the process is gone.
func (f *File) Bytes() ([]byte, error) {
	b, err := f.head(maxFile + 1)
	if len(b) > maxFile {
		return nil, &fs.PathError{Op: "read", Path: f.path, Err: unix.EFBIG}
	}
	return b, err
}

// head reads at most so many bytes of the file.
func (f *File) head(most int) ([]byte, error) {
	n := 0
	for n < most {
		if n == len(f.buf) {
			f.buf = append(f.buf, make([]byte, len(f.buf))...)
		}
		m, err := unix.Pread(f.fd, f.buf[n:min(len(f.buf), most)], int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: f.path, Err: err}
		}
		if m == 0 {
			break
		}
		n += m
	}
	return f.buf[:n], nil
}

// ReadFile reads a small file of the kernel's once. It makes half of the system
// calls that os.ReadFile does, which asks what kind of file it is and whether it
// can be waited for: with a thousand processes that counts.
func ReadFile(path string) ([]byte, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	b, err := f.Bytes()
	return b, errors.Join(err, f.Close())
}

// ReadHead reads a file of the kernel's once, and at most so many bytes of it:
// how long its command line is, a process says itself.
func ReadHead(path string, most int) ([]byte, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	b, err := f.head(most)
	return b, errors.Join(err, f.Close())
}

// Path is the name under which the file was opened.
func (f *File) Path() string { return f.path }

// Close closes the file.
func (f *File) Close() error { return unix.Close(f.fd) }
