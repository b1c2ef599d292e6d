package record

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/encoding"
	"github.com/prometheus/prometheus/tsdb/index"
	"github.com/prometheus/prometheus/tsdb/tombstones"
	"golang.org/x/sys/unix"
)

// The bounds of a block. The writer's have a million samples: some megabytes.
const (
	maxBlockMeta  = 1 << 20
	maxIndex      = 64 << 20
	maxChunkFile  = 128 << 20
	maxChunkFiles = 64
)

// BlockMetaFile is the name of the file in a block that says what is in it.
const BlockMetaFile = "meta.json"

// BlockMeta is what that file says, as Prometheus writes it. Times are Unix milliseconds, the end exclusive.
type BlockMeta struct {
	ULID       string     `json:"ulid"`
	MinTime    int64      `json:"minTime"`
	MaxTime    int64      `json:"maxTime"`
	Stats      BlockStats `json:"stats"`
	Compaction struct {
		Level   int      `json:"level"`
		Sources []string `json:"sources"` // itself
	} `json:"compaction"`
	Version int `json:"version"`
}

// BlockStats counts what is in a block.
type BlockStats struct {
	NumSamples      uint64 `json:"numSamples"`
	NumFloatSamples uint64 `json:"numFloatSamples"`
	NumSeries       uint64 `json:"numSeries"`
	NumChunks       uint64 `json:"numChunks"`
}

// emptyTombstones is the size of a block's tombstones file in which nothing is
// deleted: magic number, version, sum.
const emptyTombstones = 9

// block is a block of Prometheus' form, read without its library's own opening,
// which goes by paths: those of somebody else's directory lead anywhere.
// What the library makes of the index or a chunk of a stranger may panic; readIndex and
// packedIterator recover.
type block struct {
	index  *index.Reader
	chunks chunkFiles
	// These are what verify saw.
	first, last int64
	readings    int // of the series that has most
}

// openBlock opens and verifies the block in a directory of the run, and adds its series to a store.
func (f *folder) openBlock(dir string, to *blockStore) (*block, error) {
	b := &block{first: math.MaxInt64, last: math.MinInt64}
	if err := f.checkBlock(dir); err != nil {
		return nil, err
	}
	views, err := b.openChunks(f, path.Join(dir, "chunks"))
	to.addViews(views)
	if err != nil {
		return nil, err
	}
	v, err := f.view(path.Join(dir, "index"), maxIndex)
	if err != nil {
		return nil, err
	}
	err = b.readIndex(v.data, to)
	for _, v := range views {
		v.forget() // else all of a long run would stay in memory
	}
	return b, errors.Join(err, v.close())
}

// ahead has the kernel read the block in a directory from the disk while another is looked at: a mapped file is else read as it is
// touched, a little at a time, which of an hour that lies on the disk is a quarter of what its page takes.
func (f *folder) ahead(dir string) {
	files := []string{path.Join(dir, "index")}
	entries, _ := f.list(path.Join(dir, "chunks")) // opening it says what is wrong with it
	for _, e := range entries[:min(len(entries), maxChunkFiles)] {
		files = append(files, path.Join(dir, "chunks", e.Name()))
	}
	for _, file := range files {
		if in, _, err := f.open(file); err == nil {
			_ = unix.Fadvise(int(in.Fd()), 0, 0, unix.FADV_WILLNEED) // advice
			_ = in.Close()
		}
	}
}

// readIndex reads the block's index, after its chunks, verifies both, and adds what is in them to a store.
func (b *block) readIndex(raw []byte, to *blockStore) (err error) {
	defer misled(&err)
	symbols, err := countSymbols(raw)
	if err != nil {
		return err
	}
	if b.index, err = index.NewReader(bytesOf(raw), index.DecodePostingsRaw); err != nil {
		return err
	}
	series, err := newSeriesReader(raw, b.index, symbols)
	if err != nil {
		return err
	}
	return b.verify(series, to)
}

// seriesReader reads the series of an index. The library's looks each symbol up from the last of 32
// on, which of an hour's blocks is most of what opening them costs.
type seriesReader struct {
	raw bytesOf
	index.Decoder
}

// seriesAlign is how many bytes of an index a reference to a series counts.
const seriesAlign = 16

func newSeriesReader(raw []byte, of *index.Reader, count int) (seriesReader, error) {
	symbols := make([]string, 0, count)
	list := of.Symbols()
	for list.Next() {
		symbols = append(symbols, list.At())
	}
	return seriesReader{raw, index.Decoder{LookupSymbol: func(_ context.Context, at uint32) (string, error) {
		if int(at) >= len(symbols) {
			return "", fmt.Errorf("symbol %d, and there are %d", at, len(symbols))
		}
		return symbols[at], nil
	}}}, list.Err()
}

func (s seriesReader) read(ref storage.SeriesRef, builder *labels.ScratchBuilder, metas *[]chunks.Meta) error {
	part := encoding.NewDecbufUvarintAt(s.raw, int(ref)*seriesAlign, castagnoli)
	if part.Err() != nil {
		return part.Err()
	}
	return s.Series(part.Get(), builder, metas)
}

