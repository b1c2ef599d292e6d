package change

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/host/unixdiag"
)

// listener is how many connections may wait to be accepted at a listener: the
// backlog of the open socket (Send-Q of ss -ltnx). listen(2) on a socket that
// listens already sets it anew, and pidfd_getfd(2) lends us the service's socket.
type listener struct {
	net  netns
	addr string
}

// unix says whether it is a Unix socket. What such a one may hold only sock_diag
// tells, and its clients are told who called listen (SO_PEERCRED).
func (l listener) unix() bool { return strings.HasPrefix(l.addr, "unix:") }

func (l listener) get() (string, error) {
	all, err := l.limits()
	if err != nil {
		return "", err
	}
	slices.Sort(all) // with reuseport there are several
	return strings.Join(slices.Compact(all), " and "), nil
}

func (l listener) limits() (all []string, err error) {
	if l.unix() {
		found, err := l.unixSockets()
		for _, s := range found {
			all = append(all, strconv.FormatUint(uint64(s.Limit), 10))
		}
		if err == nil && len(all) == 0 {
			err = fmt.Errorf("the listener %s: %w", l.addr, errGone)
		}
		return all, err
	}
	err = l.each(func(fd int) error {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return fmt.Errorf("read the backlog of %s: %w", l.addr, err)
		}
		all = append(all, strconv.Itoa(int(info.Sacked))) // of a listener, that is its limit
		return nil
	})
	return all, err
}

func (l listener) set(v string) error {
	n, err := strconv.Atoi(v)
	if err != nil {
		return fmt.Errorf("the backlog of %s: want a whole number, got %q", l.addr, v)
	}
	if err := l.ownable(); err != nil {
		return err
	}
	return l.each(func(fd int) error {
		if err := unix.Listen(fd, n); err != nil {
			return fmt.Errorf("set the backlog of %s to %d: %w", l.addr, n, err)
		}
		return nil
	})
}

// ownable refuses a Unix socket of another user: from our listen(2) on, the kernel
// would tell its clients that the socket is ours (update_peercred in
// net/unix/af_unix.c), and some ask before they trust it.
func (l listener) ownable() error {
	if !l.unix() {
		return nil
	}
	return l.each(func(fd int) error {
		owner, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			return fmt.Errorf("see who listens at %s: %w", l.addr, err)
		}
		if int(owner.Uid) != os.Geteuid() || int(owner.Gid) != os.Getegid() {
			return fmt.Errorf("%s belongs to user %d, and would show itself to its clients as user %d's: set the backlog in the service's configuration and restart it: %w",
				l.addr, owner.Uid, os.Geteuid(), ErrNotPossible)
		}
		return nil
	})
}

// each calls fn with every listening socket of the address.
func (l listener) each(fn func(fd int) error) error {
	inodes, err := l.inodes()
	if err != nil {
		return err
	}
	if len(inodes) == 0 {
		return fmt.Errorf("the listener %s: %w", l.addr, errGone)
	}
	holders := holdersOf(inodes)
	for _, ino := range inodes {
		h, ok := holders[ino]
		if !ok {
			return fmt.Errorf("find who holds the listener %s: no process that we may look into; that needs root", l.addr)
		}
		if err := h.borrow(fn); err != nil {
			return fmt.Errorf("the listener %s of process %d: %w", l.addr, h.PID, err)
		}
	}
	return nil
}

func (l listener) inodes() (list []string, err error) {
	if l.unix() {
		found, err := l.unixSockets()
		for _, s := range found {
			list = append(list, strconv.FormatUint(uint64(s.Inode), 10))
		}
		return list, err
	}
	err = l.net.do(func() error {
		all, err := listeners()
		list = all[l.addr]
		return err
	})
	return list, err
}

// unixSockets are the sockets that listen at the address: several, where one was
// bound anew while the old one still listens.
func (l listener) unixSockets() (list []unixdiag.Listener, err error) {
	err = l.net.do(func() error {
		list, err = unixdiag.Listeners()
		return err
	})
	return slices.DeleteFunc(list, func(s unixdiag.Listener) bool { return s.Listen != l.addr }), err
}

// listeners are the TCP listeners of the calling thread's namespace: the inodes
// of their sockets by address.
func listeners() (map[string][]string, error) {
	all := map[string][]string{}
	for _, name := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile("/proc/thread-self/net/" + name)
		if errors.Is(err, os.ErrNotExist) {
			continue // no IPv6
		}
		if err != nil {
			return nil, err
		}
		if err := parseListeners(b, all); err != nil {
			return nil, fmt.Errorf("parse /proc/net/%s: %w", name, err)
		}
	}
	return all, nil
}

