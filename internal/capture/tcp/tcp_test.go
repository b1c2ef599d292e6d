package tcp

import (
	"math/rand/v2"
	"testing"

	"plimsoll/internal/capture/decode"
)

// segments makes a conversation of segments that hardly make sense: few numbers,
// so that they often meet.
func segments(r *rand.Rand, n int) []decode.Segment {
	flags := []uint8{decode.ACK, decode.ACK, decode.ACK, decode.ACK | decode.PSH, decode.SYN, decode.SYN | decode.ACK, decode.ACK | decode.FIN, decode.RST, 0}
	list := make([]decode.Segment, n)
	base := r.Uint32()
	for i := range list {
		s := &list[i]
		s.Src, s.Dst, s.SrcPort, s.DstPort, s.Version, s.Scale = decode.Addr{Lo: 1}, decode.Addr{Lo: 2}, uint16(10+r.IntN(3)), 80, 4, -1
		if r.IntN(2) == 0 {
			s.Src, s.Dst, s.SrcPort, s.DstPort = s.Dst, s.Src, s.DstPort, s.SrcPort
		}
		s.Flags = flags[r.IntN(len(flags))]
		s.Seq, s.Ack = base+uint32(r.IntN(40)), base+uint32(r.IntN(40))
		if r.IntN(12) == 0 { // so far away that the order of numbers goes around
			s.Seq += 1<<31 - 20
		}
		if r.IntN(12) == 0 {
			s.Ack += 1<<31 - 20
		}
		s.Window, s.Len = uint16(r.IntN(3)*20), uint32(max(r.IntN(16)-6, 0))
		s.ID = uint16(r.IntN(5))
		if r.IntN(4) == 0 {
			s.Options, s.HasSACK, s.SACKs = true, true, 1
			s.SACK[0] = [2]uint32{base + uint32(r.IntN(40)), base + uint32(r.IntN(40))}
		}
		if r.IntN(20) == 0 {
			s.Options, s.Scale = true, int8(r.IntN(15))
		}
	}
	return list
}

// What is not acknowledged is mostly in order, and then looked at from the front
// alone. That is quicker, and gives the same.
func TestOrderedListsAreLikeAll(t *testing.T) {
	for seed := range uint64(300) {
		list := segments(rand.New(rand.NewPCG(seed, 1)), 300)
		quick, plain := New(), New()
		for i := range list {
			var a, b Result
			now := int64(i) * 1_000_000
			quick.Segment(uint32(i+1), now, &list[i], &a)
			plain.Segment(uint32(i+1), now, &list[i], &b)
			for h := range b.Conn.Half {
				b.Conn.Half[h].bits &^= inOrder
			}
			a.Conn, b.Conn = nil, nil
			if a != b {
				t.Fatalf("seed %d, segment %d: in order %+v, in any %+v", seed, i, a, b)
			}
		}
		if n := quick.nodes.used(); n != plain.nodes.used() {
			t.Fatalf("seed %d: %d and %d bytes of segments are held", seed, n, plain.nodes.used())
		}
	}
}

// What is taken from the pools is given back.
func TestPoolsAreGivenBack(t *testing.T) {
	a := New()
	for i, s := range segments(rand.New(rand.NewPCG(7, 7)), 5000) {
		var r Result
		a.Segment(uint32(i+1), int64(i), &s, &r)
	}
	a.MaxBytes = 1
	for a.conns.used() > 0 {
		a.room()
	}
	if a.nodes.used() != 0 || a.sacks.used() != 0 || a.table.n != 0 {
		t.Errorf("%d bytes of segments, %d of blocks, %d places in the table", a.nodes.used(), a.sacks.used(), a.table.n)
	}
}

// The table finds what is in it after any number of removals.
func TestTableFindsWhatIsThere(t *testing.T) {
	a := New()
	var alive []uint32
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 20_000 {
		if len(alive) > 500 && r.IntN(2) == 0 {
			at := r.IntN(len(alive))
			a.evict(alive[at])
			alive = append(alive[:at], alive[at+1:]...)
			continue
		}
		k := key{a: uint32(i), b: 7, pa: uint16(i), pb: 80}
		a.open(uint32(i), 0, &k, a.hashOf(&k), 0)
		_, n := a.table.find(&a.conns, &k, a.hashOf(&k))
		alive = append(alive, n)
	}
	for _, n := range alive {
		c := a.conns.at(n)
		if _, got := a.table.find(&a.conns, &c.key, a.hashOf(&c.key)); got != n {
			t.Fatalf("connection %d is not found, but %d", n, got)
		}
	}
	if a.table.n != len(alive) {
		t.Errorf("%d places for %d connections", a.table.n, len(alive))
	}
}

// A segment costs no allocation.
func TestSegmentsAllocateNothing(t *testing.T) {
	list := segments(rand.New(rand.NewPCG(3, 3)), 1000)
	a := New()
	var r Result
	all := func() {
		for i := range list {
			a.Segment(uint32(i+1), int64(i), &list[i], &r)
		}
	}
	all()
	before := a.streams
	if n := testing.AllocsPerRun(5, all); n > float64(a.streams-before)/6/100 { // pieces of pools, now and then
		t.Errorf("%.0f allocations for %d segments", n, len(list))
	}
}
