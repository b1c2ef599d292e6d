package record

import (
	"errors"
	"fmt"
	"math"
	"path"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
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

// stored are a run's series where they lie, and what is known of them all.
type stored struct {
	series      storage.Queryable
	first, last int64 // samples
	sampled     bool
	readings    int // of the series that has most; 0 when that was not counted
	closeSeries func() error
}

// openSeries opens the blocks of a closed run, or replays the write-ahead log
// of one that was cut off. While the log is there the blocks may not be all.
func (f *folder) openSeries() (stored, error) {
	entries, err := f.list(SeriesDir)
	if err != nil {
		return stored{}, fmt.Errorf("%s: the run's series are missing: %w", f.name(SeriesDir), err)
	}
	var blocks []string
	for _, e := range entries {
		if e.Name() == WALDir {
			return f.openLog(path.Join(SeriesDir, WALDir))
		}
		if e.IsDir() && isBlock(e.Name()) {
			blocks = append(blocks, path.Join(SeriesDir, e.Name()))
		}
	}
	if len(blocks) == 0 {
		return stored{}, fmt.Errorf("%s: neither a block nor a write-ahead log in it; the run's series are gone", f.name(SeriesDir))
	}
	return f.openBlocks(blocks)
}

// blocksAtOnce is how many blocks are opened at a time: each is read through, which one after another was a third of the time that an
// hour's report took. More would hold the symbols of more at a time.
const blocksAtOnce = 2

func (f *folder) openBlocks(dirs []string) (_ stored, err error) {
	store := newBlockStore()
	defer func() {
		if err != nil {
			err = errors.Join(err, store.close())
		}
	}()
	blocks, failed := make([]*block, len(dirs)), make([]error, len(dirs))
	threads := min(blocksAtOnce, runtime.GOMAXPROCS(0))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range threads {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(dirs); i = int(next.Add(1)) - 1 {
				if after := i + threads; after < len(dirs) {
					f.ahead(dirs[after])
				}
				blocks[i], failed[i] = f.openBlock(dirs[i], store)
			}
		})
	}
	workers.Wait()
	all := stored{first: math.MaxInt64, last: math.MinInt64}
	for i, b := range blocks {
		if err := failed[i]; err != nil {
			return stored{}, fmt.Errorf("%s: the block is cut short or damaged, so the run's series cannot be read; take a copy of it that is whole, or run again: %w", f.name(dirs[i]), err)
		}
		if b.readings > 0 {
			all.first, all.last, all.sampled = min(all.first, b.first), max(all.last, b.last), true
		}
		all.readings += b.readings // blocks of a run follow one another
	}
	if err := store.finish(); err != nil {
		return stored{}, fmt.Errorf("%s: %w", f.name(SeriesDir), err)
	}
	all.series, all.closeSeries = &store.Memory, store.close
	return all, nil
}

func (f *folder) openLog(dir string) (stored, error) {
	m := newLogMemory(f.name(dir))
	if err := f.readLog(dir, maxLog, Log{Series: m.add, Sample: m.append}); err != nil {
		return stored{}, err
	}
	m.Sort()
	all := stored{series: &m.Memory, readings: m.readings()}
	all.first, all.last, all.sampled = m.Span()
	return all, nil
}

// logMemory is a Memory that is filled from a write-ahead log, packed as in a
// block: a sample takes an eighth of a Point.
type logMemory struct {
	Memory
	dir            string
	refs           map[uint64]*memorySeries        // by their numbers in the log
	known          map[labels.Labels]*memorySeries // the same
	chunks         ownChunks
	samples, bytes int
	named          uint64
}

func newLogMemory(dir string) *logMemory {
	return &logMemory{dir: dir, refs: map[uint64]*memorySeries{}, known: map[labels.Labels]*memorySeries{}}
}

// add declares a series, which may be known: each part of a ring's log declares its series again, and who forgot one gives it
// another number.
func (m *logMemory) add(ref uint64, lset labels.Labels) error {
	if s := m.known[lset]; s != nil {
		m.refs[ref] = s
		return nil
	}
	if m.named += lset.ByteSize(); len(m.series) == maxLogSeries || m.named > maxLogLabels {
		return fmt.Errorf("%s: more than %d series, or %d bytes of labels; this is no run's", m.dir, maxLogSeries, maxLogLabels)
	}
	s := &memorySeries{labels: lset}
	m.refs[ref], m.known[lset] = s, s
	m.series = append(m.series, s)
	return nil
}

func (m *logMemory) append(ref uint64, p Point) error {
	s := m.refs[ref]
	if s == nil {
		return fmt.Errorf("%s: a sample of series %d, which is not declared before it", m.dir, ref)
	}
	grown, err := s.pack(p, &m.chunks)
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
		most = max(most, s.readings)
	}
	return most
}
