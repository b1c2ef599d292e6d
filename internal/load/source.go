package load

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxSources is how many addresses a load may come from. With 28,000 ports each a hundredth of them is enough.
const maxSources = 1 << 16

// ParseSources reads the addresses that a load comes from: single ones, and prefixes, of which each address is one; of an
// IPv4 prefix the first and the last are left out, which stand for the network and for all in it.
func ParseSources(list []string) ([]netip.Addr, error) {
	var found []netip.Addr
	seen := map[netip.Addr]bool{}
	for _, text := range list {
		first, n, err := sourceRange(text)
		if err != nil {
			return nil, err
		}
		for a := first; n > 0; a, n = a.Next(), n-1 {
			switch {
			case a.Is4() != first.Is4() || len(found) > 0 && a.Is4() != found[0].Is4():
				return nil, fmt.Errorf("source %s: IPv4 and IPv6 addresses together: a load goes to one address, and comes from its kind", text)
			case seen[a]:
				return nil, fmt.Errorf("source %s: %s is there twice", text, a)
			case len(found) == maxSources:
				return nil, fmt.Errorf("source %s: want at most %d addresses in all", text, maxSources)
			}
			seen[a] = true
			found = append(found, a)
		}
	}
	return found, nil
}

// sourceRange is an address, or a prefix: its first address, and how many there are.
func sourceRange(text string) (first netip.Addr, n int, err error) {
	if !strings.Contains(text, "/") {
		if first, err = netip.ParseAddr(text); err != nil || first.IsUnspecified() || first.IsMulticast() {
			return first, 0, fmt.Errorf("source %q: want an address of this machine, or a prefix like 10.0.0.0/24", text)
		}
		return first.Unmap(), 1, nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return first, 0, fmt.Errorf("source %q: want an address of this machine, or a prefix like 10.0.0.0/24", text)
	}
	first = p.Masked().Addr()
	bits := first.BitLen() - p.Bits()
	if bits > 16 {
		return first, 0, fmt.Errorf("source %q: want at most %d addresses, so /%d at least", text, maxSources, first.BitLen()-16)
	}
	n = 1 << bits
	if first.Is4() && bits > 1 {
		return first.Next(), n - 2, nil
	}
	return first, n, nil
}

// SourceFault is a source address from which no connection to the target can be made.
type SourceFault struct {
	Source netip.Addr
	Errno  syscall.Errno // EADDRNOTAVAIL: the address is not this machine's; else what the kernel says of the way
}

// SourceFaults asks the kernel from which sources there is no way to a target. It sends nothing: the sockets that it connects are UDP's.
func SourceFaults(sources []netip.Addr, target netip.Addr) (list []SourceFault) {
	for _, a := range sources {
		if a.Is4() != target.Is4() {
			list = append(list, SourceFault{a, unix.EAFNOSUPPORT})
		} else if errno := trySource(a, target); errno != 0 {
			list = append(list, SourceFault{a, errno})
		}
	}
	return list
}

// trySource binds a socket to an address and looks for its way.
func trySource(source, target netip.Addr) syscall.Errno {
	family, from := sockaddr(netip.AddrPortFrom(source, 0))
	_, to := sockaddr(netip.AddrPortFrom(target, 9)) // a port that is never reached
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0 // of the source it says nothing
	}
	defer unix.Close(fd)
	if errno := sysBind(int32(fd), from); errno != 0 {
		return errno
	}
	return sysConnect(int32(fd), to)
}

// rawSources are addresses as the kernel takes them, port 0.
func rawSources(list []netip.Addr) (raw [][]byte) {
	for _, a := range list {
		_, b := sockaddr(netip.AddrPortFrom(a, 0))
		raw = append(raw, b)
	}
	return raw
}
