// Package pace spaces a costly look at a host out in time, so that it stays
// within its share of one core however much there is to look at.
package pace

import (
	"time"

	"golang.org/x/sys/unix"
)

// steps are the times between looks that a report can state plainly.
var steps = []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second}

// calm is after how many cheap looks in a row it is done more often again.
const calm = 5

// Pace says when a look is due. The zero value with a Share is ready for use.
// It is not safe for concurrent use.
type Pace struct {
	// Share is the part of one core (0…1) that the looks may use.
	Share float64

	last   time.Time
	every  time.Duration // 0: in every round
	slack  int           // looks in a row that would allow a shorter step
	stated time.Duration // the longest step that Took has told of
}

// Due says whether it is time for a look in the round at now; in a forced
// round it always is. Every Due that returns true must be followed by Took.
func (p *Pace) Due(now time.Time, forced bool) bool {
	// Rounds are not exactly a step apart: a little early is in time.
	if !forced && !p.last.IsZero() && now.Sub(p.last) < p.every-p.every/10 {
		return false
	}
	p.last = now
	return true
}

// Took tells what the look cost in CPU time, in rounds that are interval apart
// (0 when unknown). slower is the new time between looks when it is longer than
// ever before in this run, else 0: the caller notes it.
func (p *Pace) Took(cost, interval time.Duration) (slower time.Duration) {
	want := p.step(cost, interval)
	switch {
	case want > p.every:
		p.every, p.slack = want, 0
	case p.step(2*cost, interval) < p.every:
		if p.slack++; p.slack >= calm {
			p.every, p.slack = p.step(2*cost, interval), 0
		}
	default:
		p.slack = 0
	}
	if p.every <= p.stated {
		return 0
	}
	p.stated = p.every
	return p.every
}

// step is the shortest time between looks at which cost stays within the share.
func (p *Pace) step(cost, interval time.Duration) time.Duration {
	need := time.Duration(float64(cost) / p.Share)
	if interval > 0 && need <= interval || interval <= 0 && need <= time.Second {
		return 0
	}
	for _, s := range steps {
		if need <= s && s > interval {
			return s
		}
	}
	return max(steps[len(steps)-1], interval)
}

// CPUTime is the CPU time that the calling thread has used. A difference means
// something only while the goroutine is locked to its thread.
func CPUTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
