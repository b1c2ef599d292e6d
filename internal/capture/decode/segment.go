package decode

// The flags of a TCP header.
const (
	FIN = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
)

// Segment is a TCP segment with what matters of the IP header around it.
type Segment struct {
	Src, Dst         Addr
	SrcPort, DstPort uint16
	Version          uint8 // of IP: 4 or 6
	TTL              uint8
	ID               uint16 // IPv4's, 0 with IPv6
	Flags            uint8
	HeaderBad        bool // the header's length contradicts the packet, or the rest of it is in a fragment: nobody would take it
	Bogus            bool // and it is less than any header has; else its flags are all that counts
	Seq, Ack         uint32
	Window           uint16 // as it stands there, not scaled
	Len              uint32 // of the payload on the wire
	Payload          []byte // what was captured of it

	Options    bool // there are any
	OptionsCut bool // the options end before they should: not all of the header was captured, or a SACK has no block
	Scale      int8 // the window scale option, -1 without
	HasSACK    bool
	SACKs      uint8
	SACK       [4][2]uint32
	HasStamp   bool
	Stamp      [2]uint32 // the timestamps option: value, echo
	HeaderSize int       // of TCP's header, in bytes
	ICMP       [2]uint8  // type and code of the error that quotes it, if one does
	QuotedAll  bool      // it quotes all of TCP's header, not the ports alone
}

// reset makes a segment of no packet. SACK and Stamp keep what was there: they
// count for nothing without HasSACK and HasStamp.
func (s *Segment) reset() {
	s.Version, s.HeaderBad, s.Bogus, s.Options, s.OptionsCut, s.Scale = 0, false, false, false, false, -1
	s.HasSACK, s.SACKs, s.HasStamp = false, 0, false
	s.Len, s.Payload, s.Flags = 0, nil, 0
}

func (d *Decoder) tcp(f frame) Kind {
	b, s := f.b, d.seg
	if len(b) < leastHeader {
		return d.malformed()
	}
	s.SrcPort, s.DstPort = be16(b), be16(b[2:])
	s.HeaderSize = int(b[12]>>4) * 4
	s.Seq, s.Ack, s.Flags, s.Window = be32(b[4:]), be32(b[8:]), b[13], be16(b[14:])
	if s.HeaderSize < 20 || s.HeaderSize > f.wire {
		d.Counts.Malformed++
		s.HeaderBad = true
		if s.HeaderSize > f.wire {
			return TCP
		}
		s.Bogus = true
	}
	s.Len = uint32(f.wire - s.HeaderSize)
	header := min(s.HeaderSize, len(b))
	s.Payload = b[header:]
	switch {
	case header < 20:
		s.OptionsCut = s.HeaderSize >= 20
	case s.HeaderSize > 20:
		s.Options = true
		s.OptionsCut = !s.options(b[20:header], s.HeaderSize-20)
	}
	return TCP
}

// leastHeader is how much of a header tells which connection a segment is of, and what
// its flags are: up to its window.
const leastHeader = 16

// The kinds of TCP options that are read.
const (
	optionEnd           = 0
	optionNop           = 1
	optionScale         = 3
	optionSACKPermitted = 4
	optionSACK          = 5
	optionStamp         = 8
)

// sizes are those of the kinds of options that have but one. Of another size Wireshark reads no
// more of them than that.
var sizes = [256]int{2: 4, optionScale: 3, optionSACKPermitted: 2, 6: 6, 7: 6, optionStamp: 10, 11: 6, 12: 6, 13: 6, 19: 18, 21: 6, 22: 2, 23: 2, 27: 8, 28: 4}

// options reads the options of a header, which has n bytes of them; a list that breaks
// ends there. It says false where Wireshark comes upon what was not captured, or upon a
// SACK without room for a block: what it had read until then counts.
func (s *Segment) options(b []byte, n int) bool {
	if len(b) == 12 && n == 12 && be32(b) == 0x0101080a { // what nearly every segment has
		s.HasStamp, s.Stamp = true, [2]uint32{be32(b[4:]), be32(b[8:])}
		return true
	}
	for n > 0 {
		if len(b) == 0 {
			return false
		}
		kind, size := b[0], 1
		switch {
		case kind == optionNop:
		case kind == optionEnd || n < 2:
			return len(b) == n
		case len(b) < 2:
			return false
		case b[1] < 2:
			return true
		case int(b[1]) > n: // Wireshark marks all of it but two bytes
			return len(b) >= n-2
		default:
			size = int(b[1])
			if !s.option(kind, size, b[2:min(size, len(b))]) {
				return false
			}
		}
		b, n = b[min(size, len(b)):], n-size
	}
	return true
}

// option takes up an option of size bytes, of which v was captured behind kind and size. It says
// false where Wireshark would read more.
func (s *Segment) option(kind byte, size int, v []byte) bool {
	if only := sizes[kind]; only != 0 && size != only {
		return true
	}
	whole := len(v) == size-2
	switch {
	case kind == optionSACK:
		return s.sack(size, v)
	case !whole:
		return false
	case kind == optionScale:
		s.Scale = int8(min(v[0], 14))
	case kind == optionStamp:
		s.HasStamp, s.Stamp = true, [2]uint32{be32(v), be32(v[4:])}
	}
	return true
}

// sack takes up the blocks of a SACK option, as far as they were captured. Of several such options
// the last counts.
func (s *Segment) sack(size int, v []byte) bool {
	read := size - 2
	if read%8 >= 4 { // of half a block one edge is read, and nothing behind it
		read &^= 3
	}
	enough := size >= 10 && len(v) >= read
	s.HasSACK, s.SACKs = true, 0
	for ; len(v) >= 8 && int(s.SACKs) < len(s.SACK); v = v[8:] {
		s.SACK[s.SACKs] = [2]uint32{be32(v), be32(v[4:])}
		s.SACKs++
	}
	return enough
}
