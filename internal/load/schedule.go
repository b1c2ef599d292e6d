package load

import (
	"math"
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
	longestGrid  = 400_000
	gridBatch    = 8 // requests at once that are no large burst
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
// from its number, never from the one before, so that no error adds up. In the
// ramp the rate grows in a straight line from nothing to its full value.
type arrivals struct {
	grid                 int64 // of the phase's time; see gridOf
	early                int64 // by how much a request may leave before its time
	rampStart, holdStart int64
	rate                 float64 // requests per second
	ramp                 int64   // how many belong to the ramp
	total                int64   // ramp and hold
	poisson              bool    // they are random; see draws
	seed                 uint64
	holdLength           int64 // in which the hold phase's are, where they are random
}

func newArrivals(p model.LoadPlan, t timeline) arrivals {
	a := arrivals{rampStart: t.calm, holdStart: t.ramp, rate: p.Rate, grid: gridOf(p.Rate / float64(max(p.Threads, 1)))}
	if a.grid > 0 {
		a.early = mostEarly
	}
	a.ramp = int64(p.Rate * float64(p.RampMS) / 1e3 / 2)
	planned := int64(never)
	if p.DurationMS > 0 {
		planned = int64(math.Ceil(p.Rate * float64(p.DurationMS) / 1e3)) // at most 1e8/s for a year
	}
	if p.Requests > 0 {
		planned = min(planned, p.Requests)
	}
	planned = min(planned, never-a.ramp)
	a.total = a.ramp + planned
	a.poisson, a.seed = p.Arrivals == model.Poisson, p.ArrivalsSeed
	a.holdLength = max(int64(min(float64(planned)*1e9/p.Rate, math.MaxInt64/2)), 1)
	if p.DurationMS > 0 {
		a.holdLength = min(a.holdLength, millis(p.DurationMS))
	}
	return a
}

// at is the planned time of request k, in nanoseconds since the start of the run.
func (a *arrivals) at(k int64) int64 {
	if k >= a.total {
		return never
	}
	if k < a.ramp {
		length := float64(a.holdStart-a.rampStart) / 1e9
		// The integral of the growing rate is rate·t²/2length; ½ puts each request amid its share.
		return a.rampStart + a.onGrid(int64(1e9*math.Sqrt(2*length*(float64(k)+0.5)/a.rate)))
	}
	// A time beyond all times (few requests a year) would not fit an int64.
	return a.holdStart + a.onGrid(int64(min(float64(k-a.ramp)*1e9/a.rate, math.MaxInt64/2)))
}

// onGrid is the beginning of the step that a time since its phase began falls into.
func (a *arrivals) onGrid(t int64) int64 {
	if a.grid == 0 {
		return t
	}
	return t - t%a.grid
}
