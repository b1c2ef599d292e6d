package record

import (
	"context"
	"iter"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// Memory is a store of series in memory: what a run's write-ahead log
// held, or the series of a rule's test vector; of a run's blocks the labels, and where the chunks are. The zero value is empty. Add
// must not be called while it is queried; queries may run at the same time.
type Memory struct {
	series []*memorySeries
	names  map[string][]*memorySeries // the same by name, once sorted
}

// Add adds a series. Points must be in order of time; the caller gives them away.
func (m *Memory) Add(lset labels.Labels, points []Point) {
	m.series = append(m.series, &memorySeries{labels: lset, points: points})
}

// Len is how many series there are.
func (m *Memory) Len() int { return len(m.series) }

// Firsts are the series that were added, each with its first point.
func (m *Memory) Firsts() iter.Seq2[labels.Labels, Point] {
	return func(yield func(labels.Labels, Point) bool) {
		for _, s := range m.series {
			if len(s.points) > 0 && !yield(s.labels, s.points[0]) {
				return
			}
		}
	}
}

// Sort brings the series into the order of their labels, which queries rely
// on, and notes their names. Call it once after the last Add.
func (m *Memory) Sort() {
	slices.SortStableFunc(m.series, func(a, b *memorySeries) int {
		return labels.Compare(a.labels, b.labels)
	})
	m.names = map[string][]*memorySeries{}
	for _, s := range m.series {
		name := s.labels.Get(labels.MetricName)
		m.names[name] = append(m.names[name], s)
	}
}

// among returns the series of the name that is asked for, all where none is.
func (m *Memory) among(matchers []*labels.Matcher) []*memorySeries {
	for _, match := range matchers {
		if m.names != nil && match.Name == labels.MetricName && match.Type == labels.MatchEqual {
			return m.names[match.Value]
		}
	}
	return m.series
}

// Span returns the times of the first and the last point of all, and false
// when there is none.
func (m *Memory) Span() (first, last int64, ok bool) {
	for _, s := range m.series {
		from, to, any := s.span()
		if !any {
			continue
		}
		if !ok {
			first, last, ok = from, to, true
		}
		first, last = min(first, from), max(last, to)
	}
	return first, last, ok
}

// Querier implements storage.Queryable.
func (m *Memory) Querier(mint, maxt int64) (storage.Querier, error) {
	return &memoryQuerier{memory: m, mint: mint, maxt: maxt}, nil
}

type memoryQuerier struct {
	memory     *Memory
	mint, maxt int64
}

// Select leaves out packed series that have no chunk in the time that is asked for.
func (q *memoryQuerier) Select(_ context.Context, _ bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	mint, maxt := q.mint, q.maxt
	if hints != nil { // a part of the query needs less than the whole
		mint, maxt = hints.Start, hints.End
	}
	set := &memorySet{at: -1}
	for _, s := range q.memory.among(matchers) {
		if s.within(mint, maxt) && matches(s.labels, matchers) {
			set.series = append(set.series, s.cut(mint, maxt, hints))
		}
	}
	return set
}

func matches(lset labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(lset.Get(m.Name)) {
			return false
		}
	}
	return true
}

func (q *memoryQuerier) LabelValues(_ context.Context, name string, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	var values []string
	for _, s := range q.memory.series {
		if v := s.labels.Get(name); v != "" && matches(s.labels, matchers) {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	return slices.Compact(values), nil, nil
}

func (q *memoryQuerier) LabelNames(_ context.Context, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	var names []string
	for _, s := range q.memory.series {
		if matches(s.labels, matchers) {
			s.labels.Range(func(l labels.Label) { names = append(names, l.Name) })
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil, nil
}

func (*memoryQuerier) Close() error { return nil }

type memorySet struct {
	series []storage.Series
	at     int
}

func (s *memorySet) Next() bool                      { s.at++; return s.at < len(s.series) }
func (s *memorySet) At() storage.Series              { return s.series[s.at] }
func (*memorySet) Err() error                        { return nil }
func (*memorySet) Warnings() annotations.Annotations { return nil }
