package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// maxEntries is how many entries of a directory of a run are listed: blocks and
	// segments of the log; a run of a day has some hundred.
	maxEntries = 10_000
	// maxForeign is how many bytes of series are read, in all, of a run that
	// belongs to somebody else.
	maxForeign = 256 << 20
)

// folder is a run's directory, open. It may be somebody else's, and what is in
// it anything: no name leads out of it by a link, and only plain files are read.
type folder struct {
	root    *os.Root
	path    string       // for messages
	foreign atomic.Int64 // bytes read so far of files that are not ours
}

func openFolder(dir string) (*folder, error) {
	held, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0) // OpenRoot would wait at a FIFO for who writes
	if err != nil {
		return nil, err
	}
	defer held.Close()
	return folderOf(held, dir)
}

// folderOf is the directory that is held open, which path is called in messages.
func folderOf(held *os.File, path string) (*folder, error) {
	root, err := os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", held.Fd()))
	if err != nil {
		return nil, err
	}
	return &folder{root: root, path: path}, nil
}

// stepIn opens a directory in one that is held open, and follows no link.
func stepIn(held *os.File, name, path string) (*os.File, error) {
	fd, err := unix.Openat(int(held.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%s: a link, or no directory; in a folder of runs no link is followed", path)
	case err != nil:
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// name is what messages call a file.
func (f *folder) name(file string) string { return filepath.Join(f.path, file) }

// open opens a plain file. One that is none must neither hold us up, as a FIFO
// would, nor give bytes without end.
func (f *folder) open(file string) (*os.File, int64, error) {
	in, err := f.root.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := in.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: it is no plain file, as all of a run are (%s)", f.name(file), info.Mode().Type())
	}
	if err != nil {
		return nil, 0, errors.Join(err, in.Close())
	}
	return in, info.Size(), nil
}

// read returns a plain file of at most so many bytes.
func (f *folder) read(file string, most int64) (_ []byte, err error) {
	in, size, err := f.open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if size > most {
		return nil, tooLarge(f.name(file), size, most)
	}
	raw, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(raw)) > most {
		err = tooLarge(f.name(file), int64(len(raw)), most)
	}
	return raw, err
}

func tooLarge(name string, size, most int64) error {
	return fmt.Errorf("%s: %d bytes, want at most %d", name, size, most)
}

// list returns what is in a directory of the run.
func (f *folder) list(dir string) ([]fs.DirEntry, error) {
	d, err := f.root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(maxEntries + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if len(entries) > maxEntries {
		return nil, fmt.Errorf("%s: more than %d entries; this is no run's", f.name(dir), maxEntries)
	}
	return entries, err
}

// view is a file's bytes.
type view struct {
	data   []byte
	mapped bool
}

// view opens a file's bytes. A file that nobody but us (or root) can change is
// mapped. Another is read: who cuts a mapped file short while we look at it ends
// this process.
func (f *folder) view(file string, most int64) (_ view, err error) {
	in, size, err := f.open(file)
	if err != nil {
		return view{}, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if size > most {
		return view{}, tooLarge(f.name(file), size, most)
	}
	if size == 0 {
		return view{}, fmt.Errorf("%s: the file is empty", f.name(file))
	}
	if ours, err := steady(in); err != nil {
		return view{}, err
	} else if ours {
		data, err := unix.Mmap(int(in.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
		return view{data, true}, err
	}
	if f.foreign.Add(size) > maxForeign {
		return view{}, fmt.Errorf("%s: the run is another user's, and more than %d bytes; make a copy of it (cp -r) and look at that", f.path, maxForeign)
	}
	data := make([]byte, size)
	_, err = io.ReadFull(in, data)
	return view{data: data}, err
}

// forget lets the pages go that were looked at; they come back when they are needed.
func (v view) forget() {
	if v.mapped {
		_ = unix.Madvise(v.data, unix.MADV_DONTNEED) // advice
	}
}

func (v view) close() error {
	if !v.mapped {
		return nil
	}
	return unix.Munmap(v.data)
}

// steady says whether only we and root can write to a file.
func steady(f *os.File) (bool, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return false, err
	}
	return (st.Uid == 0 || int(st.Uid) == os.Geteuid()) && st.Mode&0o022 == 0, nil
}

// onlyOurs says whether a file is ours, and no group's or others' to write.
func (f *folder) onlyOurs(file string) bool {
	info, err := f.root.Stat(file)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}

func (f *folder) close() error { return f.root.Close() }
