package tcp

import (
	"math/rand/v2"

	"plimsoll/internal/capture/decode"
)

// Analyzer follows all connections of a capture. Give it the segments in the
// order of the frames.
type Analyzer struct {
	MaxBytes int64       // what connections may take, in bytes; 0 for no limit
	Evict    func(*Conn) // is told of each connection that is forgotten for lack of room
	Evicted  int64

	seed    uint64
	table   table
	conns   pool[Conn]
	nodes   pool[node]
	sacks   pool[[5][2]uint32] // the blocks; their number stands in the last
	six     six
	streams uint32
}

// New returns an analyzer that has seen nothing.
func New() *Analyzer {
	a := &Analyzer{seed: rand.Uint64()}
	a.conns.shift, a.nodes.shift, a.sacks.shift = connsShift, nodesShift, connsShift
	a.table.grow()
	return a
}

// Streams is how many connections there were.
func (a *Analyzer) Streams() uint32 { return a.streams }

// Result is what there is to say of one segment.
type Result struct {
	Conn      *Conn // good until the next segment
	Side      uint8 // who sent it: the index of its Half
	Opened    bool  // the connection began with it
	Stands    bool  // the client completes the handshake with it
	Ended     bool  // the connection ended with it: the first RST, or the second side's FIN
	Labels    Label
	DupNumber uint32 // of a duplicate ACK: which it is, from 1
	DupOf     uint32 // of a duplicate ACK: the frame that it repeats
	RTO       int64  // of a retransmission: ns since what it repeats was sent; 0 where that is not known
	Acks      uint32 // the frame that it acknowledges; 0 for none
	RTT       int64  // since that frame, ns
	Seen      bool   // of a retransmission: everything in it was captured before
	Earlier   bool   // it carries an older sequence number, and its stamps say it was also sent earlier: reordered
	Later     bool   // and its stamps say it was sent after: sent again
	Turn      int64  // of the first payload since the other side's last: ns since that; else 0
	Flow      int64  // of payload that follows on the same side's: ns since that; else 0
	SYNWait   int64  // of a SYN sent again before the handshake was complete: ns since the last; else 0
}

// Quoted takes note of an ICMP error about a connection, and writes into r whose
// segment it is about (Conn is nil where that is not known). As in Wireshark a connection
// has a number though nobody may have sent a segment of it, if its whole header is quoted.
func (a *Analyzer) Quoted(frame uint32, t int64, s *decode.Segment, r *Result) {
	k, side := a.keyOf(s)
	*r = Result{Side: side}
	hash := a.hashOf(&k)
	if _, i := a.table.find(&a.conns, &k, hash); i != 0 {
		r.Conn = a.conns.at(i)
		r.Conn.Errors, r.Conn.ICMP = frame, s.ICMP
	} else if s.QuotedAll {
		r.Conn = a.open(frame, t, &k, hash, side)
	}
}

// Segment follows one segment, and writes into r what there is to say of it.
func (a *Analyzer) Segment(frame uint32, t int64, s *decode.Segment, r *Result) {
	*r = Result{}
	c := a.connection(frame, t, s, r)
	r.Conn = c
	me, peer := &c.Half[r.Side], &c.Half[1-r.Side]
	bases(me, peer, s)
	if me.sack != 0 {
		a.sacks.give(me.sack)
		me.sack = 0
	}
	x := step{a: a, c: c, me: me, peer: peer, s: s, r: r, frame: frame, now: t, before: max(me.lastTime, peer.lastTime)}
	if x.before == 0 {
		x.before = t
	}
	if s.HeaderBad && !s.Bogus {
		x.short()
		return
	}
	r.Labels |= flagLabels(s.Flags)
	x.receiver()
	x.acknowledgement()
	x.sender()
	x.order()
	x.update()
	if s.Bogus { // Wireshark says nothing of it, though it counts
		*r = Result{Conn: c, Side: r.Side, Opened: r.Opened}
		return
	}
	x.learn()
	x.finish()
}

// connection finds the segment's connection, or opens one.
func (a *Analyzer) connection(frame uint32, t int64, s *decode.Segment, r *Result) *Conn {
	k, side := a.keyOf(s)
	hash := a.hashOf(&k)
	_, i := a.table.find(&a.conns, &k, hash)
	r.Side = side
	if i == 0 {
		r.Opened = true
		return a.open(frame, t, &k, hash, side)
	}
	c := a.conns.at(i)
	if s.Flags&decode.SYN == 0 {
		return c
	}
	me := &c.Half[side]
	if !me.is(hasBase) {
		return c
	}
	if s.Seq == me.base && c.Completeness&(SawFIN|SawRST) == 0 {
		if s.Flags&decode.ACK == 0 { // a SYN sent again
			me.nextSeq = me.maxAck
		}
		return c
	}
	old, oldCompleteness := c.Stream, c.Completeness
	for h := range c.Half { // nobody can acknowledge what the old one sent
		a.forget(&c.Half[h])
	}
	c = a.open(frame, t, &k, hash, side)
	c.Reused, c.Before, c.BeforeCompleteness = true, old, oldCompleteness
	r.Opened, r.Labels = true, ReusedPorts
	return c
}

// bases learns where both directions' sequence numbers begin.
func bases(me, peer *Half, s *decode.Segment) {
	if !me.is(hasBase) {
		me.bits, me.base = me.bits|hasBase, s.Seq
		if s.Flags&decode.SYN == 0 {
			me.base--
		}
	}
	if !peer.is(hasBase) && s.Flags&decode.ACK != 0 {
		peer.bits, peer.base = peer.bits|hasBase, s.Ack-1
	}
}

// short takes a segment whose header is longer than what there is: its flags and its time alone count.
func (x *step) short() {
	had := x.c.Completeness
	x.completeness()
	x.r.Labels = flagLabels(x.s.Flags)
	x.handshake()
	x.closing(had)
	x.c.Labelled |= x.r.Labels
}

func flagLabels(flags uint8) (l Label) {
	switch flags & (decode.SYN | decode.ACK) {
	case decode.SYN:
		l = SYN
	case decode.SYN | decode.ACK:
		l = SYNACK
	}
	if flags&decode.FIN != 0 {
		l |= FIN
	}
	if flags&decode.RST != 0 {
		l |= RST
	}
	return l
}
