// Package http measures how long replies took: HTTP/1.x by its messages, TLS by
// its records, without decryption. It puts directions together from segments in
// whatever order they came, holding no more than it must, and keeps no content.
package http

import (
	"plimsoll/internal/capture/decode"
	"plimsoll/internal/capture/tcp"
)

// Mark is a place in the capture.
type Mark struct {
	Frame uint32 // 0 for none
	Time  int64  // ns
}

// Exchange is a request with its reply. The first and last frames of each are
// those of its first and last byte.
type Exchange struct {
	Stream            uint32
	Protocol          Protocol
	Status            uint16 // of HTTP; 0 with TLS
	ReqFirst, ReqLast Mark
	ReplyFirst        Mark
	ReplyLast         Mark   // Frame 0: the capture does not have the end
	Number            uint32 // of the request on its connection, from 1

	requestSeen, connect, head bool
}

// FirstByte is the time from the request's last byte to the reply's first, ns.
func (e *Exchange) FirstByte() int64 { return e.ReplyFirst.Time - e.ReqLast.Time }

// LastByte is the time from the request's last byte to the reply's last, ns.
func (e *Exchange) LastByte() int64 { return e.ReplyLast.Time - e.ReqLast.Time }

// Protocol is what a connection speaks.
type Protocol uint8

// The protocols that are told apart.
const (
	Unknown Protocol = iota
	HTTP
	TLS
)

func (p Protocol) String() string { return [...]string{"", "http", "tls"}[p] }

// The limits of what is held for segments that came too early, in bytes.
const (
	maxHeldOne = 1 << 20
	maxHeldAll = 32 << 20
	maxHead    = 64 << 10
	maxQueue   = 1000 // requests that wait for their replies on one connection
)

// Tracker follows the messages of all connections. Done is told of every reply,
// at its end, and of what has none: requests without a reply have no ReplyFirst.
type Tracker struct {
	Done func(*Exchange)
	Lost int64 // how often a direction could not be put together and was taken up again later

	conns []*conn
	free  []uint32
	held  int
}

// conn is what is known of a connection with payload.
type conn struct {
	stream   uint32
	protocol Protocol
	client   uint8 // the side of the requests, where protocol is known
	dirs     [2]direction
	queue    []Exchange // requests that wait, the oldest first
	count    uint32
}

// ignored is the slot of connections that speak neither protocol.
const ignored = 1

// Segment takes up a segment: its acknowledgement, then its payload.
func (t *Tracker) Segment(r *tcp.Result, s *decode.Segment, at Mark) {
	c := r.Conn
	if c.Slot == ignored || c.Slot&parked != 0 && !t.unpark(r, s) {
		return
	}
	if c.Slot != 0 && s.Flags&decode.ACK != 0 {
		t.acknowledged(t.conns[c.Slot], 1-r.Side, s.Ack, at)
	}
	if s.Len == 0 && (c.Slot == 0 || s.Flags&(decode.FIN|decode.RST) == 0) || r.Labels&(tcp.KeepAlive|tcp.ZeroWindowProbe) != 0 {
		return
	}
	if c.Slot == 0 {
		c.Slot = t.take(c.Stream)
	}
	k := t.conns[c.Slot]
	d := &k.dirs[r.Side]
	seq := s.Seq
	if s.Flags&decode.SYN != 0 {
		seq++
	}
	if !d.begun {
		base, _ := c.Half[r.Side].ISN()
		d.begun, d.next = true, base+1
		if c.Half[r.Side].SYN == 0 {
			d.mode = searching
		}
	}
	t.place(k, r.Side, part{seq: seq, size: s.Len, b: s.Payload[:min(len(s.Payload), int(s.Len))], at: at}, at)
	t.acknowledged(k, r.Side, c.Half[1-r.Side].LastACK(), at)
	if s.Flags&decode.FIN != 0 && seq+s.Len == d.next || s.Flags&decode.RST != 0 {
		t.end(k, r.Side, at)
	}
	t.settle(c, k)
}

// settle lets go of a connection that has ended, or of which nothing will come.
func (t *Tracker) settle(c *tcp.Conn, k *conn) {
	hopeless := k.protocol == Unknown && k.dirs[0].hopeless && k.dirs[1].hopeless
	if hopeless || c.Completeness&tcp.SawRST != 0 || c.Half[0].FIN != 0 && c.Half[1].FIN != 0 && len(k.queue) == 0 {
		t.Close(c)
	}
	switch {
	case hopeless:
		c.Slot = ignored
	case c.Slot != 0 && len(t.conns)-len(t.free) > manyOpen && k.idle():
		t.park(c, k)
	}
}

// manyOpen is from how many connections on those that are between two messages
// are parked: then their state is what fits into the slot's number.
const (
	manyOpen   = 4096
	parked     = 1 << 31
	parkedSide = 1 << 30
	parkedMost = parkedSide - 1
)

// idle says whether nothing is under way.
func (k *conn) idle() bool {
	return k.protocol == HTTP && len(k.queue) == 0 && k.dirs[0].idle() && k.dirs[1].idle()
}

func (d *direction) idle() bool { return d.begun && d.mode == between && len(d.held) == 0 }

func (t *Tracker) park(c *tcp.Conn, k *conn) {
	slot := parked | uint32(k.client)*parkedSide | min(k.count, parkedMost)
	t.Close(c)
	c.Slot = slot
}

