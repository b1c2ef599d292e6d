package symbol

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// openMapped opens the file behind a mapping: by the mapping itself, which works
// also of a file that was deleted or replaced, else by its path; of a process that
// is gone, by its path as we see it, if that is the same file.
func openMapped(pid int, m *mapping) (*os.File, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, m.start, m.end))
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

// openIn opens a regular file by its path as a process sees it. No symbolic link
// of the process's leads out of its root, and no pipe makes us wait.
func openIn(pid int, path string) (*os.File, error) {
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the root of process %d: %w", pid, err)
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, strings.TrimPrefix(path, "/"), &unix.OpenHow{
		Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, fmt.Errorf("open %s of process %d: %w", path, pid, err)
	}
	file := os.NewFile(uintptr(fd), path)
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close() // it was only opened
		return nil, fmt.Errorf("open %s of process %d: not a regular file", path, pid)
	}
	return file, nil
}
