package sockets

import (
	"net/netip"
	"slices"
)

// What is sent again to many peers alike is lost on the way that they share; what is sent again to one of them
// alone, on that one's own line. So it is told how much of it goes to the peer that has most.

const (
	// maxPeers bounds the peers that are told apart on one host, of those to which something was sent again.
	// What has no room counts as the others'.
	maxPeers = 256
	// halfLife is after how many dumps what was sent again to a peer counts half: who lost most an hour ago
	// does not stand for who does now.
	halfLife = 60
)

// The peers of a listener, as far as they are told apart.
const (
	toOne    = iota // the one to which most was sent again lately
	toOthers        // all others
	toCount
)

var toNames = [toCount]string{"one", "others"}

// segments are those with data that were sent, sent again, and came.
type segments struct{ sent, again, came uint64 }

func (s *segments) add(o segments) {
	s.sent += o.sent
	s.again += o.again
	s.came += o.came
}

// sentTo is what went over a listener's connections, counted up.
type sentTo struct {
	by    [toCount]segments
	worst *peer // the one; nil where nothing was sent again
}

// peerKey is one address that holds connections to one listener.
type peerKey struct {
	at   *sentTo
	addr [16]byte
}

// peer is what went to one of them.
type peer struct {
	peerKey
	recent uint64   // segments sent again, halved as time goes by
	now    segments // of the dump under way
}

// peers tells a host's peers apart by what is sent again to them.
type peers struct {
	known map[peerKey]*peer
	order []*peer // in order of first sight
	dumps int
}

func (p *peers) begin() {
	for _, k := range p.order {
		k.now = segments{}
	}
}

// add counts what went to a connection's peer since the last dump. It is the others' until the dump ends.
func (p *peers) add(at *sentTo, addr [16]byte, more segments) {
	at.by[toOthers].add(more)
	key := peerKey{at, addr}
	k := p.known[key]
	if k == nil {
		if more.again == 0 || len(p.order) >= maxPeers {
			return
		}
		if p.known == nil {
			p.known = map[peerKey]*peer{}
		}
		k = &peer{peerKey: key}
		p.known[key] = k
		p.order = append(p.order, k)
	}
	k.now.add(more)
	k.recent += more.again
}

// end closes a dump: what went to the peer that has most of what was sent again is that one's. Where
// several have as much, the one that was it before stays, or else the one that was seen first.
func (p *peers) end() {
	for _, k := range p.order {
		if k.at.worst == nil || k.recent > k.at.worst.recent {
			k.at.worst = k
		}
	}
	for _, k := range p.order {
		if k == k.at.worst {
			k.at.give(k.now)
		}
	}
	if p.dumps++; p.dumps%halfLife == 0 {
		p.fade()
	}
}

// give makes the one peer's what was the others'.
func (s *sentTo) give(now segments) {
	s.by[toOne].add(now)
	others := &s.by[toOthers]
	others.sent, others.again, others.came = others.sent-now.sent, others.again-now.again, others.came-now.came
}

// fade halves what was sent again, and forgets the peers that have nothing left.
func (p *peers) fade() {
	p.order = slices.DeleteFunc(p.order, func(k *peer) bool {
		if k.recent /= 2; k.recent == 0 {
			delete(p.known, k.peerKey)
		}
		return k.recent == 0
	})
}

// onOneMachine says whether a connection's peer is so plainly on the same machine that what is sent
// to it tells nothing of any way.
func onOneMachine(s *inetSock) bool {
	return s.src.addr == s.dst.addr || netip.AddrFrom16(s.dst.addr).Unmap().IsLoopback()
}
