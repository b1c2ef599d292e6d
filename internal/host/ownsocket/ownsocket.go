// Package ownsocket connects to a service at a Unix socket that is the service's own.
//
// Where a service listens, its configuration or its title says, and these may be anybody's:
// a process that calls itself nginx could name the socket of a container engine, and have
// root ask there for what it likes. So a socket counts only if a process of the service holds it open.
package ownsocket

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/host/rooted"
	"plimsoll/internal/host/unixdiag"
)

// maxDescriptors is how many of a process's descriptors are looked at, the lowest first:
// services open their listeners before anything else.
const maxDescriptors = 4096

// Dial connects to the Unix socket that a service with that root directory (as we see it)
// calls path, if one of the processes pids listens there. It is the file that is compared
// and connected to, and not its name, which may lead elsewhere by then.
func Dial(ctx context.Context, h *host.Host, root, path string, pids ...int) (c net.Conn, err error) {
	err = With(h, root, path, func(address string) (err error) {
		c, err = h.Dial(ctx, "unix", address)
		return err
	}, pids...)
	return c, err
}

// With is Dial for who connects in another way: connect is called with the address to connect to, if
// one of the processes listens there, and never otherwise.
func With(h *host.Host, root, path string, connect func(address string) error, pids ...int) error {
	found, err := rooted.Open(root, path)
	if err != nil {
		return err
	}
	defer found.Close()
	files := []unixdiag.FileID{unixdiag.FileAt(found.Stat.Ino, unix.Major(found.Stat.Dev), unix.Minor(found.Stat.Dev))}
	for _, pid := range pids {
		if major, minor, ok := mountDevice(h, pid, found.File); ok {
			files = append(files, unixdiag.FileAt(found.Stat.Ino, major, minor))
			break
		}
	}
	var listen []uint32
	err = h.Do(func() (err error) {
		listen, err = unixdiag.ListenersAt(files...)
		return err
	})
	if err != nil {
		return err
	}
	var failed error
	for _, pid := range pids {
		holds, err := holdsOne(h, pid, listen)
		if holds {
			return connect(found.Address())
		}
		if failed == nil {
			failed = err
		}
	}
	if failed != nil {
		return fmt.Errorf("look whether the service listens at %s itself: %w", path, failed)
	}
	return fmt.Errorf("at %s no process of the service listens, so it is not asked there; was the configuration edited and not reloaded?", path)
}

const (
	maxMounts = 4 << 20 // bytes of a process's mounts
	maxInfo   = 4 << 10 // bytes about a descriptor
)

// mountDevice is the device of the file system that a file is on, as the kernel calls it
// where it tells of sockets: stat(2) has another one on btrfs.
func mountDevice(h *host.Host, pid int, f *os.File) (major, minor uint32, ok bool) {
	info, err := host.ReadHead(fmt.Sprintf("/proc/self/fdinfo/%d", f.Fd()), maxInfo)
	mounts, err2 := host.ReadHead(h.Path("proc", strconv.Itoa(pid), "mountinfo"), maxMounts)
	_, id, found := bytes.Cut(info, []byte("mnt_id:"))
	if err != nil || err2 != nil || !found {
		return 0, 0, false
	}
	id, _, _ = bytes.Cut(bytes.TrimSpace(id), []byte("\n"))
	for line := range bytes.Lines(mounts) {
		if f := bytes.Fields(line); len(f) > 2 && bytes.Equal(f[0], id) {
			_, err := fmt.Sscanf(string(f[2]), "%d:%d", &major, &minor)
			return major, minor, err == nil
		}
	}
	return 0, 0, false
}

// holdsOne says whether a process has one of the sockets open.
func holdsOne(h *host.Host, pid int, sockets []uint32) (holds bool, err error) {
	_, err = host.EachDescriptor(h.Path("proc", strconv.Itoa(pid)), maxDescriptors, func(_ int, link []byte, err error) {
		inode, ok := bytes.CutPrefix(link, []byte("socket:["))
		if err != nil || !ok {
			return
		}
		n, err := strconv.ParseUint(string(bytes.TrimSuffix(inode, []byte("]"))), 10, 32)
		holds = holds || err == nil && slices.Contains(sockets, uint32(n))
	})
	return holds, err
}
