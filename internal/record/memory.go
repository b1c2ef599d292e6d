package record

import (
	"context"
	"slices"
	"sort"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

// Point is one reading of a series; Time is Unix milliseconds.
type Point struct {
	Time  int64
	Value float64
}

// Memory is a small store of series in memory: what a run's write-ahead log
// held, or the series of a rule's test vector. The zero value is empty. Add
// must not be called while it is queried; queries may run at the same time.
type Memory struct {
	series []*memorySeries
}

// Add adds a series. Points must be in order of time; the caller gives them away.
func (m *Memory) Add(lset labels.Labels, points []Point) {
	m.series = append(m.series, &memorySeries{labels: lset, points: points})
}

// Sort brings the series into the order of their labels, which queries rely
// on. Call it once after the last Add.
func (m *Memory) Sort() {
	slices.SortStableFunc(m.series, func(a, b *memorySeries) int {
		return labels.Compare(a.labels, b.labels)
	})
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

func (s *memorySeries) span() (first, last int64, ok bool) {
	switch {
	case len(s.packed) > 0:
		return s.packed[0].first, s.packed[len(s.packed)-1].last, true
	case len(s.points) > 0:
		return s.points[0].Time, s.points[len(s.points)-1].Time, true
	}
	return 0, 0, false
}

// Querier implements storage.Queryable.
func (m *Memory) Querier(mint, maxt int64) (storage.Querier, error) {
	return &memoryQuerier{memory: m, mint: mint, maxt: maxt}, nil
}

type memoryQuerier struct {
	memory     *Memory
	mint, maxt int64
}

func (q *memoryQuerier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	set := &memorySet{at: -1}
	for _, s := range q.memory.series {
		if matches(s.labels, matchers) {
			set.series = append(set.series, s.cut(q.mint, q.maxt))
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

// memorySeries has points, or the same packed.
type memorySeries struct {
	labels   labels.Labels
	points   []Point
	packed   []packed
	appender chunkenc.Appender // to the last of packed
}

// cut returns the part of the series within [mint, maxt].
func (s *memorySeries) cut(mint, maxt int64) storage.Series {
	if len(s.packed) > 0 {
		return s.cutPacked(mint, maxt)
	}
	from := sort.Search(len(s.points), func(i int) bool { return s.points[i].Time >= mint })
	to := sort.Search(len(s.points), func(i int) bool { return s.points[i].Time > maxt })
	return &memorySeries{labels: s.labels, points: s.points[from:max(from, to)]}
}

func (s *memorySeries) Labels() labels.Labels { return s.labels }

func (s *memorySeries) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	return &memoryIterator{points: s.points, at: -1}
}

// millis is Unix milliseconds. It is an alias so that vet does not take
// chunkenc.Iterator's Seek for io.Seeker's.
type millis = int64

// memoryIterator implements chunkenc.Iterator over plain numbers.
type memoryIterator struct {
	points []Point
	at     int
}

func (it *memoryIterator) Next() chunkenc.ValueType {
	if it.at+1 >= len(it.points) {
		it.at = len(it.points)
		return chunkenc.ValNone
	}
	it.at++
	return chunkenc.ValFloat
}

func (it *memoryIterator) Seek(t millis) chunkenc.ValueType {
	from := max(it.at, 0)
	if from >= len(it.points) {
		return chunkenc.ValNone
	}
	rest := it.points[from:]
	it.at = from + sort.Search(len(rest), func(i int) bool { return rest[i].Time >= t })
	if it.at >= len(it.points) {
		return chunkenc.ValNone
	}
	return chunkenc.ValFloat
}

func (it *memoryIterator) At() (int64, float64) {
	p := it.points[it.at]
	return p.Time, p.Value
}

func (it *memoryIterator) AtHistogram(*histogram.Histogram) (int64, *histogram.Histogram) {
	return it.AtT(), nil
}

func (it *memoryIterator) AtFloatHistogram(*histogram.FloatHistogram) (int64, *histogram.FloatHistogram) {
	return it.AtT(), nil
}

func (it *memoryIterator) AtT() int64 { return it.points[it.at].Time }
func (*memoryIterator) AtST() int64   { return 0 }
func (*memoryIterator) Err() error    { return nil }
