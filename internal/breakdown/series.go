package breakdown

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// reader reads what a run holds about its hold window.
type reader struct {
	meta        model.Run
	store       storage.Queryable
	first, last int64 // of the run
	from, to    int64 // the hold window
	failed      error // the first error of the store
	read        map[string][]line
	listening   []process // nil before listeners
}

// line is one series.
type line struct {
	labels labels.Labels
	points []record.Point
}

// lines returns the series of a signal whose labels are as pairs says: name,
// value, name, value. An empty value matches a label that is not there. What
// was read once is kept: the same is asked of one process after the other.
func (r *reader) lines(signal string, pairs ...string) []line {
	key := signal + "\x00" + strings.Join(pairs, "\x00")
	list, known := r.read[key]
	if !known {
		list = r.readLines(signal, pairs)
		if r.read == nil {
			r.read = map[string][]line{}
		}
		r.read[key] = list
	}
	return list
}

func (r *reader) readLines(signal string, pairs []string) []line {
	q, err := r.store.Querier(r.first, r.last)
	if err != nil {
		r.fail(signal, err)
		return nil
	}
	defer q.Close()
	match := []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, labels.MetricName, signal)}
	for i := 0; i+1 < len(pairs); i += 2 {
		match = append(match, labels.MustNewMatcher(labels.MatchEqual, pairs[i], pairs[i+1]))
	}
	var list []line
	set := q.Select(context.Background(), true, nil, match...)
	for set.Next() {
		l := line{labels: set.At().Labels()}
		it := set.At().Iterator(nil)
		for it.Next() == chunkenc.ValFloat {
			t, v := it.At()
			l.points = append(l.points, record.Point{Time: t, Value: v})
		}
		r.fail(signal, it.Err())
		if len(l.points) > 0 {
			list = append(list, l)
		}
	}
	r.fail(signal, set.Err())
	return list
}

func (r *reader) fail(signal string, err error) {
	if err != nil && r.failed == nil {
		r.failed = fmt.Errorf("read %s: %w", signal, err)
	}
}

// unseen says why a signal tells nothing of a host, "" when it does. What a
// run says of it counts; one that was never tried may still have series.
func (r *reader) unseen(host, signal string) string {
	st, tried := r.meta.Status[host][signal]
	switch {
	case !tried && len(r.lines(signal, "host", host)) > 0, tried && st.State == model.Read:
		return ""
	case !tried:
		return fmt.Sprintf("%s was not looked for on %s", signal, host)
	case st.Why == "":
		return fmt.Sprintf("%s: %s on %s", signal, st.State, host)
	}
	return fmt.Sprintf("%s: %s", signal, st.Why)
}

// measured is a number, or the reason why there is none.
type measured struct {
	value float64
	why   string
}

func (m measured) known() bool { return m.why == "" }

// over divides; of nothing nothing is known.
func (m measured) over(n float64, of string) measured {
	if m.known() && n <= 0 {
		return measured{why: "there were no " + of + " in the window"}
	}
	return measured{value: m.value / n, why: m.why}
}

// increase is how much a counter grew on a host over the hold window, all
// series that match added up.
func (r *reader) increase(host, signal string, pairs ...string) measured {
	if why := r.unseen(host, signal); why != "" {
		return measured{why: why}
	}
	var sum measured
	for _, l := range r.lines(signal, append([]string{"host", host}, pairs...)...) {
		sum.value += l.increase(r.from, r.to)
	}
	return sum
}

// mean is the mean of a level on a host over the hold window, all series that
// match added up. A reading counts for the time since the one before it.
func (r *reader) mean(host, signal string, pairs ...string) measured {
	if why := r.unseen(host, signal); why != "" {
		return measured{why: why}
	}
	var sum measured
	for _, l := range r.lines(signal, append([]string{"host", host}, pairs...)...) {
		sum.value += l.mean(r.from, r.to)
	}
	return sum
}

// since returns the index of the last reading at or before t, else the first one's.
func (l line) since(t int64) int {
	return max(sort.Search(len(l.points), func(i int) bool { return l.points[i].Time > t })-1, 0)
}

// increase is the difference of the readings at the window's edges: the last at
// or before each. A counter that went back began anew at zero.
func (l line) increase(from, to int64) float64 {
	sum := 0.0
	for i := l.since(from) + 1; i < len(l.points) && l.points[i].Time <= to; i++ {
		d := l.points[i].Value - l.points[i-1].Value
		if d < 0 {
			d = l.points[i].Value
		}
		sum += d
	}
	return sum
}

// mean weighs each reading with the time since the one before it.
func (l line) mean(from, to int64) float64 {
	sum := 0.0
	before := from
	for _, p := range l.points {
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

func (l line) last() float64 { return l.points[len(l.points)-1].Value }
