package program

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/layout"
	"plimsoll/internal/probe/doing"
)

const (
	// maxPolled is of how many files at most it is looked up what they are, where one call waits for several.
	maxPolled = 64
	// maxLinks bounds what is remembered of sockets and pipes.
	maxLinks = 4096
	// searchEvery is the time between two searches of all processes for the other end of a pipe, at least.
	searchEvery = time.Second
	// several stands for more peers than one.
	several = "several peers"
)

// far is what a file leads to that somebody may wait for.
type far struct {
	what string // peer, clients, listener, unconnected, connecting, inside (another process of the program), pipe, terminal, timer, file, other: not known
	name string
}

// links remembers what sockets and pipes lead to, by what readlink says of them.
type links struct {
	known    map[string]far
	spaces   map[string]space // by their names
	large    map[[2]int]bool  // epolls of too many files, by process and descriptor
	own      func() []int     // the processes of the program
	searched time.Time
	low      uint16 // of the ports that the kernel gives to whoever connects
}

func newLinks(own func() []int) *links {
	l := &links{known: map[string]far{}, spaces: map[string]space{}, large: map[[2]int]bool{}, own: own, low: 32768}
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if f := strings.Fields(string(b)); len(f) == 2 {
			if low, err := strconv.ParseUint(f[0], 10, 16); err == nil {
				l.low = uint16(low)
			}
		}
	}
	return l
}

// of is what a descriptor of a process leads to.
func (l *links) of(pid, fd int, link string) far {
	switch {
	case isTerminal(link):
		return far{"terminal", link}
	case strings.HasPrefix(link, "/"):
		return far{"file", layout.WithoutIdentifiers(strings.TrimSuffix(link, " (deleted)"))}
	case link == "anon_inode:[timerfd]":
		return far{what: "timer"}
	case !strings.HasPrefix(link, "socket:") && !strings.HasPrefix(link, "pipe:"):
		return far{what: "other"}
	}
	if known, is := l.known[link]; is {
		return known
	}
	if len(l.known) >= maxLinks {
		clear(l.known)
	}
	var f far
	if strings.HasPrefix(link, "pipe:") {
		var sure bool
		if f, sure = l.pipe(pid, link); !sure {
			return f
		}
	} else if f = l.socket(pid, fd); f.what != "peer" && f.what != "clients" && f.what != "inside" {
		return f // it may be connected by the next look
	}
	l.known[link] = f
	return f
}

// synSent is TCP_SYN_SENT of the kernel's net/tcp_states.h.
const synSent = 2

// socket asks a descriptor of another process's whom it is connected to.
func (l *links) socket(pid, fd int) far {
	p, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return far{what: "other"}
	}
	defer unix.Close(p)
	s, err := unix.PidfdGetfd(p, fd, 0) // Linux 5.6
	if err != nil {
		return far{what: "other"}
	}
	defer unix.Close(s)
	if accepts, err := unix.GetsockoptInt(s, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err == nil && accepts != 0 {
		return far{what: "listener"}
	}
	own, _ := unix.Getsockname(s) // nil where it has none
	peer, err := unix.Getpeername(s)
	if err != nil { // it waits for whoever sends, unless it is about to connect
		if info, err := unix.GetsockoptTCPInfo(s, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil && info.State == synSent {
			return far{what: "connecting"}
		}
		return far{what: "unconnected"}
	}
	return between(own, peer, l.accepted(pid, own, peer))
}

// isTerminal says whether a file is one that people type at; a serial line's other end may be any device.
func isTerminal(link string) bool {
	rest, is := strings.CutPrefix(link, "/dev/tty")
	return strings.HasPrefix(link, "/dev/pts/") || is && strings.Trim(rest, "0123456789") == ""
}

const (
	// listing is the time between two readings of who listens in a network namespace, listed how much of that is read, in bytes:
	// the kernel lists those before the connections.
	listing, listed = 10 * time.Second, 64 << 10
	// maxSpaces bounds the network namespaces that are remembered.
	maxSpaces = 64
)

// space is at which ports somebody listens in a network namespace.
type space struct {
	ports map[uint16]bool
	read  time.Time
}

// accepted says whether a process's connection was accepted by it: somebody listens at its port, or whoever is at the other end has
// a port that the kernel gives to those who connect, and it has none.
func (l *links) accepted(pid int, own, peer unix.Sockaddr) bool {
	here, there := addrPort(own).Port(), addrPort(peer).Port()
	if here == 0 {
		return false
	}
	proc := "/proc/" + strconv.Itoa(pid)
	name, err := os.Readlink(proc + "/ns/net")
	if err != nil {
		return here < l.low && there >= l.low
	}
	s := l.spaces[name]
	if time.Since(s.read) > listing {
		if s = (space{map[uint16]bool{}, time.Now()}); len(l.spaces) >= maxSpaces {
			clear(l.spaces)
		}
		for _, file := range []string{"/net/tcp", "/net/tcp6"} {
			if b, err := host.ReadHead(proc+file, listed); err == nil {
				listeners(string(b), s.ports)
			}
		}
		l.spaces[name] = s
	}
	return s.ports[here] || here < l.low && there >= l.low && !s.ports[there]
}

// listeners reads the ports at which somebody listens from /proc/net/tcp.
//
// https://docs.kernel.org/networking/proc_net_tcp.html
func listeners(table string, ports map[uint16]bool) {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 4 || f[3] != "0A" {
			continue
		}
		_, port, _ := strings.Cut(f[1], ":")
		if n, err := strconv.ParseUint(port, 16, 16); err == nil {
			ports[uint16(n)] = true
		}
	}
}

