// Package input reads files and pipes that were named on the command line. They may be
// anybody's, or no files at all: nothing is waited for without end, and no more is read
// than such a file can have.
package input

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a pipe is waited for: until somebody writes to it (Open), or until
// its writer is done (Read).
const patience = 20 * time.Second

// MaxPEM is the most bytes of a file with certificates or a key. The certificates that a
// distribution trusts are a quarter of a megabyte.
const MaxPEM = 4 << 20

// Read reads a file, or what comes out of a pipe. It waits for no FIFO that nobody
// writes to, for no writer without end, and reads no more than most bytes.
func Read(path string, most int64) (_ []byte, err error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.SetReadDeadline(time.Now().Add(patience)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%s: its writer was not done after %v; write it to a file first", path, patience)
	}
	if err == nil && int64(len(raw)) > most {
		err = fmt.Errorf("%s: more than %d bytes, which is more than is read of it", path, most)
	}
	return raw, err
}

// open opens a file without waiting for anybody.
func open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Open opens what is read bit by bit, however long it is. A FIFO is waited for until
// somebody writes to it, but not for ever.
func Open(path string) (*os.File, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		err = written(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// written waits until something was written to a FIFO, or its writer has ended.
func written(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var n int
	var failed error
	err = raw.Control(func(fd uintptr) {
		for end := time.Now().Add(patience); ; {
			left := max(time.Until(end), 0)
			n, failed = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
			if failed != unix.EINTR {
				return
			}
		}
	})
	if err = errors.Join(err, failed); err == nil && n == 0 {
		err = fmt.Errorf("%s: nobody wrote to this pipe for %v; start its writer first", f.Name(), patience)
	}
	return err
}

// ReadPlain reads a plain file of at most so many bytes, and waits for nobody. It is for what is read again and again
// while others wait, and may be exchanged meanwhile.
func ReadPlain(path string, most int64) (_ []byte, err error) {
	return readPlain(path, most, func(os.FileInfo) error { return nil })
}

// ReadSecret is ReadPlain of what others of the machine must not know or choose: a file that they may read or write is
// refused. Its group is its owner's choice.
func ReadSecret(path string, most int64) ([]byte, error) {
	return readPlain(path, most, func(info os.FileInfo) error {
		if mode := info.Mode().Perm(); mode&0o006 != 0 {
			return fmt.Errorf("%s: every user of this machine may read or write it (mode %04o); chmod o= it first", path, mode)
		}
		return nil
	})
}

// readPlain is ReadPlain of a file that passes a look.
func readPlain(path string, most int64, look func(os.FileInfo) error) (_ []byte, err error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: want a plain file", path)
	}
	if err == nil {
		err = look(info)
	}
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(raw)) > most {
		err = fmt.Errorf("%s: more than %d bytes, which is more than is read of it", path, most)
	}
	return raw, err
}

// KeyPair reads a certificate and its private key, both PEM.
func KeyPair(cert, key string) (tls.Certificate, error) {
	c, err := Read(cert, MaxPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	k, err := Read(key, MaxPEM)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(c, k)
}
