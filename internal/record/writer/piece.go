package writer

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/tsdb/tombstones"

	"plimsoll/internal/record"
)

const (
	// chunkSamples is how many samples a chunk gets, as Prometheus means them to have.
	chunkSamples = 120
	// chunkFile is what a file of chunks is at first, and cut to what is in it: as much as a disk must have
	// left, and more than the samples of a piece take.
	chunkFile = 128 << 20
)

// piece is a block in the making: its series, packed in memory. It is written by the parts of Prometheus' tsdb
// that know the form. The tsdb itself imports the clients of three clouds, which every start of ours would pay for.
type piece struct {
	series      map[string]*pieceSeries // by their labels
	key         []byte
	n           int // samples
	first, last int64
}

// pieceSeries is a series of a piece; the last of its chunks is being filled.
type pieceSeries struct {
	labels   labels.Labels
	chunks   []chunks.Meta
	appender chunkenc.Appender
}

func newPiece() *piece {
	return &piece{series: map[string]*pieceSeries{}, first: math.MaxInt64, last: math.MinInt64}
}

// named returns the series with these labels.
func (p *piece) named(lset labels.Labels) (*pieceSeries, error) {
	if lset.IsEmpty() {
		return nil, errors.New("a sample of a series that the log does not name")
	}
	p.key = lset.Bytes(p.key[:0])
	s := p.series[string(p.key)]
	if s == nil {
		s = &pieceSeries{labels: lset}
		p.series[string(p.key)] = s
	}
	return s, nil
}

// add appends a sample to a series of the piece.
func (p *piece) add(s *pieceSeries, at record.Point) error {
	n := len(s.chunks)
	if n > 0 && s.chunks[n-1].MaxTime >= at.Time {
		return fmt.Errorf("%s: a sample of %d ms after one of %d ms", s.labels, at.Time, s.chunks[n-1].MaxTime)
	}
	if n == 0 || s.chunks[n-1].Chunk.NumSamples() == chunkSamples {
		if n > 0 {
			s.chunks[n-1].Chunk.Compact()
		}
		fresh := chunkenc.NewXORChunk()
		var err error
		if s.appender, err = fresh.Appender(); err != nil {
			return err
		}
		s.chunks = append(s.chunks, chunks.Meta{Chunk: fresh, MinTime: at.Time})
		n++
	}
	s.appender.Append(0, at.Time, at.Value)
	s.chunks[n-1].MaxTime = at.Time
	p.first, p.last = min(p.first, at.Time), max(p.last, at.Time)
	p.n++
	return nil
}

// write makes a block of the piece in a directory, and returns the block's name.
func (p *piece) write(dir string) (string, error) {
	id, err := ulid.New(ulid.Now(), rand.Reader)
	if err != nil {
		return "", err
	}
	name := id.String()
	block := filepath.Join(dir, name)
	if err := os.MkdirAll(block, 0o700); err != nil {
		return "", err
	}
	meta := record.BlockMeta{ULID: name, MinTime: p.first, MaxTime: p.last + 1, Version: 1} // its end is exclusive
	meta.Compaction.Level, meta.Compaction.Sources = 1, []string{name}
	if meta.Stats, err = p.writeSeries(block); err != nil {
		return "", err
	}
	if _, err := tombstones.WriteFile(quiet, block, tombstones.NewMemTombstones()); err != nil {
		return "", err
	}
	raw, err := json.MarshalIndent(meta, "", "\t")
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(block)
	if err != nil {
		return "", err
	}
	return name, errors.Join(replace(root, record.BlockMetaFile, raw, true), root.Close())
}

// writeSeries writes chunks and index.
func (p *piece) writeSeries(block string) (stats record.BlockStats, err error) {
	files, err := chunks.NewWriter(filepath.Join(block, "chunks"), chunks.WithSegmentSize(chunkFile))
	if err != nil {
		return stats, err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	names, err := index.NewWriter(context.Background(), filepath.Join(block, "index"))
	if err != nil {
		return stats, err
	}
	defer func() { err = errors.Join(err, names.Close()) }()
	for _, symbol := range p.symbols() {
		if err := names.AddSymbol(symbol); err != nil {
			return stats, err
		}
	}
	for i, s := range p.sorted() {
		if err := files.WriteChunks(s.chunks...); err != nil { // it fills in where each is
			return stats, err
		}
		if err := names.AddSeries(storage.SeriesRef(i), s.labels, s.chunks...); err != nil {
			return stats, err
		}
		stats.NumChunks += uint64(len(s.chunks))
	}
	stats.NumSeries = uint64(len(p.series))
	stats.NumSamples, stats.NumFloatSamples = uint64(p.n), uint64(p.n)
	return stats, nil
}

// symbols are the names and values of the piece's labels, in order; the first is that of the list of all series.
func (p *piece) symbols() []string {
	seen := map[string]bool{"": true}
	list := []string{""}
	for _, s := range p.series {
		s.labels.Range(func(l labels.Label) {
			for _, word := range []string{l.Name, l.Value} {
				if !seen[word] {
					seen[word] = true
					list = append(list, word)
				}
			}
		})
	}
	slices.Sort(list)
	return list
}

func (p *piece) sorted() []*pieceSeries {
	list := make([]*pieceSeries, 0, len(p.series))
	for _, s := range p.series {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *pieceSeries) int { return labels.Compare(a.labels, b.labels) })
	return list
}