// between tells by the names of a connection's ends whom it is towards.
func between(own, peer unix.Sockaddr, accepted bool) far {
	switch peer := peer.(type) {
	case *unix.SockaddrUnix:
		name := ""
		if own, is := own.(*unix.SockaddrUnix); is {
			name = own.Name
		}
		switch { // "@" alone is how the library writes that there is no name
		case strings.Trim(peer.Name, "@") != "":
			return far{"peer", "unix:" + peer.Name}
		case strings.Trim(name, "@") != "":
			return far{"clients", "clients@unix:" + name}
		}
		return far{what: "inside"} // socketpair(2): of relatives
	case *unix.SockaddrInet4, *unix.SockaddrInet6:
		if accepted {
			return far{"clients", "clients@" + addrPort(own).String()}
		}
		return far{"peer", addrPort(peer).String()}
	}
	return far{what: "unconnected"} // the kernel's own, as netlink: it waits for news
}

func addrPort(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// pipe searches who else has a pipe; sure says that the answer will not change.
func (l *links) pipe(pid int, link string) (f far, sure bool) {
	for _, other := range l.own() {
		if other != pid && has(other, link) {
			return far{what: "inside"}, true
		}
	}
	if time.Since(l.searched) < searchEvery {
		return far{what: "pipe"}, false
	}
	l.searched = time.Now()
	for _, other := range host.PIDs() {
		if other == pid || !has(other, link) {
			continue
		}
		if st, err := host.StatOf(other); err == nil {
			return far{"pipe", "the pipe to " + layout.Line(string(st.Comm))}, true
		}
	}
	return far{what: "pipe"}, true
}

// has says whether a process has a file open that readlink names so.
func has(pid int, link string) (found bool) {
	_, _ = host.EachDescriptor("/proc/"+strconv.Itoa(pid), maxPolled, func(_ int, name []byte, err error) {
		found = found || err == nil && string(name) == link
	})
	return found
}

// want is a descriptor that is waited for; writes says that it is until it can be written, too: then what it was sent before
// has not been taken yet.
type want struct {
	fd     int
	writes bool
}

const (
	// maxSelected is FD_SETSIZE, the most descriptors that select(2) takes.
	maxSelected = 1024
	// largeEpoll is from which size on, in bytes, what the kernel says of an epoll is not read again: it has hundreds of files, and
	// is held up meanwhile.
	largeEpoll = 16 << 10
)

// waitsForNone says whether a call waits for no file at all, and so for its time to pass.
func waitsForNone(d doing.Doing) bool {
	return d.Call == "poll" && d.Args[1] == 0 || d.Call == "select" && (d.Args[0] == 0 || d.Args[1] == 0 && d.Args[2] == 0 && d.Args[3] == 0)
}

// pollOut is the event of poll(2) and epoll(7) that it can be written.
const pollOut = unix.POLLOUT

// polled are the descriptors that a call waits for, as far as they are told: of poll and select from the memory of the
// process, of epoll from what the kernel says of it.
func (l *links) polled(pid int, d doing.Doing) []want {
	switch d.Call {
	case "poll":
		return ofPoll(memory(pid, d.Args[0], int(min(d.Args[1], maxPolled))*8))
	case "select":
		n := int(min(d.Args[0], maxSelected))
		reads, writes := ofSelect(memory(pid, d.Args[1], (n+7)/8), n), ofSelect(memory(pid, d.Args[2], (n+7)/8), n)
		var list []want
		for fd := range n {
			if w := slices.Contains(writes, fd); len(list) < maxPolled && (w || slices.Contains(reads, fd)) {
				list = append(list, want{fd, w})
			}
		}
		return list
	case "epoll_wait":
		key := [2]int{pid, int(d.Args[0])}
		if l.large[key] {
			return nil
		}
		b, err := host.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", pid, d.Args[0]))
		if err != nil {
			return nil
		}
		if len(b) > largeEpoll {
			if len(l.large) >= maxLinks {
				clear(l.large)
			}
			l.large[key] = true
			return nil
		}
		return ofEpoll(string(b))
	}
	return nil
}

// ofPoll reads an array of struct pollfd: int fd; short events, revents.
func ofPoll(b []byte) (list []want) {
	for ; len(b) >= 8; b = b[8:] {
		fd, events := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint16(b[4:])
		if fd >= 0 {
			list = append(list, want{int(fd), events&pollOut != 0})
		}
	}
	return list
}

// ofSelect reads the first n bits of an fd_set.
func ofSelect(b []byte, n int) (fds []int) {
	for i := range min(n, 8*len(b)) {
		if b[i/8]&(1<<(i%8)) != 0 {
			fds = append(fds, i)
		}
	}
	return fds
}

// ofEpoll reads the descriptors that an epoll's fdinfo names ("tfd: 5 events: 80000019 …").
func ofEpoll(info string) (list []want) {
	for line := range strings.Lines(info) {
		f := strings.Fields(line)
		if len(f) < 4 || f[0] != "tfd:" || len(list) == maxPolled {
			continue
		}
		fd, err := strconv.Atoi(f[1])
		events, err2 := strconv.ParseUint(f[3], 16, 32)
		if err == nil && err2 == nil && fd >= 0 {
			list = append(list, want{fd, events&pollOut != 0 && events&edge == 0})
		}
	}
	return list
}

// edge is EPOLLET: who is told of changes alone asks for both always.
const edge = 1 << 31

// memory reads so many bytes of a process's memory; nil where that may not be done.
func memory(pid int, at uint64, n int) []byte {
	if n <= 0 || at == 0 {
		return nil
	}
	b := make([]byte, n)
	local := []unix.Iovec{{Base: &b[0], Len: uint64(n)}}
	got, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: n}}, 0)
	if err != nil || got != n {
		return nil
	}
	return b
}

