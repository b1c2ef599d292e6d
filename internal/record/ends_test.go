package record

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// What the engine makes of packed counters is to the bit what it makes of all their readings.
func TestEndsAreEnough(t *testing.T) {
	for name, next := range map[string]func(r *rand.Rand, v float64) float64{
		"grows": func(r *rand.Rand, v float64) float64 { return v + float64(r.IntN(3))*r.Float64() },
		"falls now and then": func(r *rand.Rand, v float64) float64 {
			if r.IntN(100) == 0 {
				return r.Float64()
			}
			return v + r.Float64()
		},
		"a level": func(r *rand.Rand, _ float64) float64 { return r.Float64() },
		"no number": func(r *rand.Rand, v float64) float64 {
			return []float64{math.NaN(), math.Float64frombits(value.StaleNaN), v + 1, 7}[r.IntN(4)]
		},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(3, 4))
			plain, packed := new(Memory), newLogMemory("wal")
			begin, end := int64(1_700_000_000_000), int64(0)
			for i := range 8 {
				lset := labels.FromStrings("__name__", "a", "n", fmt.Sprint(i))
				if err := packed.add(uint64(i), lset); err != nil {
					t.Fatal(err)
				}
				var points []Point
				at, v := begin+random.Int64N(100_000), 0.0
				for range 1 + random.IntN(4*packedSamples) {
					at, v = at+1+random.Int64N(2000), next(random, v)
					if random.IntN(200) == 0 {
						at += 60_000
					}
					points = append(points, Point{at, v})
					if err := packed.append(uint64(i), points[len(points)-1]); err != nil {
						t.Fatal(err)
					}
					if random.IntN(50) == 0 { // it goes on after it was asked for
						packed.series[i].asCounter()
					}
				}
				plain.Add(lset, points)
				end = max(end, at)
			}
			plain.Sort()
			packed.Sort()
			for range 60 {
				moment, span := begin+random.Int64N(end-begin), 1+random.Int64N(1_500_000)
				if random.IntN(2) == 0 { // from the first reading in a chunk to that of another
					of := packed.series[random.IntN(8)].packed
					from, to := of[random.IntN(len(of))].first, of[random.IntN(len(of))].first
					moment, span = max(from, to), max(from-to, to-from, 1)
				}
				for _, form := range []string{"increase(a[%dms] anchored)", "rate(a[%dms] anchored)", "idelta(a[%dms])", "increase(a[%dms])", "sum(increase(a[%dms] anchored) and idelta(a[%[1]dms]))",
					"max_over_time(increase(a[%dms] anchored)[1m:7s])"} {
					text := fmt.Sprintf(form, span)
					if diff := cmp.Diff(answer(t, plain, text, moment), answer(t, &packed.Memory, text, moment)); diff != "" {
						t.Fatalf("%s at %d (-points +packed):\n%s", text, moment, diff)
					}
				}
			}
		})
	}
}

var engine = promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, LookbackDelta: 10 * time.Second,
	Parser: parser.NewParser(parser.Options{EnableExtendedRangeSelectors: true})})

// answer is what the engine makes of a text, bit by bit.
func answer(t *testing.T, m storage.Queryable, text string, at int64) map[string]uint64 {
	t.Helper()
	q, err := engine.NewInstantQuery(context.Background(), m, nil, text, time.UnixMilli(at))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	v, err := q.Exec(context.Background()).Vector()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, s := range v {
		got[s.Metric.String()] = math.Float64bits(s.F)
	}
	return got
}

