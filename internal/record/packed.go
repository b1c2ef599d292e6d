package record

import (
	"sort"

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
