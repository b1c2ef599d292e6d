package pace

import (
	"testing"
	"time"
)

func TestTook(t *testing.T) {
	const ms = time.Millisecond
	for _, tc := range []struct {
		name           string
		cost, interval time.Duration
		want           time.Duration
	}{
		{"1 % of a second is fine at 1 s", 10 * ms, time.Second, 0},
		{"just within", 15 * ms, time.Second, 0},
		{"twice too much goes to 2 s", 30 * ms, time.Second, 2 * time.Second},
		{"three times too much goes to 5 s", 45 * ms, time.Second, 5 * time.Second},
		{"300 ms goes to 30 s", 300 * ms, time.Second, 30 * time.Second},
		{"beyond all steps stays at the last", 10 * time.Second, time.Second, 30 * time.Second},
		{"3 ms is too much ten times a second", 3 * ms, 100 * ms, time.Second},
		{"1 ms is not", ms, 100 * ms, 0},
		{"the first round has no interval yet", 10 * ms, 0, 0},
		{"nor when it is dear", 31 * ms, 0, 5 * time.Second},
		{"rounds far apart are not made rarer", 300 * ms, time.Minute, 0},
	} {
		p := Pace{Share: 0.015}
		if got := p.Took(tc.cost, tc.interval); got != tc.want {
			t.Errorf("%s: every %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestDue(t *testing.T) {
	p := Pace{Share: 0.01}
	start := time.Unix(1000, 0)
	due := func(after time.Duration, cost time.Duration) bool {
		if !p.Due(start.Add(after), false) {
			return false
		}
		p.Took(cost, time.Second)
		return true
	}
	for _, tc := range []struct {
		after, cost time.Duration
		want        bool
	}{
		{0, time.Millisecond, true},
		{time.Second, 15 * time.Millisecond, true}, // now every 2 s
		{2 * time.Second, 0, false},
		{2990 * time.Millisecond, 15 * time.Millisecond, true}, // a little early is in time
		{4 * time.Second, 0, false},
		{5 * time.Second, 15 * time.Millisecond, true},
	} {
		if got := due(tc.after, tc.cost); got != tc.want {
			t.Errorf("after %v: due %v, want %v", tc.after, got, tc.want)
		}
	}
}

// One cheap look between dear ones must not make the pace swing; the same step
// is told of once.
func TestTookGoesBackOnlyWhenItStaysCheap(t *testing.T) {
	p := Pace{Share: 0.01}
	dear, cheap := 15*time.Millisecond, time.Millisecond
	if got := p.Took(dear, time.Second); got != 2*time.Second {
		t.Fatalf("first dear look: every %v, want 2 s", got)
	}
	for range calm - 1 {
		p.Took(cheap, time.Second)
	}
	if p.every != 2*time.Second {
		t.Fatalf("after %d cheap looks: every %v, want 2 s still", calm-1, p.every)
	}
	p.Took(cheap, time.Second)
	if p.every != 0 {
		t.Fatalf("after %d cheap looks: every %v, want every round", calm, p.every)
	}
	if got := p.Took(dear, time.Second); got != 0 || p.every != 2*time.Second {
		t.Errorf("dear again: told of %v, every %v; want silence and 2 s", got, p.every)
	}
}
