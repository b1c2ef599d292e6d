package requests

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

// Buckets counts times in slots of four for each doubling: the first holds what is
// under 1 µs, the last what is longer than 67 s.
type Buckets []uint64

const (
	unit   = 250 * time.Nanosecond
	parts  = 4 // of each doubling
	nSlots = len(bpfSums{}.InHand)
)

// Bound is what all times of a slot lie under; the last slot has none.
func (Buckets) Bound(slot int) time.Duration {
	if slot == 0 {
		return parts * unit
	}
	doubled, part := (slot-1)/parts, (slot-1)%parts
	return time.Duration(parts+part+1) * unit << doubled
}

// Count is how many times there are.
func (b Buckets) Count() uint64 {
	var n uint64
	for _, v := range b {
		n += v
	}
	return n
}

// Quantile is the bound under which the share q of all times lies, at most a quarter
// above the true value. It is false if there are none, or if it is the last slot's.
func (b Buckets) Quantile(q float64) (time.Duration, bool) {
	want, sum := uint64(math.Ceil(q*float64(b.Count()))), uint64(0)
	for slot, n := range b[:max(len(b)-1, 0)] {
		if sum += n; n > 0 && sum >= want {
			return b.Bound(slot), true
		}
	}
	return 0, false
}

// Under words Quantile: "-" if there are no times.
func (b Buckets) Under(q float64) string {
	if b.Count() == 0 {
		return "-"
	}
	if d, ok := b.Quantile(q); ok {
		return layout.Micros(float64(d) / float64(time.Microsecond))
	}
	return "longer"
}

// Put puts the buckets as Prometheus wants them, the label le last. Those under
// which nothing lies yet are left out; their signal starts at zero.
func (b Buckets) Put(out model.Sink, s *model.Signal, labels ...string) {
	values := append(append([]string(nil), labels...), "")
	sum := uint64(0)
	for slot, n := range b {
		if sum += n; sum == 0 {
			continue
		}
		le := "+Inf"
		if slot < len(b)-1 {
			le = strconv.FormatFloat(b.Bound(slot).Seconds(), 'g', -1, 64)
		}
		values[len(values)-1] = le
		out.Put(s, float64(sum), values...)
	}
}

// MarshalJSON writes those that hold something, each with the bound in seconds
// under which it lies; null is no bound.
func (b Buckets) MarshalJSON() ([]byte, error) {
	type bucket struct {
		Under *float64 `json:"under"`
		Count uint64   `json:"count"`
	}
	list := []bucket{}
	for slot, n := range b {
		if n == 0 {
			continue
		}
		one := bucket{Count: n}
		if slot < len(b)-1 {
			bound := b.Bound(slot).Seconds()
			one.Under = &bound
		}
		list = append(list, one)
	}
	return json.Marshal(list)
}

// Times are durations: their sum, and how they lie.
type Times struct {
	Sum     time.Duration `json:"sum_ns"`
	Buckets Buckets       `json:"buckets"`
}

func makeTimes(ns uint64, slots [nSlots]uint64) Times {
	return Times{time.Duration(ns), slots[:]}
}

// Mean is a dash where there are none.
func (t Times) Mean() string { return trace.Mean(t.Sum, t.Buckets.Count()) }
