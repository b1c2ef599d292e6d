// Package asuser does for one moment, on a thread of its own, what another user may do.
package asuser

import (
	"errors"
	"fmt"
	"net"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
)

// DialUnix connects to the Unix socket at path, a name as we see it (see
// rooted.Found's Address), as user uid of group gid: whoever listens is told
// by the kernel that it is they who ask (SO_PEERCRED in unix(7)), and what they may
// not connect to is refused. Supplementary groups it has none. That needs CAP_SETUID and CAP_SETGID, unless it is us.
//
// The rights are a thread's own, which is thrown away: its real user stays ours, so that the
// other can neither look into this process nor signal it.
func DialUnix(path string, uid, gid int) (c net.Conn, err error) {
	err = host.Apart(func() error {
		if uid != os.Geteuid() || gid != os.Getegid() {
			back, err := become(uid, gid)
			if err != nil {
				return fmt.Errorf("connect as user %d; that needs root (CAP_SETUID and CAP_SETGID): %w", uid, err)
			}
			defer back()
		}
		c, err = connectUnix(path)
		return err
	})
	return c, err
}

// become gives the calling thread the effective rights of a user; back takes them away.
func become(uid, gid int) (back func(), err error) {
	// A change of rights has the kernel hide the whole process from its own user.
	shown, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		return nil, err
	}
	groups, err := unix.Getgroups()
	if err != nil {
		return nil, err
	}
	ourUser, ourGroup := os.Geteuid(), os.Getegid()
	back = func() {
		_ = setEffective(unix.SYS_SETRESUID, ourUser) // else the thread ends with what it has
		_ = setEffective(unix.SYS_SETRESGID, ourGroup)
		_ = setGroups(groups)
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(shown), 0, 0, 0)
	}
	if err := setGroups(nil); err != nil { // ours are none of that user's
		return nil, err
	}
	if err := setEffective(unix.SYS_SETRESGID, gid); err != nil {
		back()
		return nil, err
	}
	if err := setEffective(unix.SYS_SETRESUID, uid); err != nil {
		back()
		return nil, err
	}
	return back, nil
}

// setGroups is setgroups(2) of this thread alone.
func setGroups(groups []int) error {
	list := make([]uint32, len(groups)+1) // so that there is an address, also of none
	for i, g := range groups {
		list[i] = uint32(g)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&list[0])), 0); e != 0 {
		return e
	}
	return nil
}

// setEffective is setresuid(-1, id, -1), or that of groups, of this thread alone:
// package unix's own are of all threads.
func setEffective(call uintptr, id int) error {
	const same = ^uintptr(0)
	if _, _, e := unix.RawSyscall(call, same, uintptr(id), same); e != 0 {
		return e
	}
	return nil
}

func connectUnix(path string) (net.Conn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("make a Unix socket: %w", err)
	}
	f := os.NewFile(uintptr(fd), path)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return nil, errors.Join(&os.PathError{Op: "connect", Path: path, Err: err}, f.Close())
	}
	c, err := net.FileConn(f)
	return c, errors.Join(err, f.Close())
}
