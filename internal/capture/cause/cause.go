// Package cause says what Wireshark does not: why a connection was reset, where
// a segment was lost, why a handshake failed, who made whom wait. It reads the
// records of capture/tcp and names nothing without the frames that show it.
package cause

import (
	"net/netip"

	"plimsoll/internal/capture/decode"
	"plimsoll/internal/capture/tcp"
)

// Attribution is our own judgement of a segment that Wireshark labels as sent
// again or out of order. It stands beside the label, never in place of it.
type Attribution uint8

// The attributions.
const (
	None           Attribution = iota
	CapturedTwice              // the same packet again: the capture saw it twice, nobody sent it twice
	Reordered                  // sent earlier than what arrived before it
	LostBefore                 // sent again, and never seen before: lost on its way to the place of capture
	LostAfter                  // sent again, and seen before: lost beyond the place of capture, or its ACK was
	Needless                   // sent again although the ACK had passed here: the ACK was lost or late on its way back
	DelayedACK                 // the same, and that ACK had been held back by a delayed-ACK timer
	ReceiverFull               // sent again into a window that was closed
	HandshakeAgain             // a SYN or SYN-ACK sent again
	Attributions
)

var attributionNames = [Attributions]string{"", "captured_twice", "reordered", "lost_before", "lost_after", "needless",
	"delayed_ack", "receiver_full", "handshake"}

func (a Attribution) String() string { return attributionNames[a] }

var attributionWords = [Attributions]string{
	"", "captured twice, sent once", "reordered on the way", "lost on the way to the place of capture",
	"lost beyond the place of capture, or its ACK was", "needless: its ACK had passed here before", "needless: its ACK was delayed by the receiver",
	"the receiver's window was closed", "SYN or SYN-ACK sent again",
}

// Words is the attribution as people read it.
func (a Attribution) Words() string { return attributionWords[a] }

// Addresses tells the address of a connection's side.
type Addresses interface {
	Addr(c *tcp.Conn, side uint8) netip.AddrPort
}

// Counted is a thing that happened, how often, and some of the frames that show it.
type Counted struct {
	Count    int64    `json:"count"`
	Evidence []uint32 `json:"evidence,omitempty"` // frames, the first few
}

// maxEvidence is how many frames are kept for what happens often.
const maxEvidence = 8

func (c *Counted) add(frame uint32) {
	if c.Count++; len(c.Evidence) < maxEvidence {
		c.Evidence = append(c.Evidence, frame)
	}
}

// Stall is time in which a side could not send, though it had something to say.
type Stall struct {
	Counted
	Total   int64 `json:"total_ns"`
	Longest int64 `json:"longest_ns"`
}

func (s *Stall) add(frame uint32, ns int64) {
	s.Counted.add(frame)
	s.Total += ns
	s.Longest = max(s.Longest, ns)
}

// Judge follows a capture and gathers causes. Give it every segment after
// capture/tcp has followed it, and every connection once at its end.
type Judge struct {
	Where        Addresses
	Attributed   [Attributions]Counted
	Nagle        Stall // a small segment waited for the ACK of the one before it, which was delayed
	ReceiverFull Stall // a window was closed
	DSACKs       int64 // receivers that said they had a segment already
	Resets       []Reset
	ResetsMore   int64 // beyond those that are kept
	ByCause      [Causes]int64

	copies copies
	zero   map[uint64]int64          // since when a side's window is closed
	ttls   map[netip.Addr]uint8      // of handshakes
	served map[netip.AddrPort]uint32 // the last SYN-ACK of a server
	opens  opens
}

// NewJudge returns a judge that has seen nothing.
func NewJudge(where Addresses) *Judge {
	return &Judge{Where: where, copies: newCopies(), zero: map[uint64]int64{}, ttls: map[netip.Addr]uint8{}, served: map[netip.AddrPort]uint32{}, opens: newOpens()}
}

// maxRemembered bounds each thing that is remembered by address.
const maxRemembered = 1 << 16

const resent = tcp.Retransmission | tcp.FastRetransmission | tcp.SpuriousRetransmission | tcp.OutOfOrder

