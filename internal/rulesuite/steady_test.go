package rulesuite

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"plimsoll/internal/diagnose"
)

// TestSlicesAreSteady holds that recorded runs are judged the same had their readings been a
// little earlier or later, and had a tenth of them been missed: no clue may rest on a hundredth.
func TestSlicesAreSteady(t *testing.T) {
	set, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(16, 6))
	judged, tipped, readings, changed := 0, 0, 0, 0
	for _, of := range set.tests {
		for _, s := range of.slices {
			for how, other := range map[string]*slice{"jittered": s.jittered(r), "thinned": s.thinned(r)} {
				n, differ := other.unlike(s)
				readings, changed = readings+n, changed+differ
				findings, err := diagnose.Findings(other.run(), of.rule)
				judged++
				if got := holding(findings); err != nil || !slices.EqualFunc(got, s.Holds, held.same) {
					tipped++
					t.Logf("%s: %s %s: it holds for %v, and for %v as it was recorded (%v)", of.rule.ID, s.name, how, got, s.Holds, err)
				}
			}
		}
	}
	t.Logf("%d judgements, %d tipped; %d of %d readings moved or missed", judged, tipped, changed, readings)
	if changed*10 < readings {
		t.Errorf("%d of %d readings were moved or missed: want a tenth", changed, readings)
	}
	if judged < 200 || tipped*100 > judged {
		t.Errorf("%d of %d judgements tipped: want at least 200, and at most one in a hundred to tip", tipped, judged)
	}
}

// jittered is the slice as if its rounds had been up to a tenth of an interval earlier or later.
// What only grows is taken for a counter, which had another value then; a gauge is as it was.
// Where a window begins and ends stays, for these are the times of readings.
func (s *slice) jittered(r *rand.Rand) *slice {
	by := map[float64]float64{} // the shift of a round
	return s.with(func(of sliceSeries, i int) ([2]float64, bool) {
		p := of.Points[i]
		if s.fixed(of, i) {
			return p, true
		}
		if _, ok := by[p[0]]; !ok {
			by[p[0]] = (r.Float64() - 0.5) / 5
		}
		part, to := by[p[0]], of.Points[i+1]
		if part < 0 {
			part, to = -part, of.Points[i-1]
		}
		p[0] = math.Round(p[0] + part*(to[0]-p[0]))
		if of.grows() {
			p[1] += part * (to[1] - p[1])
		}
		return p, true
	})
}

// thinned is the slice without a tenth of its rounds.
func (s *slice) thinned(r *rand.Rand) *slice {
	gone := map[float64]bool{}
	return s.with(func(of sliceSeries, i int) ([2]float64, bool) {
		p := of.Points[i]
		if _, ok := gone[p[0]]; !ok {
			gone[p[0]] = r.IntN(10) == 0
		}
		return p, s.fixed(of, i) || !gone[p[0]]
	})
}

// with is the slice with other points; one of which other says false is left out.
func (s *slice) with(other func(of sliceSeries, i int) ([2]float64, bool)) *slice {
	out := *s
	out.Series = slices.Clone(s.Series)
	for i, of := range s.Series {
		out.Series[i].Metric = maps.Clone(of.Metric)
		out.Series[i].Points = nil
		for j := range of.Points {
			if p, ok := other(of, j); ok {
				out.Series[i].Points = append(out.Series[i].Points, p)
			}
		}
	}
	return &out
}

// unlike counts the readings of a slice, and those that this one has not.
func (s *slice) unlike(of *slice) (readings, differ int) {
	for i, one := range of.Series {
		readings += len(one.Points)
		for _, p := range one.Points {
			if !slices.Contains(s.Series[i].Points, p) {
				differ++
			}
		}
	}
	return readings, differ
}

// fixed says whether a point is a series' first or last, or stands on the edge of a window.
func (s *slice) fixed(of sliceSeries, i int) bool {
	at := int64(of.Points[i][0])
	if i == 0 || i == len(of.Points)-1 {
		return true
	}
	for _, w := range s.Run.Windows {
		if at == w.Start || at == w.End {
			return true
		}
	}
	return false
}

func (of sliceSeries) grows() bool {
	return slices.IsSortedFunc(of.Points, func(a, b [2]float64) int { return cmp.Compare(a[1], b[1]) })
}
