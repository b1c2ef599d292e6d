package main

import (
	"math"
	"testing"
)

// Whatever was measured, a scale ends, and all stands between its ends.
func TestScaleHoldsWhatItIsOf(t *testing.T) {
	for _, values := range [][]float64{{}, {0, 0}, {0, 5}, {10, 10}, {1}, {0.3, 4000}, {800}} {
		for _, log := range []bool{false, true} {
			p := panel{log: log, lines: []line{{}}}
			for i, v := range values {
				p.lines[0].points = append(p.lines[0].points, xy{float64(i), v})
			}
			ticks := p.scale()
			for _, v := range values {
				if y := p.y(v, ticks); math.IsNaN(y) || y < -1e-9 || y > tall+1e-9 {
					t.Errorf("%v (log: %v): %g stands at %g on the scale %v", values, log, v, y, ticks)
				}
			}
		}
	}
}