// checkBlock refuses a block of another form, and one of which something was deleted.
func (f *folder) checkBlock(dir string) error {
	raw, err := f.read(path.Join(dir, BlockMetaFile), maxBlockMeta)
	if err != nil {
		return err
	}
	var meta BlockMeta
	if err := json.Unmarshal(raw, &meta); err != nil {
		return fmt.Errorf("%s: %w", f.name(path.Join(dir, BlockMetaFile)), err)
	}
	if meta.Version != 1 {
		return fmt.Errorf("%s: form %d of a block, want 1", f.name(dir), meta.Version)
	}
	stones, size, err := f.open(path.Join(dir, tombstones.TombstonesFilename))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if size > emptyTombstones {
		err = fmt.Errorf("%s: samples were deleted from it, which nobody does to a run", f.name(dir))
	}
	return errors.Join(err, stones.Close())
}

func (b *block) openChunks(f *folder, dir string) (views []view, err error) {
	entries, err := f.list(dir)
	if err != nil {
		return nil, err
	}
	if len(entries) > maxChunkFiles {
		return nil, fmt.Errorf("%s: %d files, want at most %d", f.name(dir), len(entries), maxChunkFiles)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	for _, name := range names {
		v, err := f.view(path.Join(dir, name), maxChunkFile)
		if err != nil {
			return views, err
		}
		views = append(views, v)
		raw := v.data
		if len(raw) < chunks.SegmentHeaderSize || binary.BigEndian.Uint32(raw) != chunks.MagicChunks || raw[chunks.MagicChunksSize] != 1 {
			return views, fmt.Errorf("%s: no file of chunks", f.name(path.Join(dir, name)))
		}
		b.chunks = append(b.chunks, raw)
	}
	return views, nil
}

// maxSymbols is how many symbols an index has at most. In memory each takes 16 bytes more than in
// the file, where an empty one takes one.
const maxSymbols = maxLabels / 16

// countSymbols counts an index's symbols, and refuses one that claims more than it has bytes, or
// than a run has: room is made for them all first.
func countSymbols(raw []byte) (int, error) {
	if len(raw) < index.HeaderLen || raw[4] != index.FormatV2 {
		return 0, errors.New("want an index of form 2")
	}
	toc, err := index.NewTOCFromByteSlice(bytesOf(raw))
	if err != nil {
		return 0, err
	}
	if toc.Symbols+8 > uint64(len(raw)) {
		return 0, errors.New("the index ends before its symbols")
	}
	count := binary.BigEndian.Uint32(raw[toc.Symbols+4:])
	if count > uint32(len(raw)) {
		return 0, errors.New("the index claims more symbols than it holds")
	}
	if int(count) > maxSymbols {
		return 0, fmt.Errorf("the index has %d symbols, want at most %d", count, maxSymbols)
	}
	return int(count), nil
}

// verify reads every series and every chunk once, which checks their sums. A
// damaged chunk would else show as a clue that is unknown for no good reason.
func (b *block) verify(series seriesReader, to *blockStore) error {
	name, value := index.AllPostingsKey()
	all, err := b.index.Postings(context.Background(), name, value)
	if err != nil {
		return err
	}
	room := 0 // so many bytes of chunks there are; no two series share one
	for _, c := range b.chunks {
		room += len(c)
	}
	base := to.addFiles(b.chunks)
	builder := labels.NewScratchBuilder(0)
	var lset labels.Labels
	var metas []chunks.Meta
	before, named := int64(-1), uint64(0)
	for all.Next() {
		at := int64(all.At())
		if at <= before {
			return errors.New("a series is listed twice")
		}
		before = at
		if err := series.read(all.At(), &builder, &metas); err != nil {
			return err
		}
		builder.Overwrite(&lset)
		if named += lset.ByteSize(); named > maxLabels {
			return fmt.Errorf("the labels of its series are more than %d bytes", maxLabels)
		}
		if room, err = b.verifyChunks(metas, room); err != nil {
			return err
		}
		if err := to.add(lset, metas, base); err != nil {
			return err
		}
	}
	return all.Err()
}

func (b *block) verifyChunks(metas []chunks.Meta, room int) (left int, err error) {
	readings := 0
	for _, m := range metas {
		c, err := b.chunks.chunk(chunks.ChunkRef(m.Ref))
		if err != nil {
			return 0, err
		}
		if room -= len(c.Bytes()); room < 0 {
			return 0, errors.New("a chunk belongs to several series")
		}
		readings += c.NumSamples()
		b.first, b.last = min(b.first, m.MinTime), max(b.last, m.MaxTime)
	}
	b.readings = max(b.readings, readings)
	return room, nil
}

// bytesOf implements index.ByteSlice.
type bytesOf []byte

func (b bytesOf) Len() int                    { return len(b) }
func (b bytesOf) Range(start, end int) []byte { return b[start:end] }

// isBlock tells a block's directory by its name, a ULID: 26 characters, and no dot
// as one has that is still being written.
func isBlock(name string) bool { return len(name) == 26 && !strings.Contains(name, ".") }
