package record

import (
	"math"
	"sort"

	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Most of what rules ask is how much a counter grew. That rests on the readings at a window's ends and on
// those at which the counter fell. To unpack all that lie between, and to hand them to the engine one by one,
// was two thirds of what the report of an hour cost.

// asCounter goes through all readings, once.
func (s *memorySeries) asCounter() *counter {
	if known := s.counter.Load(); known != nil {
		return known
	}
	c := &counter{}
	if err := s.findFalls(c); err != nil {
		c = &counter{none: true}
	}
	return s.keep(c)
}

// findFalls looks at each reading where it is unpacked: that is done of every counter that a rule asks for, and handing them on by a
// packedIterator took as long again. What the library makes of a stranger's chunk may panic.
func (s *memorySeries) findFalls(c *counter) (err error) {
	defer misled(&err)
	before := Point{Value: math.Inf(-1)}
	var it chunkenc.Iterator
	for _, part := range s.packed {
		chunk, err := s.source.chunk(part.ref)
		if err != nil {
			return err
		}
		for it = chunk.Iterator(it); it.Next() != chunkenc.ValNone; {
			now := pointAt(it)
			if c.takes(before, now); c.none {
				return nil
			}
			before = now
		}
		if it.Err() != nil {
			return it.Err()
		}
	}
	return nil
}

func pointAt(it chunkenc.Iterator) Point {
	t, v := it.At()
	return Point{t, v}
}

// cut returns the part of the series within [mint, maxt]; of what is packed what hints ask for.
func (s *memorySeries) cut(mint, maxt int64, hints *storage.SelectHints) storage.Series {
	if s.source != nil {
		return s.needed(mint, maxt, hints)
	}
	from := sort.Search(len(s.points), func(i int) bool { return s.points[i].Time >= mint })
	to := sort.Search(len(s.points), func(i int) bool { return s.points[i].Time > maxt })
	return &memorySeries{labels: s.labels, points: s.points[from:max(from, to)]}
}

// needed returns what a function needs of a packed series within [mint, maxt]. hints says which one it is, and
// over which range; where it is evaluated at several moments it needs all.
func (s *memorySeries) needed(mint, maxt int64, hints *storage.SelectHints) storage.Series {
	all := s.cutPacked(mint, maxt)
	if hints == nil || hints.Step != 0 {
		return all
	}
	switch start := maxt - hints.Range; hints.Func {
	case "increase", "rate":
		if start >= mint { // else it is extrapolated, by how many readings there are
			return &ends{all, s, start}
		}
	case "idelta":
		return &ends{all, s, maxt}
	}
	return all
}

// ends are the readings of a packed series on which a difference from start on rests; where start is the end of
// what is read, the last two.
type ends struct {
	*packedSeries
	of    *memorySeries
	start int64
}

// endsIterator is used again for the next series, with what it unpacks by.
type endsIterator struct {
	memoryIterator
	unpack chunkenc.Iterator
	err    error
}

func (it *endsIterator) Err() error { return it.err }

func (e *ends) Iterator(again chunkenc.Iterator) chunkenc.Iterator {
	c := e.of.asCounter()
	if c.none {
		return e.packedSeries.Iterator(again)
	}
	it, ok := again.(*endsIterator)
	if !ok {
		it = &endsIterator{}
	}
	it.memoryIterator, it.err = memoryIterator{points: it.points[:0], at: -1}, nil
	if e.start < e.maxt {
		it.begin(e, c.falls)
	}
	it.add(it.lastTwo(e, e.maxt))
	return it
}

// begin adds the last reading up to the start, else the first, and those where the counter fell.
func (it *endsIterator) begin(e *ends, falls []Point) {
	if two := it.lastTwo(e, e.start); len(two) > 0 {
		it.add(two[len(two)-1:])
	} else if it.unpack = e.packedSeries.Iterator(it.unpack); it.unpack.Next() != chunkenc.ValNone {
		it.add([]Point{pointAt(it.unpack)})
	} else if it.err == nil {
		it.err = it.unpack.Err()
	}
	from := sort.Search(len(falls), func(i int) bool { return falls[i].Time > e.maxt })
	if len(it.points) > 0 {
		it.add(falls[:from])
	}
}

// add adds points that are later than those that are there.
func (it *endsIterator) add(list []Point) {
	for _, p := range list {
		if n := len(it.points); n == 0 || p.Time > it.points[n-1].Time {
			it.points = append(it.points, p)
		}
	}
}

// lastTwo are the last two readings up to a moment, fewer where there are no more, or one cannot be unpacked. All of
// them were read before. Of a series that is filled its last two need not be unpacked.
func (it *endsIterator) lastTwo(s *ends, t int64) (two []Point) {
	t = min(t, s.maxt)
	if g := s.of.grows; g != nil && s.of.readings > 1 && g.last[1].Time <= t {
		from := sort.Search(2, func(i int) bool { return g.last[i].Time >= s.mint })
		return g.last[from:]
	}
	n := sort.Search(len(s.chunks), func(i int) bool { return s.chunks[i].first > t })
	for ; n > 0 && len(two) < 2 && it.err == nil; n-- {
		part := &packedSeries{source: s.source, chunks: s.chunks[n-1 : n], mint: s.mint, maxt: t}
		it.unpack = part.Iterator(it.unpack)
		var last [2]Point
		count := 0
		for ; it.unpack.Next() != chunkenc.ValNone; count++ {
			last[0], last[1] = last[1], pointAt(it.unpack)
		}
		it.err = it.unpack.Err()
		two = append(last[2-min(count, 2):], two...)
	}
	return two[max(len(two)-2, 0):]
}
