package record

import (
	"context"
	"fmt"
	"math"
	"strings"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"plimsoll/internal/model"
)

// The series that the load is computed from; package load declares them.
const (
	outcomesSeries = "plimsoll_load_outcomes_total"
	latencySeries  = "plimsoll_load_latency_seconds"
)

// loadSeries is one series of the load with what its labels say.
type loadSeries struct {
	phase, outcome, kind, quantile string
	points                         []Point
}

func (s loadSeries) last() float64 { return s.points[len(s.points)-1].Value }

// Load computes what the load saw from the series recorded. nil without an
// error means that the run had no load of ours.
func (r *Run) Load() (*model.Load, error) {
	if r.meta.Plan.Load == nil || !r.sampled {
		return nil, nil
	}
	outcomes, err := r.loadSeries(outcomesSeries)
	if err != nil {
		return nil, err
	}
	latencies, err := r.loadSeries(latencySeries)
	if err != nil {
		return nil, err
	}
	intervals, err := r.Intervals()
	if err != nil {
		return nil, err
	}
	l := &model.Load{Outcomes: map[string]int64{}, OtherPhases: map[string]int64{}}
	if hold, ok := r.Window(model.Hold); ok {
		l.Seconds = float64(hold.End-hold.Start) / 1000
	}
	calm := countOutcomes(l, outcomes)
	latency(l, latencies, calm)
	l.Latency.Mean = mean(intervals, "response")
	l.Service.Mean = mean(intervals, "service")
	l.Course = r.course(outcomes, intervals)
	return l, nil
}

