package change

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/probe/rooted"
)

// maxFile bounds the configuration files that are edited: the journal holds
// them whole, before and after.
const maxFile = 1 << 20

// meta is what is to be known of a file besides its bytes.
type meta struct {
	Time time.Time `json:"time"` // when it was last changed, before we did
}

// confFile is a configuration file; its value is its bytes. It is replaced as a
// whole, so that whoever reads it sees the old one or the new one.
type confFile struct{ place }

// root is the root directory of whom the file belongs to, as we reach it.
func (c confFile) root() (string, error) {
	if c.Process == nil {
		return "", nil
	}
	if err := c.Process.check(); err != nil {
		return "", fmt.Errorf("%s lies in the container of process %d, which %w", c.Path, c.Process.PID, errGone)
	}
	return filepath.Clean(proc(c.Process.PID, "root")), nil
}

// path is where we reach the file, its symbolic links followed.
func (c confFile) path() (string, error) {
	root, err := c.root()
	if err != nil {
		return "", err
	}
	return rooted.Resolve(root, c.Path)
}

// seenByUs says whether a file in another mount namespace is the very one that we
// see under its name: a unit with PrivateTmp has such a namespace, and its files
// are there after a restart, too.
func (p place) seenByUs() bool {
	theirs, err := confFile{p}.path()
	p.Process = nil
	ours, err2 := confFile{p}.path()
	if err != nil || err2 != nil {
		return false
	}
	a, err := os.Stat(theirs)
	b, err2 := os.Stat(ours)
	return err == nil && err2 == nil && os.SameFile(a, b)
}

func (c confFile) get() (string, error) {
	root, err := c.root()
	if err != nil {
		return "", err
	}
	b, _, err := rooted.ReadFile(root, c.Path, maxFile)
	return string(b), gone(err)
}

// temporary is the file's name while it is being written. Its dot keeps it out
// of nginx's and PHP-FPM's includes (glob(3)). There is one tuner at a time, so
// one name will do, and what a crash leaves is found again.
func temporary(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".plimsoll")
}

// prepare writes the file's next contents beside it and returns the name. Mode,
// owner and extended attributes are those of the file.
func (c confFile) prepare(v string) (temp string, err error) {
	path, err := c.path()
	if err != nil {
		return "", err
	}
	temp = temporary(path)
	if err := c.clean(); err != nil {
		return "", fmt.Errorf("edit %s: %w", path, err)
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("edit %s: write a new file beside it: %w", path, err)
	}
	_, err = f.WriteString(v)
	err = errors.Join(err, likeFile(f, path), f.Sync())
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("edit %s: %w", path, err), os.Remove(temp))
	}
	return temp, nil
}

// likeFile gives f the owner, mode and extended attributes of the file at path.
func likeFile(f *os.File, path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if err := f.Chown(int(st.Uid), int(st.Gid)); err != nil {
		return err
	}
	if err := unix.Fchmod(int(f.Fd()), st.Mode&0o7777); err != nil {
		return &fs.PathError{Op: "chmod", Path: f.Name(), Err: err}
	}
	return copyAttributes(f, path)
}

// copyAttributes copies the extended attributes (access lists, labels). A file
// system without them has none to copy.
func copyAttributes(f *os.File, path string) error {
	buf := make([]byte, 64<<10)
	n, err := unix.Listxattr(path, buf)
	if err != nil {
		return nil
	}
	for name := range bytes.SplitSeq(bytes.Trim(buf[:n], "\x00"), []byte{0}) {
		if len(name) == 0 {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Getxattr(path, string(name), value)
		if err == nil {
			err = unix.Fsetxattr(int(f.Fd()), string(name), value[:n], 0)
		}
		if err != nil {
			return fmt.Errorf("copy the attribute %s of %s: %w", name, path, err)
		}
	}
	return nil
}

// put moves what prepare wrote to the file's place, for good.
func (c confFile) put(temp string) error {
	path, err := c.path()
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		if errors.Is(err, syscall.EBUSY) {
			err = fmt.Errorf("%w; it is a mount of its own, as containers have them: edit it where it comes from", err)
		}
		return errors.Join(fmt.Errorf("edit %s: %w", path, err), os.Remove(temp))
	}
	return syncDir(filepath.Dir(path))
}

func (c confFile) set(v string) error {
	temp, err := c.prepare(v)
	if err != nil {
		return err
	}
	return c.put(temp)
}

// restore is set, and gives the file its time back.
func (c confFile) restore(v string, m *meta) error {
	temp, err := c.prepare(v)
	if err != nil {
		return err
	}
	if m != nil {
		if err := os.Chtimes(temp, m.Time, m.Time); err != nil {
			return errors.Join(err, os.Remove(temp))
		}
	}
	return c.put(temp)
}

// clean removes what a crash may have left beside the file.
func (c confFile) clean() error {
	path, err := c.path()
	if err != nil {
		return nil // the file is gone with its container
	}
	temp := temporary(path)
	if _, err := os.Lstat(temp); errors.Is(err, fs.ErrNotExist) {
		return nil // a read-only file system would refuse even that
	}
	return os.Remove(temp)
}

// filePart makes the part of a change that edits a file: it must be one that
// can be replaced.
func filePart(p place, edits []edit) (part, error) {
	c := confFile{place: p}
	path, err := c.path()
	if err != nil {
		return part{}, err
	}
	root, err := c.root()
	if err != nil {
		return part{}, err
	}
	old, info, err := rooted.ReadFile(root, p.Path, maxFile)
	if err != nil {
		return part{}, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 {
		return part{}, fmt.Errorf("%s has another name beside this one (a hard link), which replacing it would cut: %w", p.Path, ErrNotPossible)
	}
	if err := unix.Access(filepath.Dir(path), unix.W_OK); err != nil {
		return part{}, &fs.PathError{Op: "write into", Path: filepath.Dir(path), Err: err}
	}
	edited, err := apply(old, edits)
	if err != nil {
		return part{}, fmt.Errorf("edit %s: %w", p.Path, err)
	}
	return part{Place: p, Old: old, New: edited, File: &meta{info.ModTime()}}, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
