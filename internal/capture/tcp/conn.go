package tcp

import (
	"net/netip"

	"plimsoll/internal/capture/decode"
)

// The bits of a connection's completeness, as Wireshark has them.
const (
	SawSYN uint8 = 1 << iota
	SawSYNACK
	SawACK
	SawData
	SawFIN
	SawRST
)

// Conn is one connection: what Wireshark calls a stream. There may be very many
// of them, so that what labels do not need is kept coarsely.
type Conn struct {
	Start int64 // time of its first segment, ns
	Half  [2]Half

	trip     int64 // from the last SYN to the first ACK after it, ns; while that is not known, the time of the last SYN
	key      key
	Stream   uint32 // its number, from 0, in the order of first segments
	Frame    uint32 // its first
	FIN      Moment // of the first FIN of either side
	Idle     Moment // how long there had been no payload before that
	DataAt   uint32 // the last frame with payload before the first FIN
	Gap      uint32 // between the last two segments that were no RST, ms
	Before   uint32 // where Reused: the stream that had the ports before
	Labelled Label  // the labels it has had
	Slot     uint32 // where another layer keeps what it knows of the connection, 0 for nowhere
	Errors   uint32 // the last frame with an ICMP error about it, 0 for none

	RSTs               uint16
	ICMP               [2]uint8 // type and code of that error
	Completeness       uint8
	BeforeCompleteness uint8 // of the stream that had the ports before
	Opener             uint8 // the side of the first segment: 0 or 1
	FirstFIN           uint8 // 1 + the side of the first FIN; 0 for none
	Cause              uint8 // what another layer made of its first RST, 0 for none
	Timed              bool  // something was sent or acknowledged since IRTT is known; before that Wireshark does not show it
	Reused             bool  // it began with ports that another stream had
	Hasty              uint8 // SYNs that came again when no client sends one, as another layer found, up to 255
	Patient            bool  // one came again when a client does
	OldLives           bool  // its SYN was answered by an old connection that is not in TIME_WAIT
	timed              bool  // trip is one
	live               bool
}

// Half is one direction: what one side has sent.
type Half struct {
	nextTime, lastTime int64

	nextSeq, maxAck, lastAck, base uint32
	dup, lastNonDup                uint32
	oldest, newest                 uint32 // of the segments that are not acknowledged
	sack                           uint32
	unacked                        uint16
	win                            uint16
	scale                          int8
	bits                           marks

	// What was seen of it, for whoever looks for causes.
	TTL       [2]uint8 // the least and most of its segments that were no RST
	LastFlags uint8    // of its last segment that was no RST
	Probes    uint8    // keep-alives since the peer was last heard
	SYNs      uint8    // SYNs or SYN-ACKs
	Again     uint8    // retransmissions since the peer was last heard
	topID     uint16   // the IP ID of the segment with the highest sequence number
	topStamp  uint32   // and its time stamp; before any payload that of the SYN
	widest    uint16   // the widest window that it announced once connected, without its scale
	taken     uint16   // by how much the last one was narrower

	Acked                    uint32 // the last acknowledgement number of it that says something: a RST without ACK has none
	SYN, LastData, FIN, Last uint32 // frames; 0 where there was none
	DataTime                 Moment // of LastData
	AckRTT                   uint32 // of its last segment: µs since what that acknowledged was sent; 0 for nothing
	Packets                  uint32
	Resent                   uint32 // segments labelled as one of the retransmissions
	Bytes                    uint64 // of payload, those sent again included
}

// marks are what is true of a direction.
type marks uint8

const (
	firstAck    marks = 1 << iota // its next ACK's window is not scaled
	hasBase                       // base is known
	hasWindow                     // win is known
	inOrder                       // no segment that is not acknowledged begins before the one before it ends
	topHasData                    // the segment that last raised nextSeq had payload
	lastAlive                     // the last segment was a keep-alive
	lastProbing                   // the last segment was a zero-window probe
)

