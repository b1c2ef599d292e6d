package load

import (
	"math/bits"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

const (
	placesInRow = 1 << 10
	rowBits     = 10
	// rows hold durations up to maxMicros: one row each for the first 2¹⁰ and the next 2¹⁰ µs, and one for each doubling from there.
	rows = 17
)

// counts is how often a thread saw which duration, by the places that a histogram of newHistogram has: one for each
// microsecond up to 2 ms, from there on within 0.1 %. A row of places is made when the first of its durations comes: a thread's durations lie in
// few of them, and a load has many histograms, of each thread, phase and kind, two times.
type counts [rows]*[placesInRow]uint32

// add counts one, of so many microseconds, 0 to maxMicros.
func (c *counts) add(us int64) {
	shift := max(bits.Len64(uint64(us))-rowBits-1, 0)
	i := shift<<rowBits + int(us>>shift)
	row := c[i>>rowBits]
	if row == nil {
		row = new([placesInRow]uint32)
		c[i>>rowBits] = row
	}
	row[i%placesInRow]++
}

// addTo adds all to a histogram of newHistogram.
func (c *counts) addTo(h *hdr.Histogram) {
	for r, row := range c {
		if row == nil {
			continue
		}
		shift := max(r-1, 0)
		for i, n := range row {
			if n > 0 {
				// It is no more than maxMicros, so it cannot be refused.
				_ = h.RecordValues(int64(r<<rowBits+i-shift<<rowBits)<<shift, int64(n))
			}
		}
	}
}

// clear forgets all, and keeps the rows.
func (c *counts) clear() {
	for _, row := range c {
		if row != nil {
			clear(row[:])
		}
	}
}

// endings are the requests that ended, by outcome, and for how long users waited. A kind's are made when it is first needed.
type endings [outcomes >> 8]*[1 << 8]summed

// of are the requests of one outcome.
func (e *endings) of(o outcome) *summed {
	kind := e[o>>8]
	if kind == nil {
		kind = new([1 << 8]summed)
		e[o>>8] = kind
	}
	return &kind[o&0xff]
}

// all calls f for each outcome that there was.
func (e *endings) all(f func(outcome, *summed)) {
	for kind, details := range e {
		if details == nil {
			continue
		}
		for detail := range details {
			if s := &details[detail]; s.n > 0 {
				f(outcome(kind<<8|detail), s)
			}
		}
	}
}

// moveTo adds all to sum and leaves none.
func (e *endings) moveTo(sum *endings) {
	e.all(func(o outcome, s *summed) { s.moveTo(sum.of(o)) })
}

// named are their numbers, by name.
func (e *endings) named() map[string]int64 {
	named := map[string]int64{}
	e.all(func(o outcome, s *summed) { named[o.String()] = s.n })
	return named
}

// seconds are how long users waited for each outcome that anybody waited for, by name.
func (e *endings) seconds() map[string]float64 {
	named := map[string]float64{}
	e.all(func(o outcome, s *summed) {
		if s.nanos > 0 {
			named[o.String()] = float64(s.nanos) / 1e9
		}
	})
	return named
}
