package record

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/index"
)

// Blocks may come in any order; a series' chunks are read in that of time.
func TestBlocksInOrderOfTime(t *testing.T) {
	s, lset := newBlockStore(), labels.FromStrings("__name__", "a")
	for file, times := range [][2]int64{{100, 200}, {1, 99}} {
		if err := s.add(lset, []chunks.Meta{{Ref: 8, MinTime: times[0], MaxTime: times[1]}}, file); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.finish(); err != nil {
		t.Fatal(err)
	}
	if len(s.series) != 1 {
		t.Fatalf("%d series, want one", len(s.series))
	}
	for i, want := range []packed{{1, 99, 1<<32 | 8}, {100, 200, 8}} {
		if got := s.series[0].packed[i]; got != want {
			t.Errorf("chunk %d is %v, want %v", i, got, want)
		}
	}
}

// A block that is there twice, as in a run that was copied together, has each sample twice.
func TestBlockTwice(t *testing.T) {
	read := func(name string) []byte {
		raw, err := os.ReadFile(filepath.Join("testdata", "block", name))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	s := newBlockStore()
	for range 2 {
		b := &block{first: math.MaxInt64, last: math.MinInt64, chunks: chunkFiles{read("chunks")}}
		if err := b.readIndex(read("index"), s); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.finish(); err == nil || !strings.Contains(err.Error(), "do not follow one another") {
		t.Errorf("%v, want an error of chunks that do not follow one another", err)
	}
}

// An index of nothing but empty symbols, each a byte there and sixteen in memory, is refused before they are read.
func TestTooManySymbols(t *testing.T) {
	const count = 16 << 20
	raw := make([]byte, index.HeaderLen+8+count+4+52)
	binary.BigEndian.PutUint32(raw, index.MagicIndex)
	raw[4] = index.FormatV2
	symbols, toc := raw[index.HeaderLen:], raw[len(raw)-52:]
	binary.BigEndian.PutUint32(symbols, 4+count)
	binary.BigEndian.PutUint32(symbols[4:], count)
	seal(symbols, 4, 8+count)
	binary.BigEndian.PutUint64(toc, index.HeaderLen)
	seal(toc, 0, 48)
	b := &block{}
	if err := b.readIndex(raw, newBlockStore()); err == nil || !strings.Contains(err.Error(), "symbols, want at most") {
		t.Errorf("the error is %v", err)
	}
}
