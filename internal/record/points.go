package record

import (
	"sort"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// packedSamples is how many samples a chunk in memory holds.
const packedSamples = 240

// packed are samples of a series that follow one another.
type packed struct {
	first, last int64
	chunk       *chunkenc.XORChunk
}

// pack appends a point, if it is newer than the last, and returns how many bytes
// the series grew by since it was last asked.
func (s *memorySeries) pack(p Point) (grown int, err error) {
	n := len(s.packed)
	if n > 0 && s.packed[n-1].last >= p.Time {
		return 0, nil
	}
	if n == 0 || s.packed[n-1].chunk.NumSamples() == packedSamples {
		if n > 0 {
			s.packed[n-1].chunk.Compact()
			grown = len(s.packed[n-1].chunk.Bytes())
		}
		c := chunkenc.NewXORChunk()
		s.packed = append(s.packed, packed{first: p.Time, chunk: c})
		if s.appender, err = c.Appender(); err != nil {
			return 0, err
		}
	}
	s.packed[len(s.packed)-1].last = p.Time
	s.appender.Append(0, p.Time, p.Value)
	return grown, nil
}

// cutPacked returns the part of a packed series within [mint, maxt].
func (s *memorySeries) cutPacked(mint, maxt int64) storage.Series {
	from := sort.Search(len(s.packed), func(i int) bool { return s.packed[i].last >= mint })
	to := sort.Search(len(s.packed), func(i int) bool { return s.packed[i].first > maxt })
	return &packedSeries{labels: s.labels, chunks: s.packed[from:max(from, to)], mint: mint, maxt: maxt}
}

type packedSeries struct {
	labels     labels.Labels
	chunks     []packed
	mint, maxt int64
}

func (s *packedSeries) Labels() labels.Labels { return s.labels }

func (s *packedSeries) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	return &packedIterator{series: s, Iterator: chunkenc.NewNopIterator()}
}

// packedIterator goes through chunks that follow one another. Iterator is that of
// the chunk before next.
type packedIterator struct {
	chunkenc.Iterator
	series *packedSeries
	next   int
	at     int64
	begun  bool // it stands on a sample, of at
	over   bool
}

func (it *packedIterator) Next() chunkenc.ValueType {
	for !it.over {
		kind := it.Iterator.Next()
		switch {
		case kind == chunkenc.ValNone && it.next == len(it.series.chunks):
			it.over = true
		case kind == chunkenc.ValNone:
			it.Iterator = it.series.chunks[it.next].chunk.Iterator(nil)
			it.next++
		case it.AtT() > it.series.maxt:
			it.over = true
		case it.AtT() >= it.series.mint:
			it.at, it.begun = it.AtT(), true
			return kind
		}
	}
	return chunkenc.ValNone
}

func (it *packedIterator) Seek(t millis) chunkenc.ValueType {
	if it.begun && it.at >= t && !it.over {
		return chunkenc.ValFloat
	}
	chunks := it.series.chunks
	if skip := sort.Search(len(chunks), func(i int) bool { return chunks[i].last >= t }); skip >= it.next && skip < len(chunks) {
		it.Iterator, it.next = chunks[skip].chunk.Iterator(nil), skip+1
	}
	for it.Next() != chunkenc.ValNone {
		if it.at >= t {
			return chunkenc.ValFloat
		}
	}
	return chunkenc.ValNone
}

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
	appender chunkenc.Appender // to the last of packed
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

// cut returns the part of the series within [mint, maxt].
func (s *memorySeries) cut(mint, maxt int64) storage.Series {
	if len(s.packed) > 0 {
		return s.cutPacked(mint, maxt)
	}
	from := sort.Search(len(s.points), func(i int) bool { return s.points[i].Time >= mint })
	to := sort.Search(len(s.points), func(i int) bool { return s.points[i].Time > maxt })
	return &memorySeries{labels: s.labels, points: s.points[from:max(from, to)]}
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
