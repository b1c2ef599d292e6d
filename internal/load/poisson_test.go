package load

import (
	"math"
	"slices"
	"testing"

	"plimsoll/internal/model"
)

// timesOf are the planned times of all requests, by phase, as stride threads ask for them.
func timesOf(t *testing.T, plan model.LoadPlan, stride int64) (ramp, hold []int64) {
	t.Helper()
	plan.Threads = int(stride)
	line := newTimeline(plan)
	a := newArrivals(plan, line)
	for id := range stride {
		d := a.of(int(id), stride)
		last := int64(0)
		for k := id; k < a.total; k += stride {
			at := d.at(k)
			if at < last {
				t.Fatalf("thread %d of %d: request %d at %d, before the one that precedes it at %d", id, stride, k, at, last)
			}
			last = at
			if k < rampOf(&a) {
				ramp = append(ramp, at)
			} else {
				hold = append(hold, at)
			}
			if want := line.at(at); (want.String() == model.Ramp) != (k < rampOf(&a)) {
				t.Fatalf("request %d at %d is planned in %v", k, at, want)
			}
		}
		if got := d.at(a.total + id); got != never {
			t.Fatalf("a request after the last is planned at %d", got)
		}
	}
	slices.Sort(ramp)
	slices.Sort(hold)
	return ramp, hold
}

func TestPoissonArrivalsAreAsManyAsTheRateAsksFor(t *testing.T) {
	for _, c := range []struct {
		plan       model.LoadPlan
		ramp, hold int
	}{
		{model.LoadPlan{Rate: 700, CalmMS: 100, RampMS: 2000, DurationMS: 3000}, 700, 2100},
		{model.LoadPlan{Rate: 0.5, Requests: 7}, 0, 7},
		{model.LoadPlan{Rate: 40_000, DurationMS: 500, Requests: 900}, 0, 900},
		{model.LoadPlan{Rate: 3, DurationMS: 1100}, 0, 4},
		{model.LoadPlan{Rate: 1, RampMS: 3000, DurationMS: 1000}, 1, 1},
	} {
		for _, stride := range []int64{1, 3, 8} {
			c.plan.Arrivals, c.plan.ArrivalsSeed = model.Poisson, 42
			ramp, hold := timesOf(t, c.plan, stride)
			if len(ramp) != c.ramp || len(hold) != c.hold {
				t.Errorf("%+v by %d threads: %d requests in ramp, %d in hold; want %d and %d", c.plan, stride, len(ramp), len(hold), c.ramp, c.hold)
			}
		}
	}
}

// The distances between the arrivals of a Poisson process are exponential: their standard
// deviation is their mean, and 1/e of them are longer than it. With a fixed seed
// there is nothing random in this test.
func TestPoissonArrivalsAreSpreadAsOneSays(t *testing.T) {
	for _, stride := range []int64{1, 4} {
		_, hold := timesOf(t, model.LoadPlan{Rate: 1000, DurationMS: 100_000, Arrivals: model.Poisson, ArrivalsSeed: 7}, stride)
		var sum, squares, longer float64
		for i := range hold[1:] {
			d := float64(hold[i+1]-hold[i]) / 1e6
			sum, squares = sum+d, squares+d*d
			if d > 1 {
				longer++
			}
		}
		n := float64(len(hold) - 1)
		mean := sum / n
		deviation := math.Sqrt(squares/n - mean*mean)
		if math.Abs(mean-1) > 0.01 || math.Abs(deviation-1) > 0.02 || math.Abs(longer/n-1/math.E) > 0.01 {
			t.Errorf("%d threads: distances of %.4f ms, deviation %.4f, %.4f of them above 1 ms; want 1, 1 and 1/e", stride, mean, deviation, longer/n)
		}
	}
}

func TestPoissonRampGrowsInAStraightLine(t *testing.T) {
	ramp, _ := timesOf(t, model.LoadPlan{Rate: 10_000, RampMS: 10_000, DurationMS: 1000, Arrivals: model.Poisson, ArrivalsSeed: 1}, 2)
	half, _ := slices.BinarySearch(ramp, int64(5e9))
	if got := float64(half) / float64(len(ramp)); math.Abs(got-0.25) > 0.01 {
		t.Errorf("%.3f of the ramp's requests are in its first half, want a quarter", got)
	}
}

func TestPoissonArrivalsOfASeedAreTheSame(t *testing.T) {
	plan := model.LoadPlan{Rate: 5000, RampMS: 100, DurationMS: 1000, Arrivals: model.Poisson, ArrivalsSeed: 99}
	_, one := timesOf(t, plan, 3)
	_, two := timesOf(t, plan, 3)
	plan.ArrivalsSeed++
	_, other := timesOf(t, plan, 3)
	if !slices.Equal(one, two) || slices.Equal(one, other) {
		t.Error("the same seed gave other times, or another seed the same")
	}
}

func TestPoissonLoadSendsAllThatWasPlanned(t *testing.T) {
	s := serve(t, say(okReply))
	plan := model.LoadPlan{URL: s.url, Connections: 20, Threads: 2, Rate: 2000, RampMS: 200, DurationMS: 500, KeepAlive: true,
		TimeoutMS: 60_000, Arrivals: model.Poisson, ArrivalsSeed: 5}
	all := runPlan(t, t.Context(), plan)
	if got := phaseNamed(all, "hold").Outcomes["2xx"]; got != 1000 {
		t.Errorf("%d good replies in hold, want 1000: %v", got, phaseNamed(all, "hold").Outcomes)
	}
	s.mustCount(t, 1200)
}
