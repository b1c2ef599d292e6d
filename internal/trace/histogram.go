package trace

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/model"
)

// Histogram counts times by powers of two: slot 0 those under 1 µs, slot n those
// in [2^(n-1), 2^n) µs, the last slot all that are longer.
type Histogram []uint64

// Bound is what all times of a slot lie under; the last slot has none.
func (Histogram) Bound(slot int) time.Duration { return time.Microsecond << slot }

// Count is how many times there are.
func (h Histogram) Count() uint64 {
	var n uint64
	for _, v := range h {
		n += v
	}
	return n
}

// Quantile returns the bound under which the share q of all times lies: at most
// twice the true value. It is false if there are none, or if it lies in the last
// slot, which has no bound.
func (h Histogram) Quantile(q float64) (time.Duration, bool) {
	total := h.Count()
	if total == 0 {
		return 0, false
	}
	want, sum := uint64(math.Ceil(q*float64(total))), uint64(0)
	for i, v := range h[:len(h)-1] {
		if sum += v; sum >= want {
			return h.Bound(i), true
		}
	}
	return 0, false
}

// Put puts the buckets as Prometheus wants them: each with all that lies under
// its bound, the label le last. Those that hold nothing yet are left out; their
// signal starts at zero.
func (h Histogram) Put(out model.Sink, s *model.Signal, labels ...string) {
	values := append(append([]string(nil), labels...), "")
	sum := uint64(0)
	for i, v := range h {
		if sum += v; sum == 0 {
			continue
		}
		le := "+Inf"
		if i < len(h)-1 {
			le = strconv.FormatFloat(h.Bound(i).Seconds(), 'g', -1, 64)
		}
		values[len(values)-1] = le
		out.Put(s, float64(sum), values...)
	}
}

// Comm makes a command's name, as the kernel keeps it, text.
func Comm(raw []byte) string {
	if end := bytes.IndexByte(raw, 0); end >= 0 {
		raw = raw[:end]
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD")
}