func (h *Half) is(b marks) bool { return h.bits&b != 0 }

func (h *Half) set(b marks, to bool) {
	h.bits &^= b
	if to {
		h.bits |= b
	}
}

// Moment is a time since a connection's start, in steps of 10 µs: up to 12 hours,
// and no more beyond that.
type Moment uint32

// momentStep is that of a Moment, ns.
const momentStep = 10_000

func (c *Conn) moment(now int64) Moment {
	return Moment(min(max((now-c.Start)/momentStep, 0), 1<<32-1))
}

// NS is the moment in ns since the connection's start.
func (m Moment) NS() int64 { return int64(m) * momentStep }

// IRTT is from the last SYN to the first ACK after it, ns; 0 while not known.
func (c *Conn) IRTT() int64 {
	if c.timed {
		return c.trip
	}
	return 0
}

// The values of Half.scale that are no shift.
const (
	scaleUnknown = -1
	scaleUnused  = -2
)

// NextSeq is the sequence number after the highest that was seen.
func (h *Half) NextSeq() uint32 { return h.nextSeq }

// LastACK is the acknowledgement number of the last segment.
func (h *Half) LastACK() uint32 { return h.lastAck }

// Unread is how many bytes lay in its buffer when it last spoke: its window was narrower by so much than it had been. It
// is 0 also where they are too few to be told by a window's steps, or its scale is not known.
func (h *Half) Unread() uint32 {
	if h.scale == scaleUnknown {
		return 0
	}
	n, step := uint32(h.taken)<<max(h.scale, 0), uint32(1)<<max(h.scale, 0)
	if n < max(unreadLeast, 2*step) {
		return 0
	}
	return n
}

// unreadLeast is more than a request's head.
const unreadLeast = 4096

// Contiguous is the sequence number after the last that follows on all before it. A RST far ahead leaves it.
func (h *Half) Contiguous() uint32 { return h.maxAck }

// Repeats is how often it has said the same in a row, with nothing new.
func (h *Half) Repeats() uint32 { return h.dup }

// LastTime is the time of the last segment, ns.
func (h *Half) LastTime() int64 { return h.lastTime }

// ISN is the sequence number of the SYN, as far as it is known.
func (h *Half) ISN() (seq uint32, known bool) { return h.base, h.is(hasBase) }

// key is a connection's addresses and ports. IPv6 addresses stand as numbers
// of a list, which keeps the key small.
type key struct {
	a, b   uint32
	pa, pb uint16
	v6     bool
}

// Addr returns the address and port of a side.
func (a *Analyzer) Addr(c *Conn, side uint8) netip.AddrPort {
	ip, port := c.key.a, c.key.pa
	if side == 1 {
		ip, port = c.key.b, c.key.pb
	}
	if !c.key.v6 {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)}), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(a.six.list[ip]), port)
}

// Server is the side that was connected to: the one that sent no SYN, or the
// SYN-ACK. known is false where the handshake was not captured; then it is the
// side with the lower port.
func (c *Conn) Server() (side uint8, known bool) {
	switch {
	case c.Completeness&SawSYN != 0:
		return 1 - c.Opener, true
	case c.Completeness&SawSYNACK != 0:
		for side := range c.Half {
			if c.Half[side].SYN != 0 {
				return uint8(side), true
			}
		}
	}
	if c.key.pa < c.key.pb {
		return 0, false
	}
	return 1, false
}

// six gives IPv6 addresses numbers.
type six struct {
	list   [][16]byte
	number map[[16]byte]uint32
}

func (s *six) of(addr decode.Addr) uint32 {
	var b [16]byte
	for i := range 8 {
		b[i], b[8+i] = byte(addr.Hi>>(56-8*i)), byte(addr.Lo>>(56-8*i))
	}
	n, there := s.number[b]
	if !there {
		if s.number == nil {
			s.number = map[[16]byte]uint32{}
		}
		n = uint32(len(s.list))
		s.list, s.number[b] = append(s.list, b), n
	}
	return n
}
