package sockets

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
	"plimsoll/internal/host"
	"plimsoll/internal/host/netlink"
)

// Towards is how many local ports connections from h to one target may use, how
// many of these are held by sockets towards it (from the local address that holds
// most; with from, of these addresses alone), and how many of the held ones are in TIME_WAIT. It lists all TCP sockets once.
func Towards(h *host.Host, target netip.AddrPort, from []netip.Addr) (usable, held, timeWait int, err error) {
	ours := make(map[[16]byte]bool, len(from))
	for _, a := range from {
		ours[a.As16()] = true
	}
	err = h.Do(func() error {
		conn, err := netlink.Open(unix.NETLINK_SOCK_DIAG)
		if err != nil {
			return fmt.Errorf("ask the kernel for TCP sockets: %w", err)
		}
		defer conn.Close()
		var f flows
		f.reset()
		if err := f.usable.read(h); err != nil {
			return err
		}
		usable = f.usable.size
		want := endpoint{addr: target.Addr().As16(), port: target.Port()}
		var s inetSock
		err = conn.Dump(tcpDiagGetSock, tcpRequest(notListening, inetDiagInfo), readTimeout, func(b []byte) error {
			if err := parseInet(b, &s); err != nil {
				return err
			}
			if s.dst == want && (len(ours) == 0 || ours[s.src.addr]) {
				f.add(&s)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("list TCP connections: %w", err)
		}
		for _, d := range f.destinations() {
			held, timeWait = d.ports, d.held
		}
		return nil
	})
	return usable, held, timeWait, err
}
