package record

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// packedSamples is how many samples a chunk in memory holds.
const packedSamples = 240

// packed are samples of a series that follow one another, and where its store has them. A run of
// hours has a million of these, so there is no pointer in it for the garbage collector to follow.
type packed struct {
	first, last int64
	ref         chunks.ChunkRef
}

// chunkSource is where the chunks of packed samples are.
type chunkSource interface {
	chunk(ref chunks.ChunkRef) (chunkenc.Chunk, error)
	kept() *atomic.Int64 // how many readings at which counters fell are kept of its series
}

// keptFalls is the part of a source that all have.
type keptFalls struct{ n atomic.Int64 }

func (k *keptFalls) kept() *atomic.Int64 { return &k.n }

// ownChunks are chunks in memory; a reference is a place in the list.
type ownChunks struct {
	keptFalls
	list []*chunkenc.XORChunk
}

func (o *ownChunks) chunk(ref chunks.ChunkRef) (chunkenc.Chunk, error) { return o.list[ref], nil }

// pack appends a point, if it is newer than the last, and returns how many bytes
// the series grew by since it was last asked.
func (s *memorySeries) pack(p Point, in *ownChunks) (grown int, err error) {
	n := len(s.packed)
	if n > 0 && s.packed[n-1].last >= p.Time {
		return 0, nil
	}
	if s.grows == nil {
		s.grows = &growth{}
	}
	g := s.grows
	if n == 0 || g.chunk.NumSamples() == packedSamples {
		if n > 0 {
			g.chunk.Compact()
			grown = len(g.chunk.Bytes())
		}
		g.chunk = chunkenc.NewXORChunk()
		s.packed = append(s.packed, packed{first: p.Time, ref: chunks.ChunkRef(len(in.list))})
		s.source, in.list = in, append(in.list, g.chunk)
		if g.appender, err = g.chunk.Appender(); err != nil {
			return 0, err
		}
	}
	s.packed[len(s.packed)-1].last = p.Time
	g.appender.Append(0, p.Time, p.Value)
	if s.readings > 0 {
		s.fallsOn(g.last[1], p)
	}
	g.last[0], g.last[1] = g.last[1], p
	s.readings++
	return grown, nil
}

// cutPacked returns the part of a packed series within [mint, maxt].
func (s *memorySeries) cutPacked(mint, maxt int64) *packedSeries {
	from := sort.Search(len(s.packed), func(i int) bool { return s.packed[i].last >= mint })
	to := sort.Search(len(s.packed), func(i int) bool { return s.packed[i].first > maxt })
	return &packedSeries{labels: s.labels, source: s.source, chunks: s.packed[from:max(from, to)], mint: mint, maxt: maxt}
}

type packedSeries struct {
	labels     labels.Labels
	source     chunkSource
	chunks     []packed
	mint, maxt int64
}

func (s *packedSeries) Labels() labels.Labels { return s.labels }

// Iterator uses the iterator given again, as the library does: one for all series of a query.
func (s *packedSeries) Iterator(again chunkenc.Iterator) chunkenc.Iterator {
	it, ok := again.(*packedIterator)
	if !ok {
		it = &packedIterator{}
	}
	*it = packedIterator{memoryIterator: memoryIterator{points: it.points[:0], at: -1}, series: s, within: it.within}
	return it
}

// packedIterator goes through chunks that follow one another. Its points are those of the chunk before next: a
// chunk is unpacked at once, since being asked for each sample by itself takes longer than unpacking it.
type packedIterator struct {
	memoryIterator
	series *packedSeries
	next   int
	within chunkenc.Iterator // the last chunk's, to be used again
	err    error
}

func (it *packedIterator) Next() chunkenc.ValueType {
	for it.memoryIterator.Next() == chunkenc.ValNone {
		if !it.turn() {
			return chunkenc.ValNone
		}
	}
	return chunkenc.ValFloat
}

func (it *packedIterator) Seek(t millis) chunkenc.ValueType {
	for it.memoryIterator.Seek(t) == chunkenc.ValNone {
		rest := it.series.chunks[it.next:]
		it.next += sort.Search(len(rest), func(i int) bool { return rest[i].last >= t })
		if !it.turn() {
			return chunkenc.ValNone
		}
	}
	return chunkenc.ValFloat
}

// turn goes on to the next chunk, false if there is none.
func (it *packedIterator) turn() bool {
	if it.next == len(it.series.chunks) {
		return false
	}
	c, err := it.series.source.chunk(it.series.chunks[it.next].ref)
	it.next++
	it.points, it.at = it.points[:0], -1
	if err == nil {
		err = it.unpack(c)
	}
	if err != nil {
		it.err, it.next = err, len(it.series.chunks)
	}
	return true
}

// unpack reads a chunk's samples that are asked for. What the library makes of a stranger's chunk may panic.
func (it *packedIterator) unpack(c chunkenc.Chunk) (err error) {
	defer misled(&err)
	it.within = c.Iterator(it.within)
	for it.within.Next() != chunkenc.ValNone {
		t, v := it.within.At()
		if t > it.series.maxt {
			it.next = len(it.series.chunks)
			break
		}
		if t >= it.series.mint {
			it.points = append(it.points, Point{t, v})
		}
	}
	return it.within.Err()
}

