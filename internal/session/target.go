package session

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// noteUnseen says so when the address that the load goes to belongs to no
// observed host: whatever happens there is then not in the run.
func (s *session) noteUnseen(target string) error {
	if strings.HasPrefix(target, "unix:") {
		return nil // it is on this machine, whose sockets are those of an observed host
	}
	to, err := netip.ParseAddrPort(target)
	if err != nil {
		return fmt.Errorf("load engine: target %q: want IP:port: %w", target, err)
	}
	addr := to.Addr().Unmap()
	for _, h := range s.all.hosts(nil) {
		if addr.IsLoopback() && slices.Contains(s.from, h.Name) || slices.Contains(h.Addresses, addr.String()) {
			return nil
		}
	}
	s.out.Note(fmt.Sprintf("%s is an address of no observed host, so nothing was seen of the server; --host NAME=netns:… or pid:… names one on this machine", to.Addr()))
	return nil
}
