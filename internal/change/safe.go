package change

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/lazy"
)

// folder is a directory into which nobody but root and we can put anything. It
// is held open, and its files are named beneath it alone: what becomes of its
// path later makes no difference.
type folder struct {
	*os.File
	path string
}

const (
	ownerOnly   = 0o700
	othersWrite = 0o022
	maxLinks    = 40 // as the kernel's own bound
	// maxNames bounds the files of a journal: a thousand sweeps of fifty runs.
	maxNames = 50_000
	lockName = "lock"
	tempEnd  = ".tmp"
)

// entryName is what files of changes are called, also while they are written.
var entryName = lazy.Regexp(`^[0-9]{8}\.json(\.tmp)?$`)

// openFolder opens a directory step by step from the root. Whoever can write
// into one of those above it could put another in its place, so each must be
// root's or ours, and writable by nobody else (or sticky, as /tmp is). With
// create, what is missing is made, and one of ours is closed to others.
func openFolder(path string, create bool) (*folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f, err := walkTo(path, create)
	if err != nil {
		return nil, err
	}
	if err := f.own(create); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// walkTo opens a directory without looking at who may look into it.
func walkTo(path string, create bool) (*folder, error) {
	w := walker{rest: strings.Split(path, "/"), create: create}
	fd, err := w.walk()
	if err != nil {
		return nil, err
	}
	return &folder{os.NewFile(uintptr(fd), path), path}, nil
}

// walker goes from one directory to the next.
type walker struct {
	rest   []string // the names that are left
	done   string   // what is behind us, for people
	links  int
	create bool
}

func (w *walker) walk() (fd int, err error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC // one may pass through what one may not list
	if fd, err = unix.Open("/", flags, 0); err != nil {
		return -1, err
	}
	for len(w.rest) > 0 {
		name := w.rest[0]
		w.rest = w.rest[1:]
		if name == "" || name == "." {
			continue
		}
		next, err := w.step(fd, name, flags)
		if next != fd {
			unix.Close(fd)
		}
		if err != nil {
			return -1, err
		}
		fd = next
	}
	defer unix.Close(fd)
	end, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: w.done, Err: err}
	}
	return end, nil
}

// step opens the next directory, in one that is safe. A symbolic link is followed
// by putting what it says before the names that are left.
func (w *walker) step(at int, name string, flags int) (next int, err error) {
	here := w.done + "/" + name
	if err := safe(at, filepath.Clean("/"+w.done)); err != nil {
		return -1, err
	}
	next, err = unix.Openat(at, name, flags|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ENOENT) && w.create {
		err = unix.Mkdirat(at, name, ownerOnly)
		if err == nil { // a umask may have taken our own rights
			err = unix.Fchmodat(at, name, ownerOnly, 0)
		}
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return -1, &fs.PathError{Op: "mkdir", Path: here, Err: err}
		}
		next, err = unix.Openat(at, name, flags|unix.O_NOFOLLOW, 0)
	}
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return w.follow(at, name, here, flags, err)
	}
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: here, Err: err}
	}
	w.done = filepath.Clean(here)
	return next, nil
}

func (w *walker) follow(at int, name, here string, flags int, why error) (int, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return -1, &fs.PathError{Op: "open", Path: here, Err: why}
	}
	if !ours(st.Uid) {
		return -1, fmt.Errorf("%s is a link of user %d's, who could lead it anywhere; want a directory of user %d's or root's", here, st.Uid, os.Geteuid())
	}
	if w.links++; w.links > maxLinks {
		return -1, &fs.PathError{Op: "open", Path: here, Err: unix.ELOOP}
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(at, name, buf)
	if err != nil {
		return -1, &fs.PathError{Op: "readlink", Path: here, Err: err}
	}
	to := string(buf[:n])
	w.rest = append(strings.Split(to, "/"), w.rest...)
	if !strings.HasPrefix(to, "/") {
		return at, nil
	}
	w.done = ""
	return unix.Open("/", flags, 0)
}

// ours says whether a user is us or root: anybody else is not trusted.
func ours(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }

