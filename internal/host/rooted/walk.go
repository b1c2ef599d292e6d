package rooted

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxLinks is the kernel's own limit of symbolic links in one path.
const maxLinks = 40

// Tree is the files beneath a root directory, which is held open: whatever the
// names are made to lead to meanwhile, nothing outside is reached.
type Tree struct{ root *os.File }

// OpenTree opens the tree of a root directory such as /proc/PID/root; "" is our
// own. The caller closes it.
func OpenTree(root string) (*Tree, error) {
	if root == "" {
		root = "/"
	}
	f, err := os.OpenFile(root, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return &Tree{f}, nil
}

// Close lets the tree go. What was found in it stays open.
func (t *Tree) Close() error { return t.root.Close() }

// Step is something that was passed on the way to a file, the file included.
type Step struct {
	// Path is its name beneath the root, without symbolic links before its last part.
	Path string
	// File is an O_PATH descriptor of it, valid during the call only.
	File *os.File
	Stat unix.Stat_t
	// Last says that it is what was looked for.
	Last bool
}

// Found is a file, held by descriptors.
type Found struct {
	// File is the file itself and Dir the directory that holds it, both opened with O_PATH.
	File, Dir *os.File
	// Name is its name in Dir, and no symbolic link; "." where it is a root directory.
	Name string
	// Path is its whole name beneath the root, without symbolic links.
	Path string
	Stat unix.Stat_t
}

// Close lets the file go.
func (f *Found) Close() error { return errors.Join(f.File.Close(), f.Dir.Close()) }

// Find finds what a process in the tree calls name, an absolute path. Symbolic
// links are read and followed within the tree, those of /proc that are none (exe,
// fd/1) by their text. look, which may be nil, is told of every step, beginning
// with the root, and ends the search with an error. Other errors are
// *fs.PathError with the process's name of the file.
//
// Each step is opened in the directory before it, which is held open, and without
// following links: that is what openat2(2) does with RESOLVE_IN_ROOT, and this can
// look at what it passes, and works before Linux 5.6.
func (t *Tree) Find(name string, look func(Step) error) (*Found, error) {
	w, err := t.begin(name, look)
	if err != nil {
		return nil, err
	}
	defer w.close()
	for len(w.todo) > 0 {
		part := w.todo[0]
		w.todo = w.todo[1:]
		if part == ".." {
			w.up()
			continue
		}
		if err := w.down(part); err != nil {
			return nil, err
		}
	}
	return w.found()
}

// walk is a search under way.
type walk struct {
	name  string
	look  func(Step) error
	todo  []string
	way   []held // from the root to where we are
	links int
}

// held is a file on the way that we keep open.
type held struct {
	file *os.File
	name string
	stat unix.Stat_t
}

func (t *Tree) begin(name string, look func(Step) error) (*walk, error) {
	if look == nil {
		look = func(Step) error { return nil }
	}
	w := &walk{name: name, look: look, todo: parts(name)}
	fd, err := unix.FcntlInt(t.root.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, w.fail(err)
	}
	h := held{file: os.NewFile(uintptr(fd), "/"), name: "."}
	w.way = []held{h}
	if err := unix.Fstat(fd, &w.way[0].stat); err != nil {
		w.close()
		return nil, w.fail(err)
	}
	if err := w.tell(w.way[0], len(w.todo) == 0); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// parts are the names in a path that lead somewhere.
func parts(name string) (list []string) {
	for part := range strings.SplitSeq(name, "/") {
		if part != "" && part != "." {
			list = append(list, part)
		}
	}
	return list
}

func (w *walk) fail(err error) error { return &fs.PathError{Op: "open", Path: w.name, Err: err} }

func (w *walk) close() {
	for _, h := range w.way {
		h.file.Close()
	}
}

func (w *walk) last() held { return w.way[len(w.way)-1] }

func (w *walk) up() {
	if len(w.way) > 1 {
		w.last().file.Close()
		w.way = w.way[:len(w.way)-1]
	}
}

// down takes one step from where we are.
func (w *walk) down(part string) error {
	at := w.last()
	if at.stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return w.fail(unix.ENOTDIR)
	}
	fd, err := unix.Openat(int(at.file.Fd()), part, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return w.fail(err)
	}
	h := held{file: os.NewFile(uintptr(fd), part), name: part}
	if err := unix.Fstat(fd, &h.stat); err != nil {
		h.file.Close()
		return w.fail(err)
	}
	if h.stat.Mode&unix.S_IFMT == unix.S_IFLNK {
		defer h.file.Close()
		return w.link(h)
	}
	if err := w.tell(h, len(w.todo) == 0); err != nil {
		h.file.Close()
		return err
	}
	w.way = append(w.way, h)
	return nil
}

// link goes on where a symbolic link leads.
func (w *walk) link(h held) error {
	if w.links++; w.links > maxLinks {
		return w.fail(unix.ELOOP)
	}
	if err := w.tell(h, false); err != nil {
		return err
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(h.file.Fd()), "", buf)
	if err != nil {
		return w.fail(err)
	}
	target := string(buf[:n])
	if strings.HasPrefix(target, "/") {
		for len(w.way) > 1 {
			w.up()
		}
	}
	w.todo = append(parts(target), w.todo...)
	return nil
}

// tell tells of a step, which may not be on the way yet.
func (w *walk) tell(h held, last bool) error {
	where := w.path()
	if h.name != "." {
		where = path.Join(where, h.name)
	}
	return w.look(Step{Path: where, File: h.file, Stat: h.stat, Last: last})
}

func (w *walk) path() string {
	where := "/"
	for _, h := range w.way[1:] {
		where = path.Join(where, h.name)
	}
	return where
}

// found hands the end of the way over.
func (w *walk) found() (*Found, error) {
	at := w.last()
	f := &Found{File: at.file, Name: at.name, Path: w.path(), Stat: at.stat}
	w.way = w.way[:len(w.way)-1]
	if len(w.way) > 0 {
		f.Dir = w.last().file
		w.way = w.way[:len(w.way)-1]
		return f, nil
	}
	fd, err := unix.FcntlInt(f.File.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		f.File.Close()
		return nil, w.fail(err)
	}
	f.Dir = os.NewFile(uintptr(fd), "/")
	return f, nil
}

// Reopen opens for reading what an O_PATH descriptor is of, and nothing that has
// taken its name since. name is for errors. Whoever does not want to wait, or to
// start a device, looks first at what it is.
func Reopen(f *os.File, name string) (*os.File, error) {
	r, err := os.OpenFile(byDescriptor(f), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: cause(err)}
	}
	return r, nil
}

// byDescriptor is a name that leads to what a descriptor of ours is of.
func byDescriptor(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// wantRegular refuses what must not be opened: FIFOs, devices, directories.
func wantRegular(f *Found, name string) error {
	if f.Stat.Mode&unix.S_IFMT == unix.S_IFREG {
		return nil
	}
	kind := "something else"
	switch f.Stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		kind = "a directory"
	case unix.S_IFIFO:
		kind = "a FIFO"
	case unix.S_IFSOCK:
		kind = "a socket"
	case unix.S_IFCHR, unix.S_IFBLK:
		kind = "a device"
	}
	return fmt.Errorf("read %s: want a regular file, got %s", name, kind)
}
