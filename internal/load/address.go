package load

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// sockaddr is a as the kernel's struct sockaddr_in or sockaddr_in6.
func sockaddr(a netip.AddrPort) (family int, raw []byte) {
	ip := a.Addr()
	if ip.Is4() {
		raw = make([]byte, unix.SizeofSockaddrInet4)
		binary.NativeEndian.PutUint16(raw, unix.AF_INET)
		binary.BigEndian.PutUint16(raw[2:], a.Port())
		copy(raw[4:], ip.AsSlice())
		return unix.AF_INET, raw
	}
	raw = make([]byte, unix.SizeofSockaddrInet6)
	binary.NativeEndian.PutUint16(raw, unix.AF_INET6)
	binary.BigEndian.PutUint16(raw[2:], a.Port())
	copy(raw[8:], ip.AsSlice())
	binary.NativeEndian.PutUint32(raw[24:], scope(ip.Zone()))
	return unix.AF_INET6, raw
}

// scope is the interface number of a link-local address's zone, 0 without one.
func scope(zone string) uint32 {
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n)
	}
	if i, err := net.InterfaceByName(zone); err == nil {
		return uint32(i.Index)
	}
	return 0
}
