package query

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// aheadStore is a store whose clock is ahead by some milliseconds. It always
// returns series sorted, so that sums add up in the same order. lookback is the engine's.
type aheadStore struct {
	storage.Queryable
	by       int64
	lookback time.Duration
}

func (s aheadStore) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := s.Queryable.Querier(mint-s.by, maxt-s.by)
	if err != nil {
		return nil, err
	}
	return aheadQuerier{q, s.by, s.lookback}, nil
}

type aheadQuerier struct {
	storage.Querier
	by       int64
	lookback time.Duration
}

func (q aheadQuerier) Select(ctx context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	if hints != nil {
		h := *hints
		h.Start -= q.by
		h.End -= q.by
		if h.End-h.Start > h.Range+q.lookback.Milliseconds() { // smoothed: it rests on readings beyond its range, and the store leaves none out
			h.Func = ""
		}
		hints = &h
	}
	return aheadSet{q.Querier.Select(ctx, true, hints, matchers...), q.by}
}

type aheadSet struct {
	storage.SeriesSet
	by int64
}

func (s aheadSet) At() storage.Series { return aheadSeries{s.SeriesSet.At(), s.by} }

type aheadSeries struct {
	storage.Series
	by int64
}

func (s aheadSeries) Iterator(reuse chunkenc.Iterator) chunkenc.Iterator {
	it, ok := reuse.(*aheadIterator)
	if !ok {
		it = new(aheadIterator)
	}
	it.Iterator = s.Series.Iterator(it.Iterator)
	it.by = s.by
	return it
}

// millis is Unix milliseconds. It is an alias so that vet does not take
// chunkenc.Iterator's Seek for io.Seeker's.
type millis = int64

type aheadIterator struct {
	chunkenc.Iterator
	by int64
}

func (it *aheadIterator) Seek(t millis) chunkenc.ValueType { return it.Iterator.Seek(t - it.by) }

func (it *aheadIterator) At() (int64, float64) {
	t, v := it.Iterator.At()
	return t + it.by, v
}

func (it *aheadIterator) AtHistogram(h *histogram.Histogram) (int64, *histogram.Histogram) {
	t, h := it.Iterator.AtHistogram(h)
	return t + it.by, h
}

func (it *aheadIterator) AtFloatHistogram(h *histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	t, h := it.Iterator.AtFloatHistogram(h)
	return t + it.by, h
}

func (it *aheadIterator) AtT() int64 { return it.Iterator.AtT() + it.by }