func (it *packedIterator) Err() error { return it.err }

// Point is one reading of a series; Time is Unix milliseconds.
type Point struct {
	Time  int64
	Value float64
}

// memorySeries has points, or the same packed.
type memorySeries struct {
	labels   labels.Labels
	points   []Point
	packed   []packed
	source   chunkSource             // of packed
	readings int                     // in packed
	grows    *growth                 // nil of one that is whole
	counter  atomic.Pointer[counter] // once it was asked for
}

// growth is what a packed series that is filled goes on from.
type growth struct {
	chunk    *chunkenc.XORChunk // the last one
	appender chunkenc.Appender  // to it
	last     [2]Point           // the last two readings, where there are two
}

// counter is what a packed series is as a counter.
type counter struct {
	falls []Point // each reading that is less than the one before it, behind that one
	none  bool    // it falls too often to be one, has what is no number, or could not be read
}

// takes takes the reading after the one before.
func (c *counter) takes(before, now Point) {
	if now.Value < before.Value {
		c.falls = append(c.falls, before, now)
	}
	if math.IsNaN(now.Value) || len(c.falls) > 2*mostFalls {
		*c = counter{none: true}
	}
}

// mostFalls is how often a counter falls at most.
const mostFalls = 100

// mostKept bounds the readings at which counters fell that are kept of all series of a run together, 16 bytes each.
const mostKept = 1 << 20

// keep keeps what a series is as a counter for the next time; where there is no room for it, that it is none.
func (s *memorySeries) keep(c *counter) *counter {
	kept := s.source.kept()
	if kept.Add(int64(len(c.falls))) > mostKept {
		kept.Add(-int64(len(c.falls)))
		c = &counter{none: true}
	}
	if !s.counter.CompareAndSwap(nil, c) { // another query was quicker
		kept.Add(-int64(len(c.falls)))
	}
	return c
}

// fallsOn keeps what a series that goes on is as a counter: to go through all of its readings again would be, of a run that lasts, more each time.
func (s *memorySeries) fallsOn(before, now Point) {
	c := s.counter.Load()
	if c == nil || c.none || !(now.Value < before.Value) && !math.IsNaN(now.Value) {
		return
	}
	on := &counter{falls: slices.Clone(c.falls)}
	on.takes(before, now)
	s.forget()
	s.keep(on)
}

// forget forgets what a series is as a counter.
func (s *memorySeries) forget() {
	if c := s.counter.Swap(nil); c != nil {
		s.source.kept().Add(-int64(len(c.falls)))
	}
}

func (s *memorySeries) span() (first, last int64, ok bool) {
	switch {
	case len(s.packed) > 0:
		return s.packed[0].first, s.packed[len(s.packed)-1].last, true
	case len(s.points) > 0:
		return s.points[0].Time, s.points[len(s.points)-1].Time, true
	}
	return 0, 0, false
}

// within says whether the series may have a reading within [mint, maxt].
func (s *memorySeries) within(mint, maxt int64) bool {
	if s.source == nil {
		return true
	}
	from := sort.Search(len(s.packed), func(i int) bool { return s.packed[i].last >= mint })
	return from < len(s.packed) && s.packed[from].first <= maxt
}

func (s *memorySeries) Labels() labels.Labels { return s.labels }

func (s *memorySeries) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	return &memoryIterator{points: s.points, at: -1}
}

// millis is Unix milliseconds. It is an alias so that vet does not take
// chunkenc.Iterator's Seek for io.Seeker's.
type millis = int64

// memoryIterator implements chunkenc.Iterator over plain numbers.
type memoryIterator struct {
	points []Point
	at     int
}

func (it *memoryIterator) Next() chunkenc.ValueType {
	if it.at+1 >= len(it.points) {
		it.at = len(it.points)
		return chunkenc.ValNone
	}
	it.at++
	return chunkenc.ValFloat
}

func (it *memoryIterator) Seek(t millis) chunkenc.ValueType {
	from := max(it.at, 0)
	if from >= len(it.points) {
		return chunkenc.ValNone
	}
	rest := it.points[from:]
	it.at = from + sort.Search(len(rest), func(i int) bool { return rest[i].Time >= t })
	if it.at >= len(it.points) {
		return chunkenc.ValNone
	}
	return chunkenc.ValFloat
}

func (it *memoryIterator) At() (int64, float64) {
	p := it.points[it.at]
	return p.Time, p.Value
}

func (it *memoryIterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	return it.AtT(), nil
}

func (it *memoryIterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return it.AtT(), nil
}

func (it *memoryIterator) AtT() int64 { return it.points[it.at].Time }

func (*memoryIterator) AtST() int64 { return 0 }

func (*memoryIterator) Err() error { return nil }

// misled is to be deferred: it makes an error of a panic.
func misled(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the series lead nowhere: %v", p)
	}
}
