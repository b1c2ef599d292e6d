package lab

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Half of the kills fall about a change, the others anywhere; none before the start.
func TestMomentsToKillAt(t *testing.T) {
	m := moments{written: []time.Duration{100 * time.Millisecond, 8 * time.Second}, end: 10 * time.Second}
	random := rand.New(rand.NewPCG(1, 1))
	about, elsewhere := 0, 0
	for range 1000 {
		at := m.draw(random)
		switch {
		case at < 0 || at >= m.end:
			t.Fatalf("a moment at %v of %v", at, m.end)
		case at < 100*time.Millisecond+closeTo || (at-8*time.Second).Abs() <= closeTo:
			about++
		default:
			elsewhere++
		}
	}
	if about < 500 || elsewhere < 350 {
		t.Errorf("%d about a change, %d elsewhere", about, elsewhere)
	}
}
