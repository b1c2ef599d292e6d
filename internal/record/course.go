package record

import (
	"slices"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll/internal/model"
)

// maxCourse is the longest load whose seconds are told one by one, in milliseconds.
const maxCourse = 7 * 24 * 3600 * 1000

// Course tells a load second by second, whatever phase a request began in: that of a
// run that was made, or of one that lasts. A second in which nothing ended is a row of
// zeros. A nil Course takes what it is told, and has no seconds.
type Course struct {
	start     int64
	list      []model.Second
	quantiles map[int64]quantiles // by second
	at        int64               // the second of sum
	sum       *hdr.PackedHistogram
}

type quantiles struct{ p50, p99 float64 }

// NewCourse begins a course at the time of the first reading of outcomes, in Unix milliseconds.
func NewCourse(start int64) *Course {
	return &Course{start: start, quantiles: map[int64]quantiles{}}
}

// Outcome counts n more requests that ended so by the reading at t. Readings come once a
// second and at the edges of windows; each counts for the whole second, since the
// load began, that it is nearest to.
func (c *Course) Outcome(outcome string, t, n int64) {
	if c == nil || n <= 0 || t-c.start > maxCourse {
		return
	}
	i := max((t-c.start+500)/1000, 1)
	for int64(len(c.list)) < i {
		c.list = append(c.list, model.Second{Time: c.start + int64(len(c.list)+1)*1000})
	}
	count(&c.list[i-1], outcome, n)
}

func count(s *model.Second, outcome string, n int64) {
	if !model.IsReply(outcome) {
		s.Failed += n
		return
	}
	s.Replies += n
	if model.IsGood(outcome) {
		s.Good += n
	}
}

// Latency adds the replies of an interval. Intervals come in the order of time,
// several in a second where a phase ends in it.
func (c *Course) Latency(i Interval) {
	if c == nil || i.End <= c.start+500 || i.End-c.start > maxCourse {
		return
	}
	// The second that ends nearest: no more than half a second before the interval, nor
	// half a second after it.
	at := (i.End - c.start - 501) / 1000
	if c.sum == nil || c.at != at {
		c.at, c.sum = at, i.Histogram
	} else {
		c.sum = c.sum.Clone() // others look at what was handed in
		c.sum.Merge(i.Histogram)
	}
	c.quantiles[at] = quantiles{float64(c.sum.ValueAtPercentile(50)), float64(c.sum.ValueAtPercentile(99))}
}

// Seconds is the course so far, with the windows of the run so far; one that is open has no end yet.
func (c *Course) Seconds(windows []model.Window) []model.Second {
	if c == nil {
		return nil
	}
	list := slices.Clone(c.list)
	for i := range list {
		s := &list[i]
		for _, w := range windows {
			if w.Start < s.Time && (w.End == 0 || s.Time <= w.End+500) {
				s.Phase = w.Name
			}
		}
		q := c.quantiles[int64(i)]
		s.P50, s.P99 = q.p50, q.p99
	}
	return list
}
