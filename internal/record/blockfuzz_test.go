package record

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/index"
	walrecord "github.com/prometheus/prometheus/tsdb/record"
	"github.com/prometheus/prometheus/util/compression"
)

// blockFiles reads the block that is recorded in testdata: nine series in 200 rounds.
func blockFiles(f *testing.F) (index, chunks []byte) {
	f.Helper()
	read := func(name string) []byte {
		raw, err := os.ReadFile(filepath.Join("testdata", "block", name))
		if err != nil {
			f.Fatal(err)
		}
		return raw
	}
	return read("index"), read("chunks")
}

// patch changes bytes: each five bytes say where, and to what.
func patch(raw, patches []byte) []byte {
	raw = bytes.Clone(raw)
	for ; len(patches) >= 5; patches = patches[5:] {
		if at := binary.BigEndian.Uint32(patches); int(at) < len(raw) {
			raw[at] = patches[4]
		}
	}
	return raw
}

func seal(raw []byte, from, to int) {
	if from >= 0 && from <= to && to+4 <= len(raw) {
		binary.BigEndian.PutUint32(raw[to:], crc32.Checksum(raw[from:to], castagnoli))
	}
}

// sealIndex makes the sums right where the index had them before it was changed, so
// that what is behind them is reached.
func sealIndex(raw, whole []byte) {
	toc, err := index.NewTOCFromByteSlice(bytesOf(whole))
	if err != nil {
		panic(err)
	}
	counted := func(at uint64) { seal(raw, int(at)+4, int(at)+4+int(binary.BigEndian.Uint32(whole[at:]))) }
	counted(toc.Symbols)
	counted(toc.PostingsTable)
	counted(toc.LabelIndicesTable)
	for at := int(toc.Series); at < int(toc.LabelIndices); at = (at + 15) / 16 * 16 {
		size, n := binary.Uvarint(whole[at:])
		if size == 0 {
			break
		}
		seal(raw, at+n, at+n+int(size))
		at += n + int(size) + 4
	}
	for at := toc.LabelIndices; at+8 < toc.PostingsTable; at = (at + 3) / 4 * 4 {
		size := uint64(binary.BigEndian.Uint32(whole[at:]))
		counted(at)
		at += 8 + size
	}
	seal(raw, len(raw)-52, len(raw)-4)
}

// FuzzBlock reads a block whose index and chunks are not what the library wrote, with
// sums that fit. It is an error, or gives what it gives: it does not panic, and no
// more samples come out of it than its chunks say.
func FuzzBlock(f *testing.F) {
	wholeIndex, wholeChunks := blockFiles(f)
	f.Add([]byte{}, []byte{})
	f.Add([]byte{0, 0, 0, 40, 255}, []byte{0, 0, 0, 12, 9})
	for at := 5; at < len(wholeIndex); at += 37 {
		f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(at)), 0xff), append(binary.BigEndian.AppendUint32(nil, uint32(at)), 0x80))
	}
	f.Fuzz(func(t *testing.T, indexPatch, chunkPatch []byte) {
		idx, data := patch(wholeIndex, indexPatch), patch(wholeChunks, chunkPatch)
		sealIndex(idx, wholeIndex)
		for at := 8; at < len(data); {
			size, n := binary.Uvarint(wholeChunks[at:])
			seal(data, at+n, at+n+1+int(size))
			at += n + 1 + int(size) + 4
		}
		b := &block{first: math.MaxInt64, last: math.MinInt64, chunks: chunkFiles{data}}
		to := newBlockStore()
		if b.readIndex(idx, to) == nil && to.finish() == nil {
			readAll(t, to)
		}
	})
}

func readAll(t *testing.T, s *blockStore) {
	t.Helper()
	q, err := s.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		return
	}
	defer q.Close()
	for _, m := range []*labels.Matcher{
		labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"),
		labels.MustNewMatcher(labels.MatchEqual, "__name__", "node_cpu_seconds_total"),
		labels.MustNewMatcher(labels.MatchNotEqual, "mode", "idle"),
	} {
		samples := 0
		set := q.Select(context.Background(), true, nil, m)
		var it chunkenc.Iterator
		for set.Next() {
			_ = set.At().Labels().String()
			for it = set.At().Iterator(it); it.Next() != chunkenc.ValNone; samples++ {
				it.At()
			}
		}
		if most := 65535 * len(s.files[0]); samples > most {
			t.Errorf("%d samples of %d bytes", samples, len(s.files[0]))
		}
	}
}

// quietLog takes whatever a log holds.
func quietLog(t *testing.T) (Log, *logMemory) {
	m := newLogMemory("wal")
	return Log{Series: m.add, Sample: m.append}, m
}

// logOf is a segment of a log with these records.
func logOf(records ...[]byte) []byte {
	var out []byte
	for _, r := range records {
		head := []byte{LogFull, 0, 0, 0, 0, 0, 0}
		binary.BigEndian.PutUint16(head[1:], uint16(len(r)))
		binary.BigEndian.PutUint32(head[3:], crc32.Checksum(r, castagnoli))
		out = append(append(out, head...), r...)
	}
	return out
}

func someRecords() [][]byte {
	var enc walrecord.Encoder
	series := enc.Series([]walrecord.RefSeries{{Ref: 1, Labels: labels.FromStrings("__name__", "a", "host", "h")}, {Ref: 2, Labels: labels.FromStrings("__name__", "b", "host", "h")}}, nil)
	samples := enc.Samples([]walrecord.RefSample{{Ref: 1, T: 1000, V: 1}, {Ref: 2, T: 1000, V: 2}, {Ref: 1, T: 2000, V: 3}}, nil)
	return [][]byte{series, samples}
}

// FuzzLog reads a segment of a write-ahead log, FuzzLogRecord one record of it.
func FuzzLog(f *testing.F) {
	whole := logOf(someRecords()...)
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(append(bytes.Clone(whole), 0, 0, 0))
	f.Fuzz(func(t *testing.T, raw []byte) {
		to, m := quietLog(t)
		l := logReader{to: to, dec: walrecord.NewDecoder(labels.NewSymbolTable(), nil)}
		_ = l.segment(bytes.NewReader(raw)) // whatever it says of it
		m.Sort()
		m.Span()
	})
}

func FuzzLogRecord(f *testing.F) {
	for _, r := range someRecords() {
		f.Add(byte(LogFull), r)
		packed, err := compression.Encode(compression.Snappy, r, nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(LogFull|LogSnappy), packed)
	}
	// It claims a trillion labels, and to be gigabytes when unpacked.
	f.Add(byte(LogFull), append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 1}, binary.AppendUvarint(nil, 1<<40)...))
	f.Add(byte(LogFull|LogSnappy), binary.AppendUvarint(nil, 1<<32-1))
	f.Fuzz(func(t *testing.T, kind byte, raw []byte) {
		to, m := quietLog(t)
		l := logReader{to: to, dec: walrecord.NewDecoder(labels.NewSymbolTable(), nil)}
		for _, r := range someRecords() {
			if err := l.read(r); err != nil {
				t.Fatal(err)
			}
		}
		_ = l.part(kind, raw) // whatever it says of it
		m.Sort()
		q, err := m.Querier(math.MinInt64, math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		set := q.Select(context.Background(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".*"))
		for set.Next() {
			last := int64(math.MinInt64)
			for it := set.At().Iterator(nil); it.Next() != chunkenc.ValNone; last = it.AtT() {
				if it.AtT() < last {
					t.Errorf("%d after %d", it.AtT(), last)
				}
			}
		}
	})
}
