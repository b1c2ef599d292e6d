package tcp

import "plimsoll/internal/capture/decode"

// step is the analysis of one segment. Its methods are Wireshark's steps, in
// Wireshark's order, which matters: each sees the state that the one before left.
type step struct {
	a        *Analyzer
	c        *Conn
	me, peer *Half // what the sender has sent so far, and what the other has
	s        *decode.Segment
	r        *Result
	frame    uint32
	now      int64
	before   int64 // the time of the connection's last segment
}

const control = decode.SYN | decode.FIN | decode.RST

// receiver gives the labels that tell of the receiving half of the sender: its
// window, and what it acknowledges.
func (x *step) receiver() {
	me, peer, s, r := x.me, x.peer, x.s, x.r
	plain := s.Flags&control == 0
	if s.Len == 1 && s.Seq == me.nextSeq && peer.is(hasWindow) && peer.win == 0 {
		r.Labels |= ZeroWindowProbe
		return
	}
	if s.Window == 0 && plain {
		r.Labels |= ZeroWindow
	}
	if me.nextSeq != 0 && before(me.nextSeq, s.Seq) && s.Flags&decode.RST == 0 {
		r.Labels |= LostSegment
	}
	if s.Len <= 1 && s.Seq == me.nextSeq-1 && plain {
		r.Labels |= KeepAlive
	}
	if s.Len > 0 && plain && peer.scale != scaleUnknown && s.Seq+s.Len == peer.lastAck+peer.room() {
		r.Labels |= WindowFull
	}
	if s.Len != 0 || !plain || s.Seq != me.nextSeq {
		return
	}
	x.repeats()
}

// repeats gives the labels of a segment that carries nothing and stands where
// the last one did.
func (x *step) repeats() {
	me, peer, s, r := x.me, x.peer, x.s, x.r
	same := s.Ack == me.lastAck
	switch {
	case s.Window == 0:
		if me.is(hasWindow) && me.win == 0 && (same || s.Ack == me.lastAck+1) && peer.is(lastProbing) {
			r.Labels |= ZeroWindowProbeACK
			if !same {
				peer.nextSeq, peer.maxAck = s.Ack, s.Ack
			}
		}
	case !same:
	case !me.is(hasWindow) || s.Window != me.win:
		r.Labels |= WindowUpdate
	case peer.is(lastAlive):
		r.Labels |= KeepAliveACK
	default:
		x.duplicate()
	}
}

func (x *step) duplicate() {
	x.me.dup++
	x.r.Labels |= DuplicateACK
	x.r.DupNumber, x.r.DupOf = x.me.dup, x.me.lastNonDup
}

// room is the window in bytes that h last announced; before that it is one that no window
// has, as in Wireshark.
func (h *Half) room() uint32 {
	win := uint32(h.win)
	if !h.is(hasWindow) {
		win = 1<<32 - 1
	}
	if h.is(firstAck) || h.scale == scaleUnused {
		return win
	}
	return win << uint(h.scale)
}

// acknowledgement looks at what the acknowledgement number says.
func (x *step) acknowledgement() {
	me, peer, s, r := x.me, x.peer, x.s, x.r
	probed := s.Ack == me.lastAck+1 && s.Seq == me.nextSeq && peer.is(lastProbing)
	if s.Ack != me.lastAck {
		me.lastNonDup, me.dup = x.frame, 0
	}
	if s.Flags&decode.ACK == 0 || peer.maxAck == 0 || !before(peer.maxAck, s.Ack) {
		return
	}
	if probed {
		r.Labels |= WindowUpdate
		peer.nextSeq, peer.maxAck = s.Ack, s.Ack
		return
	}
	r.Labels |= ACKLostSegment
	peer.maxAck = x.a.runEnd(peer, s.Ack)
}

const (
	fastWithin  = 20_000_000 // ns
	orderWithin = 3_000_000  // ns, where the handshake does not tell the round trip
)

