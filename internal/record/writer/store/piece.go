package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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

// Piece is a block in the making: its series, packed in memory.
type Piece struct {
	series      map[string]*Series // by their labels
	key         []byte
	n           int // samples
	first, last int64
}

// Series is one of a piece; the last of its chunks is being filled.
type Series struct {
	labels   labels.Labels
	chunks   []chunks.Meta
	appender chunkenc.Appender
}

// NewPiece returns an empty one.
func NewPiece() *Piece {
	return &Piece{series: map[string]*Series{}, first: math.MaxInt64, last: math.MinInt64}
}

// Named returns the series with these labels.
func (p *Piece) Named(lset labels.Labels) (*Series, error) {
	if lset.IsEmpty() {
		return nil, errors.New("a sample of a series that the log does not name")
	}
	p.key = lset.Bytes(p.key[:0])
	s := p.series[string(p.key)]
	if s == nil {
		s = &Series{labels: lset}
		p.series[string(p.key)] = s
	}
	return s, nil
}

// Add appends a sample to a series of the piece.
func (p *Piece) Add(s *Series, at record.Point) error {
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

// Samples is how many the piece has.
func (p *Piece) Samples() int { return p.n }

var quiet = slog.New(slog.DiscardHandler)

// Write makes a block of the piece in a directory, and returns the block's name.
func (p *Piece) Write(dir string) (string, error) {
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
	return name, writeSynced(filepath.Join(block, record.BlockMetaFile), raw)
}

func writeSynced(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// writeSeries writes chunks and index.
func (p *Piece) writeSeries(block string) (stats record.BlockStats, err error) {
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
func (p *Piece) symbols() []string {
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

func (p *Piece) sorted() []*Series {
	list := make([]*Series, 0, len(p.series))
	for _, s := range p.series {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *Series) int { return labels.Compare(a.labels, b.labels) })
	return list
}
