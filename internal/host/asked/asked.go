// Package asked remembers over which connections services are asked, so that these are not taken for users'.
package asked

import (
	"net"
	"net/netip"
	"sync"
)

// Set are connections of ours to services of a host. It is safe for concurrent use.
type Set struct {
	mu   sync.Mutex
	ends map[[2]netip.AddrPort]bool
}

// Add notes a TCP connection until it is closed.
func (a *Set) Add(c net.Conn) net.Conn {
	local, ok := c.LocalAddr().(*net.TCPAddr)
	remote, ok2 := c.RemoteAddr().(*net.TCPAddr)
	if !ok || !ok2 {
		return c
	}
	ends := [2]netip.AddrPort{plain(local), plain(remote)}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ends == nil {
		a.ends = map[[2]netip.AddrPort]bool{}
	}
	a.ends[ends] = true
	return &conn{c, a, ends}
}

func plain(end *net.TCPAddr) netip.AddrPort {
	at := end.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}

// List are both ends of each, ours first.
func (a *Set) List() (list [][2]netip.AddrPort) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for ends := range a.ends {
		list = append(list, ends)
	}
	return list
}

type conn struct {
	net.Conn
	of   *Set
	ends [2]netip.AddrPort
}

func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.ends, c.ends)
	c.of.mu.Unlock()
	return c.Conn.Close()
}
