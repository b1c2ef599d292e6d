// Package clock compares the clock of another process, on another machine maybe, with ours, as
// NTP does it.
package clock

import (
	"math"
	"time"

	"plimsoll/internal/model"
)

// Ours is a wall clock that nobody can set: as it stood when it was made, plus what has passed since.
func Ours() func() time.Time {
	began := time.Now()
	return func() time.Time { return began.Add(time.Since(began)) }
}

// Of is what one answer tells: it was asked and heard at times of ours, in between heard and said at times of
// the other clock, in Unix nanoseconds. The error is half of the way there and back.
func Of(asked, heard time.Time, theyHeard, theySaid int64) model.Clock {
	there, back := theyHeard-asked.UnixNano(), theySaid-heard.UnixNano()
	return model.Clock{OffsetMS: float64(there+back) / 2e6, UncertaintyMS: math.Abs(float64(there-back)) / 2e6}
}

// drift is by how much two clocks may part that are each run by a quartz of its own, or steered by different servers.
const drift = 100e-6

// aged is a reading as well as it is known so long afterwards.
func aged(c model.Clock, since time.Duration) model.Clock {
	c.UncertaintyMS += drift * max(0, since.Seconds()*1e3)
	return c
}

// Book compares a clock with that of a run. Of several answers the one that tells most counts: on a short way, and not long ago.
type Book struct {
	ahead    time.Duration // of the other clock, in whole milliseconds
	best     model.Clock   // of the answers since Settle
	heard    time.Time     // when best came
	some     bool          // there was an answer
	readings []model.Clock
}

// maxReadings is of how many edges a run keeps what was measured there.
const maxReadings = 1000

// Read takes an answer; see Of.
func (b *Book) Read(asked, heard time.Time, theyHeard, theySaid int64) {
	c := aged(Of(asked, heard, theyHeard, theySaid), heard.Sub(asked)) // it was so at some time on the way
	if !b.some || c.UncertaintyMS < aged(b.best, heard.Sub(b.heard)).UncertaintyMS {
		b.best, b.heard, b.some = c, heard, true
	}
}

// Settle keeps what was measured since the last time. The run's times follow it only
// where it contradicts what they follow: else that is as true.
func (b *Book) Settle(now time.Time) {
	if !b.some {
		return
	}
	b.best, _ = b.Best(now)
	b.some = false
	ahead := time.Duration(math.Round(b.best.OffsetMS)) * time.Millisecond
	if off := b.best.OffsetMS - float64(b.ahead.Milliseconds()); len(b.readings) == 0 || math.Abs(off) > b.best.UncertaintyMS+0.5 {
		b.ahead, b.best.Followed = ahead, true
	}
	if len(b.readings) < maxReadings {
		b.readings = append(b.readings, b.best)
	}
}

// Ahead is by how much the run's times are corrected.
func (b *Book) Ahead() time.Duration { return b.ahead }

// Best is the best answer since Settle, as well as it is known by now, and whether there was one.
func (b *Book) Best(now time.Time) (model.Clock, bool) {
	best := aged(b.best, now.Sub(b.heard))
	best.Time = now.UnixMilli()
	return best, b.some
}

// Readings are those that Settle kept.
func (b *Book) Readings() []model.Clock { return b.readings }
