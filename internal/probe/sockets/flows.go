package sockets

import (
	"bytes"
	"cmp"
	"slices"
)

const (
	// maxFlows bounds the pairs of local address and destination that one dump
	// keeps apart; sockets of further pairs are only counted.
	maxFlows = 16384
	// maxDestinations is how many destinations are reported, those that use
	// most ports; maxEverReported bounds them over a whole run.
	maxDestinations = 64
	maxEverReported = 256
)

// The states in which a destination's sockets are reported.
const (
	stateEstablished = iota
	stateTimeWait
	stateSynSent
	stateCloseWait
	stateFinWait
	stateOther
	stateCount
)

var stateNames = [stateCount]string{"established", "time_wait", "syn_sent", "close_wait", "fin_wait", "other"}

func stateOf(tcp uint8) int {
	switch tcp {
	case tcpEstablished:
		return stateEstablished
	case tcpTimeWait:
		return stateTimeWait
	case tcpSynSent:
		return stateSynSent
	case tcpCloseWait:
		return stateCloseWait
	case tcpFinWait1, tcpFinWait2:
		return stateFinWait
	}
	return stateOther
}

// flowKey is one local address and one destination. A port can be used once
// for it, so its sockets are as many as its ports.
type flowKey struct {
	src [16]byte
	dst endpoint
}

type flow struct {
	flowKey
	ports  int // inside the usable range
	held   int // of these, in TIME_WAIT
	states [stateCount]int
	inode  uint32 // of one that is established; 0 when there is none
	oldest uint32 // the lowest of theirs
	outgoing
}

// silentAfter is how often in a row the retransmission timer has gone off of a connection that is taken to be dead: 1.4 s after the
// bytes were sent at the earliest, and three losses in a row, where the way back is as good as the way there.
const silentAfter = 3

// outgoing is what a dump tells of established connections of the connecting side.
type outgoing struct {
	// unacked is how many have bytes that the peer has not acknowledged, gaps how many have some behind a gap.
	unacked, gaps int
	// silent is how many have had no acknowledgement though their bytes were sent again silentAfter times, each after
	// twice the time; resending how many are on the way there.
	silent, resending int
	// trips is the sum of the shortest round trips, in µs, of as many as are measured.
	trips    uint64
	measured int
	// smoothed is the sum of the present round trips, in µs, of those that are not acknowledged.
	smoothed uint64
}

func (o *outgoing) add(s *inetSock) {
	if s.limit > 0 {
		o.unacked++
		o.smoothed += uint64(s.info.rtt)
	}
	if s.gap() {
		o.gaps++
	}
	switch {
	case s.timer != timerRetransmit || s.retries == 0:
	case s.retries >= silentAfter:
		o.silent++
	default:
		o.resending++
	}
	if s.hasInfo && s.info.shortest != noRTT {
		o.trips += uint64(s.info.shortest)
		o.measured++
	}
}

// destination is one remote endpoint over all local addresses.
type destination struct {
	dst endpoint
	// ports is the number of local ports used on the local address that uses most.
	ports int
	// held is how many of these are in TIME_WAIT.
	held   int
	states [stateCount]int
	inode  uint32 // of one of its established sockets; 0 when there is none
	oldest uint32 // the lowest of theirs: it was opened early, and has a low descriptor
	outgoing
}

// flows adds up the connecting side of one dump. Its memory is kept for the next.
type flows struct {
	usable usablePorts
	index  map[flowKey]int32
	list   []flow
	beyond int // sockets of flows beyond maxFlows
	total  int // sockets of the dump, also accepted ones
}

func (f *flows) reset() {
	if f.index == nil {
		f.index = map[flowKey]int32{}
	}
	clear(f.index)
	f.list, f.beyond, f.total = f.list[:0], 0, 0
}

func (f *flows) add(s *inetSock) {
	key := flowKey{s.src.addr, s.dst}
	i, ok := f.index[key]
	if !ok {
		if len(f.list) >= maxFlows {
			f.beyond++
			return
		}
		i = int32(len(f.list))
		f.list = append(f.list, flow{flowKey: key})
		f.index[key] = i
	}
	if f.usable.has(s.src.port) {
		f.list[i].ports++
		if s.state == tcpTimeWait {
			f.list[i].held++
		}
	}
	f.list[i].states[stateOf(s.state)]++
	if s.state == tcpEstablished && s.inode != 0 {
		f.list[i].inode = s.inode
		f.list[i].oldest = lower(f.list[i].oldest, s.inode)
		f.list[i].outgoing.add(s)
	}
}

// lower is the lower one of two inodes, of which 0 is none.
func lower(a, b uint32) uint32 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// destinations joins the flows, the destination that uses most ports first.
func (f *flows) destinations() []destination {
	at := make(map[endpoint]int, min(len(f.list), maxFlows))
	var all []destination
	for i := range f.list {
		fl := &f.list[i]
		j, ok := at[fl.dst]
		if !ok {
			j = len(all)
			at[fl.dst] = j
			all = append(all, destination{dst: fl.dst})
		}
		if fl.ports > all[j].ports {
			all[j].ports, all[j].held = fl.ports, fl.held
		}
		for s, n := range fl.states {
			all[j].states[s] += n
		}
		all[j].inode = cmp.Or(all[j].inode, fl.inode)
		all[j].oldest = lower(all[j].oldest, fl.oldest)
		all[j].unacked += fl.unacked
		all[j].gaps += fl.gaps
		all[j].silent += fl.silent
		all[j].resending += fl.resending
		all[j].trips += fl.trips
		all[j].measured += fl.measured
		all[j].smoothed += fl.smoothed
	}
	slices.SortFunc(all, func(a, b destination) int {
		if more := b.ports - a.ports; more != 0 { // cmp.Or would compare the addresses all the same
			return more
		}
		return cmp.Or(bytes.Compare(a.dst.addr[:], b.dst.addr[:]), int(a.dst.port)-int(b.dst.port))
	})
	return all
}

// reported remembers the destinations that have a series, by endpoint.
type reported map[endpoint]string

// choose takes those of the sorted destinations that are to be reported: the
// first ones, and no more names over a run than it may have. cut says that
// some were left out.
func (r reported) choose(all []destination) (chosen []destination, cut bool) {
	for _, d := range all {
		if len(chosen) == maxDestinations {
			return chosen, true
		}
		if _, ok := r[d.dst]; !ok {
			if len(r) >= maxEverReported {
				cut = true
				continue
			}
			r[d.dst] = d.dst.String()
		}
		chosen = append(chosen, d)
	}
	return chosen, cut
}