// sender gives the label that tells whether the segment was sent before.
func (x *step) sender() {
	me, peer, s, r := x.me, x.peer, x.s, x.r
	if s.Len == 0 && s.Flags&(decode.SYN|decode.FIN) == 0 || r.Labels&KeepAlive != 0 {
		return
	}
	end := s.Seq + s.Len
	back := me.nextSeq != 0 && before(s.Seq, me.nextSeq) && !(s.Len > 1 && s.Seq == me.nextSeq-1)
	switch {
	case s.Len > 0 && peer.lastAck != 0 && upTo(end, peer.lastAck):
		r.Labels |= SpuriousRetransmission
	case !back:
	case peer.dup >= 2 && (s.Seq == peer.lastAck || x.notSacked(end)) && within(x.now, peer.lastTime, fastWithin):
		r.Labels |= FastRetransmission
	case x.outOfOrder(end):
		r.Labels |= OutOfOrder
	default:
		r.Labels |= Retransmission
		since, found := x.a.since(me, s.Seq)
		if !found {
			since = me.nextTime
		}
		r.RTO = x.now - since
	}
	if r.Labels&(SpuriousRetransmission|FastRetransmission|OutOfOrder|Retransmission) != 0 {
		r.Seen = x.a.seen(me, peer.lastAck, s.Seq, end+x.phantom())
	}
}

// notSacked says whether the peer's last segment had SACK blocks, and none of
// them covers the segment. Wireshark stores blocks relative to the first
// sequence number and compares them with absolute ones, as plain numbers; to agree with it, so is done here.
func (x *step) notSacked(end uint32) bool {
	if x.peer.sack == 0 {
		return false
	}
	blocks := x.a.sacks.at(x.peer.sack)
	for _, b := range blocks[:blocks[4][0]] {
		if b[0] <= x.s.Seq && end <= b[1] {
			return false
		}
	}
	return true
}

func (x *step) outOfOrder(end uint32) bool {
	limit := x.c.IRTT()
	if limit == 0 {
		limit = orderWithin
	}
	if !within(x.now, x.me.nextTime, limit) {
		return false
	}
	if end+x.phantom() == x.me.nextSeq && x.me.is(topHasData) {
		return false
	}
	return !x.a.covered(x.me, x.s.Seq, end)
}

// phantom is the sequence number that a SYN or FIN takes.
func (x *step) phantom() uint32 {
	if x.s.Flags&(decode.SYN|decode.FIN) != 0 {
		return 1
	}
	return 0
}

// within compares as Wireshark does: where time went back, the difference is
// huge.
func within(now, then, limit int64) bool {
	return uint64(now-then) < uint64(limit)
}

// order compares the segment's stamps with those of the segment that has the
// highest sequence number: which was sent first, whatever arrived first.
func (x *step) order() {
	me, s, r := x.me, x.s, x.r
	if s.Len == 0 {
		if s.Flags&decode.SYN != 0 && s.HasStamp {
			me.topStamp = s.Stamp[0]
		}
		return
	}
	if me.nextSeq == 0 || !before(s.Seq, me.nextSeq) {
		me.topID, me.topStamp = s.ID, 0
		if s.HasStamp {
			me.topStamp = s.Stamp[0]
		}
		return
	}
	older, newer := false, false
	if s.HasStamp && me.topStamp != 0 {
		older, newer = before(s.Stamp[0], me.topStamp), before(me.topStamp, s.Stamp[0])
	}
	if !older && !newer && s.ID != 0 && me.topID != 0 {
		older, newer = int16(s.ID-me.topID) < 0, int16(s.ID-me.topID) > 0
	}
	r.Earlier, r.Later = older, newer
}

// update is what the segment leaves behind for those after it.
func (x *step) update() {
	me, peer, s, r := x.me, x.peer, x.s, x.r
	end, adv := s.Seq+s.Len, uint32(0)
	if (s.Len > 0 || s.Flags&(decode.SYN|decode.FIN) != 0) && me.unacked < maxUnacked {
		adv = x.phantom()
		x.a.push(me, node{start: s.Seq, end: end + adv, frame: x.frame, time: x.now})
	}
	end += adv
	if me.nextSeq == 0 || before(me.nextSeq+x.phantom(), end) {
		me.set(topHasData, s.Len > 0)
	}
	if r.Labels&ZeroWindowProbe == 0 {
		if me.nextSeq == 0 || before(me.nextSeq, end) {
			me.nextSeq, me.nextTime = end, x.now
		}
		if me.maxAck == 0 || s.Seq == me.maxAck {
			me.maxAck = me.nextSeq
		}
	}
	x.announce()
	me.lastTime = x.now
	me.set(lastAlive, r.Labels&KeepAlive != 0)
	me.set(lastProbing, r.Labels&ZeroWindowProbe != 0)
	x.a.acked(peer, s.Ack, r, x.now)
}

