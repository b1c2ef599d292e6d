package pipe

import (
	"math"
	"time"

	"plimsoll/internal/model"
)

// clockBook compares a collector's clock with the run's, as NTP does it: each answer
// tells when it was asked for and said by the one, and asked and heard by the other.
// Of several the one on the shortest way counts.
type clockBook struct {
	ahead    time.Duration // of the collector's clock, in whole milliseconds
	best     model.Clock   // of the answers since settle
	some     bool          // there was an answer
	readings []model.Clock
}

// maxReadings is of how many edges a run keeps what was measured there.
const maxReadings = 1000

// read takes an answer to what was asked at a time, and heard at another.
func (b *clockBook) read(asked time.Time, a answer, heard time.Time) {
	there, back := a.Heard-asked.UnixNano(), a.Said-heard.UnixNano()
	c := model.Clock{OffsetMS: float64(there+back) / 2e6, UncertaintyMS: math.Abs(float64(there-back)) / 2e6}
	if !b.some || c.UncertaintyMS < b.best.UncertaintyMS {
		b.best, b.some = c, true
	}
}

// settle keeps what was measured since the last time. The run's times follow it only
// where it contradicts what they follow: else that is as true.
func (b *clockBook) settle(now time.Time) {
	if !b.some {
		return
	}
	b.some = false
	b.best.Time = now.UnixMilli()
	ahead := time.Duration(math.Round(b.best.OffsetMS)) * time.Millisecond
	if off := b.best.OffsetMS - float64(b.ahead.Milliseconds()); len(b.readings) == 0 || math.Abs(off) > b.best.UncertaintyMS+0.5 {
		b.ahead, b.best.Followed = ahead, true
	}
	if len(b.readings) < maxReadings {
		b.readings = append(b.readings, b.best)
	}
}
