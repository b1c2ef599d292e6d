package compare

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

const (
	// What changed by less than a tenth, or by less than it moves about by itself,
	// is not listed.
	leastChange = 0.1
	leastEffect = 1.5
	shown       = 40
)

// summary is a series in the hold window: a level, or of a counter its rate
// between two readings.
type summary struct {
	mean, deviation float64
	n               int
	constant        bool
}

// summaries reads all series of a run but those of the load itself.
func summaries(r *record.Run, hold model.Window) (map[string]summary, error) {
	list := map[string]summary{}
	for s, err := range r.Series(hold.Start, hold.End,
		labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"),
		labels.MustNewMatcher(labels.MatchNotRegexp, "__name__", "plimsoll_load_.*|.*_bucket")) {
		if err != nil {
			return nil, err
		}
		points := s.Points
		if isCounter(s.Labels.Get("__name__")) {
			points = s.Rates()
		}
		if len(points) > 0 {
			list[s.Labels.String()] = summarize(values(points))
		}
	}
	return list, nil
}

// isCounter goes by Prometheus' naming, which all our signals follow but those
// that node_exporter names otherwise; of these a difference is missed, not made up.
func isCounter(name string) bool {
	for _, end := range []string{"_total", "_sum", "_count"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return strings.HasPrefix(name, "node_netstat_") && !strings.HasSuffix(name, "_CurrEstab")
}

func values(points []record.Point) []float64 {
	v := make([]float64, len(points))
	for i, p := range points {
		v[i] = p.Value
	}
	return v
}

func summarize(v []float64) summary {
	c := summary{mean: mean(v), n: len(v), constant: slices.Min(v) == slices.Max(v)}
	if len(v) > 1 {
		c.deviation = math.Sqrt(variance(v))
	}
	return c
}

// changes lists what was different besides the load, the largest effect first,
// and apart from it what was set to another value.
func changes(a, b Side) (signals, configuration []model.SignalChange) {
	names := map[string]bool{}
	for _, r := range append(slices.Clone(a.runs), b.runs...) {
		for name := range r.series {
			names[name] = true
		}
	}
	for name := range names {
		x, y := a.summary(name), b.summary(name)
		if x.n == 0 || y.n == 0 || x.mean == y.mean {
			continue // what one side did not read is no change
		}
		c := model.SignalChange{Series: name, A: x.mean, B: y.mean}
		if isSetting(name) {
			if x.constant && y.constant {
				configuration = append(configuration, c)
			}
			continue
		}
		spread := (x.deviation + y.deviation) / 2
		large := max(math.Abs(x.mean), math.Abs(y.mean))
		// A series that never moved by itself has no spread to be measured by.
		c.Effect = math.Abs(y.mean-x.mean) / max(spread, 0.02*large)
		if math.Abs(y.mean-x.mean) >= leastChange*large && c.Effect >= leastEffect {
			signals = append(signals, c)
		}
	}
	byEffect := func(p, q model.SignalChange) int {
		return cmp.Or(cmp.Compare(q.Effect, p.Effect), strings.Compare(p.Series, q.Series))
	}
	slices.SortFunc(signals, byEffect)
	slices.SortFunc(configuration, byEffect)
	return signals[:min(len(signals), shown)], configuration
}

// isSetting says whether a series is something that somebody sets.
func isSetting(series string) bool {
	for _, word := range []string{"node_sysctl_", "_config_", "_limit", "_max_children"} {
		if strings.Contains(series, word) {
			return true
		}
	}
	return false
}

// summary is a series over all runs of a side that have it.
func (s Side) summary(name string) summary {
	var sum summary
	sum.constant = true
	for i, r := range s.runs {
		c, ok := r.series[name]
		if !ok {
			continue
		}
		sum.constant = sum.constant && c.constant && (i == 0 || sum.n == 0 || c.mean == sum.mean/float64(sum.n))
		sum.mean += c.mean
		sum.deviation += c.deviation
		sum.n++
	}
	if sum.n > 0 {
		sum.mean /= float64(sum.n)
		sum.deviation /= float64(sum.n)
	}
	return sum
}
