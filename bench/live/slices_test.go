package main

import (
	"math"
	"testing"
)

// TestStudent holds the multiples against a table.
func TestStudent(t *testing.T) {
	for free, want := range map[float64]float64{5: 2.571, 9: 2.262, 19: 2.093, 100: 1.984} {
		if got := student(free); math.Abs(got-want) > 0.005 {
			t.Errorf("%v degrees of freedom: %.3f, want %.3f", free, got, want)
		}
	}
}

// TestRatio: a trial that takes 1.2 times as long in each block is told so, and one that is as the others is not.
func TestRatio(t *testing.T) {
	var blocks []block
	for i := range 12 {
		wobble := 0.02 * math.Sin(float64(i*i))
		for _, kind := range []trial{0, again, 1, 1, again, 0} {
			p := piece{Trial: kind, P99: 100 * math.Exp(wobble*float64(kind))}
			if kind == 1 {
				p.P99 *= 1.2
			}
			if len(blocks) <= i {
				blocks = append(blocks, nil)
			}
			blocks[i] = append(blocks[i], p)
		}
	}
	p99 := func(p piece) float64 { return p.P99 }
	if r := ratioOf(logs(blocks, 1, p99)); math.Abs(r.ratio-1.2) > 0.03 || r.low < 1.15 || r.high > 1.25 || r.p > 0.01 {
		t.Errorf("1.2 times: %+v", r)
	}
	if r := ratioOf(logs(blocks, again, p99)); r.low > 1 || r.high < 1 || r.p < 0.05 {
		t.Errorf("the same: %+v", r)
	}
	if one, any := ratioOf(logs(blocks, 1, p99)), ratioOf(logs(blocks, somebody, p99)); one.ratio != any.ratio {
		t.Errorf("somebody, who is always one: %v, want %v", any.ratio, one.ratio)
	}
}
