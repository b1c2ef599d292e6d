package sockets

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"plimsoll/internal/host"
)

// portSet is a set of ports.
type portSet struct {
	bits [1 << 16 / 64]uint64
	size int
}

func (p *portSet) has(port uint16) bool { return p.bits[port>>6]&(1<<(port&63)) != 0 }

func (p *portSet) add(port uint16) {
	if !p.has(port) {
		p.bits[port>>6] |= 1 << (port & 63)
		p.size++
	}
}

func (p *portSet) remove(port uint16) {
	if p.has(port) {
		p.bits[port>>6] &^= 1 << (port & 63)
		p.size--
	}
}

// usablePorts are the ports that connect() may choose from: those of
// net.ipv4.ip_local_port_range less net.ipv4.ip_local_reserved_ports. IPv6 uses
// them, too.
type usablePorts struct {
	portSet
	span, reserved []byte // as last read
}

// read brings p up to date with the calling thread's network namespace.
func (p *usablePorts) read(h *host.Host) error {
	const dir = "proc/sys/net/ipv4"
	span, err := os.ReadFile(h.Path(dir, "ip_local_port_range"))
	if err != nil {
		return fmt.Errorf("read the range of local ports: %w", err)
	}
	reserved, err := os.ReadFile(h.Path(dir, "ip_local_reserved_ports"))
	if err != nil {
		return fmt.Errorf("read the reserved ports: %w", err)
	}
	if bytes.Equal(span, p.span) && bytes.Equal(reserved, p.reserved) {
		return nil
	}
	if err := parseUsablePorts(span, reserved, &p.portSet); err != nil {
		return err
	}
	p.span, p.reserved = span, reserved
	return nil
}

// parseUsablePorts reads "32768\t60999" and a list like "8080,9000-9010".
func parseUsablePorts(span, reserved []byte, p *portSet) error {
	*p = portSet{}
	f := bytes.Fields(span)
	if len(f) != 2 {
		return fmt.Errorf("ip_local_port_range: want two ports, got %q", bytes.TrimSpace(span))
	}
	low, high, err := portRange(f[0], f[1])
	if err != nil {
		return fmt.Errorf("ip_local_port_range: %w", err)
	}
	for port := int(low); port <= int(high); port++ {
		p.add(uint16(port))
	}
	for part := range bytes.SplitSeq(bytes.TrimSpace(reserved), []byte(",")) {
		if len(part) == 0 {
			continue
		}
		from, to, isRange := bytes.Cut(part, []byte("-"))
		if !isRange {
			to = from
		}
		low, high, err := portRange(from, to)
		if err != nil {
			return fmt.Errorf("ip_local_reserved_ports: %w", err)
		}
		for port := int(low); port <= int(high); port++ {
			p.remove(uint16(port))
		}
	}
	return nil
}

func portRange(from, to []byte) (low, high uint16, err error) {
	a, err := strconv.ParseUint(string(from), 10, 16)
	if err != nil {
		return 0, 0, fmt.Errorf("want a port: %w", err)
	}
	b, err := strconv.ParseUint(string(to), 10, 16)
	if err != nil {
		return 0, 0, fmt.Errorf("want a port: %w", err)
	}
	return uint16(a), uint16(b), nil
}

func readNumber(path string) (uint32, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("parse %s: want a number: %w", path, err)
	}
	return uint32(n), nil
}
