// Package rooted names files as a process sees them that has another root
// directory or mount namespace: an absolute symbolic link inside a container
// leads to the container's file, not to ours.
package rooted

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Open finds the file that a process with root directory root (such as
// /proc/PID/root; "" is ours) calls name, an absolute path. Errors are
// *fs.PathError with the process's name of the file. The caller closes what is found.
func Open(root, name string) (*Found, error) {
	t, err := OpenTree(root)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: cause(err)}
	}
	defer t.Close()
	return t.Find(name, nil)
}

// Address is a name under which the file can be connected to, or opened, as long
// as it is not closed: it leads to this very file, and is short enough for a
// socket's address.
func (f *Found) Address() string { return byDescriptor(f.File) }

func cause(err error) error {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err
	}
	return err
}

// ReadFile reads the file that a process with root directory root calls name,
// and when it was last changed. A file larger than limit bytes is an error, and
// so is all that is no regular file.
func ReadFile(root, name string, limit int64) ([]byte, fs.FileInfo, error) {
	found, err := Open(root, name)
	if err != nil {
		return nil, nil, err
	}
	defer found.Close()
	return found.Read(name, limit)
}

// Open opens the file for reading; all that is no regular file is an error. name is
// what it is called in errors.
func (f *Found) Open(name string) (*os.File, error) {
	if err := wantRegular(f, name); err != nil {
		return nil, err
	}
	return Reopen(f.File, name)
}

// Read reads the file, see ReadFile. name is what it is called in errors.
func (f *Found) Read(name string, limit int64) ([]byte, fs.FileInfo, error) {
	r, err := f.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return nil, nil, &fs.PathError{Op: "stat", Path: name, Err: cause(err)}
	}
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, nil, &fs.PathError{Op: "read", Path: name, Err: cause(err)}
	}
	if int64(len(b)) > limit {
		return nil, nil, fmt.Errorf("read %s: want at most %d bytes", name, limit)
	}
	return b, info, nil
}

// maxEntries bounds how many names of one directory are matched with a pattern.
const maxEntries = 100_000

// Glob lists the files matching pattern (an absolute path, as glob(3)) as a
// process with root directory root sees and calls them, sorted by name within
// each directory; no match is no error. dirs are the directories in which another
// name would make a difference: those whose names were matched, and those that
// lack one.
func Glob(root, pattern string) (names, dirs []string, err error) {
	if !filepath.IsAbs(pattern) {
		return nil, nil, fmt.Errorf("expand %s: want an absolute path", pattern)
	}
	t, err := OpenTree(root)
	if err != nil {
		return nil, nil, fmt.Errorf("expand %s: %w", pattern, err)
	}
	defer t.Close()
	names = []string{"/"}
	for part := range strings.SplitSeq(strings.Trim(filepath.Clean(pattern), "/"), "/") {
		var next []string
		for _, dir := range names {
			inner, err := t.globIn(dir, part)
			if err != nil {
				return nil, nil, fmt.Errorf("expand %s: %w", pattern, err)
			}
			next = append(next, inner...)
			if isPattern(part) || len(inner) == 0 {
				dirs = append(dirs, dir)
			}
		}
		names = next
	}
	return names, dirs, nil
}

func isPattern(part string) bool { return strings.ContainsAny(part, `*?[\`) }

// globIn lists what one part of a pattern matches in one directory.
func (t *Tree) globIn(dir, part string) ([]string, error) {
	if !isPattern(part) {
		name := filepath.Join(dir, part)
		f, err := t.Find(name, nil)
		if err == nil {
			f.Close()
		}
		return skipMissing(name, err)
	}
	entries, err := t.list(dir)
	if err != nil {
		_, err = skipMissing("", err)
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e, ".") && !strings.HasPrefix(part, ".") {
			continue
		}
		ok, err := match(part, e)
		if err != nil {
			return nil, err
		}
		if ok {
			names = append(names, filepath.Join(dir, e))
		}
	}
	return names, nil
}

// match is glob(7)'s: [!a] is Go's [^a], and of the classes that Go does not know,
// such as [[:alpha:]], nobody can say what they stand for here.
func match(pattern, name string) (bool, error) {
	for _, class := range []string{"[:", "[.", "[="} {
		if strings.Contains(pattern, class) {
			return false, fmt.Errorf("%s in %q is not understood here: %w", class, pattern, filepath.ErrBadPattern)
		}
	}
	return filepath.Match(strings.ReplaceAll(pattern, "[!", "[^"), name)
}

// list lists a directory's names, sorted.
func (t *Tree) list(dir string) ([]string, error) {
	f, err := t.Find(dir, nil)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil, unix.ENOTDIR
	}
	d, err := Reopen(f.File, dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(maxEntries)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if len(names) == maxEntries {
		return nil, fmt.Errorf("%s: want fewer than %d names in it", dir, maxEntries)
	}
	slices.Sort(names)
	return names, nil
}

func skipMissing(name string, err error) ([]string, error) {
	switch cause(err) {
	case nil:
		return []string{name}, nil
	case syscall.ENOENT, syscall.ENOTDIR:
		return nil, nil
	}
	return nil, err
}

// TextAfter searches a file, such as the binary /proc/PID/exe, for mark and
// returns up to n bytes from mark on, mark included; nil when it is not in the
// first limit bytes. It holds little of the file in memory at a time.
func TextAfter(path, mark string, n, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	const chunk = 256 << 10
	buf := make([]byte, chunk+len(mark))
	for off := int64(0); off < limit; off += chunk {
		m, err := f.ReadAt(buf, off)
		if i := bytes.Index(buf[:m], []byte(mark)); i >= 0 {
			text := make([]byte, n)
			m, err := f.ReadAt(text, off+int64(i))
			if err == io.EOF {
				err = nil
			}
			return text[:m], err
		}
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}
