package host

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// EachDescriptor calls do for the first open descriptors of a process, at most so
// many, the lowest first: with its number and with where its link in /proc/PID/fd
// leads, or why that cannot be read. dir is the process's directory in /proc. The
// link is valid during the call; an end beyond 4,095 bytes is cut off. It takes half
// of what package os takes for the same, and hundreds of processes are looked
// through at a time. An error is an *fs.PathError: the process is gone, or not ours
// to look into.
func EachDescriptor(dir string, most int, do func(fd int, link []byte, err error)) (looked int, err error) {
	dir += "/fd"
	d, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(d)
	var link, buf [4096]byte
	list := buf[:min(len(buf), 32*(most+2))] // the kernel makes an inode for each name that fits
	var entries []entry
	for {
		n, err := unix.Getdents(d, list)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return looked, &os.PathError{Op: "getdents", Path: dir, Err: err}
		}
		if n == 0 {
			return looked, nil
		}
		if entries, err = parseDirents(list[:n], entries[:0]); err != nil {
			return looked, &os.PathError{Op: "list", Path: dir, Err: err}
		}
		for _, e := range entries {
			if looked == most {
				return looked, nil
			}
			looked++
			n, err := unix.Readlinkat(d, strconv.Itoa(e.number), link[:len(link)-1])
			do(e.number, link[:max(n, 0)], err)
		}
	}
}