// parseListeners adds the listeners of a /proc/net/tcp to all.
func parseListeners(b []byte, all map[string][]string) error {
	const local, state, inode = 1, 3, 9
	const listening = "0A" // TCP_LISTEN
	n := 0
	for line := range strings.Lines(string(b)) {
		if n++; n == 1 {
			continue
		}
		f := strings.Fields(line)
		if len(f) <= inode {
			return fmt.Errorf("line %d: want 10 fields or more, got %d", n, len(f))
		}
		if f[state] != listening {
			continue
		}
		addr, err := parseAddress(f[local])
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		all[addr] = append(all[addr], f[inode])
	}
	return nil
}

// parseAddress reads "0100007F:1F90": words of four bytes in the machine's
// order, here always the small end first (amd64, arm64), then the port.
func parseAddress(s string) (string, error) {
	host, port, _ := strings.Cut(s, ":")
	ip, err := hex.DecodeString(host)
	if err != nil || len(ip) != 4 && len(ip) != 16 {
		return "", fmt.Errorf("address %q: want 8 or 32 hexadecimal digits", s)
	}
	for word := range slices.Chunk(ip, 4) {
		slices.Reverse(word)
	}
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return "", fmt.Errorf("address %q: port: %w", s, err)
	}
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a, uint16(n)).String(), nil
}

// holder is a process that has a socket open.
type holder struct {
	process
	fd  int
	ino string // the socket's inode
}

// holdersOf finds a holder for each of the sockets.
func holdersOf(inodes []string) map[string]holder {
	found := map[string]holder{}
	for _, pid := range host.PIDs() {
		p, err := processOf(pid)
		if err != nil {
			continue // it ended just now
		}
		names, _ := filepath.Glob(proc(pid, "fd/*"))
		for _, name := range names {
			link, err := os.Readlink(name)
			ino, ok := strings.CutPrefix(link, "socket:[")
			ino = strings.TrimSuffix(ino, "]")
			if err != nil || !ok || !slices.Contains(inodes, ino) {
				continue
			}
			if fd, err := strconv.Atoi(filepath.Base(name)); err == nil {
				found[ino] = holder{p, fd, ino}
			}
		}
		if len(found) == len(inodes) {
			break
		}
	}
	return found
}

// borrow calls fn with a descriptor of ours for the holder's socket, and for no
// other that has its number, in this process or in one of that number, by now.
func (h holder) borrow(fn func(fd int) error) error {
	pid, err := unix.PidfdOpen(h.PID, 0)
	if err != nil {
		return fmt.Errorf("pidfd_open: %w", gone(err))
	}
	defer unix.Close(pid)
	fd, err := unix.PidfdGetfd(pid, h.fd, 0)
	if err != nil {
		return fmt.Errorf("pidfd_getfd (Linux 5.6 and the right to trace it): %w", gone(err))
	}
	defer unix.Close(fd)
	if err := h.check(); err != nil { // after pidfd_open: so it was this one's
		return err
	}
	is, err := idOf(fd)
	if err != nil {
		return err
	}
	if strconv.FormatUint(is.Ino, 10) != h.ino {
		return fmt.Errorf("its descriptor %d is of something else now: %w", h.fd, errGone)
	}
	return fn(fd)
}

// backlogIn is what becomes of a backlog under the host's somaxconn.
func backlogIn(h *host.Host, n int) (effective int, note string) {
	var most int
	_ = h.Do(func() error {
		b, err := os.ReadFile("/proc/sys/net/core/somaxconn")
		if err == nil {
			most, err = strconv.Atoi(strings.TrimSpace(string(b)))
		}
		return err
	})
	if most > 0 && (n < 0 || n > most) {
		return most, fmt.Sprintf("net.core.somaxconn caps it at %d on %s; raise that first", most, h.Name)
	}
	return n, ""
}

// somaxconn is the longest queue that a listener of the namespace may have.
func (n netns) somaxconn() (most int, err error) {
	err = n.do(func() error {
		b, err := os.ReadFile("/proc/sys/net/core/somaxconn")
		if err == nil {
			most, err = strconv.Atoi(strings.TrimSpace(string(b)))
		}
		return err
	})
	return most, err
}

// listenersOf are the sockets of the namespace at which a process listens.
func (n netns) listenersOf(pid int) (inodes []string, err error) {
	var all []string
	err = n.do(func() error {
		byAddress, err := listeners()
		for _, list := range byAddress {
			all = append(all, list...)
		}
		local, err2 := unixdiag.Listeners()
		for _, l := range local {
			all = append(all, fmt.Sprint(l.Inode))
		}
		return errors.Join(err, err2)
	})
	names, _ := filepath.Glob(proc(pid, "fd/*"))
	for _, name := range names {
		link, _ := os.Readlink(name)
		ino, ok := strings.CutPrefix(strings.TrimSuffix(link, "]"), "socket:[")
		if ok && slices.Contains(all, ino) && !slices.Contains(inodes, ino) {
			inodes = append(inodes, ino)
		}
	}
	slices.Sort(inodes)
	return inodes, err
}
