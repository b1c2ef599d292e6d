package page

import (
	"cmp"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/model"
	"plimsoll/internal/page/svg"
	"plimsoll/internal/record"
)

// reader reads series of a run for drawing. The first error stays.
type reader struct {
	rec         *record.Run
	meta        model.Run
	first, last int64
	err         error
}

func newReader(rec *record.Run) (*reader, error) {
	first, last, err := rec.Span()
	return &reader{rec: rec, meta: rec.Meta(), first: first, last: last}, err
}

// course is one series as it is drawn, and what is said of it in numbers.
type course struct {
	name   string
	points []svg.Point
}

// form is what is made of a signal's readings.
type form int

const (
	level form = iota // as they are
	rate              // how much a counter grew a second
)

// courses reads a signal's series and adds up those that agree in the label by, "" for
// all of them, at the times at which they were read.
func (r *reader) courses(signal string, f form, by string, match ...string) []course {
	sums := map[string][]svg.Point{}
	for s, err := range r.rec.Series(r.first, r.last, record.Match(signal, match...)...) {
		if err != nil {
			r.err = cmp.Or(r.err, err)
			return nil
		}
		name := s.Labels.Get(by)
		list := s.Points
		if f == rate {
			list = rates(list, r.meta.Plan.Interval*3/5)
		}
		sums[name] = added(sums[name], points(list))
	}
	list := make([]course, 0, len(sums))
	for name, points := range sums {
		if len(points) > 0 {
			list = append(list, course{name, points})
		}
	}
	slices.SortFunc(list, func(a, b course) int { return cmp.Compare(a.name, b.name) })
	return list
}

// added adds two courses up, both in the order of time, at all the times at which either was read.
func added(a, b []svg.Point) []svg.Point {
	if len(a) == 0 {
		return b
	}
	sum := make([]svg.Point, 0, max(len(a), len(b)))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].Time == b[0].Time:
			sum = append(sum, svg.Point{Time: a[0].Time, Value: a[0].Value + b[0].Value})
			a, b = a[1:], b[1:]
		case a[0].Time < b[0].Time:
			sum, a = append(sum, a[0]), a[1:]
		default:
			sum, b = append(sum, b[0]), b[1:]
		}
	}
	return append(append(sum, a...), b...)
}

// rates are how much a counter grew a second, over at least so many milliseconds each:
// at the edges of windows two readings may be so close that a rate between them says
// nothing. Where the counter went back there is none.
func rates(points []record.Point, least int64) []record.Point {
	list := make([]record.Point, 0, len(points))
	for i, before := 1, points[0]; i < len(points); i++ {
		now := points[i]
		if now.Value >= before.Value {
			if now.Time-before.Time <= least {
				continue
			}
			list = append(list, record.Point{Time: now.Time, Value: (now.Value - before.Value) / float64(now.Time-before.Time) * 1000})
		}
		before = now
	}
	return list
}

// one is the sum of a signal's series, nil for none.
func (r *reader) one(name, signal string, f form, match ...string) []course {
	list := r.courses(signal, f, "", match...)
	for i := range list {
		list[i].name = name
	}
	return list
}

// scaled multiplies all values.
func scaled(list []course, by float64) []course {
	for _, c := range list {
		for i := range c.points {
			c.points[i].Value *= by
		}
	}
	return list
}

// largest keeps the n courses that reach highest, and drops those that are zero throughout.
func largest(list []course, n int) []course {
	list = slices.DeleteFunc(list, func(c course) bool { return !c.moves() })
	slices.SortStableFunc(list, func(a, b course) int { return cmp.Compare(b.peak(), a.peak()) })
	return list[:min(n, len(list))]
}

func (c course) moves() bool {
	return slices.ContainsFunc(c.points, func(p svg.Point) bool { return p.Value != 0 })
}

func (c course) peak() float64 {
	top := 0.0
	for _, p := range c.points {
		top = max(top, p.Value)
	}
	return top
}

// over returns the points within a window.
func (c course) over(w model.Window) []svg.Point {
	return slices.DeleteFunc(slices.Clone(c.points), func(p svg.Point) bool { return p.Time <= w.Start || p.Time > w.End })
}

// stats are the mean over a window and the peak in it. A reading counts for the time
// since the one before it.
func (c course) stats(w model.Window) (mean, peak float64, ok bool) {
	points := c.over(w)
	if len(points) == 0 {
		return 0, 0, false
	}
	before := w.Start
	for _, p := range points {
		mean += p.Value * float64(p.Time-before)
		peak = max(peak, p.Value)
		before = p.Time
	}
	return mean / float64(before-w.Start), peak, true
}

// gap is how far apart two readings of a course may be and still belong together:
// some probes are not read in each round.
func (c course) gap(interval int64) int64 {
	var steps []int64
	for i := 1; i < len(c.points); i++ {
		steps = append(steps, c.points[i].Time-c.points[i-1].Time)
	}
	if len(steps) == 0 {
		return 0
	}
	slices.Sort(steps)
	return 5 * max(steps[len(steps)/2], interval) / 2
}

func (r *reader) lines(list []course) []svg.Line {
	lines := make([]svg.Line, len(list))
	for i, c := range list {
		lines[i] = svg.Line{Name: c.name, Points: c.points, Gap: c.gap(r.meta.Plan.Interval)}
	}
	return lines
}

// bands are the run's windows.
func (r *reader) bands() []svg.Band {
	main := r.window()
	bands := make([]svg.Band, 0, len(r.meta.Windows))
	for _, w := range r.meta.Windows {
		bands = append(bands, svg.Band{Name: w.Name, Start: w.Start, End: w.End, Strong: w.Name == main.Name})
	}
	return bands
}

// window is what the verdict is about: hold, else all of the run.
func (r *reader) window() model.Window {
	if w, ok := r.rec.Window(model.Hold); ok {
		return w
	}
	return model.Window{Start: r.first, End: r.last}
}

// matchHost asks for a signal's series of one host.
func matchHost(signal, host string) []*labels.Matcher { return record.Match(signal, "host", host) }

func points(list []record.Point) []svg.Point {
	out := make([]svg.Point, len(list))
	for i, p := range list {
		out[i] = svg.Point{Time: p.Time, Value: p.Value}
	}
	return out
}