// safe says why others could put something into a directory.
func safe(fd int, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if !ours(st.Uid) {
		return fmt.Errorf("%s belongs to user %d, who could put anything there; want directories of user %d's or root's all the way up: %w", path, st.Uid, os.Geteuid(), fs.ErrPermission)
	}
	if st.Mode&othersWrite != 0 && st.Mode&unix.S_ISVTX == 0 {
		return fmt.Errorf("%s can be written by others than its owner (mode %04o), who could put anything there; chmod go-w it, or choose another directory: %w", path, st.Mode&0o7777, fs.ErrPermission)
	}
	return nil
}

// own makes sure that a directory is ours alone. One that others may look into is
// closed to them, but only if nothing but a journal is in it: /tmp stays /tmp.
func (f *folder) own(mend bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return &fs.PathError{Op: "stat", Path: f.path, Err: err}
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, not to user %d: a journal is its user's own; choose another directory: %w", f.path, st.Uid, os.Geteuid(), fs.ErrPermission)
	}
	if st.Mode&0o7777 == ownerOnly || !mend && st.Mode&othersWrite == 0 {
		return nil
	}
	if !mend {
		return fmt.Errorf("%s can be written by others than its owner (mode %04o); chmod 700 it: %w", f.path, st.Mode&0o7777, fs.ErrPermission)
	}
	names, err := f.names()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(names, func(n string) bool { return n != lockName && !entryName().MatchString(n) })
	if i >= 0 || st.Mode&unix.S_ISVTX != 0 {
		return fmt.Errorf("%s is open to others (mode %04o) and no journal of changes (%q is in it); choose a directory for the journal alone: %w", f.path, st.Mode&0o7777, names[max(i, 0):min(max(i, 0)+1, len(names))], fs.ErrPermission)
	}
	if err := unix.Fchmod(int(f.Fd()), ownerOnly); err != nil {
		return &fs.PathError{Op: "chmod", Path: f.path, Err: err}
	}
	return nil
}

// names lists what is in the directory.
func (f *folder) names() ([]string, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(maxNames + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(names) > maxNames {
		return nil, fmt.Errorf("%s has more than %d files in it, which no journal has; choose another directory", f.path, maxNames)
	}
	slices.Sort(names)
	return names, nil
}

// open opens a file beneath the directory, which must be a file of ours alone:
// no link, device or pipe, and nothing that others could have written.
func (f *folder) open(name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(f.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	path := filepath.Join(f.path, name)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link, want a file", path)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	err = private(fd, path)
	if err == nil && flags&unix.O_CREAT != 0 {
		err = readable(fd, path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// readable gives us back those rights to a file of ours that a umask took when it was made.
func readable(fd int, path string) error {
	const mode = 0o600
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	if err == nil && st.Mode&mode != mode {
		err = unix.Fchmod(fd, mode)
	}
	if err != nil {
		return &fs.PathError{Op: "chmod", Path: path, Err: err}
	}
	return nil
}

// private says why a file may hold what others have written.
func private(fd int, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("%s is no plain file", path)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, not to user %d", path, st.Uid, os.Geteuid())
	case st.Mode&othersWrite != 0:
		return fmt.Errorf("%s can be written by others than its owner (mode %04o)", path, st.Mode&0o7777)
	case st.Nlink != 1:
		return fmt.Errorf("%s has %d names (hard links), want one", path, st.Nlink)
	}
	return nil
}

// read reads a file beneath the directory, of so many bytes at most.
func (f *folder) read(name string, most int64) ([]byte, error) {
	file, err := f.open(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && info.Size() > most {
		err = fmt.Errorf("%s is longer than %d bytes", file.Name(), most)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, most))
}

// write writes a file so that after a crash the old or the new one is there.
func (f *folder) write(name string, b []byte) error {
	temp := name + tempEnd
	if err := f.remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := f.open(temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	_, err = file.Write(b)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = unix.Renameat(int(f.Fd()), temp, int(f.Fd()), name)
	}
	if err != nil {
		return errors.Join(err, f.remove(temp))
	}
	return f.Sync()
}

func (f *folder) remove(name string) error {
	if err := unix.Unlinkat(int(f.Fd()), name, 0); err != nil {
		return &fs.PathError{Op: "remove", Path: filepath.Join(f.path, name), Err: err}
	}
	return nil
}
