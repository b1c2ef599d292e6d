package change

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

// netns says which network namespace a setting is in, and how to find it again.
type netns struct {
	// Inode is given again to another namespace when this one ends; Cookie,
	// which kernels have since 5.14, never is. 0 is unknown.
	Inode  uint64 `json:"inode"`
	Cookie uint64 `json:"cookie,omitempty"`
	// Spec is how the user named the host: "local", "netns:NAME", "pid:N", "unit:NAME", "container:NAME".
	Spec string `json:"spec"`
}

func namespaceOf(h *host.Host) (netns, error) {
	info, err := h.Info()
	if err != nil {
		return netns{}, err
	}
	n := netns{Inode: info.NetNS, Spec: h.Spec}
	err = h.Do(func() error { n.Cookie = cookie(); return nil })
	return n, err
}

// cookie is the number of the calling thread's network namespace; 0 when the
// kernel does not tell it.
func cookie() uint64 {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	n, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0
	}
	return n
}

// open finds the namespace again: as the user named it, where we are, among the
// named ones, or through a process that is in it. The caller closes the host.
// It is gone only if we could have found it.
func (n netns) open() (*host.Host, error) {
	err := errGone
	for _, specs := range []func() []string{n.told, n.named, n.member} {
		for _, spec := range specs() {
			h, e := n.try(spec)
			if h != nil {
				return h, nil
			}
			if errors.Is(e, fs.ErrPermission) {
				err = e
			}
		}
	}
	return nil, fmt.Errorf("network namespace %s (%d): %w", n.Spec, n.Inode, err)
}

// try opens a host and looks whether it is the namespace; nil if not.
func (n netns) try(spec string) (*host.Host, error) {
	h, err := host.Open("there", spec)
	if err != nil {
		return nil, err
	}
	same := n.Inode == 0 || h.Claims(n.Inode) // of an older boot, the name is all there is
	if same && n.Cookie != 0 {
		err = h.Do(func() error {
			now := cookie()
			same = now == 0 || now == n.Cookie
			return nil
		})
	}
	if err != nil || !same {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (n netns) told() []string { return []string{n.Spec, "local"} }

// named are the named namespaces with our inode.
func (n netns) named() (specs []string) {
	names, _ := filepath.Glob("/var/run/netns/*")
	for _, name := range names {
		if ino, err := host.Inode(name); err == nil && ino == n.Inode {
			specs = append(specs, "netns:"+filepath.Base(name))
		}
	}
	return specs
}

// member is a process that is in the namespace.
func (n netns) member() []string {
	want := fmt.Sprintf("net:[%d]", n.Inode)
	for _, pid := range host.PIDs() {
		if link, err := os.Readlink(proc(pid, "ns/net")); err == nil && link == want {
			return []string{"pid:" + strconv.Itoa(pid)}
		}
	}
	return nil
}

// do runs fn on a thread in the namespace.
func (n netns) do(fn func() error) error {
	h, err := n.open()
	if err != nil {
		return err
	}
	defer h.Close()
	return h.Do(fn)
}

// doApart is do on a thread that is thrown away afterwards, with mounts of its own.
func (n netns) doApart(fn func() error) error {
	apart := func() error {
		if err := ownMounts(0); err != nil {
			return err
		}
		return fn()
	}
	h, err := n.open()
	if err != nil {
		return err
	}
	defer h.Close()
	if h.Elsewhere() {
		return h.Do(apart)
	}
	return host.Apart(apart)
}

// doSys is do with a /sys that shows this namespace's interfaces.
func (n netns) doSys(fn func() error) error {
	if own, err := host.Inode("/proc/self/ns/net"); err == nil && own == n.Inode {
		return n.do(fn)
	}
	return n.doApart(func() error {
		if err := unix.Mount("plimsoll", "/sys", "sysfs", 0, ""); err != nil {
			return fmt.Errorf("mount the /sys of network namespace %s: %w", n.Spec, err)
		}
		return fn()
	})
}

// ownMounts gives the calling thread mounts of its own, a copy of those of a
// process or of ours, so that what it mounts nobody else sees.
func ownMounts(pid int) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("have a root directory of our own: %w", err)
	}
	if pid != 0 {
		fd, err := unix.Open(proc(pid, "ns/mnt"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open the mount namespace of process %d: %w", pid, err)
		}
		defer unix.Close(fd)
		if err := unix.Setns(fd, unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("enter the mount namespace of process %d; that needs root: %w", pid, err)
		}
	}
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace; that needs root (CAP_SYS_ADMIN): %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts our own: %w", err)
	}
	return nil
}
