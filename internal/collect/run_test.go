package collect

import (
	"math"
	"testing"

	"github.com/prometheus/prometheus/model/labels"

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
	out := map[int64]float64{}
	var pairs []string
	for k, v := range with {
		pairs = append(pairs, k, v)
	}
	for _, values := range selected(t, run, record.Match(name, pairs...)...) {
		for at, v := range values {
			out[at] = v
		}
	}
	return out
}

// selected returns the values of all series that fit, by their labels and time.
func selected(t *testing.T, run *record.Run, matchers ...*labels.Matcher) map[string]map[int64]float64 {
	t.Helper()
	out := map[string]map[int64]float64{}
	for s, err := range run.Series(math.MinInt64, math.MaxInt64, matchers...) {
		check(t, err)
		values := map[int64]float64{}
		for _, p := range s.Points {
			values[p.Time] = p.Value
		}
		out[s.Labels.String()] = values
	}
	return out
}