// Judgement is what there is to say of one segment.
type Judgement struct {
	Attribution Attribution
	Reset       *Reset // nil for all that are none
	HeldBack    int64  // ns that it waited for an ACK that its receiver delayed; 0: it did not
	Shut        int64  // ns for which the window was closed that it opens; 0: it opens none
	Shuts       bool   // it closes its sender's window
}

// Segment judges a segment.
func (j *Judge) Segment(r *tcp.Result, s *decode.Segment, frame uint32, now int64) (out Judgement) {
	if s.HeaderBad {
		return out
	}
	twice := j.copies.seen(r, s, now)
	if s.Flags&decode.SYN != 0 {
		j.handshake(r, s, frame)
		switch {
		case twice || r.SYNWait == 0:
		case Hasty(r):
			r.Conn.Hasty = min(r.Conn.Hasty, 254) + 1
		default:
			r.Conn.Patient = true
		}
	}
	a := None
	switch {
	case twice && r.Labels&(resent|tcp.DuplicateACK|tcp.KeepAlive|tcp.RST) != 0:
		a = CapturedTwice
	case r.Labels&resent != 0:
		a = j.attribute(r, s)
	}
	if a != None {
		j.Attributed[a].add(frame)
	}
	out.Attribution = a
	if s.Len > 0 && r.Labels&resent == 0 {
		out.HeldBack = j.nagle(r, s, frame, now)
	}
	if s.HasSACK && s.SACKs > 0 && dsack(s) {
		j.DSACKs++
	}
	if r.Labels&tcp.ZeroWindow != 0 || len(j.zero) > 0 {
		out.Shut, out.Shuts = j.window(r, s, frame, now)
	}
	if s.Flags&decode.RST != 0 {
		out.Reset = j.reset(r, s, frame, now, a)
	}
	return out
}

// handshake remembers from whom SYN-ACKs came: other connections of theirs are
// compared with that.
func (j *Judge) handshake(r *tcp.Result, s *decode.Segment, frame uint32) {
	if s.Flags&decode.ACK == 0 {
		return
	}
	at := j.Where.Addr(r.Conn, r.Side)
	if _, known := j.served[at]; known || len(j.served) < maxRemembered {
		j.served[at] = frame
	}
	if _, known := j.ttls[at.Addr()]; known || len(j.ttls) < maxRemembered {
		j.ttls[at.Addr()] = s.TTL
	}
}

// delayedLeast and delayedMost bound what a delayed-ACK timer takes: Linux waits
// 40 ms, others up to 200.
const (
	delayedLeast = 30_000  // µs
	delayedMost  = 220_000 // µs
)

// delayed says whether the side's last segment was an ACK that was held back.
func delayed(c *tcp.Conn, side uint8) bool {
	h := &c.Half[side]
	return h.AckRTT >= delayedLeast && h.AckRTT <= delayedMost && h.LastFlags == decode.ACK && h.Last != h.LastData &&
		c.IRTT() > 0 && c.IRTT() < int64(h.AckRTT)*1000/4
}

func (j *Judge) attribute(r *tcp.Result, s *decode.Segment) Attribution {
	c, peer := r.Conn, 1-r.Side
	switch {
	case s.Flags&decode.SYN != 0:
		return HandshakeAgain
	case r.Labels&tcp.SpuriousRetransmission != 0:
		if delayed(c, peer) {
			return DelayedACK
		}
		return Needless
	case r.Seen && j.closed(c, peer):
		return ReceiverFull
	case r.Seen:
		return LostAfter
	case r.Earlier:
		return Reordered
	case r.Later:
		return LostBefore
	case r.Labels&tcp.OutOfOrder != 0: // within a round trip, and nothing tells which was sent first
		return Reordered
	}
	return LostBefore
}

// closed says whether a side's window is closed.
func (j *Judge) closed(c *tcp.Conn, side uint8) bool {
	_, closed := j.zero[uint64(c.Stream)<<1|uint64(side)]
	return closed
}

