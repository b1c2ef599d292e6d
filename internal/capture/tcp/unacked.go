package tcp

// node is a segment that is not acknowledged yet.
type node struct {
	start, end uint32
	next       uint32
	frame      uint32
	time       int64
}

// maxUnacked is Wireshark's bound of the list, and part of its rules.
const maxUnacked = 10_000

// narrow is how far apart sequence numbers may stand and still have one order: comparing them
// goes around beyond 2³¹.
const narrow = 1 << 30

// push appends a segment to those of h that are not acknowledged.
func (a *Analyzer) push(h *Half, n node) {
	i := a.nodes.take()
	if h.newest != 0 {
		last := a.nodes.at(h.newest)
		last.next = i
		if before(n.start, last.end) || n.end-a.nodes.at(h.oldest).start >= narrow {
			h.bits &^= inOrder
		}
	} else {
		h.oldest, h.bits = i, h.bits|inOrder
	}
	*a.nodes.at(i) = n
	h.newest = i
	h.unacked++
}

// pop removes the oldest.
func (a *Analyzer) pop(h *Half) {
	i := h.oldest
	h.oldest = a.nodes.at(i).next
	if h.oldest == 0 {
		h.newest = 0
	}
	h.unacked--
	a.nodes.give(i)
}

// acked removes what ack acknowledges, and returns the frame whose end it is,
// or into which it reaches: the oldest that fits.
func (a *Analyzer) acked(h *Half, ack uint32, r *Result, now int64) {
	if h.is(inOrder) && (h.oldest == 0 || ack-a.nodes.at(h.oldest).start+narrow < 2*narrow) {
		a.ackedInOrder(h, ack, r, now)
		return
	}
	ordered, found, prev := true, false, uint32(0)
	for i := h.oldest; i != 0; {
		n := a.nodes.at(i)
		next := n.next
		keep, hit := before(ack, n.end), ack == n.end
		if keep && before(n.start, ack) {
			n.start, hit = ack, true
		}
		if hit && !found {
			found, r.Acks, r.RTT = true, n.frame, now-n.time
		}
		if !keep {
			a.unlink(h, prev, i)
		} else {
			ordered = ordered && (prev == 0 || !before(n.start, a.nodes.at(prev).end) && n.end-a.nodes.at(h.oldest).start < narrow)
			prev = i
		}
		i = next
	}
	h.set(inOrder, ordered)
}

func (a *Analyzer) unlink(h *Half, prev, i uint32) {
	if prev == 0 {
		a.pop(h)
		return
	}
	a.nodes.at(prev).next = a.nodes.at(i).next
	if h.newest == i {
		h.newest = prev
	}
	h.unacked--
	a.nodes.give(i)
}

// ackedInOrder is acked where every segment begins no sooner than the one
// before it ends: then what is acknowledged stands at the front.
func (a *Analyzer) ackedInOrder(h *Half, ack uint32, r *Result, now int64) {
	found := false
	for h.oldest != 0 {
		n := a.nodes.at(h.oldest)
		if before(ack, n.end) {
			if before(n.start, ack) {
				n.start = ack
				if !found {
					r.Acks, r.RTT = n.frame, now-n.time
				}
			}
			return
		}
		if ack == n.end && !found {
			found, r.Acks, r.RTT = true, n.frame, now-n.time
		}
		a.pop(h)
	}
}

// covered says whether a segment of the list has all of start…end.
func (a *Analyzer) covered(h *Half, start, end uint32) bool {
	for i := h.oldest; i != 0; {
		n := a.nodes.at(i)
		if upTo(n.start, start) && upTo(end, n.end) {
			return true
		}
		i = n.next
	}
	return false
}

// maxRounds bounds how often seen goes through the list: segments that make up
// another mostly stand in their order, and a capture that was made up must not cost
// the square of its length.
const maxRounds = 8

// seen says whether all of start…end was captured before: what is acknowledged
// counts as such, the rest has to be in the list.
func (a *Analyzer) seen(h *Half, ack, start, end uint32) bool {
	if ack != 0 && before(start, ack) {
		start = ack
	}
	for round, grown := 0, true; grown && round < maxRounds && before(start, end); round++ {
		grown = false
		for i := h.oldest; i != 0; {
			n := a.nodes.at(i)
			if !before(start, n.start) && before(start, n.end) {
				start, grown = n.end, true
			}
			i = n.next
		}
	}
	return !before(start, end)
}

// since returns the time of the oldest segment that begins no sooner than seq.
func (a *Analyzer) since(h *Half, seq uint32) (int64, bool) {
	for i := h.oldest; i != 0; {
		n := a.nodes.at(i)
		if upTo(seq, n.start) {
			return n.time, true
		}
		i = n.next
	}
	return 0, false
}

// runEnd returns the right end of the run that the segments from seq on begin with, in the order
// in which they came; seq where the first of them begins elsewhere.
func (a *Analyzer) runEnd(h *Half, seq uint32) uint32 {
	end := seq
	for i := h.oldest; i != 0; {
		n := a.nodes.at(i)
		if i = n.next; before(n.start, seq) {
			continue
		}
		if n.start != end {
			break
		}
		end = n.end
	}
	return end
}

// before is a < b among sequence numbers, which wrap around. Of two that are 2³¹ apart each is
// before the other, as in Wireshark.
func before(a, b uint32) bool { return int32(a-b) < 0 }

// upTo is a ≤ b among sequence numbers: not the opposite of b < a, where they are 2³¹ apart.
func upTo(a, b uint32) bool { return int32(a-b) <= 0 }