// A counter that grows on after it was asked for is seen to fall.
func TestACounterIsReadOn(t *testing.T) {
	m := newLogMemory("wal")
	if err := m.add(1, labels.FromStrings("__name__", "a")); err != nil {
		t.Fatal(err)
	}
	add := func(points ...Point) {
		for _, p := range points {
			if err := m.append(1, p); err != nil {
				t.Fatal(err)
			}
		}
		m.Sort()
	}
	for _, step := range []struct {
		add  []Point
		want float64
	}{
		{[]Point{{1000, 5}, {2000, 7}}, 2},
		{[]Point{{3000, 1}, {4000, 4}}, 6},
		{[]Point{{5000, 9}}, 11},
		{[]Point{{6000, 2}}, 13},
	} {
		add(step.add...)
		got := answer(t, &m.Memory, "increase(a[1m] anchored)", 6000)
		if want := math.Float64bits(step.want); len(got) != 1 || got["{}"] != want {
			t.Errorf("after %v: %v, want %v", step.add, got, step.want)
		}
	}
}

// broken is a source of which some chunks cannot be read any more.
type broken struct {
	ownChunks
	from int
}

func (b *broken) chunk(ref chunks.ChunkRef) (chunkenc.Chunk, error) {
	if int(ref) >= b.from {
		return nil, errors.New("its file is gone")
	}
	return b.ownChunks.chunk(ref)
}

// What could not be unpacked when the ends were asked for is an error, not a series that ends before.
func TestEndsThatCannotBeRead(t *testing.T) {
	const samples = 3 * packedSamples
	for from := range 3 {
		var source broken
		var s memorySeries
		for i := range samples {
			if _, err := s.pack(Point{int64(i) * 1000, float64(i)}, &source.ownChunks); err != nil {
				t.Fatal(err)
			}
		}
		s.source, s.grows, source.from = &source, nil, 3
		for _, hints := range []storage.SelectHints{{Func: "increase", Range: 300_000}, {Func: "idelta"}, {Func: "increase", Range: 10_000_000}} {
			maxt := int64(samples * 1000)
			read := func() error {
				it := s.needed(0, maxt, &hints).Iterator(nil)
				for it.Next() != chunkenc.ValNone {
				}
				return it.Err()
			}
			source.from = 3
			if err := read(); err != nil {
				t.Fatal(err) // and what it is as a counter is known
			}
			source.from = from
			if err := read(); err == nil {
				t.Errorf("%s over %d ms without chunks from %d on: %v", hints.Func, hints.Range, from, err)
			}
		}
	}
}

// What is kept of all series is bounded, and one that is none keeps nothing.
func TestKeptFallsAreBounded(t *testing.T) {
	var source ownChunks
	add := func(s *memorySeries, from, n int) {
		for i := from; i < from+n; i++ {
			if _, err := s.pack(Point{int64(i), float64(i % 2)}, &source); err != nil {
				t.Fatal(err)
			}
		}
	}
	var some, many, late memorySeries
	add(&some, 0, 20)
	add(&late, 0, 20)
	add(&many, 0, 3*mostFalls)
	falls := len(some.asCounter().falls)
	if c := many.asCounter(); falls == 0 || !c.none || c.falls != nil || source.kept().Load() != int64(falls) {
		t.Errorf("%d of one that falls now and then, %+v of one that always does; %d are kept", falls, c, source.kept().Load())
	}
	source.kept().Store(mostKept - int64(falls) + 1)
	if c := late.asCounter(); !c.none || c.falls != nil || source.kept().Load() != mostKept-int64(falls)+1 {
		t.Errorf("%+v where there is no room, %d are kept", c, source.kept().Load())
	}
	source.kept().Store(int64(falls))
	if add(&some, 20, 2); len(some.asCounter().falls) != falls+2 || source.kept().Load() != int64(falls+2) {
		t.Errorf("%d are kept of a series that fell once more; it fell at %v", source.kept().Load(), some.asCounter().falls)
	}
	if some.forget(); len(some.asCounter().falls) != falls+2 {
		t.Errorf("it fell at %v, when all is gone through again", some.asCounter().falls)
	}
	if add(&some, 22, 2*mostFalls); !some.asCounter().none || source.kept().Load() != 0 {
		t.Errorf("%d are kept of a series that falls too often, as it turned out", source.kept().Load())
	}
	if late.forget(); late.asCounter().none || source.kept().Load() != int64(falls) {
		t.Error("there is room again, and it is not used")
	}
}
