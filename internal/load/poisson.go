package load

import (
	"math"
	"math/rand/v2"
)

// planned gives a thread's requests their times, one after the other. at is asked for once of each
// of the thread's requests, in their order.
type planned struct {
	stretch *stretch // that of the request asked for last
	rest    []stretch
	draws   *draws // where arrivals are random
}

// of is the planned times of one of stride threads. Each who walks through them needs one.
func (a *arrivals) of(id int, stride int64) planned {
	p := planned{stretch: &stretch{}, rest: a.stretches}
	if a.poisson {
		p.draws = newDraws(a.seed, id, stride)
	}
	return p
}

// at is the planned time of request k, in nanoseconds since the start of the run.
func (p *planned) at(k int64) int64 {
	for k >= p.stretch.end {
		if len(p.rest) == 0 {
			return never
		}
		p.stretch, p.rest = &p.rest[0], p.rest[1:]
		if p.draws != nil {
			p.draws.begin(p.stretch, k)
		}
	}
	if p.draws != nil {
		return p.draws.next(p.stretch)
	}
	return p.stretch.at(k)
}

// draws are the planned times of one thread's requests where arrivals are a Poisson
// process, in the order of the requests. In each stretch there are exactly as many as the
// rate asks for; given their number, a Poisson process's times are so many random
// points, sorted. Each is drawn from the one before and from how many are left (Bentley and Saxe,
// "Generating Sorted Lists of Random Numbers", 1980), so nothing is kept but where it stands.
type draws struct {
	stride int64 // every so manyth request is this thread's
	random *rand.Rand
	left   int64   // of the stretch, for this thread
	rest   float64 // the logarithm of the share of the stretch that is not over
}

// newDraws are the draws of a thread; those with the same seed are the same.
func newDraws(seed uint64, id int, stride int64) *draws {
	return &draws{stride: stride, random: rand.New(rand.NewPCG(seed, uint64(id)))}
}

// begin turns to a stretch, of which request k is the thread's first.
func (d *draws) begin(s *stretch, k int64) {
	d.rest, d.left = 0, (s.end-k+d.stride-1)/d.stride
}

// next is the planned time of the thread's next request in the stretch.
func (d *draws) next(s *stretch) int64 {
	d.rest -= d.random.ExpFloat64() / float64(d.left)
	d.left--
	share := -math.Expm1(d.rest)
	if s.grows {
		share = math.Sqrt(share) // the rate grows in a straight line
	}
	return s.start + s.onGrid(min(int64(share*float64(s.length)), s.length-1))
}
