package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	walrecord "github.com/prometheus/prometheus/tsdb/record"
	"github.com/prometheus/prometheus/tsdb/wlog"
)

// openSeries opens the blocks of a closed run, or replays the write-ahead log
// of one that was cut off. While the log is there the blocks may not be all.
func (r *Run) openSeries() error {
	dir := filepath.Join(r.dir, SeriesDir)
	blocks, err := findBlocks(dir)
	if err != nil {
		return err
	}
	wal := filepath.Join(dir, WALDir)
	_, err = os.Stat(wal)
	switch {
	case err == nil:
		return r.openWAL(wal)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open the run's series: %w", err)
	case len(blocks) == 0:
		return fmt.Errorf("%s: neither a block nor a write-ahead log in it; the run's series are gone", dir)
	}
	return r.openBlocks(blocks)
}

// findBlocks returns the paths of the blocks in a series directory. A block
// that is still being written has another form of name.
func findBlocks(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%s: the run's series are missing: %w", dir, err)
	}
	var found []string
	for _, e := range entries {
		// A ULID has 26 characters, and no dot as "….tmp-for-creation" has.
		if e.IsDir() && len(e.Name()) == 26 && filepath.Ext(e.Name()) == "" {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	return found, nil
}

func (r *Run) openBlocks(paths []string) (err error) {
	var store blockStore
	defer func() {
		if err != nil {
			err = errors.Join(err, store.close())
		}
	}()
	for _, path := range paths {
		b, err := tsdb.OpenBlock(nil, path, nil, nil)
		if err != nil {
			return damaged(path, err)
		}
		store = append(store, b)
		if err := verifyBlock(b); err != nil {
			return damaged(path, err)
		}
		first, last := b.MinTime(), b.MaxTime()-1 // a block's end is exclusive
		if !r.sampled {
			r.first, r.last = first, last
		}
		r.first, r.last, r.sampled = min(r.first, first), max(r.last, last), true
	}
	r.series, r.close = store, store.close
	return nil
}

func damaged(path string, err error) error {
	return fmt.Errorf("%s: the block is cut short or damaged, so the run's series cannot be read; take a copy of it that is whole, or run again: %w", path, err)
}

// verifyBlock reads every chunk once, which checks its sum. A damaged chunk
// would else show as a clue that is unknown for no good reason.
func verifyBlock(b *tsdb.Block) (err error) {
	ir, err := b.Index()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ir.Close()) }()
	cr, err := b.Chunks()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cr.Close()) }()
	name, value := index.AllPostingsKey()
	all, err := ir.Postings(context.Background(), name, value)
	if err != nil {
		return err
	}
	var builder labels.ScratchBuilder
	var metas []chunks.Meta
	for all.Next() {
		if err := ir.Series(all.At(), &builder, &metas); err != nil {
			return err
		}
		for _, m := range metas {
			if _, _, err := cr.ChunkOrIterable(m); err != nil {
				return err
			}
		}
	}
	return all.Err()
}

// blockStore makes blocks one storage.Queryable.
type blockStore []*tsdb.Block

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
	return storage.NewMergeQuerier(each, nil, storage.ChainedSeriesMerge), nil
}

func (s blockStore) close() error {
	var errs []error
	for _, b := range s {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

func (r *Run) openWAL(dir string) error {
	refs := map[uint64]*memorySeries{}
	m := new(Memory)
	err := ReadWAL(dir,
		func(ref uint64, lset labels.Labels) error {
			s := &memorySeries{labels: lset}
			refs[ref] = s
			m.series = append(m.series, s)
			return nil
		},
		func(ref uint64, p Point) error {
			s := refs[ref]
			if s == nil {
				return fmt.Errorf("%s: a sample of series %d, which is not declared before it", dir, ref)
			}
			if n := len(s.points); n == 0 || s.points[n-1].Time < p.Time {
				s.points = append(s.points, p)
			}
			return nil
		})
	if err != nil {
		return err
	}
	m.Sort()
	r.series = m
	r.first, r.last, r.sampled = m.Span()
	return nil
}

// ReadWAL reads a write-ahead log of Prometheus' form from its start and calls
// back for each series and sample, in the order written. It ends, without an
// error, where the log was cut off: what follows a torn record never counted.
func ReadWAL(dir string, series func(ref uint64, lset labels.Labels) error, sample func(ref uint64, p Point) error) (err error) {
	segments, err := wlog.NewSegmentsReader(dir)
	if err != nil {
		return fmt.Errorf("read the write-ahead log %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, segments.Close()) }()
	dec := walrecord.NewDecoder(labels.NewSymbolTable(), nil)
	var newSeries []walrecord.RefSeries
	var samples []walrecord.RefSample
	for log := wlog.NewReader(segments); log.Next(); {
		rec := log.Record()
		switch dec.Type(rec) {
		case walrecord.Series:
			if newSeries, err = dec.Series(rec, newSeries[:0]); err != nil {
				return nil // torn
			}
			for _, s := range newSeries {
				if err := series(uint64(s.Ref), s.Labels); err != nil {
					return err
				}
			}
		case walrecord.Samples:
			if samples, err = dec.Samples(rec, samples[:0]); err != nil {
				return nil // torn
			}
			for _, s := range samples {
				if err := sample(uint64(s.Ref), Point{Time: s.T, Value: s.V}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
