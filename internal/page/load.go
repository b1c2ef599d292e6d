package page

import (
	"cmp"
	"math"
	"slices"
	"strings"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll/internal/model"
	"plimsoll/internal/page/svg"
	"plimsoll/internal/record"
)

// load draws the load over time: what was offered and what came back, how long users
// waited, and how the waits were spread.
func (r *reader) load(l *model.Load) []Figure {
	if l == nil {
		return nil
	}
	var list []Figure
	add := func(f *Figure) {
		if f != nil {
			list = append(list, *f)
		}
	}
	replies, failed := r.outcomes()
	p := plot{title: "Requests, by what became of them", unit: aSecond, wide: true, height: 200}
	if plan := r.meta.Plan.Load; plan != nil && plan.Rate > 0 && len(plan.Stages) == 0 {
		p.limits = []svg.Limit{{Value: plan.Rate, Text: "offered " + perSecond(plan.Rate)}}
		if w, ok := r.rec.Window(model.Calm); ok {
			p.note = "from the end of calm on, in which one connection sends as fast as it can"
			replies = after(replies, w.End)
		}
	}
	add(r.figure(p, replies))
	add(r.figure(plot{title: "Failed, by outcome", unit: aSecond, wide: true, height: 140}, largest(failed, mostLines)))
	percentiles, heat, err := r.latency()
	r.err = cmp.Or(r.err, err)
	add(r.figure(plot{title: "Latency of replies", note: "each line is a quantile of every interval; logarithmic", unit: waits, wide: true, log: true, height: 200, noPeak: true}, percentiles))
	add(heat)
	return list
}

// after are courses from a moment on.
func after(list []course, from int64) (out []course) {
	for _, c := range list {
		c.points = slices.DeleteFunc(c.points, func(p svg.Point) bool { return p.Time <= from })
		if len(c.points) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// outcomes are good replies, other replies, and what got no reply, a second.
func (r *reader) outcomes() (replies, failed []course) {
	var good, bad []string
	all := r.courses("plimsoll_load_outcomes_total", rate, "outcome")
	for _, c := range all {
		if model.IsGood(c.name) {
			good = append(good, c.name)
		} else {
			bad = append(bad, c.name)
			c.name = strings.Replace(c.name, ":", " ", 1)
			failed = append(failed, c)
		}
	}
	sum := func(name string, of []string) {
		if c := summed(name, slices.DeleteFunc(slices.Clone(all), func(c course) bool { return !slices.Contains(of, c.name) })); len(c.points) > 0 {
			replies = append(replies, c)
		}
	}
	sum("good", good)
	sum("failed", bad)
	replies = append(replies, r.one("begun", "plimsoll_load_requests_total", rate)...)
	return replies, failed
}

// summed adds courses up at the times at which they were read.
func summed(name string, list []course) course {
	out := course{name: name}
	for _, c := range list {
		out.points = added(out.points, slices.Clone(c.points))
	}
	return out
}

// The heat map: columns of time, and rows that each reach a quarter higher than the one before.
const (
	heatColumns = 120
	heatStep    = 1.25
)

// latency reads the quantiles of each interval, and how the waits were spread over time.
func (r *reader) latency() ([]course, *Figure, error) {
	names := []string{"p50", "p90", "p99", "max"}
	quantiles := make([]course, len(names))
	for i, name := range names {
		quantiles[i].name = name
	}
	columns := min(heatColumns, max(1, int((r.last-r.first)/max(r.meta.Plan.Interval, 1))))
	spread := newSpread(columns)
	for in, err := range r.rec.Intervals() {
		if err != nil {
			return nil, nil, err
		}
		if in.Tag != "response" || in.Histogram.TotalCount() == 0 {
			continue
		}
		for i, q := range []float64{50, 90, 99, 100} {
			quantiles[i].points = append(quantiles[i].points, svg.Point{Time: in.End, Value: math.Max(float64(in.Histogram.ValueAtPercentile(q)), 1)})
		}
		at := float64((in.Start+in.End)/2-r.first) / float64(max(r.last-r.first, 1))
		spread.add(int(at*float64(columns)), in.Histogram)
	}
	if len(quantiles[0].points) == 0 {
		return nil, nil, nil
	}
	for _, q := range quantiles { // the intervals of two phases may overlap
		slices.SortStableFunc(q.points, func(a, b svg.Point) int { return cmp.Compare(a.Time, b.Time) })
	}
	slices.Reverse(quantiles)
	if spread.high < spread.low { // what there is lies before or after what is shown
		return quantiles, nil, nil
	}
	return quantiles, spread.figure(r), nil
}

// spread counts waits by column and by size.
type spread struct {
	counts    [][]int64 // by column, then by row from 1 µs on
	low, high int       // the rows that hold anything
}

func newSpread(columns int) *spread {
	return &spread{counts: make([][]int64, columns), low: math.MaxInt}
}

func (s *spread) add(column int, h *hdr.PackedHistogram) {
	if column < 0 || column >= len(s.counts) {
		return
	}
	for bar := range record.Bars(h) {
		row := int(math.Log(math.Max(float64(bar.To), 1)) / math.Log(heatStep))
		s.low, s.high = min(s.low, row), max(s.high, row)
		for len(s.counts[column]) <= row {
			s.counts[column] = append(s.counts[column], 0)
		}
		s.counts[column][row] += bar.Count
	}
}

// wholeDecades widens the map to a power of ten above and below, so that it has a scale.
func (s *spread) wholeDecades() {
	decade := math.Log(10) / math.Log(heatStep)
	s.low = int(math.Floor(math.Floor(float64(s.low)/decade) * decade))
	s.high = int(math.Ceil(math.Ceil(float64(s.high+1)/decade) * decade))
}

func (s *spread) figure(r *reader) *Figure {
	s.wholeDecades()
	h := svg.Heat{Low: math.Pow(heatStep, float64(s.low)), Step: heatStep, Rows: s.high - s.low, Counts: make([][]int64, len(s.counts))}
	for i, column := range s.counts {
		if len(column) > s.low {
			h.Counts[i] = column[s.low:]
		}
	}
	const title = "How latencies were spread"
	h.Chart = svg.Chart{Title: title, Desc: "a map of time and latency; the stronger, the more replies", From: r.first, To: r.last, Bands: r.bands(), Format: micros, Height: 200, Wide: true}
	return &Figure{Title: title, Note: "the stronger, the more replies; logarithmic in latency and in shade", SVG: drawn(h.String()), Wide: true}
}
