package clock

import "time"

// leastStep is less than anybody sets a clock by, and more than two looks at it are apart.
const leastStep = 100 * time.Millisecond

// Steps notices that a machine's clock is set, by which nothing of ours goes. A clock that is only run faster or slower, as NTP has it,
// is not: the one that nobody can set is run so, too.
type Steps struct {
	began time.Time
	off   time.Duration // the clock against the one that nobody can set, since then
}

// NewSteps begins to look.
func NewSteps() *Steps { return &Steps{began: time.Now()} }

// Noticed is by how much the clock was set since the last time, 0 if it was not.
func (s *Steps) Noticed() time.Duration { return s.noticed(s.look) }

func (s *Steps) look() time.Duration {
	now := time.Now()
	return now.Round(0).Sub(s.began.Round(0)) - now.Sub(s.began)
}

// noticed believes what two looks agree about: one reads two clocks, and may be held up in between.
func (s *Steps) noticed(look func() time.Duration) time.Duration {
	first := look() - s.off
	if first.Abs() < leastStep {
		return 0
	}
	second := look() - s.off
	if (second - first).Abs() >= leastStep {
		return 0 // the next round looks again
	}
	s.off += second
	return second
}
