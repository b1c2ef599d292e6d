package writer

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	walrecord "github.com/prometheus/prometheus/tsdb/record"
	"github.com/prometheus/prometheus/tsdb/wlog"
)

// manyRounds records numbers of all sizes, of series of which some come late, in records of several pages.
func manyRounds(t *testing.T, w *Writer) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range int64(700) {
		for n := range int64(20) {
			if i >= n*n {
				w.Sample("server", start+i*1000+random.Int64N(900), gauge, random.NormFloat64()*float64(i), fmt.Sprintf("eth%d", n))
			}
		}
		if i == 300 {
			for n := range 3000 {
				w.Sample("server", start+i*1000, counted, float64(n), fmt.Sprintf("kind-%x", random.Uint64()))
			}
		}
		check(t, w.Commit())
	}
}

// pieces of two blocks and some, so that series go on from one to the next.
const severalBlocks = 7000

func TestPrometheusReadsTheBlocks(t *testing.T) {
	w, dir := create(t)
	w.series.pieceSamples = severalBlocks
	manyRounds(t, w)
	check(t, w.Close())
	found, err := os.ReadDir(filepath.Join(dir, "series"))
	check(t, err)
	points := map[string][]string{}
	for _, e := range found {
		b, err := tsdb.OpenBlock(slog.New(slog.DiscardHandler), filepath.Join(dir, "series", e.Name()), nil, nil)
		check(t, err)
		addSamples(t, b, points)
		check(t, b.Close())
	}
	var got []string
	for name, list := range points {
		line := name
		for _, p := range list {
			line += p
		}
		got = append(got, line)
	}
	want := dump(t, dir)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" || len(found) < 3 {
		t.Errorf("%d blocks, by us (-) and by Prometheus (+):\n%.2000s", len(found), diff)
	}
}

// addSamples adds a block's samples, as dump writes them, to those of the blocks before, and holds them against what it says of itself.
func addSamples(t *testing.T, b *tsdb.Block, to map[string][]string) {
	t.Helper()
	meta := b.Meta()
	q, err := tsdb.NewBlockQuerier(b, meta.MinTime, meta.MaxTime)
	check(t, err)
	samples, series := uint64(0), uint64(0)
	set := q.Select(context.Background(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"))
	for set.Next() {
		series++
		it := set.At().Iterator(nil)
		for it.Next() == chunkenc.ValFloat {
			samples++
			at, v := it.At()
			if at < meta.MinTime || at >= meta.MaxTime {
				t.Errorf("a sample of %d in a block of %d to %d", at, meta.MinTime, meta.MaxTime)
			}
			name := set.At().Labels().String()
			to[name] = append(to[name], fmt.Sprintf(" %d:%g", at-start, v))
		}
		check(t, it.Err())
	}
	check(t, set.Err())
	check(t, q.Close())
	if s := meta.Stats; s.NumSamples != samples || s.NumFloatSamples != samples || s.NumSeries != series {
		t.Errorf("the block says %+v, and has %d series with %d samples", s, series, samples)
	}
}

func TestPrometheusReadsTheLog(t *testing.T) {
	w, dir := create(t)
	manyRounds(t, w)
	_, err := w.series.turn() // the file before ends amid a page
	check(t, err)
	w.Sample("server", start+1e6, gauge, 1, "eth0")
	check(t, w.Commit())
	segments, err := wlog.NewSegmentsReader(filepath.Join(dir, "series", "wal"))
	check(t, err)
	defer segments.Close()
	decoder, samples := walrecord.NewDecoder(labels.NewSymbolTable(), nil), 0
	r := wlog.NewReader(segments)
	for r.Next() {
		if decoder.Type(r.Record()) == walrecord.Samples {
			list, err := decoder.Samples(r.Record(), nil)
			check(t, err)
			samples += len(list)
		}
	}
	check(t, r.Err())
	check(t, w.Close())
	want := 0
	for _, line := range dump(t, dir) {
		want += strings.Count(line[strings.Index(line, "}"):], ":")
	}
	if samples != want {
		t.Errorf("Prometheus reads %d samples of the log, want %d", samples, want)
	}
}
