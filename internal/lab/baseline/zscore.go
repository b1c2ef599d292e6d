package baseline

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// least is the score below which nothing is said to have moved: three
// deviations, as is usual.
const least = 3

// floor is the least deviation that a series is given, as a share of its
// largest value: one that stood still in the baseline window would otherwise
// have a score without end, and every such series the same.
const floor = 0.01

// LargestScore says which signal moved most: the mean in the hold window less
// that in the baseline window, in deviations of the two windows pooled. Only
// signals in rulesOf are looked at, which maps a signal's name to the rules
// whose answer rests on it; counters names those that are to be read as rates.
func LargestScore(r *record.Run, rulesOf map[string][]string, counters map[string]bool) (Opinion, error) {
	o := Opinion{Rules: []string{}}
	base, ok := r.Window(model.Baseline)
	hold, held := r.Window(model.Hold)
	first, last, err := r.Span()
	if err != nil || !ok || !held {
		return o, err
	}
	q, err := r.Queryable().Querier(first, last)
	if err != nil {
		return o, fmt.Errorf("%s: read the series: %w", r.Dir(), err)
	}
	defer q.Close()
	set := q.Select(context.Background(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"))
	best := 0.0
	for set.Next() {
		lset := set.At().Labels()
		name := lset.Get("__name__")
		if len(rulesOf[name]) == 0 {
			continue
		}
		points, err := pointsOf(set.At().Iterator(nil), counters[name])
		if err != nil {
			return o, fmt.Errorf("%s: read %s: %w", r.Dir(), name, err)
		}
		if z := score(within(points, base), within(points, hold)); z >= least && z > best {
			best = z
			o.Says, o.Rules = fmt.Sprintf("%s (z %.0f)", lset, z), rulesOf[name]
		}
	}
	if err := set.Err(); err != nil {
		return o, fmt.Errorf("%s: read the series: %w", r.Dir(), err)
	}
	return o, nil
}

// pointsOf reads a series; of a counter, the rate since the reading before.
func pointsOf(it chunkenc.Iterator, counter bool) ([]record.Point, error) {
	var list []record.Point
	var before record.Point
	for begun := false; it.Next() == chunkenc.ValFloat; begun = true {
		t, v := it.At()
		switch now := (record.Point{Time: t, Value: v}); {
		case !counter:
			list = append(list, now)
		case begun && t > before.Time && v >= before.Value:
			list = append(list, record.Point{Time: t, Value: (v - before.Value) / float64(t-before.Time) * 1000})
		}
		before = record.Point{Time: t, Value: v}
	}
	return list, it.Err()
}

// within returns the values of a window; a reading at its start speaks of the time before.
func within(points []record.Point, w model.Window) []float64 {
	var values []float64
	for _, p := range points {
		if p.Time > w.Start && p.Time <= w.End {
			values = append(values, p.Value)
		}
	}
	return values
}

// score is how many deviations apart the means of two samples lie; 0 when one is empty.
func score(a, b []float64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	ma, va := moments(a)
	mb, vb := moments(b)
	if ma == mb {
		return 0
	}
	largest := max(slices.Max(a), -slices.Min(a), slices.Max(b), -slices.Min(b))
	return math.Abs(ma-mb) / max(math.Sqrt((va+vb)/2), floor*largest)
}

// moments are the mean and the variance.
func moments(v []float64) (mean, variance float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		variance += (x - mean) * (x - mean) / float64(len(v))
	}
	return mean, variance
}
