package record

import (
	"context"
	"fmt"
	"iter"
	"sort"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// Series is one series of a run: its labels and its readings, in the order of time.
// It has one reading at least.
type Series struct {
	Labels labels.Labels
	Points []Point
}

// Series reads the series that fit all of match, in the order of their labels, each
// with its readings from one time to another (Unix milliseconds, both included). One
// that was not read meanwhile is left out. The first error ends it.
func (r *Run) Series(from, to int64, match ...*labels.Matcher) iter.Seq2[Series, error] {
	return func(yield func(Series, error) bool) {
		q, err := r.series.Querier(from, to)
		if err != nil {
			yield(Series{}, r.unread(err))
			return
		}
		defer q.Close()
		set := q.Select(context.Background(), true, nil, match...)
		var it chunkenc.Iterator
		size := 0
		for set.Next() {
			s := Series{Labels: set.At().Labels(), Points: make([]Point, 0, size)} // most were read as often as the one before
			it = set.At().Iterator(it)
			for it.Next() == chunkenc.ValFloat {
				t, v := it.At()
				s.Points = append(s.Points, Point{Time: t, Value: v})
			}
			if err := it.Err(); err != nil {
				yield(Series{}, r.unread(fmt.Errorf("%s: %w", s.Labels, err)))
				return
			}
			size = len(s.Points)
			if size > 0 && !yield(s, nil) {
				return
			}
		}
		if err := set.Err(); err != nil {
			yield(Series{}, r.unread(err))
		}
	}
}

func (r *Run) unread(err error) error { return fmt.Errorf("%s: read the series: %w", r.dir, err) }

// Match is what Series is to be asked for: a signal's series whose labels are as
// pairs says: name, value, name, value. An empty value fits a label that is not there.
func Match(signal string, pairs ...string) []*labels.Matcher {
	match := []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, labels.MetricName, signal)}
	for i := 0; i+1 < len(pairs); i += 2 {
		match = append(match, labels.MustNewMatcher(labels.MatchEqual, pairs[i], pairs[i+1]))
	}
	return match
}

// Last is the value of the last reading.
func (s Series) Last() float64 { return s.Points[len(s.Points)-1].Value }

// Increase is how much a counter grew over a window: the difference of the readings
// at its edges, which are the last at or before each. A counter that went back began
// anew at zero.
func (s Series) Increase(from, to int64) float64 {
	sum := 0.0
	for i := s.at(from) + 1; i < len(s.Points) && s.Points[i].Time <= to; i++ {
		d := s.Points[i].Value - s.Points[i-1].Value
		if d < 0 {
			d = s.Points[i].Value
		}
		sum += d
	}
	return sum
}

// at returns the index of the last reading at or before t, else the first one's.
func (s Series) at(t int64) int {
	return max(sort.Search(len(s.Points), func(i int) bool { return s.Points[i].Time > t })-1, 0)
}

// Mean is the mean of a level over a window. A reading counts for the time since
// the one before it.
func (s Series) Mean(from, to int64) float64 {
	sum := 0.0
	before := from
	for _, p := range s.Points {
		if p.Time <= from || p.Time > to {
			continue
		}
		sum += p.Value * float64(p.Time-before)
		before = p.Time
	}
	if to <= from {
		return 0
	}
	return sum / float64(to-from)
}

// Rates are how much a counter grew a second, at each reading since the one before
// it; where it went back there is none.
func (s Series) Rates() []Point {
	var list []Point
	for i := 1; i < len(s.Points); i++ {
		before, now := s.Points[i-1], s.Points[i]
		if now.Time > before.Time && now.Value >= before.Value {
			list = append(list, Point{Time: now.Time, Value: (now.Value - before.Value) / float64(now.Time-before.Time) * 1000})
		}
	}
	return list
}
