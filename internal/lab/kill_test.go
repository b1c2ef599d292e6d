package lab

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Half of the kills fall into a change, the others anywhere.
func TestMomentsToKillAt(t *testing.T) {
	m := moments{end: 10 * time.Second, changes: 2}
	random := rand.New(rand.NewPCG(1, 1))
	met := map[int]int{}
	for range 1000 {
		at := m.draw(random)
		if at.after < 0 || at.changes == 0 && at.after >= m.end || at.changes > 0 && at.after >= making {
			t.Fatalf("a moment of %+v", at)
		}
		met[at.changes]++
	}
	if met[0] < 400 || met[1] < 200 || met[2] < 200 || len(met) != 3 {
		t.Errorf("by the number of changes: %v", met)
	}
}
