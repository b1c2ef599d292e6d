package record

import (
	"context"
	"errors"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

// blockStore makes blocks one storage.Queryable. The library panics over an index
// or a chunk that is made to mislead it; here that becomes an error of what was
// asked.
type blockStore []*block

func (s blockStore) Querier(mint, maxt int64) (storage.Querier, error) {
	var each []storage.Querier
	for _, b := range s {
		q, err := tsdb.NewBlockQuerier(b, mint, maxt)
		if err != nil {
			for _, q := range each {
				err = errors.Join(err, q.Close())
			}
			return nil, err
		}
		each = append(each, q)
	}
	return guardedQuerier{storage.NewMergeQuerier(each, nil, storage.ChainedSeriesMerge)}, nil
}

func (s blockStore) close() error {
	var errs []error
	for _, b := range s {
		errs = append(errs, b.close())
	}
	return errors.Join(errs...)
}

type guardedQuerier struct{ storage.Querier }

func (q guardedQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher) (set storage.SeriesSet) {
	var err error
	defer func() {
		if err != nil {
			set = storage.ErrSeriesSet(err)
		}
	}()
	defer misled(&err)
	return &guardedSet{set: q.Querier.Select(ctx, sorted, hints, matchers...)}
}

type guardedSet struct {
	set storage.SeriesSet
	err error
}

func (s *guardedSet) Next() (more bool) {
	if s.err != nil {
		return false
	}
	defer misled(&s.err)
	return s.set.Next()
}

func (s *guardedSet) At() storage.Series { return guardedSeries{s.set.At()} }

func (s *guardedSet) Err() error {
	if s.err != nil {
		return s.err
	}
	return s.set.Err()
}

func (s *guardedSet) Warnings() annotations.Annotations { return s.set.Warnings() }

type guardedSeries struct{ storage.Series }

// Iterator uses the iterator given again, as the library does: one for all series
// of a query.
func (s guardedSeries) Iterator(again chunkenc.Iterator) chunkenc.Iterator {
	it, ok := again.(*guardedIterator)
	if !ok {
		it = &guardedIterator{Iterator: chunkenc.NewNopIterator()}
	}
	it.err = nil
	it.begin(s.Series)
	return it
}

func (it *guardedIterator) begin(s storage.Series) {
	defer misled(&it.err)
	it.Iterator = s.Iterator(it.Iterator)
}

type guardedIterator struct {
	chunkenc.Iterator
	err error
}

func (it *guardedIterator) Next() chunkenc.ValueType {
	if it.err != nil {
		return chunkenc.ValNone
	}
	defer misled(&it.err)
	return it.Iterator.Next()
}

func (it *guardedIterator) Seek(t millis) chunkenc.ValueType {
	if it.err != nil {
		return chunkenc.ValNone
	}
	defer misled(&it.err)
	return it.Iterator.Seek(t)
}

func (it *guardedIterator) Err() error {
	if it.err != nil {
		return it.err
	}
	return it.Iterator.Err()
}
