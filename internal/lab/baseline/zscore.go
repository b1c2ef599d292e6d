package baseline

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

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

// tied is how close to the largest score another counts as the same: where many
// series rise from nothing, none of them is ahead by more than its noise.
const tied = 0.99

// own is the value of a label by which the tool's own processes are known, and
// ownLoad how the names of its load's signals begin: both rise with any load.
const (
	own     = "plimsoll"
	ownLoad = "plimsoll_load_"
)

// moving is a series with its score.
type moving struct {
	name string
	z    float64
}

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
	var list []moving
	for s, err := range r.Series(first, last, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+")) {
		if err != nil {
			return o, err
		}
		name := s.Labels.Get("__name__")
		if len(rulesOf[name]) == 0 || isOwn(s.Labels) {
			continue
		}
		points := s.Points
		if counters[name] {
			points = s.Rates()
		}
		if z := score(within(points, base), within(points, hold)); z >= least {
			list = append(list, moving{name, z})
		}
	}
	return opinion(list, rulesOf), nil
}

func isOwn(lset labels.Labels) bool {
	found := strings.HasPrefix(lset.Get("__name__"), ownLoad)
	lset.Range(func(l labels.Label) { found = found || l.Value == own })
	return found
}

// opinion names the signals with the largest score, which may be several.
func opinion(list []moving, rulesOf map[string][]string) Opinion {
	o := Opinion{Rules: []string{}}
	best := 0.0
	for _, m := range list {
		best = max(best, m.z)
	}
	var names []string
	for _, m := range list {
		if m.z >= tied*best && !slices.Contains(names, m.name) {
			names = append(names, m.name)
			o.Rules = append(o.Rules, rulesOf[m.name]...)
		}
	}
	if len(names) > 0 {
		o.Says = fmt.Sprintf("%s (z %.0f)", strings.Join(names, ", "), best)
	}
	slices.Sort(o.Rules)
	o.Rules = slices.Compact(o.Rules)
	return o
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
