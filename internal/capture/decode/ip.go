package decode

// The IP protocol numbers that lead on.
const (
	protoHopByHop = 0
	protoICMP     = 1
	protoIPIP     = 4
	protoTCP      = 6
	protoUDP      = 17
	protoIPv6     = 41
	protoRouting  = 43
	protoFragment = 44
	protoGRE      = 47
	protoAH       = 51
	protoICMPv6   = 58
	protoOptions  = 60
	protoMobility = 135
)

// mapped is where an IPv4 address stands among the IPv6 ones.
const mapped = 0xffff << 32

func (d *Decoder) ipv4(f frame) Kind {
	b := f.b
	if len(b) < 20 || b[0]>>4 != 4 {
		return d.malformed()
	}
	header, total := int(b[0]&15)*4, int(be16(b[2:]))
	if total == 0 { // the sending host's capture of what its network card will cut up
		total = f.wire
	}
	if header < 20 || len(b) < header || total < header {
		return d.malformed()
	}
	d.Counts.IPv4++
	s := d.seg
	s.Version = 4
	s.Src, s.Dst = Addr{0, mapped | uint64(be32(b[12:]))}, Addr{0, mapped | uint64(be32(b[16:]))}
	s.TTL, s.ID = b[8], be16(b[4:])
	proto, frag := b[9], be16(b[6:])
	f = f.upTo(total).from(header)
	if frag&0x3fff == 0 {
		return d.transport(proto, f)
	}
	key := fragKey{src: s.Src, dst: s.Dst, id: uint32(s.ID), proto: proto, version: 4}
	return d.fragment(key, int(frag&0x1fff)*8, frag&0x2000 != 0, f)
}

func (d *Decoder) ipv6(f frame) Kind {
	b := f.b
	if len(b) < 40 || b[0]>>4 != 6 {
		return d.malformed()
	}
	d.Counts.IPv6++
	s := d.seg
	s.Version = 6
	s.Src, s.Dst = Addr{be64(b[8:]), be64(b[16:])}, Addr{be64(b[24:]), be64(b[32:])}
	s.TTL, s.ID = b[7], 0
	length, next := int(be16(b[4:])), b[6]
	if f = f.from(40); length != 0 { // 0: a jumbogram, or what a network card will cut up
		f = f.upTo(length)
	}
	return d.extensions(next, f)
}

// extensions passes over the headers between IPv6 and what it carries.
func (d *Decoder) extensions(next byte, f frame) Kind {
	for {
		n := 0
		switch next {
		case protoHopByHop, protoRouting, protoOptions, protoMobility:
			if len(f.b) < 8 {
				return d.malformed()
			}
			n = int(f.b[1])*8 + 8
		case protoAH:
			if len(f.b) < 8 {
				return d.malformed()
			}
			n = int(f.b[1])*4 + 8
		case protoFragment:
			return d.fragment6(f)
		default:
			return d.transport(next, f)
		}
		if len(f.b) < n {
			return d.malformed()
		}
		next, f = f.b[0], f.from(n)
	}
}

func (d *Decoder) fragment6(f frame) Kind {
	if len(f.b) < 8 {
		return d.malformed()
	}
	next, where := f.b[0], be16(f.b[2:])
	key := fragKey{src: d.seg.Src, dst: d.seg.Dst, id: be32(f.b[4:]), proto: next, version: 6}
	offset, more := int(where&^7), where&1 != 0
	if f = f.from(8); offset == 0 && !more { // an "atomic" fragment is whole
		return d.extensions(next, f)
	}
	return d.fragment(key, offset, more, f)
}

func (d *Decoder) transport(proto byte, f frame) Kind {
	switch proto {
	case protoTCP:
		d.Counts.TCP++
		return d.tcp(f)
	case protoUDP:
		d.Counts.UDP++
		return d.udp(f)
	case protoICMP, protoICMPv6:
		d.Counts.ICMP++
		return d.icmp(proto, f)
	case protoAH:
		if d.seg.Version == 4 {
			return d.extensions(proto, f)
		}
	case protoIPIP, protoIPv6:
		if d.enter() {
			return d.ip(f)
		}
	case protoGRE:
		if d.enter() {
			return d.gre(f)
		}
	}
	return Other
}

