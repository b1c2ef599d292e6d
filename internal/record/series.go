package record

import (
	"errors"
	"fmt"
	"math"
	"path"
	"time"

	"github.com/prometheus/prometheus/model/labels"
)

// longest is the longest time between a run's first and last sample.
const longest = 1000 * 24 * time.Hour

// The bounds of what a log holds, which is read into memory. They are those of a
// run of 5,000 series that was cut off after five hours and a half.
const (
	maxLogSamples = 100_000_000
	maxLogBytes   = 192 << 20 // packed
	maxLogSeries  = 500_000
	maxLogLabels  = 96 << 20
)

// openSeries opens the blocks of a closed run, or replays the write-ahead log
// of one that was cut off. While the log is there the blocks may not be all.
func (r *Run) openSeries() error {
	entries, err := r.folder.list(SeriesDir)
	if err != nil {
		return fmt.Errorf("%s: the run's series are missing: %w", r.folder.name(SeriesDir), err)
	}
	var blocks []string
	for _, e := range entries {
		if e.Name() == WALDir {
			return r.openLog(path.Join(SeriesDir, WALDir))
		}
		if e.IsDir() && isBlock(e.Name()) {
			blocks = append(blocks, path.Join(SeriesDir, e.Name()))
		}
	}
	if len(blocks) == 0 {
		return fmt.Errorf("%s: neither a block nor a write-ahead log in it; the run's series are gone", r.folder.name(SeriesDir))
	}
	return r.openBlocks(blocks)
}

func (r *Run) openBlocks(dirs []string) (err error) {
	var store blockStore
	defer func() {
		if err != nil {
			err = errors.Join(err, store.close())
		}
	}()
	r.first, r.last = math.MaxInt64, math.MinInt64
	for _, dir := range dirs {
		b, err := r.folder.openBlock(dir)
		if err != nil {
			return fmt.Errorf("%s: the block is cut short or damaged, so the run's series cannot be read; take a copy of it that is whole, or run again: %w", r.folder.name(dir), err)
		}
		store = append(store, b)
		if b.readings > 0 {
			r.first, r.last, r.sampled = min(r.first, b.first), max(r.last, b.last), true
		}
		r.readings += b.readings // blocks of a run follow one another
	}
	r.series, r.closeSeries = store, store.close
	return nil
}

func (r *Run) openLog(dir string) error {
	m := logMemory{dir: r.folder.name(dir), refs: map[uint64]*memorySeries{}}
	if err := r.folder.readLog(dir, maxLog, Log{Series: m.add, Sample: m.append}); err != nil {
		return err
	}
	m.Sort()
	r.series = &m.Memory
	r.first, r.last, r.sampled = m.Span()
	r.readings = m.readings()
	return nil
}

// logMemory is a Memory that is filled from a write-ahead log, packed as in a
// block: a sample takes an eighth of a Point.
type logMemory struct {
	Memory
	dir            string
	refs           map[uint64]*memorySeries
	samples, bytes int
	named          uint64
}

func (m *logMemory) add(ref uint64, lset labels.Labels) error {
	if m.named += lset.ByteSize(); len(m.series) == maxLogSeries || m.named > maxLogLabels {
		return fmt.Errorf("%s: more than %d series, or %d bytes of labels; this is no run's", m.dir, maxLogSeries, maxLogLabels)
	}
	s := &memorySeries{labels: lset}
	m.refs[ref] = s
	m.series = append(m.series, s)
	return nil
}

func (m *logMemory) append(ref uint64, p Point) error {
	s := m.refs[ref]
	if s == nil {
		return fmt.Errorf("%s: a sample of series %d, which is not declared before it", m.dir, ref)
	}
	grown, err := s.pack(p)
	m.bytes += grown
	if m.samples++; err == nil && (m.samples > maxLogSamples || m.bytes > maxLogBytes) {
		err = fmt.Errorf("%s: %d samples and more in the log of a run that was cut off are too many to read into memory; Prometheus makes blocks of them if it is given a copy of the directory above",
			m.dir, m.samples)
	}
	return err
}

func (m *logMemory) readings() int {
	most := 0
	for _, s := range m.series {
		n := 0
		for _, p := range s.packed {
			n += p.chunk.NumSamples()
		}
		most = max(most, n)
	}
	return most
}
