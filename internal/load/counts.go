package load

import (
	"iter"
	"math/bits"
	"strconv"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// places are how many a histogram of newHistogram has: one for each microsecond up to 2 ms, from there on so many
	// for each doubling that they are within 0.1 %.
	places      = halfPlaces * 17
	halfPlaces  = 1 << halfBits
	halfBits    = 10
	placesInRow = 1 << 8
)

// counts is how often which duration came, by a histogram's places. A row of places is made when the first of its
// durations comes: a thread's durations lie in few rows, and a load has many histograms, of each thread, phase and kind, two times.
type counts [places / placesInRow]*[placesInRow]uint32

// add counts one, of so many microseconds, 0 to maxMicros.
func (c *counts) add(us int64) {
	doublings := max(bits.Len64(uint64(us))-halfBits-1, 0)
	place := doublings*halfPlaces + int(us>>doublings)
	row := &c[place/placesInRow]
	if *row == nil {
		*row = new([placesInRow]uint32)
	}
	(*row)[place%placesInRow]++
}

// all are the places that were counted in, in order, and how often.
func (c *counts) all() iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		for r, row := range c {
			if row == nil {
				continue
			}
			for i, n := range row {
				if n > 0 && !yield(r*placesInRow+i, int64(n)) {
					return
				}
			}
		}
	}
}

// empty says that nothing was counted.
func (c *counts) empty() bool {
	for range c.all() {
		return false
	}
	return true
}

// addTo adds all to a histogram of newHistogram.
func (c *counts) addTo(h *hdr.Histogram) {
	for place, n := range c.all() {
		doublings := max(place/halfPlaces-1, 0)
		// It is no more than maxMicros, so it cannot be refused.
		_ = h.RecordValues(int64(place-doublings*halfPlaces)<<doublings, n)
	}
}

// addCounts adds all to sum.
func (c *counts) addCounts(sum *counts) {
	for r, row := range c {
		if row == nil {
			continue
		}
		if sum[r] == nil {
			sum[r] = new([placesInRow]uint32)
		}
		for i, n := range row {
			sum[r][i] += n
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

// statuses are replies by their exact status. There are few of them, mostly one.
type statuses []statusCount

type statusCount struct {
	status int16
	n      int64
}

func (s *statuses) add(status int16, n int64) {
	for i := range *s {
		if (*s)[i].status == status {
			(*s)[i].n += n
			return
		}
	}
	*s = append(*s, statusCount{status, n})
}

// moveTo adds all to sum and leaves none.
func (s *statuses) moveTo(sum *statuses) {
	for i := range *s {
		sum.add((*s)[i].status, (*s)[i].n)
	}
	*s = (*s)[:0]
}

// named are their numbers, by "404" and the like.
func (s statuses) named() map[string]int64 {
	named := map[string]int64{}
	for _, one := range s {
		named[strconv.Itoa(int(one.status))] = one.n
	}
	return named
}
