package load

import (
	"math"
	"math/rand/v2"
)

// planned gives a thread's requests their times, one after the other: at(k) for each
// of its k, in their order.
type planned interface{ at(k int64) int64 }

// of is the planned times of one of stride threads. Each who walks through them needs one.
func (a *arrivals) of(id int, stride int64) planned {
	if a.poisson {
		return newDraws(a, id, stride)
	}
	return a
}

// draws are the planned times of one thread's requests where arrivals are a Poisson
// process, in the order of the requests. In each phase there are exactly as many as the
// rate asks for; given their number, a Poisson process's times are so many random
// points, sorted. Each is drawn from the one before and from how many are left (Bentley and Saxe,
// "Generating Sorted Lists of Random Numbers", 1980), so nothing is kept but where it stands.
type draws struct {
	arrivals *arrivals
	stride   int64 // every so manyth request is this thread's
	random   *rand.Rand
	left     int64   // of the phase, for this thread
	rest     float64 // the logarithm of the share of the phase that is not over
}

// newDraws are the draws of a thread; those with the same seed are the same.
func newDraws(a *arrivals, id int, stride int64) *draws {
	return &draws{arrivals: a, stride: stride, random: rand.New(rand.NewPCG(a.seed, uint64(id)))}
}

// at is the planned time of request k, to be asked for once of each of the thread's, in their order.
func (d *draws) at(k int64) int64 {
	a := d.arrivals
	if k >= a.total {
		return never
	}
	start, length, first, end := a.holdStart, a.holdLength, a.ramp, a.total
	if k < a.ramp {
		start, length, first, end = a.rampStart, a.holdStart-a.rampStart, 0, a.ramp
	}
	if k < first+d.stride { // the thread's first of the phase
		d.rest, d.left = 0, (end-k+d.stride-1)/d.stride
	}
	d.rest -= d.random.ExpFloat64() / float64(d.left)
	d.left--
	share := -math.Expm1(d.rest)
	if k < a.ramp {
		share = math.Sqrt(share) // the rate grows in a straight line
	}
	return start + a.onGrid(min(int64(share*float64(length)), length-1))
}
