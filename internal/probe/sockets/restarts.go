package sockets

// startsAnew says it of a connection that is followed.
func (p *progress) startsAnew(s *inetSock) bool {
	k := p.known[s.cookie]
	return k != nil && k.startsAnew(s)
}

// startsAnew says whether the connection is held to a congestion window of half the one or less that it had when it paused,
// though nothing was lost or marked since: the kernel let it begin slowly again (tcp_slow_start_after_idle_check).
// Where a round trip takes twice the shortest, segments stand in line on the way: it is full, and a larger window would lengthen the line alone.
func (k *heldSeen) startsAnew(s *inetSock) bool {
	t := &s.info
	if t.resent != k.rested.resent || t.marked != k.rested.marked {
		k.rested = rested{0, t.resent, t.marked}
	}
	if t.unacked == 0 && t.unsent == 0 {
		k.rested.window = t.window
	}
	held := t.unsent > 0 && t.unacked >= t.window && t.rtt/2 < t.shortest
	return s.byLoss && held && t.window <= k.rested.window/2
}
