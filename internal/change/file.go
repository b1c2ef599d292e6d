package change

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host/rooted"
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
type confFile struct {
	// Path is its name, as the service calls it.
	Path string
	// Process is through whom it is reached when it is in another mount namespace.
	Process *process
}

// find holds the file, its symbolic links followed, and the directory that it is
// in: what becomes of their names meanwhile makes no difference. Nobody but root and
// we may be able to change what is passed on the way.
func (c confFile) find() (*rooted.Found, error) { return c.walk(exposed) }

func (c confFile) walk(look func(rooted.Step) error) (*rooted.Found, error) {
	root := ""
	if c.Process != nil {
		root = proc(c.Process.PID, "root")
	}
	tree, err := rooted.OpenTree(root)
	if c.Process != nil {
		if e := c.Process.check(); e != nil { // or the tree may be another process's
			err = errors.Join(fmt.Errorf("%s lies in the mount namespace of process %d, which %w", c.Path, c.Process.PID, errGone), err)
		}
	}
	if err != nil {
		if tree != nil {
			tree.Close()
		}
		return nil, err
	}
	defer tree.Close()
	return tree.Find(c.Path, look)
}

// real is the file's name with its symbolic links followed.
func (c confFile) real() (string, error) {
	f, err := c.walk(nil)
	if err != nil {
		return "", err
	}
	return f.Path, f.Close()
}

// seenByUs says whether a file in another mount namespace is the very one that we
// see under its name: a unit with PrivateTmp has such a namespace, and its files
// are there after a restart, too.
func (c confFile) seenByUs() bool {
	theirs, err := c.walk(nil)
	if err != nil {
		return false
	}
	defer theirs.Close()
	ours, err := confFile{Path: c.Path}.walk(nil)
	if err != nil {
		return false
	}
	defer ours.Close()
	return ours.Stat.Dev == theirs.Stat.Dev && ours.Stat.Ino == theirs.Stat.Ino
}

func (c confFile) get() (string, error) {
	f, err := c.walk(nil)
	if err != nil {
		return "", gone(err)
	}
	defer f.Close()
	b, _, err := f.Read(c.Path, maxFile)
	return string(b), err
}

// temporary is a file's name while it is being written. Its dot keeps it out
// of nginx's and PHP-FPM's includes (glob(3)). There is one tuner at a time, so
// one name will do, and what a crash leaves is found again.
func temporary(name string) string { return "." + name + ".plimsoll" }

// draft is a file's next version, written beside it and held with it.
type draft struct {
	at    *rooted.Found // the file
	path  string        // as the service calls it
	ready *os.File      // its next version
}

// Close lets go of the files. A draft that is not in its place by then stays, see clean.
func (d *draft) Close() error {
	err := d.at.Close()
	if d.ready != nil {
		err = errors.Join(err, d.ready.Close())
	}
	return err
}

func (d *draft) temp() string { return temporary(d.at.Name) }

func (d *draft) dir() int { return int(d.at.Dir.Fd()) }

// prepare writes the file's next contents beside it. Mode, owner and extended
// attributes are those of the file. The caller closes the draft.
func (c confFile) prepare(v string) (*draft, error) {
	at, err := c.find()
	if err != nil {
		return nil, err
	}
	d := &draft{at: at, path: c.Path}
	if err := d.write(v); err != nil {
		return nil, errors.Join(fmt.Errorf("edit %s: %w", c.Path, err), d.Close())
	}
	return d, nil
}

func (d *draft) write(v string) error {
	if err := removeIn(d.dir(), d.temp()); err != nil {
		return err
	}
	fd, err := unix.Openat(d.dir(), d.temp(), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("write a new file beside it: %w", err)
	}
	d.ready = os.NewFile(uintptr(fd), d.temp())
	_, err = d.ready.WriteString(v)
	if err = errors.Join(err, d.like(), d.ready.Sync()); err != nil {
		return errors.Join(err, removeIn(d.dir(), d.temp()))
	}
	return nil
}

// removeIn removes what a crash may have left in a directory.
func removeIn(dir int, name string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); errors.Is(err, fs.ErrNotExist) {
		return nil // a read-only file system would refuse even that
	}
	if err := unix.Unlinkat(dir, name, 0); err != nil {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}

// like gives the new file the owner, mode and extended attributes of the old one.
func (d *draft) like() error {
	if err := d.ready.Chown(int(d.at.Stat.Uid), int(d.at.Stat.Gid)); err != nil {
		return err
	}
	// A new file has its directory's default access list (acl(5)), which may let others read it.
	const accessList = "system.posix_acl_access"
	if err := unix.Fremovexattr(int(d.ready.Fd()), accessList); err != nil && !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("take the directory's access list off %s: %w", d.temp(), err)
	}
	if err := unix.Fchmod(int(d.ready.Fd()), d.at.Stat.Mode&0o7777); err != nil {
		return &fs.PathError{Op: "chmod", Path: d.temp(), Err: err}
	}
	if d.at.Stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("want a regular file")
	}
	f, err := rooted.Reopen(d.at.File, d.at.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := copyAttributes(d.ready, f); err != nil {
		return err
	}
	return copyFlags(d.ready, f)
}