// unpark takes a connection up again, if the segment begins something.
func (t *Tracker) unpark(r *tcp.Result, s *decode.Segment) bool {
	const old = tcp.Retransmission | tcp.FastRetransmission | tcp.SpuriousRetransmission | tcp.OutOfOrder | tcp.KeepAlive
	if s.Len == 0 || r.Labels&old != 0 {
		return false
	}
	c := r.Conn
	slot := c.Slot
	c.Slot = t.take(c.Stream)
	k := t.conns[c.Slot]
	k.protocol, k.client, k.count = HTTP, uint8(slot&parkedSide>>30), slot&parkedMost
	me, other := &k.dirs[r.Side], &k.dirs[1-r.Side]
	me.begun, me.next, other.begun, other.next = true, s.Seq, true, c.Half[1-r.Side].NextSeq()
	if r.Labels&tcp.LostSegment != 0 {
		me.mode = searching
	}
	return true
}

// acknowledged goes past what the other side has, though it was not captured:
// nobody will send it again.
func (t *Tracker) acknowledged(k *conn, side uint8, ack uint32, now Mark) {
	d := &k.dirs[side]
	if len(d.held) == 0 || before(ack, d.held[0].seq) {
		return
	}
	t.uncaptured(k, side, int64(d.held[0].seq-d.next), now)
	d.next = d.held[0].seq
	t.readHeld(k, side, now)
}

// Close frees what is held for a connection; requests that still wait go without a reply.
func (t *Tracker) Close(c *tcp.Conn) {
	if c.Slot <= ignored || c.Slot&parked != 0 {
		return
	}
	k := t.conns[c.Slot]
	for i := range k.queue {
		if e := &k.queue[i]; e.requestSeen {
			t.Done(e)
		}
	}
	for side := range k.dirs {
		t.drop(&k.dirs[side])
	}
	t.free = append(t.free, c.Slot)
	c.Slot = 0
}

// take finds a place for a connection, one that had another before if possible.
func (t *Tracker) take(stream uint32) uint32 {
	if len(t.conns) == 0 {
		t.conns = make([]*conn, ignored+1)
	}
	if n := len(t.free); n > 0 {
		i := t.free[n-1]
		t.free = t.free[:n-1]
		k := t.conns[i]
		*k = conn{stream: stream, queue: k.queue[:0], dirs: [2]direction{{head: k.dirs[0].head[:0]}, {head: k.dirs[1].head[:0]}}}
		return i
	}
	t.conns = append(t.conns, &conn{stream: stream})
	return uint32(len(t.conns) - 1)
}

// place puts a part where it belongs: it is read at once if it continues what
// was read, kept if it came too early, and passed over if it was there before.
func (t *Tracker) place(k *conn, side uint8, p part, now Mark) {
	d := &k.dirs[side]
	if p = p.after(d.next); p.size == 0 {
		return
	}
	if p.seq != d.next {
		t.hold(k, d, p)
		return
	}
	t.read(k, side, p, now)
	t.readHeld(k, side, now)
}

// readHeld reads what came too early and is due now.
func (t *Tracker) readHeld(k *conn, side uint8, now Mark) {
	d := &k.dirs[side]
	for len(d.held) > 0 && !before(d.next, d.held[0].seq) {
		p := d.held[0]
		d.held = d.held[1:]
		t.held -= len(p.b)
		d.heldBytes -= len(p.b)
		if p = p.after(d.next); p.size > 0 {
			t.read(k, side, p, now)
		}
	}
	if len(d.held) == 0 {
		d.held = nil
	}
}

// hold keeps a part for later. Where too much is held, what is missing was not
// captured: everything begins anew at the next message that a segment begins with.
func (t *Tracker) hold(k *conn, d *direction, p part) {
	if d.heldBytes+len(p.b) > maxHeldOne || t.held+len(p.b) > maxHeldAll {
		t.Lost++
		t.drop(d)
		d.next, d.mode = p.seq+p.size, searching
		k.forget()
		return
	}
	i := len(d.held)
	for i > 0 && before(p.seq, d.held[i-1].seq) {
		i--
	}
	p.b = append([]byte(nil), p.b...)
	d.held = append(d.held, part{})
	copy(d.held[i+1:], d.held[i:])
	d.held[i] = p
	d.heldBytes += len(p.b)
	t.held += len(p.b)
}

func (t *Tracker) drop(d *direction) {
	t.held -= d.heldBytes
	d.held, d.heldBytes = nil, 0
}

// forget gives up the requests that wait: which reply is whose is not known any more.
func (k *conn) forget() { k.queue = k.queue[:0] }

// end is the end of a direction. A reply of no announced length ends with it.
func (t *Tracker) end(k *conn, side uint8, at Mark) {
	d := &k.dirs[side]
	if d.mode == untilClose {
		t.replyDone(k, at)
	}
	if k.protocol == TLS && side != k.client {
		t.replyDone(k, d.last)
	}
	d.mode = searching
}

// part is a piece of a direction. Less than size bytes may have been captured.
type part struct {
	seq, size uint32
	b         []byte
	at        Mark
}

// after returns what of the part lies at or after seq.
func (p part) after(seq uint32) part {
	if !before(p.seq, seq) {
		return p
	}
	skip := seq - p.seq
	if skip >= p.size {
		return part{}
	}
	return part{seq: seq, size: p.size - skip, b: p.b[min(int(skip), len(p.b)):], at: p.at}
}

func before(a, b uint32) bool { return int32(a-b) < 0 }