// nagle looks for a segment that its sender held back until the ACK of the one
// before it had come, which the receiver had delayed, and returns for how long, ns.
func (j *Judge) nagle(r *tcp.Result, s *decode.Segment, frame uint32, now int64) int64 {
	c := r.Conn
	peer := &c.Half[1-r.Side]
	if !delayed(c, 1-r.Side) || s.Seq != peer.LastACK() || c.Half[r.Side].FIN != 0 {
		return 0
	}
	if wait := now - peer.LastTime(); wait < 0 || wait > max(c.IRTT()*2, 2e6) {
		return 0
	}
	held := int64(peer.AckRTT) * 1000
	j.Nagle.add(frame, held)
	return held
}

// dsack says whether the first block tells of data that the receiver had already.
func dsack(s *decode.Segment) bool {
	first := s.SACK[0]
	if int32(first[1]-s.Ack) <= 0 {
		return true
	}
	return s.SACKs > 1 && int32(first[0]-s.SACK[1][0]) >= 0 && int32(s.SACK[1][1]-first[1]) >= 0
}

// window measures for how long windows stay closed: it returns that of one that
// the segment opens, and whether it closes one.
func (j *Judge) window(r *tcp.Result, s *decode.Segment, frame uint32, now int64) (ns int64, shuts bool) {
	at := uint64(r.Conn.Stream)<<1 | uint64(r.Side)
	since, closed := j.zero[at]
	switch {
	case r.Labels&tcp.ZeroWindow != 0 && !closed && len(j.zero) < maxRemembered:
		j.zero[at] = now
		j.ReceiverFull.Counted.add(frame)
		return 0, true
	case closed && (s.Window != 0 || s.Flags&(decode.RST|decode.SYN) != 0):
		delete(j.zero, at)
		return j.opened(now - since), false
	}
	return 0, false
}

// opened counts a window that was closed for so long.
func (j *Judge) opened(ns int64) int64 {
	ns = max(ns, 1) // a clock that went back
	j.ReceiverFull.Total += ns
	j.ReceiverFull.Longest = max(j.ReceiverFull.Longest, ns)
	return ns
}

// End counts windows that are still closed at the end of the capture.
func (j *Judge) End(now int64) {
	for _, since := range j.zero {
		j.opened(now - since)
	}
	clear(j.zero)
}

// copies recognises packets that the capture saw twice, as mirror ports and
// "any" devices do: the same IP ID (where there is none, the same time stamp) and the same TCP
// header within a moment. Sent again, a packet has another. It remembers the last
// thousand packets, each in the one place that its fingerprint gives it.
type copies struct{ places []fingerprint }

type fingerprint struct {
	print uint64
	time  int64
}

const (
	copyWithin    = 20_000_000 // ns
	stampedWithin = 500_000    // ns: the clock of time stamps has steps of a millisecond and more
	copyBits      = 10         // of places
)

func newCopies() copies { return copies{make([]fingerprint, 1<<copyBits)} }

func (k *copies) seen(r *tcp.Result, s *decode.Segment, now int64) bool {
	mark, within := uint64(s.ID), uint64(copyWithin)
	if mark == 0 && s.HasStamp && s.Len > 0 {
		mark, within = uint64(s.Stamp[0]), stampedWithin
	}
	if mark == 0 && s.Flags&decode.SYN != 0 { // as of IPv6; its number tells it from others
		mark, within = 1, stampedWithin
	}
	if mark == 0 {
		return false
	}
	h := uint64(r.Conn.Stream)<<33 | uint64(r.Side)<<32 | mark
	h = (h ^ h>>29) * 0x9e3779b97f4a7c15
	h ^= uint64(s.Seq)<<32 | uint64(s.Ack)
	h = (h ^ h>>31) * 0xd6e8feb86659fd93
	h ^= uint64(s.Len)<<16 | uint64(s.Flags)
	h = (h ^ h>>32) * 0x9e3779b97f4a7c15
	p := &k.places[h>>(64-copyBits)]
	was := p.print == h && uint64(now-p.time) < within
	p.print, p.time = h, now
	return was
}