// enter says whether to go into a tunnel.
func (d *Decoder) enter() bool {
	if d.Outer || d.depth == maxDepth {
		return false
	}
	if d.depth == 0 {
		d.Counts.Tunnelled++
	}
	d.depth++
	return true
}

func (d *Decoder) gre(f frame) Kind {
	if len(f.b) < 4 {
		return d.malformed()
	}
	flags, kind, n := be16(f.b), be16(f.b[2:]), 4
	if flags&7 != 0 { // version 1 is PPTP's, which carries PPP
		return Other
	}
	for _, bit := range []uint16{0x8000, 0x2000, 0x1000} { // checksum, key, sequence number
		if flags&bit != 0 {
			n += 4
		}
	}
	if kind == etherERSPAN && flags&0x1000 != 0 { // type II has a header, type I has none
		n += 8
	}
	if len(f.b) < n {
		return d.malformed()
	}
	f = f.from(n)
	if kind == etherBridge || kind == etherERSPAN {
		return d.ethernet(f)
	}
	return d.ethertype(kind, f)
}

// The UDP ports of tunnels.
const (
	portVXLAN  = 4789
	portGeneve = 6081
)

func (d *Decoder) udp(f frame) Kind {
	if len(f.b) < 8 {
		return Other
	}
	src, dst := be16(f.b), be16(f.b[2:])
	f = f.upTo(max(int(be16(f.b[4:])), 8)).from(8)
	switch {
	case (dst == portVXLAN || src == portVXLAN) && len(f.b) >= 8 && d.enter():
		return d.ethernet(f.from(8))
	case (dst == portGeneve || src == portGeneve) && len(f.b) >= 8 && f.b[0]>>6 == 0:
		n := 8 + int(f.b[0]&0x3f)*4
		if len(f.b) < n || !d.enter() {
			return Other
		}
		if kind := be16(f.b[2:]); kind != etherBridge {
			return d.ethertype(kind, f.from(n))
		}
		return d.ethernet(f.from(n))
	}
	return Other
}

// icmp looks for the TCP header that an error quotes: it belongs to a
// connection, but nobody sent it here.
func (d *Decoder) icmp(proto byte, f frame) Kind {
	if len(f.b) < 8 || !quotes(proto, f.b[0]) {
		return Other
	}
	s := d.seg
	s.ICMP = [2]uint8{f.b[0], f.b[1]}
	f = f.from(8)
	var next byte
	switch {
	case len(f.b) >= 20 && f.b[0]>>4 == 4:
		n := int(f.b[0]&15) * 4
		if n < 20 || len(f.b) < n || be16(f.b[6:])&0x1fff != 0 {
			return Other
		}
		next, s.Version = f.b[9], 4
		s.Src, s.Dst = Addr{0, mapped | uint64(be32(f.b[12:]))}, Addr{0, mapped | uint64(be32(f.b[16:]))}
		f = f.from(n)
	case len(f.b) >= 40 && f.b[0]>>4 == 6:
		next, s.Version = f.b[6], 6
		s.Src, s.Dst = Addr{be64(f.b[8:]), be64(f.b[16:])}, Addr{be64(f.b[24:]), be64(f.b[32:])}
		f = f.from(40)
	}
	if next != protoTCP || len(f.b) < 4 {
		return Other
	}
	s.SrcPort, s.DstPort, s.QuotedAll = be16(f.b), be16(f.b[2:]), len(f.b) >= 20
	return Quoted
}

// quotes says whether an ICMP message of that type is an error, which quotes what caused it.
func quotes(proto, kind byte) bool {
	if proto == protoICMPv6 {
		return kind >= 1 && kind <= 4
	}
	switch kind {
	case 3, 4, 5, 11, 12:
		return true
	}
	return false
}
