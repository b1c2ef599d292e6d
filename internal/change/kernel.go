package change

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

// kernelFile is a setting that is a file of the kernel's: below /proc/sys,
// /sys or a cgroup's directory. Blanks are compared as one.
type kernelFile struct {
	path string
	in   func(func() error) error // runs a function where the path means the right file
	// dir, when not 0, is the inode of the file's directory: another control
	// group of the same name has another.
	dir uint64
}

func (k kernelFile) get() (v string, err error) {
	err = k.in(func() error {
		if err := k.same(); err != nil {
			return err
		}
		b, err := os.ReadFile(k.path)
		v = strings.Join(strings.Fields(string(b)), " ")
		if strings.HasSuffix(k.path, "/rps_cpus") {
			v = shortMask(v)
		}
		return err
	})
	return v, k.explain(err)
}

func (k kernelFile) set(v string) error {
	return k.explain(k.in(func() error {
		if err := k.same(); err != nil {
			return err
		}
		f, err := os.OpenFile(k.path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		if err = ofKernel(f); err == nil {
			err = put(f, v)
		}
		if err != nil {
			err = fmt.Errorf("write %q to %s: %w", v, k.path, err)
		}
		return errors.Join(err, f.Close())
	}))
}

// put writes a value. The kernel says "no such file" of one that names what it does not
// have (a congestion control): the setting itself is there.
func put(f *os.File, v string) error {
	_, err := f.WriteString(v + "\n")
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return ErrValue
	}
	return err
}

// ofKernel refuses a file on a disk: a journal may name any path, and what is
// written here is meant for the kernel.
func ofKernel(f *os.File) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return err
	}
	switch st.Type {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC:
		return nil
	}
	return fmt.Errorf("it is no setting of the kernel's: %w", ErrNotPossible)
}

func (k kernelFile) same() error {
	if k.dir == 0 {
		return nil
	}
	if ino := dirInode(k.path); ino != k.dir {
		return fmt.Errorf("control group of %s: %w", k.path, errGone)
	}
	return nil
}

func (k kernelFile) explain(err error) error {
	if errors.Is(err, unix.EROFS) {
		return fmt.Errorf("%w (it is mounted read-only, as in a container; run plimsoll where it can be written)", err)
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w (that needs root)", err)
	}
	return err
}

func dirInode(path string) uint64 {
	var st unix.Stat_t
	if unix.Stat(path[:strings.LastIndexByte(path, '/')], &st) != nil {
		return 0
	}
	return st.Ino
}

// here runs a function where we are.
func here(fn func() error) error { return fn() }

// machineWide runs a function where a setting that the whole machine shares can
// be written: of those below net that is the machine's own network namespace
// alone, and we may be in another (nf_conntrack_max is read-only there).
func machineWide(path string) func(func() error) error {
	if !strings.HasPrefix(path, "/proc/sys/net/") {
		return here
	}
	return host.OnMachine
}
