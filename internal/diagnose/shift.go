package diagnose

import (
	"context"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// shifted is a store whose clock is ahead by some milliseconds. It always
// returns series sorted, so that sums add up in the same order.
type shifted struct {
	storage.Queryable
	by int64
}

func (s shifted) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := s.Queryable.Querier(mint-s.by, maxt-s.by)
	if err != nil {
		return nil, err
	}
	return shiftedQuerier{q, s.by}, nil
}

type shiftedQuerier struct {
	storage.Querier
	by int64
}

func (q shiftedQuerier) Select(ctx context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	if hints != nil {
		h := *hints
		h.Start -= q.by
		h.End -= q.by
		hints = &h
	}
	return shiftedSet{q.Querier.Select(ctx, true, hints, matchers...), q.by}
}

type shiftedSet struct {
	storage.SeriesSet
	by int64
}

func (s shiftedSet) At() storage.Series { return shiftedSeries{s.SeriesSet.At(), s.by} }

type shiftedSeries struct {
	storage.Series
	by int64
}

func (s shiftedSeries) Iterator(reuse chunkenc.Iterator) chunkenc.Iterator {
	it, ok := reuse.(*shiftedIterator)
	if !ok {
		it = new(shiftedIterator)
	}
	it.Iterator = s.Series.Iterator(it.Iterator)
	it.by = s.by
	return it
}

// millis is Unix milliseconds. It is an alias so that vet does not take
// chunkenc.Iterator's Seek for io.Seeker's.
type millis = int64

type shiftedIterator struct {
	chunkenc.Iterator
	by int64
}

func (it *shiftedIterator) Seek(t millis) chunkenc.ValueType { return it.Iterator.Seek(t - it.by) }

func (it *shiftedIterator) At() (int64, float64) {
	t, v := it.Iterator.At()
	return t + it.by, v
}

func (it *shiftedIterator) AtHistogram(h *histogram.Histogram) (int64, *histogram.Histogram) {
	t, h := it.Iterator.AtHistogram(h)
	return t + it.by, h
}

func (it *shiftedIterator) AtFloatHistogram(h *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	t, h := it.Iterator.AtFloatHistogram(h)
	return t + it.by, h
}

func (it *shiftedIterator) AtT() int64 { return it.Iterator.AtT() + it.by }
