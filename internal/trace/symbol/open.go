package symbol

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host/rooted"
)

// openMapped opens the file behind a mapping: by the mapping itself, which works
// also of a file that was deleted or replaced, else by its path; of a process that
// is gone, by its path as we see it, if that is the same file.
func openMapped(pid int, m *mapping) (*os.File, error) {
	file, err := openLink(fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, m.start, m.end))
	if err == nil {
		return file, nil
	}
	if file, err = openIn(pid, m.path); err == nil {
		return file, nil
	}
	if file, err = openIn(os.Getpid(), m.path); err != nil {
		return nil, err
	}
	var info unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &info); err == nil && strconv.FormatUint(info.Ino, 10) == m.file.inode {
		return file, nil
	}
	_ = file.Close() // it was only opened
	return nil, fmt.Errorf("open %s of process %d: the process is gone, and what we see there is another file", m.path, pid)
}

// openLink opens what a link of the kernel's leads to, if that is a regular file: a process
// may have mapped a device, and opening one may start it.
func openLink(path string) (*os.File, error) {
	at, err := os.OpenFile(path, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	info, err := at.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: errors.New("no regular file")}
	}
	if err != nil {
		return nil, err
	}
	return rooted.Reopen(at, path)
}

// openIn opens a regular file by its path as a process sees it. No symbolic link
// of the process's leads out of its root, and no pipe makes us wait.
func openIn(pid int, path string) (*os.File, error) {
	found, err := rooted.Open(fmt.Sprintf("/proc/%d/root", pid), path)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	defer found.Close()
	file, err := found.Open(path)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	return file, nil
}
