package record

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Packed samples are read as the same points are that are not.
func TestPackedAsPoints(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	plain, packed := new(Memory), newLogMemory("wal")
	lset := labels.FromStrings("__name__", "a")
	if err := packed.add(1, lset); err != nil {
		t.Fatal(err)
	}
	var points []Point
	at := int64(1_700_000_000_000)
	for range 5*packedSamples + 7 {
		at += 1 + random.Int64N(2000)
		p := Point{at, random.Float64()}
		points = append(points, p)
		for range 2 { // what comes twice counts once
			if err := packed.append(1, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	plain.Add(lset, points)
	if a, b := packed.readings(), len(points); a != b {
		t.Errorf("%d readings, want %d", a, b)
	}
	for range 300 {
		mint := points[0].Time - 5000 + random.Int64N(at-points[0].Time+10000)
		maxt := mint + random.Int64N(1_000_000)
		seeks := []int64{math.MinInt64, mint + random.Int64N(100_000), mint + random.Int64N(1_000_000), maxt - 1000}
		want, got := course(t, plain, mint, maxt, seeks), course(t, &packed.Memory, mint, maxt, seeks)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%d to %d, %v (-points +packed):\n%s", mint, maxt, seeks, diff)
		}
	}
}

// course seeks, reads some, seeks, and reads the rest.
func course(t *testing.T, m *Memory, mint, maxt int64, seeks []int64) (got []Point) {
	t.Helper()
	q, err := m.Querier(mint, maxt)
	if err != nil {
		t.Fatal(err)
	}
	set := q.Select(context.Background(), true, nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", "a"))
	for set.Next() {
		it := set.At().Iterator(nil)
		for _, s := range seeks {
			for kind := it.Seek(s); kind != chunkenc.ValNone; kind = it.Next() {
				at, v := it.At()
				if got = append(got, Point{at, v}); len(got)%100 == 0 {
					break
				}
			}
		}
		for it.Next() != chunkenc.ValNone {
			at, v := it.At()
			got = append(got, Point{at, v})
		}
	}
	return got
}
