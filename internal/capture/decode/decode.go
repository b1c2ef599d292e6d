// Package decode finds the TCP segment in a captured packet: through link
// layers, VLAN tags, IPv4 and IPv6 with their extension headers, fragments and
// tunnels. It reads headers alone and never past a packet's end.
package decode

import (
	"encoding/binary"

	"plimsoll/internal/capture/pcap"
)

// Kind is what was found in a packet.
type Kind uint8

// The kinds of packets. An IP packet that is neither TCP nor a quotation is Other.
const (
	Other  Kind = iota
	TCP         // a segment, in Segment
	Quoted      // an ICMP error that quotes a TCP header: only its addresses and ports are in Segment
)

// Addr is an IP address; an IPv4 address stands in Lo, as ::ffff:a.b.c.d would.
type Addr struct{ Hi, Lo uint64 }

// Counts is what a Decoder has seen, in packets.
type Counts struct {
	IPv4, IPv6, TCP, UDP, ICMP, Tunnelled int64
	Fragments                             int64 // IP fragments
	Reassembled                           int64 // IP packets put together from fragments
	Unfinished                            int64 // IP packets given up for lack of a fragment, or of room
	NotIP                                 int64 // ARP, LLDP and other things that are not IP
	UnknownLink                           int64 // of a link type that is not decoded
	Malformed                             int64 // headers that contradict themselves, or end early
	Cut                                   int64 // of which less was captured than was on the wire
}

// Decoder decodes packets. Outer makes it stop at the outermost IP header, in
// place of looking into tunnels. It holds fragments until they are whole.
type Decoder struct {
	Outer  bool
	Counts Counts

	seg   *Segment
	depth int
	frags fragments
}

// frame is what is left of a packet: its captured bytes, and its length on the wire.
type frame struct {
	b    []byte
	wire int
}

func (f frame) from(n int) frame { return frame{f.b[n:], f.wire - n} }

// upTo forgets what lies beyond n bytes: padding and trailers.
func (f frame) upTo(n int) frame {
	if n < f.wire {
		f.wire = n
	}
	if n < len(f.b) {
		f.b = f.b[:n]
	}
	return f
}

// maxDepth bounds tunnels in tunnels.
const maxDepth = 8

// Decode looks for the TCP segment of a packet and fills seg with it. What seg
// holds is good until the packet's bytes change.
func (d *Decoder) Decode(k *pcap.Packet, seg *Segment) Kind {
	d.seg, d.depth = seg, 0
	seg.reset()
	if k.Wire > len(k.Data) {
		d.Counts.Cut++
	}
	f := frame{k.Data, k.Wire}
	switch k.Link {
	case pcap.LinkEthernet:
		return d.ethernet(f)
	case pcap.LinkRaw, pcap.LinkRawBSD, pcap.LinkRawOpen, pcap.LinkIPv4, pcap.LinkIPv6:
		return d.ip(f)
	case pcap.LinkSLL:
		return d.cooked(f, 16, 14)
	case pcap.LinkSLL2:
		return d.cooked(f, 20, 0)
	case pcap.LinkNull, pcap.LinkLoop:
		return d.loopback(f)
	}
	d.Counts.UnknownLink++
	return Other
}

func (d *Decoder) malformed() Kind {
	d.Counts.Malformed++
	return Other
}

func (d *Decoder) notIP() Kind {
	d.Counts.NotIP++
	return Other
}

func (d *Decoder) ethernet(f frame) Kind {
	if len(f.b) < 14 {
		return d.malformed()
	}
	return d.ethertype(be16(f.b[12:]), f.from(14))
}

// cooked reads a header of Linux's "any" device, v1 or v2.
func (d *Decoder) cooked(f frame, header, protocolAt int) Kind {
	if len(f.b) < header {
		return d.malformed()
	}
	kind := be16(f.b[protocolAt:])
	if kind < 1536 { // numbers of Linux's own, for what has no EtherType
		return d.notIP()
	}
	return d.ethertype(kind, f.from(header))
}

// loopback reads the four bytes that stand for an address family, in the byte
// order of whoever captured. IPv6 has another number on each system.
func (d *Decoder) loopback(f frame) Kind {
	if len(f.b) < 4 {
		return d.malformed()
	}
	family := binary.LittleEndian.Uint32(f.b)
	if family > 0xffff {
		family = binary.BigEndian.Uint32(f.b)
	}
	switch family {
	case 2, 10, 24, 28, 30:
		return d.ip(f.from(4))
	}
	return d.notIP()
}

// The EtherTypes that lead on.
const (
	etherIPv4   = 0x0800
	etherVLAN   = 0x8100
	etherBridge = 0x6558
	etherIPv6   = 0x86dd
	etherMPLS   = 0x8847
	etherMPLSm  = 0x8848
	etherPPPoE  = 0x8864
	etherERSPAN = 0x88be
	etherQinQ   = 0x88a8
	etherQinQ91 = 0x9100
)

func (d *Decoder) ethertype(kind uint16, f frame) Kind {
	for {
		switch kind {
		case etherIPv4:
			return d.ipv4(f)
		case etherIPv6:
			return d.ipv6(f)
		case etherVLAN, etherQinQ, etherQinQ91:
			if len(f.b) < 4 {
				return d.malformed()
			}
			kind, f = be16(f.b[2:]), f.from(4)
		case etherMPLS, etherMPLSm:
			return d.mpls(f)
		case etherPPPoE:
			return d.pppoe(f)
		default:
			if kind <= 1500 {
				return d.snap(int(kind), f)
			}
			return d.notIP()
		}
	}
}

// snap reads an IEEE 802.3 packet, whose EtherType stands behind an LLC header if at all.
func (d *Decoder) snap(length int, f frame) Kind {
	f = f.upTo(length)
	if len(f.b) < 8 || f.b[0] != 0xaa || f.b[1] != 0xaa || f.b[2] != 3 || f.b[3]|f.b[4]|f.b[5] != 0 {
		return d.notIP()
	}
	kind := be16(f.b[6:])
	if kind <= 1500 {
		return d.notIP()
	}
	return d.ethertype(kind, f.from(8))
}

func (d *Decoder) mpls(f frame) Kind {
	for {
		if len(f.b) < 5 {
			return d.malformed()
		}
		last := f.b[2]&1 != 0
		if f = f.from(4); last {
			break
		}
	}
	if v := f.b[0] >> 4; v != 4 && v != 6 {
		return d.notIP()
	}
	return d.ip(f)
}

func (d *Decoder) pppoe(f frame) Kind {
	if len(f.b) < 8 {
		return d.malformed()
	}
	length, proto := int(be16(f.b[4:])), be16(f.b[6:])
	if length < 2 {
		return d.malformed()
	}
	f = f.from(8).upTo(length - 2)
	switch proto {
	case 0x21:
		return d.ipv4(f)
	case 0x57:
		return d.ipv6(f)
	}
	return d.notIP()
}

// ip reads an IP packet of either version.
func (d *Decoder) ip(f frame) Kind {
	if len(f.b) == 0 {
		return d.malformed()
	}
	if f.b[0]>>4 == 6 {
		return d.ipv6(f)
	}
	return d.ipv4(f)
}

func be16(b []byte) uint16 { return binary.BigEndian.Uint16(b) }
func be32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
func be64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }
