package session

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
)

// noteUnseen says so when the address that the load goes to belongs to no
// observed host: whatever happens there is then not in the run.
func (s *session) noteUnseen(target string) error {
	to, err := netip.ParseAddrPort(target)
	if err != nil {
		return fmt.Errorf("load engine: target %q: want IP:port: %w", target, err)
	}
	addr := to.Addr().Unmap()
	for _, h := range s.hosts {
		own, err := h.Addresses()
		if err != nil {
			return err
		}
		if addr.IsLoopback() && h == s.here || slices.Contains(own, addr) {
			return nil
		}
	}
	s.out.Note(fmt.Sprintf("%s is an address of no observed host, so nothing was seen of the server; --host NAME=netns:… or pid:… names one on this machine", to.Addr()))
	return nil
}

// noteGone says which of the user's hosts are not there any more at the end:
// "there was none of it" then tells little about them.
func (s *session) noteGone() {
	for i, spec := range s.opt.Hosts {
		again, err := host.Open(spec.Name, spec.Spec)
		if err == nil {
			was, _ := s.hosts[i].Info()
			var is model.Host
			if is, err = again.Info(); err == nil && is.NetNS != was.NetNS {
				err = fmt.Errorf("host %s: %s is another one now", spec.Name, spec.Spec)
			}
			err = errors.Join(err, again.Close())
		}
		if err != nil {
			s.out.Note(fmt.Sprintf("%v; it was there when the run began, and what was read of it since may be of an empty shell", err))
		}
	}
}