// loadSeries reads all series of that name, in the order of their labels.
func (r *Run) loadSeries(name string) ([]loadSeries, error) {
	q, err := r.series.Querier(r.first, r.last)
	if err != nil {
		return nil, fmt.Errorf("%s: read %s: %w", r.dir, name, err)
	}
	defer q.Close()
	set := q.Select(context.Background(), true, nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", name))
	var list []loadSeries
	for set.Next() {
		lset := set.At().Labels()
		s := loadSeries{
			phase: lset.Get("phase"), outcome: lset.Get("outcome"),
			kind: lset.Get("kind"), quantile: lset.Get("quantile"),
		}
		it := set.At().Iterator(nil)
		for it.Next() == chunkenc.ValFloat {
			t, v := it.At()
			s.points = append(s.points, Point{Time: t, Value: v})
		}
		if err := it.Err(); err != nil {
			return nil, fmt.Errorf("%s: read %s: %w", r.dir, name, err)
		}
		if len(s.points) > 0 {
			list = append(list, s)
		}
	}
	if err := set.Err(); err != nil {
		return nil, fmt.Errorf("%s: read %s: %w", r.dir, name, err)
	}
	return list, nil
}

// isReply tells a status class ("2xx") from a failure ("read:timeout").
func isReply(outcome string) bool {
	return len(outcome) == 3 && outcome[0] >= '1' && outcome[0] <= '5' && outcome[1:] == "xx"
}

func isGood(outcome string) bool { return isReply(outcome) && outcome < "4xx" }

// countOutcomes fills in the counts of the hold phase and the rates, and
// returns how many replies the calm phase had.
func countOutcomes(l *model.Load, outcomes []loadSeries) (calm int64) {
	var replies, good int64
	for _, s := range outcomes {
		n := int64(s.last())
		if s.phase != model.Hold {
			l.OtherPhases[s.phase] += n
			if s.phase == model.Calm && isReply(s.outcome) {
				calm += n
			}
			continue
		}
		if n > 0 {
			l.Outcomes[s.outcome] += n
		}
		l.Requests += n
		if isReply(s.outcome) {
			replies += n
		}
		if isGood(s.outcome) {
			good += n
		}
	}
	if l.Seconds > 0 {
		l.RPS, l.GoodRPS = float64(replies)/l.Seconds, float64(good)/l.Seconds
	}
	if l.Requests > 0 {
		l.GoodShare = float64(good) / float64(l.Requests)
	}
	l.Latency.Count, l.Service.Count, l.Waited.Count = replies, replies, l.Requests
	return calm
}

// latency fills in the quantiles, which the load records cumulatively, so that
// the last value is that of the whole phase.
func latency(l *model.Load, latencies []loadSeries, calm int64) {
	l.Calm.Count = calm
	for _, s := range latencies {
		var into *model.Quantiles
		switch {
		case s.phase == model.Calm && s.kind == "response":
			into = &l.Calm
		case s.phase != model.Hold:
			continue
		case s.kind == "response":
			into = &l.Latency
		case s.kind == "waited":
			into = &l.Waited
		case s.kind == "service":
			into = &l.Service
		case s.kind == "connect":
			into = &l.Connect
			into.Count = max(into.Count, connects(l))
		default:
			continue
		}
		setQuantile(into, s.quantile, s.last()*1e6)
	}
}

// connects is how many connects at least succeeded: what failed later than in
// connecting, and every reply, had a connection; with keep-alive many share one,
// so there is one for certain.
func connects(l *model.Load) int64 {
	for outcome, n := range l.Outcomes {
		if n > 0 && !strings.HasPrefix(outcome, "connect:") {
			return 1
		}
	}
	return 0
}

func setQuantile(q *model.Quantiles, quantile string, micros float64) {
	switch quantile {
	case "0.5":
		q.P50 = micros
	case "0.9":
		q.P90 = micros
	case "0.99":
		q.P99 = micros
	case "0.999":
		q.P999 = micros
	case "1":
		q.Max = micros
	}
}

// mean is that of all intervals of a tag, in microseconds; 0 without any.
func mean(intervals []Interval, tag string) float64 {
	var sum float64
	var n int64
	for _, i := range intervals {
		if i.Tag == tag {
			sum += i.Histogram.Mean() * float64(i.Histogram.TotalCount())
			n += i.Histogram.TotalCount()
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// course tells the load second by second, whatever phase a request began in; a
// second in which nothing ended is a row of zeros. Readings come once a second
// and at the edges of windows; each counts for the whole second, since the
// load began, that it is nearest to.
func (r *Run) course(outcomes []loadSeries, intervals []Interval) []model.Second {
	start := int64(math.MaxInt64)
	for _, s := range outcomes {
		start = min(start, s.points[0].Time)
	}
	var list []model.Second
	for _, s := range outcomes {
		before := 0.0
		for _, p := range s.points {
			n := int64(p.Value - before)
			before = p.Value
			i := max((p.Time-start+500)/1000, 1)
			for int64(len(list)) < i && n > 0 {
				list = append(list, model.Second{Time: start + int64(len(list)+1)*1000})
			}
			if n > 0 {
				count(&list[i-1], s.outcome, n)
			}
		}
	}
	for i := range list {
		s := &list[i]
		s.P50, s.P99 = between(intervals, s.Time-500, s.Time+500)
		for _, w := range r.meta.Windows {
			if w.Start < s.Time && s.Time <= w.End+500 {
				s.Phase = w.Name
			}
		}
	}
	return list
}

func count(s *model.Second, outcome string, n int64) {
	if !isReply(outcome) {
		s.Failed += n
		return
	}
	s.Replies += n
	if isGood(outcome) {
		s.Good += n
	}
}

// between gives the median and the 99th percentile of the replies recorded
// after one moment and up to another, in microseconds; 0 without any.
func between(intervals []Interval, after, to int64) (p50, p99 float64) {
	var sum *hdr.Histogram
	for _, i := range intervals {
		if i.Tag != "response" || i.End <= after || i.End > to {
			continue
		}
		if sum == nil {
			sum = i.Histogram.Clone()
			continue
		}
		sum.Merge(i.Histogram)
	}
	if sum == nil {
		return 0, 0
	}
	return float64(sum.ValueAtQuantile(50)), float64(sum.ValueAtQuantile(99))
}
