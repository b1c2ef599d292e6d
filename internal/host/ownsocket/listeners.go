package ownsocket

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"plimsoll/internal/host"
)

// maxTable is how much is read of each of the kernel's tables of sockets. In those of TCP
// the listeners stand before all connections.
const maxTable = 1 << 20

// Address is where a process listens for streams: a path, as the process calls it, or an address of TCP.
type Address struct {
	Path string
	TCP  netip.AddrPort
}

// String is the address as the label listen has it.
func (a Address) String() string {
	if a.Path != "" {
		return "unix:" + a.Path
	}
	return a.TCP.String()
}

// Listeners are the addresses at which a process listens by a socket that it holds itself: Unix
// sockets that are files first, then those of TCP, by port.
func Listeners(h *host.Host, pid int) (list []Address, err error) {
	dir := h.Path("proc", strconv.Itoa(pid))
	mine := map[string]bool{}
	if _, err := host.EachDescriptor(dir, maxDescriptors, func(_ int, link []byte, err error) {
		if inode, ok := bytes.CutPrefix(link, []byte("socket:[")); ok && err == nil {
			mine[string(bytes.TrimSuffix(inode, []byte("]")))] = true
		}
	}); err != nil {
		return nil, err
	}
	for _, table := range []struct {
		name  string
		parse func([]byte, map[string]bool) []Address
	}{{"net/unix", unixListeners}, {"net/tcp", tcpListeners}, {"net/tcp6", tcpListeners}} {
		text, err := host.ReadHead(filepath.Join(dir, table.name), maxTable)
		if err != nil && table.name != "net/tcp6" { // a kernel may have no IPv6
			return nil, err
		}
		list = append(list, table.parse(text, mine)...)
	}
	slices.SortStableFunc(list, func(a, b Address) int { return cmp.Compare(a.TCP.Port(), b.TCP.Port()) })
	return list, nil
}

// unixListeners finds the sockets with these inodes that accept connections in a table such as /proc/net/unix.
func unixListeners(table []byte, inodes map[string]bool) (list []Address) {
	const accepts = "00010000" // __SO_ACCEPTCON
	for line := range bytes.Lines(table) {
		f := bytes.Fields(line)
		if len(f) == 8 && string(f[3]) == accepts && inodes[string(f[6])] && path.IsAbs(string(f[7])) {
			list = append(list, Address{Path: string(f[7])})
		}
	}
	return list
}

// tcpListeners finds those of a table such as /proc/net/tcp.
func tcpListeners(table []byte, inodes map[string]bool) (list []Address) {
	const listens = "0A" // TCP_LISTEN
	for line := range bytes.Lines(table) {
		f := bytes.Fields(line)
		if len(f) < 10 || string(f[3]) != listens || !inodes[string(f[9])] {
			continue
		}
		if at, ok := parseTCP(string(f[1])); ok {
			list = append(list, Address{TCP: at})
		}
	}
	return list
}

// parseTCP reads an address as the kernel prints it: each four bytes as a number of the machine's, here a little-endian one.
func parseTCP(text string) (at netip.AddrPort, ok bool) {
	digits, port, found := bytes.Cut([]byte(text), []byte(":"))
	n, err := strconv.ParseUint(string(port), 16, 16)
	b := make([]byte, hex.DecodedLen(len(digits)))
	if _, err2 := hex.Decode(b, digits); !found || err != nil || err2 != nil || len(b)%4 != 0 {
		return at, false
	}
	for word := range slices.Chunk(b, 4) {
		slices.Reverse(word)
	}
	ip, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(ip.Unmap(), uint16(n)), ok
}

// DialListener connects to an address of Listeners. At a Unix socket it is looked again whether the process
// listens there itself; over TCP, where anybody may connect, what was seen a moment ago has to do.
func DialListener(ctx context.Context, h *host.Host, a Address, pid int) (net.Conn, error) {
	if a.Path != "" {
		return Dial(ctx, h, filepath.Clean(h.ServicePath(pid, "/")), a.Path, pid)
	}
	to := a.TCP
	if to.Addr().IsUnspecified() {
		to = netip.AddrPortFrom(loopback(to.Addr()), to.Port())
	}
	c, err := h.Dial(ctx, "tcp", to.String())
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", to, err)
	}
	return h.Asking(c), nil
}

func loopback(any netip.Addr) netip.Addr {
	if any.Is4() {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.IPv6Loopback()
}
