package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
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

// Piece is a block in the making, its samples packed in memory. Once it is written the next one begins.
type Piece struct {
	all         map[labels.Labels]*Series // of all pieces
	series      []*Series                 // with samples in this one
	n           int                       // samples
	first, last int64
}

// Series is one of all pieces; the last of its chunks in this one is being filled.
type Series struct {
	labels   labels.Labels
	last     int64         // time of its last sample, in whatever piece
	chunks   []chunks.Meta // in this piece
	appender chunkenc.Appender
}

// NewPiece returns an empty one, the first.
func NewPiece() *Piece {
	p := &Piece{all: map[labels.Labels]*Series{}}
	p.begin()
	return p
}

func (p *Piece) begin() {
	for _, s := range p.series {
		s.chunks, s.appender = nil, nil
	}
	p.series, p.n, p.first, p.last = nil, 0, math.MaxInt64, math.MinInt64
}

// Named returns the series with these labels.
func (p *Piece) Named(lset labels.Labels) *Series {
	s := p.all[lset]
	if s == nil {
		s = &Series{labels: lset, last: math.MinInt64}
		p.all[lset] = s
	}
	return s
}

// Add appends a sample to a series. One that is not after the last one has no place in a block: it is left out, and added is false.
func (p *Piece) Add(s *Series, at record.Point) (added bool, err error) {
	if at.Time <= s.last {
		return false, nil
	}
	n := len(s.chunks)
	if n == 0 || s.chunks[n-1].Chunk.NumSamples() == chunkSamples {
		if n == 0 {
			p.series = append(p.series, s)
		} else {
			s.chunks[n-1].Chunk.Compact()
		}
		fresh := chunkenc.NewXORChunk()
		if s.appender, err = fresh.Appender(); err != nil {
			return false, err
		}
		s.chunks = append(s.chunks, chunks.Meta{Chunk: fresh, MinTime: at.Time})
		n++
	}
	s.appender.Append(0, at.Time, at.Value)
	s.last, s.chunks[n-1].MaxTime = at.Time, at.Time
	p.first, p.last = min(p.first, at.Time), max(p.last, at.Time)
	p.n++
	return true, nil
}

// Samples is how many the piece has.
func (p *Piece) Samples() int { return p.n }

var quiet = slog.New(slog.DiscardHandler)

// Write makes a block of the piece in a directory, synced, and returns the block's name.
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
	p.begin()
	return name, errors.Join(writeSynced(filepath.Join(block, record.BlockMetaFile), raw), SyncDir(block))
}

func writeSynced(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, syncFile(f), f.Close())
}

// syncFile is a variable for the tests, which look at what is synced, and when.
var syncFile = (*os.File).Sync

// SyncDir has the names in a directory outlast a power cut.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(syncFile(f), f.Close())
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
	slices.SortFunc(p.series, func(a, b *Series) int { return labels.Compare(a.labels, b.labels) })
	for i, s := range p.series {
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
