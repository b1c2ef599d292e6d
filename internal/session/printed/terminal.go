package printed

import (
	"errors"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// terminal returns the terminal that a writer is, nil if it is none.
func terminal(w io.Writer) *os.File {
	f, ok := w.(*os.File)
	if !ok || f == nil {
		return nil
	}
	var err error
	if e := control(f, func(fd int) { _, err = unix.IoctlGetTermios(fd, unix.TCGETS) }); e != nil || err != nil {
		return nil
	}
	return f
}

func control(f *os.File, do func(fd int)) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { do(int(fd)) })
}

// sameTerminal says whether two writers are one terminal.
func sameTerminal(a, b io.Writer) bool {
	x, y := terminal(a), terminal(b)
	if x == nil || y == nil {
		return false
	}
	var one, other unix.Stat_t
	failed := control(x, func(fd int) { _ = unix.Fstat(fd, &one) }) != nil || control(y, func(fd int) { _ = unix.Fstat(fd, &other) }) != nil
	return !failed && one.Rdev == other.Rdev && one.Ino == other.Ino && one.Dev == other.Dev
}

// openTerminal makes a pair of terminals: ours reads what is printed to theirs, which
// has the modes and the size of like. It changes nothing of what is printed: like does
// that, when it is passed on.
func openTerminal(like *os.File) (ours, theirs *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	ours = os.NewFile(uintptr(fd), "/dev/ptmx")
	defer func() {
		if theirs == nil {
			ours.Close()
		}
	}()
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	other, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if e != 0 {
		return nil, nil, e
	}
	theirs = os.NewFile(other, "terminal of the command")
	var modes error
	failed := control(like, func(from int) { modes = asItIs(from, int(other)) })
	if err := errors.Join(failed, modes); err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// asItIs gives a terminal the modes of another, but that it changes nothing of what is printed.
func asItIs(from, to int) error {
	modes, err := unix.IoctlGetTermios(from, unix.TCGETS)
	if err != nil {
		return err
	}
	modes.Oflag &^= unix.OPOST
	return unix.IoctlSetTermios(to, unix.TCSETS, modes)
}

// followSize gives a terminal the size of another, now and whenever that changes, until
// stop is called.
func followSize(of, ours *os.File) (stop func()) {
	set := func() {
		_ = control(of, func(fd int) {
			if size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil {
				_ = control(ours, func(fd int) { _ = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
			}
		})
	}
	set()
	changed, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(changed, unix.SIGWINCH)
	go func() {
		for {
			select {
			case <-changed:
				set()
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(changed); close(done) }
}