// announce takes up the window that the segment announces. A RST's says nothing: the buffer is gone.
func (x *step) announce() {
	me, s := x.me, x.s
	me.win, me.lastAck = s.Window, s.Ack
	me.bits |= hasWindow
	if s.Flags&(decode.ACK|decode.RST|decode.SYN) == decode.ACK {
		me.widest = max(me.widest, s.Window)
		me.taken = me.widest - s.Window
	}
}

// learn takes up what Wireshark learns only after the labels: it counts for
// the segments that follow. The one label that still changes is that of a window
// update with SACK blocks.
func (x *step) learn() {
	me, peer, s := x.me, x.peer, x.s
	x.handshake()
	if s.Options {
		x.options()
	}
	if s.Flags&decode.SYN == 0 || s.OptionsCut { // what was cut off may be a window scale
		return
	}
	if me.scale == scaleUnknown {
		me.scale, peer.scale = scaleUnused, scaleUnused
	}
	if s.Flags&decode.ACK != 0 && s.Scale >= 0 && peer.scale == scaleUnused {
		me.scale = scaleUnused
	}
}

// handshake takes up what a segment's flags and time say of the handshake.
func (x *step) handshake() {
	c, me, s := x.c, x.me, x.s
	switch {
	case s.Flags&decode.SYN != 0:
		me.bits |= firstAck
		if s.Flags&decode.ACK == 0 && !c.timed {
			if c.trip != 0 {
				x.r.SYNWait = max(x.now-c.trip, 1)
			}
			c.trip = x.now
		}
	case s.Flags&decode.ACK != 0:
		me.bits &^= firstAck
		if !c.timed && c.trip != 0 && x.now != c.trip {
			c.trip, c.timed = x.now-c.trip, true
		}
	}
}

func (x *step) options() {
	me, s, r := x.me, x.s, x.r
	if s.Scale >= 0 {
		me.scale = s.Scale
	}
	if s.SACKs > 0 {
		me.sack = x.a.sacks.take()
		blocks := x.a.sacks.at(me.sack)
		for i, b := range s.SACK[:s.SACKs] {
			blocks[i] = [2]uint32{b[0] - x.peer.base, b[1] - x.peer.base}
		}
		blocks[4][0] = uint32(s.SACKs)
	}
	if s.HasSACK && r.Labels&WindowUpdate != 0 {
		r.Labels &^= WindowUpdate
		x.duplicate()
	}
}

