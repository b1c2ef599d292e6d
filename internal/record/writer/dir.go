package writer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many links a path may lead over, as for the kernel.
const maxLinks = 40

// walk opens a directory, one component of its path after the other. A link on the
// way is followed if it is root's or ours: one of somebody else's would have us
// write where he cannot. With create, what is missing is made.
func walk(path string, create bool) (_ *os.File, err error) {
	at := "."
	if filepath.IsAbs(path) {
		at = "/"
	}
	here, err := openPath(unix.AT_FDCWD, at)
	if err != nil {
		return nil, err
	}
	defer func() { unix.Close(here) }()
	rest := strings.Split(path, "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		next, err := step(here, name, create, len(rest) == 0)
		if err != nil {
			return nil, err
		}
		link, err := linkOf(next, name)
		if err != nil || link == "" {
			unix.Close(here)
			here = next
			if err != nil {
				return nil, err
			}
			continue
		}
		unix.Close(next)
		if links++; links > maxLinks {
			return nil, unix.ELOOP
		}
		rest = append(strings.Split(link, "/"), rest...)
		if filepath.IsAbs(link) {
			unix.Close(here)
			if here, err = openPath(unix.AT_FDCWD, "/"); err != nil {
				return nil, err
			}
		}
	}
	fd, err := unix.Openat(here, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

func openPath(at int, name string) (int, error) {
	return unix.Openat(at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// step opens one component, whatever it is. One that create makes is ours alone if
// it is the last.
func step(at int, name string, create, last bool) (int, error) {
	fd, err := openPath(at, name)
	if !errors.Is(err, unix.ENOENT) || !create {
		return fd, err
	}
	mode := uint32(0o755)
	if last {
		// Lines of services' logs and the watched command line are in it, which
		// other users of the machine may have no right to read.
		mode = 0o700
	}
	if err := unix.Mkdirat(at, name, mode); err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, err
	}
	return openPath(at, name)
}

// linkOf returns where a link leads, "" of what is none.
func linkOf(fd int, name string) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", err
	}
	if st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return "", fmt.Errorf("%s in it is a link that belongs to user %d, who is not trusted to say where it leads; give the path without it", name, st.Uid)
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	return string(buf[:max(n, 0)]), err
}

// own makes sure that a directory is ours and that nobody else can write in it.
func own(dir *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return err
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to user %d, who could change what is written; name a directory that is new or your own", st.Uid)
	}
	if st.Mode&0o077 == 0 {
		return nil
	}
	chmod := unix.Fchmod(int(dir.Fd()), 0o700)
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return err
	}
	if st.Mode&0o022 != 0 {
		return errors.Join(errors.New("others can write in it, and that cannot be taken from them; name another directory"), chmod)
	}
	return nil
}

// runDir is the run directory, held open: whoever owns the one above can give it
// another name, but not have us write elsewhere.
type runDir struct {
	dir  *os.File
	root *os.Root
}

// makeRunDir makes a run directory, or takes one that is empty and ours.
func makeRunDir(path string) (*runDir, error) {
	dir, err := walk(path, true)
	if err != nil {
		return nil, fmt.Errorf("make the run directory %s: %w", path, err)
	}
	// Looked at before it is taken: one that is in use keeps its mode, it may be / itself.
	if _, err := dir.ReadDir(1); !errors.Is(err, io.EOF) {
		if err == nil {
			err = fmt.Errorf("%s: holds something already; name a directory that is new or empty", path)
		}
		return nil, errors.Join(err, dir.Close())
	}
	d, err := take(dir)
	if err != nil {
		return nil, fmt.Errorf("make the run directory %s: %w", path, err)
	}
	return d, nil
}

func openRunDir(path string) (*runDir, error) {
	dir, err := walk(path, false)
	if err != nil {
		return nil, err
	}
	return take(dir)
}

// take makes an open directory ours alone.
func take(dir *os.File) (*runDir, error) {
	err := own(dir)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	d := &runDir{dir: dir}
	if d.root, err = os.OpenRoot(d.path()); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return d, nil
}

// path leads to the open directory, whatever its name is by now: for libraries that
// go by paths.
func (d *runDir) path() string { return fmt.Sprintf("/proc/self/fd/%d", d.dir.Fd()) }

// create makes a new file that is ours alone.
func (d *runDir) create(name string) (*os.File, error) {
	return d.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
}

func (d *runDir) close() error { return errors.Join(d.root.Close(), d.dir.Close()) }

// replace puts a file in the place of the one of that name, in one step.
func replace(root *os.Root, name string, data []byte, sync bool) error {
	return replaceWith(root, name, sync, func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	})
}

// replaceWith is replace with what write writes; where that fails, the old file stays.
func replaceWith(root *os.Root, name string, sync bool, write func(io.Writer) error) error {
	d, err := draftIn(root, name)
	if err != nil {
		return err
	}
	err = write(d.file)
	if sync && err == nil {
		err = d.file.Sync()
	}
	return d.end(err)
}

// draft is a file that is being written beside the one whose place it will take.
type draft struct {
	root      *os.Root
	name, tmp string
	file      *os.File
}

func draftIn(root *os.Root, name string) (draft, error) {
	d := draft{root: root, name: name, tmp: fmt.Sprintf(".%s.%08x", name, rand.Uint32())}
	var err error
	d.file, err = root.OpenFile(d.tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return d, err
}

// end puts the draft in its place, or away if writing it failed.
func (d draft) end(failed error) error {
	err := errors.Join(failed, d.file.Close())
	if err == nil {
		err = d.root.Rename(d.tmp, d.name)
	}
	if err != nil {
		err = errors.Join(err, d.root.Remove(d.tmp))
	}
	return err
}

// File writes a file that only its owner can read, in the place of an older one. A
// link or a device of that name is left alone: the file is never written through
// something that another user put there.
func File(path string, data []byte) error {
	return Stream(path, func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	})
}

// Stream is File for what is too large to be held at once. Where write fails, an older
// file stays as it was.
func Stream(path string, write func(io.Writer) error) error {
	d, err := Begin(path)
	if err != nil {
		return err
	}
	return d.End(write(d))
}

// Draft is a file that is written while time goes on, with a name of its own beside the one whose place it takes in the end.
type Draft struct {
	draft
	path string
}

// Begin begins a file that only its owner can read.
func Begin(path string) (_ *Draft, err error) {
	d := &Draft{path: path}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	folder, name := filepath.Split(filepath.Clean(path))
	dir, err := walk(folder, false)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	if err = plainOrNone(root, name); err == nil {
		d.draft, err = draftIn(root, name)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return d, nil
}

// plainOrNone is an error where something else has that name than a file.
func plainOrNone(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("it is there and no plain file (%s); name another", info.Mode().Type())
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// Write adds to the file.
func (d *Draft) Write(b []byte) (int, error) { return d.file.Write(b) }

// End puts the file in its place. Where something failed before, an older one stays as it was.
func (d *Draft) End(failed error) error {
	if err := errors.Join(d.end(failed), d.root.Close()); err != nil {
		return fmt.Errorf("write %s: %w", d.path, err)
	}
	return nil
}
