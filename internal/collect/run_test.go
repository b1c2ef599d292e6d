package collect

import (
	"context"
	"math"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"plimsoll/internal/record"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func opened(t *testing.T, dir string) *record.Run {
	t.Helper()
	run, err := record.Open(dir)
	check(t, err)
	t.Cleanup(func() { check(t, run.Close()) })
	if !run.Meta().Closed {
		t.Error("the run is not closed")
	}
	return run
}

// readings returns the values of the one series that fits, by time.
func readings(t *testing.T, run *record.Run, name string, with map[string]string) map[int64]float64 {
	t.Helper()
	matchers := []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "__name__", name)}
	for k, v := range with {
		matchers = append(matchers, labels.MustNewMatcher(labels.MatchEqual, k, v))
	}
	out := map[int64]float64{}
	for _, values := range selected(t, run, matchers...) {
		for at, v := range values {
			out[at] = v
		}
	}
	return out
}

// selected returns the values of all series that fit, by their labels and time.
func selected(t *testing.T, run *record.Run, matchers ...*labels.Matcher) map[string]map[int64]float64 {
	t.Helper()
	q, err := run.Queryable().Querier(math.MinInt64, math.MaxInt64)
	check(t, err)
	defer q.Close()
	out := map[string]map[int64]float64{}
	for set := q.Select(context.Background(), true, nil, matchers...); set.Next(); {
		values := map[int64]float64{}
		for it := set.At().Iterator(nil); it.Next() == chunkenc.ValFloat; {
			at, v := it.At()
			values[at] = v
		}
		out[set.At().Labels().String()] = values
	}
	return out
}
