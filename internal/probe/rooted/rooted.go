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
	"strings"
	"syscall"
)

// maxLinks is the kernel's own limit of symbolic links in one path.
const maxLinks = 40

// Resolve returns the path under which we reach the file that a process with
// root directory root (such as /proc/PID/root) calls name, an absolute path.
// Errors are *fs.PathError with the process's name of the file.
func Resolve(root, name string) (string, error) {
	todo := strings.Split(name, "/")
	done := "/"
	links := 0
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, part)
		target, err := os.Readlink(root + next)
		if err != nil && !isNoLink(err) {
			return "", &fs.PathError{Op: "open", Path: name, Err: cause(err)}
		}
		if err != nil {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", &fs.PathError{Op: "open", Path: name, Err: syscall.ELOOP}
		}
		if strings.HasPrefix(target, "/") {
			done = "/"
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return root + done, nil
}

// isNoLink tells the answer "this is no symbolic link" from real failures.
func isNoLink(err error) bool { return cause(err) == syscall.EINVAL }

func cause(err error) error {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err
	}
	return err
}

// ReadFile reads the file that a process with root directory root calls name,
// and when it was last changed. A file larger than limit bytes is an error.
func ReadFile(root, name string, limit int64) ([]byte, fs.FileInfo, error) {
	path, err := Resolve(root, name)
	if err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO must not hold us up
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: name, Err: cause(err)}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, &fs.PathError{Op: "stat", Path: name, Err: cause(err)}
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("read %s: want a regular file, got %s", name, info.Mode().Type())
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, nil, &fs.PathError{Op: "read", Path: name, Err: cause(err)}
	}
	if int64(len(b)) > limit {
		return nil, nil, fmt.Errorf("read %s: want at most %d bytes", name, limit)
	}
	return b, info, nil
}

// Glob lists the files matching pattern (an absolute path, as glob(3)) as a
// process with root directory root sees and calls them, sorted by name within
// each directory. No match is no error.
func Glob(root, pattern string) ([]string, error) {
	if !filepath.IsAbs(pattern) {
		return nil, fmt.Errorf("expand %s: want an absolute path", pattern)
	}
	dirs := []string{"/"}
	for part := range strings.SplitSeq(strings.Trim(filepath.Clean(pattern), "/"), "/") {
		var next []string
		for _, dir := range dirs {
			names, err := globIn(root, dir, part)
			if err != nil {
				return nil, fmt.Errorf("expand %s: %w", pattern, err)
			}
			next = append(next, names...)
		}
		dirs = next
	}
	return dirs, nil
}

// globIn lists what one part of a pattern matches in one directory.
func globIn(root, dir, part string) ([]string, error) {
	if !strings.ContainsAny(part, `*?[\`) {
		name := filepath.Join(dir, part)
		path, err := Resolve(root, name)
		if err == nil {
			_, err = os.Lstat(path)
		}
		return skipMissing(name, err)
	}
	path, err := Resolve(root, dir)
	if err != nil {
		return skipMissing("", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		_, err = skipMissing("", err)
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(part, ".") {
			continue
		}
		ok, err := filepath.Match(part, e.Name())
		if err != nil {
			return nil, err
		}
		if ok {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
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
