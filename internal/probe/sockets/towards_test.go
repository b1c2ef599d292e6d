package sockets

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"plimsoll/internal/host"
)

// Three connections hold three ports; what was accepted at the far end holds none.
func TestTowards(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if strings.HasPrefix(address, "[") && (errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL)) {
			t.Logf("no IPv6 here: %v", err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		h, err := host.Open("local", "local")
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		target := netip.MustParseAddrPort(l.Addr().String())
		for want := range 4 {
			usable, held, timeWait, err := Towards(h, target, nil)
			if err != nil {
				t.Fatal(err)
			}
			if usable <= 0 || held != want || timeWait != 0 {
				t.Errorf("%s: %d ports usable, %d held, %d of them by TIME_WAIT; want some, %d and 0", address, usable, held, timeWait, want)
			}
			c, err := net.Dial("tcp", target.String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			far, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
		}
	}
}
