package change

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The machine's lock, so that two do not change it at the same time whatever
// their journals are. Whoever may open a file may hold a lock on it for ever, so
// root's lock is a file that nobody else can open, and beside it stands for all
// to read who holds it. All other users share one, on the directory of both: they
// can keep each other waiting, and never root.
const (
	holderName = "holder"
	lockDir    = "plimsoll"
)

// machineLock is held by one process; nil descriptors are closed ones.
type machineLock struct {
	file   *os.File // what is locked
	holder *os.File // root's alone
}

// lockMachine takes the machine's lock below run, which is /run.
func lockMachine(run string) (*machineLock, error) {
	if os.Geteuid() == 0 {
		return lockAsRoot(filepath.Join(run, lockDir))
	}
	if err := rootIsAway(run); err != nil {
		return nil, err
	}
	f, err := os.Open(run)
	if err != nil {
		return nil, fmt.Errorf("lock this machine: %w", err)
	}
	if err := flock(f, lockPatience); err != nil {
		return nil, errors.Join(fmt.Errorf("%w, another user's; wait until it has ended", err), f.Close())
	}
	return &machineLock{file: f}, nil
}

func lockAsRoot(dir string) (*machineLock, error) {
	d, err := lockFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("lock this machine: %w", err)
	}
	defer d.Close()
	f, err := d.open(lockName, unix.O_RDWR|unix.O_CREAT)
	if err != nil {
		return nil, fmt.Errorf("lock this machine: %w", err)
	}
	who, alive := holderOf(dir)
	patience := lockPatience
	if alive {
		patience = 0
	}
	if err := flock(f, patience); err != nil {
		return nil, errors.Join(fmt.Errorf("%w%s; wait until it has ended", err, inBrackets(who, alive)), f.Close())
	}
	h, err := d.open(holderName, unix.O_RDWR|unix.O_CREAT)
	if err == nil {
		err = writeHolder(h)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock this machine: %w", err), f.Close())
	}
	return &machineLock{f, h}, nil
}

// lockFolder is root's directory with the lock, which all may look into.
func lockFolder(dir string) (*folder, error) {
	d, err := walkTo(dir, true)
	if err != nil {
		return nil, err
	}
	err = safe(int(d.Fd()), dir)
	if err == nil {
		err = d.Chmod(0o755)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// writeHolder notes who we are for those who cannot look at the lock.
func writeHolder(h *os.File) error {
	p, err := processOf(os.Getpid())
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%d %d\n", p.PID, p.Start)
	_, err = h.WriteAt([]byte(text), 0)
	return errors.Join(err, h.Truncate(int64(len(text))), h.Chmod(0o644))
}

// lockPatience is how long a lock is waited for that nobody seems to hold: a child
// of one that was killed has its descriptors until it executes its own program.
const lockPatience = time.Second

// flock takes a lock, or is ErrLocked.
func flock(f *os.File, patience time.Duration) error {
	for until := time.Now().Add(patience); ; time.Sleep(lockPatience / 50) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		case !time.Now().Before(until):
			return ErrLocked
		}
	}
}

func inBrackets(p process, ok bool) string {
	if !ok {
		return ""
	}
	return fmt.Sprintf(" (process %d)", p.PID)
}

// rootIsAway is ErrLocked while a plimsoll of root's changes the machine.
func rootIsAway(run string) error {
	if p, ok := holderOf(filepath.Join(run, lockDir)); ok && p.PID != os.Getpid() { // whoever gives root's rights up keeps the lock
		return fmt.Errorf("%w (root's, process %d); wait until it has ended", ErrLocked, p.PID)
	}
	return nil
}

// unlessRoot is ErrLocked for another user once root's plimsoll is at work: it may
// have begun since we took the lock that is other users'.
func unlessRoot(run string) error {
	if os.Geteuid() == 0 {
		return nil
	}
	return rootIsAway(run)
}

// holderOf is root's process that changes the machine. What a killed one left
// behind names a process that is no more.
func holderOf(dir string) (p process, ok bool) {
	f, err := os.OpenFile(filepath.Join(dir, holderName), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return p, false
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Uid != 0 {
		return p, false
	}
	if _, err := fmt.Fscan(f, &p.PID, &p.Start); err != nil {
		return p, false
	}
	return p, p.alive() || p.hidden()
}

// AtWork says whether somebody changes the machine now; run is Open's.
func AtWork(run string) bool {
	if _, ok := holderOf(filepath.Join(run, lockDir)); ok {
		return true
	}
	f, err := os.Open(run)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(flock(f, 0), ErrLocked)
}

// close gives the lock up.
func (l *machineLock) close() error {
	if l.holder == nil {
		return l.file.Close()
	}
	return errors.Join(l.holder.Truncate(0), l.holder.Close(), l.file.Close())
}