// ofMany says what is waited for where one call waits for several files: the one peer among them, if nobody can be
// waited for who may never come.
func (l *links) ofMany(pid int, list []want) (what, towards string) {
	if len(list) == 0 {
		return "sleep", ""
	}
	seen := map[string][]string{}
	answer := "socket_read"
	for _, w := range list {
		link, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, w.fd)) // "" where it is closed by now
		f := l.of(pid, w.fd, link)
		if !slices.Contains(seen[f.what], f.name) {
			seen[f.what] = append(seen[f.what], f.name)
		}
		if f.what == "peer" && w.writes {
			answer = "socket_write"
		}
	}
	switch {
	case len(list) == 1 && list[0].writes && len(seen["clients"]) == 1:
		return "socket_write", seen["clients"][0]
	case len(seen["listener"]) > 0 || len(seen["clients"]) > 0 || len(seen["unconnected"]) > 0:
		return "poll", ""
	case len(seen["peer"]) == 1:
		return answer, seen["peer"][0]
	case len(seen["peer"]) > 1:
		return answer, several
	case len(seen["connecting"]) > 0:
		return "connect", ""
	case len(seen["inside"]) > 0:
		return "pipe", ""
	case len(seen["pipe"]) > 0:
		return "pipe", seen["pipe"][0]
	case len(seen["timer"]) > 0 && len(seen) == 1:
		return "sleep", ""
	}
	return "poll", ""
}
