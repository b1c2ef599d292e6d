package tcp

import (
	"cmp"
	"slices"
	"unsafe"

	"plimsoll/internal/capture/decode"
)

// The pools are cut into pieces, so that growing moves and copies nothing.
const (
	connsShift = 9
	nodesShift = 12
)

// pool holds values of one type by number, and takes those back that are free.
// Number 0 is never given out.
type pool[T any] struct {
	shift  uint
	pieces [][]T
	next   uint32
	free   []uint32
}

func (p *pool[T]) at(i uint32) *T {
	return &p.pieces[i>>p.shift][i&(1<<p.shift-1)]
}

func (p *pool[T]) take() uint32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		return i
	}
	p.next++
	if int(p.next>>p.shift) >= len(p.pieces) {
		p.pieces = append(p.pieces, make([]T, 1<<p.shift))
	}
	return p.next
}

func (p *pool[T]) give(i uint32) { p.free = append(p.free, i) }

// used is the memory of what is given out, in bytes.
func (p *pool[T]) used() int64 {
	var one T
	return (int64(p.next) - int64(len(p.free))) * int64(unsafe.Sizeof(one))
}

// table finds the newest connection of addresses and ports: open addressing,
// the upper half of a slot a hash, the lower the connection's number.
type table struct {
	slots []uint64
	n     int
}

func (t *table) find(conns *pool[Conn], k *key, hash uint32) (at int, i uint32) {
	mask := len(t.slots) - 1
	for at = int(hash) & mask; ; at = (at + 1) & mask {
		s := t.slots[at]
		if s == 0 {
			return at, 0
		}
		if uint32(s>>32) == hash && conns.at(uint32(s)).key == *k {
			return at, uint32(s)
		}
	}
}

func (t *table) set(at int, hash, i uint32) {
	if t.slots[at] == 0 {
		t.n++
	}
	t.slots[at] = uint64(hash)<<32 | uint64(i)
	if t.n*3 > len(t.slots)*2 {
		t.grow()
	}
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]uint64, max(len(old)*2, 1024))
	mask := len(t.slots) - 1
	for _, s := range old {
		if s == 0 {
			continue
		}
		at := int(s>>32) & mask
		for t.slots[at] != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = s
	}
}

// remove empties a slot, and moves up what had to make way for it.
func (t *table) remove(at int) {
	mask := len(t.slots) - 1
	t.n--
	for next := at; ; {
		t.slots[at] = 0
		for {
			next = (next + 1) & mask
			s := t.slots[next]
			if s == 0 {
				return
			}
			home := int(s>>32) & mask
			if (next-home)&mask >= (next-at)&mask {
				t.slots[at] = s
				at = next
				break
			}
		}
	}
}

// keyOf returns the connection's key of a segment, and which side sent it.
func (a *Analyzer) keyOf(s *decode.Segment) (k key, side uint8) {
	swap := s.Src != s.Dst && less(s.Dst, s.Src) || s.Src == s.Dst && s.DstPort < s.SrcPort
	src, dst := uint32(s.Src.Lo), uint32(s.Dst.Lo)
	if s.Version == 6 {
		src, dst = a.six.of(s.Src), a.six.of(s.Dst)
	}
	if swap {
		return key{dst, src, s.DstPort, s.SrcPort, s.Version == 6}, 1
	}
	return key{src, dst, s.SrcPort, s.DstPort, s.Version == 6}, 0
}

func less(x, y decode.Addr) bool {
	return x.Hi < y.Hi || x.Hi == y.Hi && x.Lo < y.Lo
}

// hashOf mixes a key with the analyzer's seed, so that nobody who chooses
// addresses and ports can make all of them meet.
func (a *Analyzer) hashOf(k *key) uint32 {
	h := (uint64(k.a)<<32 | uint64(k.b)) ^ a.seed
	h *= 0x9e3779b97f4a7c15
	h ^= h >> 32
	h ^= uint64(k.pa)<<16 | uint64(k.pb)
	h *= 0xd6e8feb86659fd93
	h ^= h >> 32
	return uint32(h)
}

// open begins a connection with this segment.
func (a *Analyzer) open(frame uint32, t int64, k *key, hash uint32, side uint8) *Conn {
	a.room()
	i := a.conns.take()
	at, _ := a.table.find(&a.conns, k, hash) // after room, which moves slots
	c := a.conns.at(i)
	*c = Conn{Start: t, key: *k, Stream: a.streams, Frame: frame, Opener: side, live: true}
	for h := range c.Half {
		c.Half[h].scale, c.Half[h].bits = scaleUnknown, inOrder
	}
	a.streams++
	a.table.set(at, hash, i)
	return c
}

// room evicts connections if the memory that was allowed is used up: those idle
// the longest, an eighth of all, so that looking for them is rare.
func (a *Analyzer) room() {
	if a.MaxBytes <= 0 || a.Bytes() < a.MaxBytes {
		return
	}
	type idle struct {
		i    uint32
		last int64
	}
	var all []idle
	for i := uint32(1); i <= a.conns.next; i++ {
		if c := a.conns.at(i); c.live {
			all = append(all, idle{i, max(c.Half[0].lastTime, c.Half[1].lastTime)})
		}
	}
	slices.SortFunc(all, func(x, y idle) int {
		return cmp.Or(cmp.Compare(x.last, y.last), cmp.Compare(a.conns.at(x.i).Stream, a.conns.at(y.i).Stream))
	})
	for _, one := range all[:(len(all)+7)/8] {
		a.evict(one.i)
	}
}

func (a *Analyzer) evict(i uint32) {
	c := a.conns.at(i)
	if a.Evict != nil {
		a.Evict(c)
	}
	a.Evicted++
	for h := range c.Half {
		a.forget(&c.Half[h])
	}
	if at, newest := a.table.find(&a.conns, &c.key, a.hashOf(&c.key)); newest == i {
		a.table.remove(at)
	}
	c.live = false
	a.conns.give(i)
}

// forget gives back what a direction holds in the pools.
func (a *Analyzer) forget(h *Half) {
	for h.oldest != 0 {
		a.pop(h)
	}
	if h.sack != 0 {
		a.sacks.give(h.sack)
		h.sack = 0
	}
}

// Bytes is the memory that connections take.
func (a *Analyzer) Bytes() int64 {
	return a.conns.used() + a.nodes.used() + a.sacks.used() + int64(len(a.table.slots))*8 + int64(len(a.six.list))*64
}

// Conns calls fn for each connection that is remembered, in the order of their numbers.
func (a *Analyzer) Conns(fn func(*Conn)) {
	order := make([]uint32, 0, a.conns.next)
	for i := uint32(1); i <= a.conns.next; i++ {
		if a.conns.at(i).live {
			order = append(order, i)
		}
	}
	if a.Evicted > 0 { // only then are places used twice
		slices.SortFunc(order, func(x, y uint32) int { return cmp.Compare(a.conns.at(x).Stream, a.conns.at(y).Stream) })
	}
	for _, i := range order {
		fn(a.conns.at(i))
	}
}