// copyFlags copies what chattr(1) sets (no access times, no dump, compression …): a
// new file has its directory's. A file system without such flags has none to copy.
func copyFlags(to, from *os.File) error {
	// FS_FL_USER_MODIFIABLE of linux/fs.h without immutable and append-only, with which it
	// could be neither put in its place nor removed; the rest is the file system's own.
	const own = 0x000380ff &^ (0x10 | 0x20)
	flags, err := unix.IoctlGetUint32(int(from.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		return nil
	}
	now, err := unix.IoctlGetUint32(int(to.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil && now&own != flags&own {
		err = unix.IoctlSetPointerInt(int(to.Fd()), unix.FS_IOC_SETFLAGS, int(now&^own|flags&own))
	}
	if err != nil {
		return fmt.Errorf("give %s the flags %#x of %s (lsattr): %w", to.Name(), flags, from.Name(), err)
	}
	return nil
}

// copyAttributes copies the extended attributes (access lists, labels). A file
// system without them has none to copy.
func copyAttributes(to, f *os.File) error {
	buf := make([]byte, 64<<10)
	n, err := unix.Flistxattr(int(f.Fd()), buf)
	if err != nil {
		return nil
	}
	for name := range bytes.SplitSeq(bytes.Trim(buf[:n], "\x00"), []byte{0}) {
		if len(name) == 0 {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Fgetxattr(int(f.Fd()), string(name), value)
		if err == nil {
			err = unix.Fsetxattr(int(to.Fd()), string(name), value[:n], 0)
		}
		if err != nil {
			return fmt.Errorf("copy the attribute %s of %s: %w", name, f.Name(), err)
		}
	}
	return nil
}

// timeOf gives the draft the time that the file had.
func (d *draft) timeOf(m *meta) error {
	if m == nil {
		return nil
	}
	t := unix.NsecToTimespec(m.Time.UnixNano())
	if err := unix.UtimesNanoAt(d.dir(), d.temp(), []unix.Timespec{t, t}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return errors.Join(fmt.Errorf("give %s its time back: %w", d.path, err), removeIn(d.dir(), d.temp()))
	}
	return nil
}

// put moves the draft to the file's place, for good.
func (d *draft) put() error {
	err := d.untouched()
	if err == nil {
		err = unix.Renameat(d.dir(), d.temp(), d.dir(), d.at.Name)
	}
	if err != nil {
		if errors.Is(err, syscall.EBUSY) {
			err = fmt.Errorf("%w; it is a mount of its own, as containers have them: edit it where it comes from", err)
		}
		return errors.Join(fmt.Errorf("edit %s: %w", d.path, err), removeIn(d.dir(), d.temp()))
	}
	return syncHeld(d.at.Dir)
}

// untouched looks whether both names still are of the files that we hold.
func (d *draft) untouched() error {
	ready, err := idOf(int(d.ready.Fd()))
	if err != nil {
		return err
	}
	for name, is := range map[string]fileID{d.at.Name: {d.at.Stat.Dev, d.at.Stat.Ino}, d.temp(): ready} {
		var st unix.Stat_t
		if err := unix.Fstatat(d.dir(), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return &fs.PathError{Op: "stat", Path: name, Err: err}
		}
		if (fileID{st.Dev, st.Ino}) != is {
			return fmt.Errorf("%s is another file now: %w", name, ErrChanged)
		}
	}
	return nil
}

func (c confFile) set(v string) error { return c.restore(v, nil) }

// restore is set, and gives the file its time back.
func (c confFile) restore(v string, m *meta) error {
	d, err := c.prepare(v)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.timeOf(m); err != nil {
		return err
	}
	return d.put()
}

// clean removes what a crash may have left beside the file.
func (c confFile) clean() error {
	at, err := c.find()
	if err != nil {
		return nil // the file is gone with its container
	}
	defer at.Close()
	return removeIn(int(at.Dir.Fd()), temporary(at.Name))
}

// syncHeld has a directory's names written to the disk.
func syncHeld(dir *os.File) error {
	d, err := rooted.Reopen(dir, dir.Name())
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// exposed says why what lies on the way to a file could be changed by somebody else
// than root and us. Access lists need no look of their own: what one allows, the
// group's bits of the mode allow as well (acl(5)).
func exposed(s rooted.Step) error {
	const others = 0o022
	if uid := int(s.Stat.Uid); uid != 0 && uid != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, who could change what the service does; chown it to root or to the service's user: %w", s.Path, uid, ErrNotPossible)
	}
	if s.Stat.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil
	}
	// Where the sticky bit is set others may add names, and not take ours away.
	sticky := s.Stat.Mode&unix.S_IFMT == unix.S_IFDIR && s.Stat.Mode&unix.S_ISVTX != 0 && !s.Last
	if s.Stat.Mode&others != 0 && !sticky {
		return fmt.Errorf("%s can be written by others than its user (mode %04o, where an access list counts as the group), who could change what the service does; chmod go-w it: %w",
			s.Path, s.Stat.Mode&0o7777, ErrNotPossible)
	}
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(s.File.Fd()), &system); err != nil {
		return &fs.PathError{Op: "statfs", Path: s.Path, Err: err}
	}
	if uint32(system.Type) == unix.FUSE_SUPER_MAGIC {
		return fmt.Errorf("%s lies in a file system that some program makes up (FUSE), owners included: %w", s.Path, ErrNotPossible)
	}
	return nil
}
