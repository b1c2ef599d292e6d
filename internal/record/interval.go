package record

import (
	"iter"
	"math"
	"math/bits"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// Interval is one line of latency.hlog. Its histogram is others' as well, and is not to be changed.
type Interval struct {
	Tag        string // "response" or "service"
	Start, End int64  // Unix milliseconds
	Histogram  *hdr.PackedHistogram
}

// Bar is how many waits fell between two that a histogram takes for one, both included.
type Bar struct{ From, To, Count int64 }

// Bars are those of a histogram that hold anything, the least first.
func Bars(h *hdr.PackedHistogram) iter.Seq[Bar] {
	unit := bits.Len64(uint64(h.LowestTrackableValue())) - 1 // a power of two
	steps := int(math.Ceil(math.Log2(2 * math.Pow10(int(h.SignificantFigures())))))
	return func(yield func(Bar) bool) {
		for v, n := range h.ForEachBucket {
			// Waits of up to 2^steps units are told apart by one, up to twice as many by two, and so on.
			size := int64(1) << max(unit, bits.Len64(uint64(v))-steps)
			if !yield(Bar{v, v + size - 1, n}) {
				return
			}
		}
	}
}