// finish keeps what causes and summaries are made of.
func (x *step) finish() {
	c, me, s, r := x.c, x.me, x.s, x.r
	had := c.Completeness
	x.completeness()
	x.closing(had)
	if s.Flags&decode.ACK != 0 {
		me.Acked = s.Ack
	}
	c.Labelled |= shown(r.Labels, s)
	c.Timed = c.Timed || c.timed && (s.Len > 0 || r.Acks != 0 || r.Labels&(SYN-1) != 0)
	me.Packets++
	me.Bytes += uint64(s.Len)
	if r.Labels&(Retransmission|FastRetransmission|SpuriousRetransmission) != 0 {
		me.Resent++
		me.Again = min(me.Again, 254) + 1
	}
	if s.Flags&decode.RST != 0 {
		c.RSTs++
		r.Ended = had&SawRST == 0 && (me.FIN == 0 || x.peer.FIN == 0)
		return
	}
	x.peer.Probes, x.peer.Again = 0, 0
	c.Gap = uint32(min(max((x.now-x.before)/1e6, 0), 1<<32-1))
	me.AckRTT = uint32(min(max(r.RTT/1000, 0), 1<<32-1))
	if r.Labels&KeepAlive != 0 {
		me.Probes = min(me.Probes, 254) + 1
	}
	if s.Flags&decode.SYN != 0 {
		if me.SYNs = min(me.SYNs, 254) + 1; me.SYN == 0 {
			me.SYN = x.frame
		}
	}
	if s.Len > 0 && r.Labels&(KeepAlive|ZeroWindowProbe) == 0 {
		now := c.moment(x.now)
		if x.peer.LastData > me.LastData {
			r.Turn = max((now - min(now, x.peer.DataTime)).NS(), momentStep)
		} else if me.LastData != 0 {
			r.Flow = (now - min(now, me.DataTime)).NS()
		}
		me.LastData, me.DataTime = x.frame, now
	}
	if me.Last == 0 {
		me.TTL = [2]uint8{s.TTL, s.TTL}
	}
	me.TTL = [2]uint8{min(me.TTL[0], s.TTL), max(me.TTL[1], s.TTL)}
	me.LastFlags, me.Last = s.Flags, x.frame
	// TIME_WAIT takes a SYN with a stamp newer than its last for a new connection (RFC 6191).
	if x.peer.LastFlags == decode.SYN && s.Flags&(decode.SYN|decode.ACK) == decode.ACK && s.HasStamp && x.peer.topStamp != 0 {
		c.OldLives = before(s.Stamp[1], x.peer.topStamp)
	}
}

// shown is what Wireshark shows of the labels that it finds.
func shown(l Label, s *decode.Segment) Label {
	if s.OptionsCut {
		return l & OfFlags
	}
	return l
}

// Show leaves of a result what Wireshark shows: less where the header was cut.
func (r *Result) Show(s *decode.Segment) {
	if s.OptionsCut {
		r.Labels, r.DupNumber, r.DupOf, r.RTO, r.Acks, r.RTT = r.Labels&OfFlags, 0, 0, 0, 0, 0
	}
}

// closing takes up a FIN; had is what the connection had seen before.
func (x *step) closing(had uint8) {
	c, me, r := x.c, x.me, x.r
	if x.s.Flags&decode.FIN == 0 {
		return
	}
	if c.FirstFIN == 0 {
		x.firstFIN()
	}
	if r.Labels |= FINPassive; c.FirstFIN == 1+r.Side {
		r.Labels ^= FINPassive | FINActive
	}
	if me.FIN == 0 {
		me.FIN = x.frame
		r.Ended = x.peer.FIN != 0 && had&SawRST == 0
	}
}

// firstFIN notes the connection's first FIN, and how long nobody had said anything.
func (x *step) firstFIN() {
	c, me, peer := x.c, x.me, x.peer
	now := c.moment(x.now)
	last := max(me.DataTime, peer.DataTime)
	c.DataAt = max(me.LastData, peer.LastData)
	switch {
	case x.s.Len > 0:
		last, c.DataAt = now, x.frame
	case me.LastData != 0 && before(x.s.Ack, peer.nextSeq): // it had not heard of what came last
		last, c.DataAt = me.DataTime, me.LastData
	}
	c.FirstFIN, c.FIN, c.Idle = 1+x.r.Side, now, now-min(last, now)
}

func (x *step) completeness() {
	c, s := x.c, x.s
	const asked, spoke = SawSYN | SawSYNACK, SawACK | SawData
	stood := c.Completeness&spoke != 0
	switch s.Flags & (decode.SYN | decode.ACK) {
	case decode.SYN:
		if x.r.Opened {
			c.Completeness |= SawSYN
		}
		if s.Len > 0 {
			c.Completeness |= SawData
		}
	case decode.SYN | decode.ACK:
		c.Completeness |= SawSYNACK
	case decode.ACK:
		if s.Len > 0 {
			c.Completeness |= SawData
		} else {
			c.Completeness |= SawACK
		}
		if s.Flags&decode.FIN != 0 {
			c.Completeness |= SawFIN
		}
	}
	if s.Flags&decode.RST != 0 {
		c.Completeness |= SawRST
		return
	}
	x.r.Stands = !stood && c.Completeness&spoke != 0 && c.Completeness&asked == asked && x.r.Side == c.Opener
}
