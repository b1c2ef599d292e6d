package logtail

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

// Writer is a process that logs to files. What it has open is the truth about
// where it logs: its configuration may have been edited since it was loaded.
type Writer struct {
	// Service names the process in sentences: "nginx".
	Service string
	proc    string // its directory under /proc, as we see it
	root    string // its root directory, as we see it
	files   []openFile
	seen    bool // whether we may see its open files
}

// openFile is a regular file that a process has open for appending.
type openFile struct {
	fd   int
	name string // as the kernel names it
	info fs.FileInfo
}

// NewWriter looks at what the process with the directory proc (/proc/PID) and
// the root directory root has open. That needs its user's rights or root;
// without them Locate trusts the names it is given.
func NewWriter(service, proc, root string) *Writer {
	w := &Writer{Service: service, proc: proc, root: root}
	entries, err := os.ReadDir(filepath.Join(proc, "fd"))
	if err != nil {
		return w
	}
	w.seen = true
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		info, err := os.Stat(w.fd(fd))
		if err != nil || !info.Mode().IsRegular() || !w.appends(fd) {
			continue
		}
		if name, err := os.Readlink(w.fd(fd)); err == nil {
			w.files = append(w.files, openFile{fd, strings.TrimSuffix(name, " (deleted)"), info})
		}
	}
	return w
}

func (w *Writer) fd(n int) string { return filepath.Join(w.proc, "fd", strconv.Itoa(n)) }

// appends says whether a descriptor was opened with O_APPEND, as logs are.
func (w *Writer) appends(fd int) bool {
	b, err := os.ReadFile(filepath.Join(w.proc, "fdinfo", strconv.Itoa(fd)))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "flags:"); ok {
			flags, err := strconv.ParseUint(strings.TrimSpace(v), 8, 64)
			return err == nil && flags&unix.O_APPEND != 0
		}
	}
	return false
}

// Opened lists the names of the regular files that the process has open for appending.
func (w *Writer) Opened() []string {
	var names []string
	for _, f := range w.files {
		names = append(names, f.name)
	}
	return names
}

// Locate finds the file to follow for a log that the process calls name: an
// absolute path, or "stderr". An error that matches fs.ErrNotExist says why
// there is no such file, such as a log that goes to a pipe.
func (w *Writer) Locate(name string) (Place, error) {
	switch name {
	case "stderr", "/dev/stderr", "/proc/self/fd/2":
		return w.standard(2, "error output")
	case "/dev/stdout", "/proc/self/fd/1":
		return w.standard(1, "output")
	}
	at := Place{w.root, name}
	err := w.check(at)
	if err == nil {
		return at, nil
	}
	for _, f := range w.files {
		if f.name == name { // moved or deleted, and still written to
			return Place{Name: w.fd(f.fd)}, nil
		}
	}
	return Place{}, fmt.Errorf("%s's log %s: %w", w.Service, name, err)
}

// check says why the file at a place cannot be, or is not, the process's log.
func (w *Writer) check(at Place) error {
	info, err := at.stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return host.Absent("it is no regular file and cannot be followed; log to a file")
	}
	if !w.seen {
		return nil
	}
	for _, f := range w.files {
		if os.SameFile(f.info, info) {
			return nil
		}
	}
	return host.Absent(fmt.Sprintf("%s does not have it open; was the configuration edited and not reloaded?", w.Service))
}

// standard is the file to which the process's standard output or error output goes.
func (w *Writer) standard(fd int, what string) (Place, error) {
	info, err := os.Stat(w.fd(fd))
	if err != nil {
		return Place{}, fmt.Errorf("%s logs to its standard %s: %w", w.Service, what, err)
	}
	if !info.Mode().IsRegular() {
		return Place{}, host.Absent(fmt.Sprintf("%s logs to its standard %s, which is a pipe, socket or terminal and cannot be followed; log to a file", w.Service, what))
	}
	return Place{Name: w.fd(fd)}, nil
}
