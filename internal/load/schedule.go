package load

import (
	"math"
	"slices"
	"time"

	"plimsoll/internal/model"
)

// phase is a part of the load's course; the first three are also the labels of requests.
type phase uint8

const (
	calm phase = iota
	ramp
	hold
	drain // nothing begins any more

	counted = int(drain) // phases in which requests begin
)

func (p phase) String() string {
	return [...]string{calm: model.Calm, ramp: model.Ramp, hold: model.Hold, drain: Drain}[p]
}

// never is later than any moment of a run.
const never = math.MaxInt64

// timeline is when the phases end, in nanoseconds since the start of the run.
type timeline struct {
	calm, ramp, hold int64
}

func newTimeline(p model.LoadPlan) timeline {
	var t timeline
	t.calm = millis(p.CalmMS)
	t.ramp = t.calm + millis(p.RampMS)
	t.hold = never
	if p.DurationMS > 0 {
		t.hold = t.ramp + millis(p.DurationMS)
	}
	return t
}

func millis(ms int64) int64 { return ms * int64(time.Millisecond) }

// at is the phase of a moment. A phase of no length is never met.
func (t timeline) at(now int64) phase {
	switch {
	case now < t.calm:
		return calm
	case now < t.ramp:
		return ramp
	case now < t.hold:
		return hold
	}
	return drain
}

// end is when p ends.
func (t timeline) end(p phase) int64 {
	return [...]int64{calm: t.calm, ramp: t.ramp, hold: t.hold, drain: never}[p]
}

// opens is when connection i of n opens: evenly over the ramp. When the calm
// phase exists, its only connection is connection 0.
func (t timeline) opens(i, n int) int64 {
	if i == 0 && t.calm > 0 {
		return 0
	}
	return t.calm + (t.ramp-t.calm)*int64(i)/int64(n)
}

const (
	// A thread that would have to wake twice or more often in the longest of these
	// times sends what comes due in one of them at its beginning; the higher the
	// rate, the shorter it is, so that the service gets no large bursts.
	shortestGrid = 100_000
	longestGrid  = 500_000
	gridBatch    = 10 // requests at once that are no large burst
	// mostEarly bounds how long before its time a thread is woken to send, and
	// on a grid sends.
	mostEarly = 60_000
)

// gridOf is the length of the steps in which a thread of that rate (requests per
// second) sends, in nanoseconds; 0 when each request has a moment of its own.
func gridOf(rate float64) int64 {
	if rate*longestGrid < 2e9 {
		return 0
	}
	return min(max(int64(gridBatch*1e9/rate), shortestGrid), longestGrid)
}

// arrivals are the planned times of an open loop's requests. Unless they are random, each is computed
// from its number, never from the one before, so that no error adds up.
type arrivals struct {
	stretches []stretch
	total     int64 // how many requests there are
	poisson   bool  // they are random; see draws
	seed      uint64
}

// stretch is a part of the course in which the rate stays what it is, or grows: the ramp, or a stage
// of the hold phase. One without requests is none.
type stretch struct {
	first, end int64 // numbers of its requests
	start      int64 // nanoseconds since the start of the run
	length     int64 // in which they are
	rate       float64
	// lead is what was due of the first request before the stretch began: its number is a whole one, the integral of
	// the rate need not be.
	lead  float64
	times []int64 // of each request, in microseconds since the start, where they were recorded
	grows bool    // the ramp, in which the rate grows in a straight line from nothing
	grid  int64   // of the time since its start; see gridOf
	early int64   // by how much a request may leave before its time
	stage uint8   // which one of the plan's
}

func newArrivals(p model.LoadPlan, t timeline) arrivals {
	a := arrivals{poisson: p.Arrivals == model.Poisson, seed: p.ArrivalsSeed}
	threads := float64(max(p.Threads, 1) * p.Part.Workers())
	if p.UnixSocket != "" {
		threads = math.Inf(1) // no grid: without the kernel's stamps each reply must be turned to when it comes
	}
	a.add(stretch{end: int64(p.Rate * float64(p.RampMS) / 1e3 / 2), start: t.calm, length: t.ramp - t.calm, rate: p.Rate, grows: true}, threads)
	ramp := a.total
	if r := p.Recorded; r != nil && r.Speed > 0 {
		n, _ := slices.BinarySearch(r.AtMicros, p.DurationMS*1000)
		a.add(stretch{first: ramp, end: ramp + int64(n), start: t.ramp, length: millis(p.DurationMS), rate: p.Rate, times: r.AtMicros}, threads)
		return a
	}
	due := 0.0 // the integral of the rate since hold began
	stages := append([]model.Stage{{Rate: p.Rate}}, p.Stages...)
	for i, s := range stages {
		h := stretch{first: ramp + whole(due), end: never, start: t.ramp + millis(s.AtMS), length: never / 2, rate: s.Rate, stage: uint8(i)}
		h.lead = max(float64(h.first-ramp)-due, 0)
		if end := stageEnd(p, stages, i); end > 0 {
			due += s.Rate * float64(end-s.AtMS) / 1e3
			h.end, h.length = ramp+whole(due), millis(end-s.AtMS)
		}
		if p.Requests > 0 && h.end-ramp > p.Requests {
			h.end = ramp + p.Requests
			// A time beyond all times (few requests a year) would not fit an int64.
			h.length = min(h.length, int64(max(min(float64(h.end-h.first)*1e9/s.Rate, never/2), 1)))
		}
		a.add(h, threads)
	}
	return a
}

// ramp is how many requests come before the hold phase.
func (a *arrivals) ramp() int64 {
	if len(a.stretches) > 0 && a.stretches[0].grows {
		return a.stretches[0].end
	}
	return 0
}

// stageEnd is when a stage ends, in milliseconds since hold began; 0 when nothing but the number of requests ends it.
func stageEnd(p model.LoadPlan, stages []model.Stage, i int) int64 {
	if i+1 < len(stages) {
		return stages[i+1].AtMS
	}
	return p.DurationMS
}

// whole is how many requests are due while the integral of the rate is below due. What sums of
// fractions are off by is no request.
func whole(due float64) int64 { return int64(math.Ceil(due - 1e-9)) }

// add appends a stretch that has requests.
func (a *arrivals) add(s stretch, threads float64) {
	if s.end <= s.first {
		return
	}
	if s.grid = gridOf(s.rate / threads); s.grid > 0 {
		s.early = mostEarly
	}
	a.stretches, a.total = append(a.stretches, s), s.end
}

// at is the planned time of request k of the stretch, in nanoseconds since the start of the run.
func (s *stretch) at(k int64) int64 {
	if s.times != nil {
		return s.start + s.onGrid(s.times[k-s.first]*1000)
	}
	if s.grows {
		length := float64(s.length) / 1e9
		// The integral of the growing rate is rate·t²/2length; ½ puts each request amid its share.
		return s.start + s.onGrid(int64(1e9*math.Sqrt(2*length*(float64(k)+0.5)/s.rate)))
	}
	return s.start + s.onGrid(int64(min((float64(k-s.first)+s.lead)*1e9/s.rate, float64(s.length-1))))
}

// onGrid is the beginning of the step that a time since the stretch's start falls into.
func (s *stretch) onGrid(t int64) int64 {
	if s.grid == 0 {
		return t
	}
	return t - t%s.grid
}
