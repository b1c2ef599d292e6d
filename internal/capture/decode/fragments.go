package decode

import "slices"

// What fragments may take: a flood of first fragments must not fill the memory.
const (
	maxDatagrams = 512
	maxHeld      = 8 << 20
	maxDatagram  = 65535 + 8
)

type fragKey struct {
	src, dst Addr
	id       uint32
	proto    byte
	version  byte
}

type datagram struct {
	pieces []piece // in order of their place, without overlap
	total  int     // its length, -1 while the last fragment is not there
	held   int
	age    int64
}

type piece struct {
	at int
	b  []byte
}

// fragments holds the parts of IP packets that are not whole yet.
type fragments struct {
	open  map[fragKey]*datagram
	held  int
	clock int64
}

// fragment keeps a fragment, and goes on with the packet once it is whole. A
// first fragment of which not everything was captured can never be part of a
// whole; what it shows is taken as it is, but for its length.
func (d *Decoder) fragment(key fragKey, at int, more bool, f frame) Kind {
	d.Counts.Fragments++
	if len(f.b) < f.wire {
		if at > 0 {
			return Other
		}
		kind := d.transport(key.proto, f)
		if kind == TCP {
			d.seg.HeaderBad, d.seg.Bogus = true, false
		}
		return kind
	}
	if len(f.b) == 0 || at+len(f.b) > maxDatagram {
		return d.malformed()
	}
	g := d.frags.add(key, at, more, f.b)
	d.Counts.Unfinished += d.frags.bound(key)
	if !g.whole() {
		return Other
	}
	d.frags.forget(key)
	d.Counts.Reassembled++
	b := make([]byte, 0, g.total)
	for _, p := range g.pieces {
		b = append(b, p.b...)
	}
	if key.version == 6 {
		return d.extensions(key.proto, frame{b, len(b)})
	}
	return d.transport(key.proto, frame{b, len(b)})
}

// add keeps a piece; what was there first wins where two overlap.
func (s *fragments) add(key fragKey, at int, more bool, b []byte) *datagram {
	if s.open == nil {
		s.open = map[fragKey]*datagram{}
	}
	g := s.open[key]
	if g == nil {
		g = &datagram{total: -1}
		s.open[key] = g
	}
	s.clock++
	g.age = s.clock
	if !more && g.total < 0 {
		g.total = at + len(b)
	}
	for len(b) > 0 {
		i, _ := slices.BinarySearchFunc(g.pieces, at, func(p piece, at int) int { return p.at + len(p.b) - at - 1 })
		end := at + len(b)
		if i < len(g.pieces) {
			if p := g.pieces[i]; p.at <= at { // already there, as far as p goes
				skip := min(p.at+len(p.b)-at, len(b))
				at, b = at+skip, b[skip:]
				continue
			} else if p.at < end {
				end = p.at
			}
		}
		part := slices.Clone(b[:end-at])
		g.pieces = slices.Insert(g.pieces, i, piece{at, part})
		g.held, s.held = g.held+len(part), s.held+len(part)
		b, at = b[end-at:], end
	}
	return g
}

func (g *datagram) whole() bool { return g.total >= 0 && g.held >= g.total }

func (s *fragments) forget(key fragKey) {
	s.held -= s.open[key].held
	delete(s.open, key)
}

// bound forgets the oldest packets while there are too many, and counts them.
func (s *fragments) bound(but fragKey) (gone int64) {
	for len(s.open) > maxDatagrams || s.held > maxHeld {
		var oldest fragKey
		age := int64(-1)
		for key, g := range s.open {
			if key != but && (age < 0 || g.age < age) {
				oldest, age = key, g.age
			}
		}
		if age < 0 {
			return gone
		}
		s.forget(oldest)
		gone++
	}
	return gone
}
