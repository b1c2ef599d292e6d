package load

import (
	"testing"
	"time"

	"plimsoll/internal/model"
)

func TestTimelineLeavesOutPhasesOfNoLength(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, c := range []struct {
		why  string
		plan model.LoadPlan
		at   int64
		want phase
	}{
		{"the run begins calm", model.LoadPlan{CalmMS: 10, RampMS: 10, DurationMS: 10}, 0, calm},
		{"a phase ends before its last moment", model.LoadPlan{CalmMS: 10, RampMS: 10, DurationMS: 10}, 10 * ms, ramp},
		{"hold follows ramp", model.LoadPlan{CalmMS: 10, RampMS: 10, DurationMS: 10}, 20 * ms, hold},
		{"drain follows hold", model.LoadPlan{CalmMS: 10, RampMS: 10, DurationMS: 10}, 30 * ms, drain},
		{"no calm: ramp at once", model.LoadPlan{RampMS: 10, DurationMS: 10}, 0, ramp},
		{"no calm, no ramp: hold at once", model.LoadPlan{DurationMS: 10}, 0, hold},
		{"no duration: hold has no planned end", model.LoadPlan{Requests: 5}, int64(24 * time.Hour), hold},
	} {
		if got := newTimeline(c.plan).at(c.at); got != c.want {
			t.Errorf("%s: at %d ms: %v, want %v", c.why, c.at/ms, got, c.want)
		}
	}
}

func TestConnectionsOpenEvenlyOverTheRamp(t *testing.T) {
	line := newTimeline(model.LoadPlan{CalmMS: 1, RampMS: 4, DurationMS: 1})
	for i, want := range []int64{0, 2e6, 3e6, 4e6} {
		if got := line.opens(i, 4); got != want {
			t.Errorf("connection %d of 4, calm 1 ms, ramp 4 ms: opens at %d ns, want %d", i, got, want)
		}
	}
	if got := newTimeline(model.LoadPlan{DurationMS: 1}).opens(3, 4); got != 0 {
		t.Errorf("no ramp: connection 3 opens at %d, want 0", got)
	}
}

// rampOf is how many requests belong to the ramp.
func rampOf(a *arrivals) int64 {
	if s := a.stretches[0]; s.grows {
		return s.end
	}
	return 0
}

func TestArrivals(t *testing.T) {
	for _, c := range []struct {
		why         string
		plan        model.LoadPlan
		ramp, total int64
	}{
		{"duration times rate", model.LoadPlan{Rate: 1000, DurationMS: 2500}, 0, 2500},
		{"a part of an interval still has its request", model.LoadPlan{Rate: 3, DurationMS: 1100}, 0, 4},
		{"requests end it earlier", model.LoadPlan{Rate: 1000, DurationMS: 2500, Requests: 70}, 0, 70},
		{"requests alone", model.LoadPlan{Rate: 0.5, Requests: 7}, 0, 7},
		{"a ramp has half of its length's worth", model.LoadPlan{Rate: 1000, RampMS: 1000, DurationMS: 1000}, 500, 1500},
	} {
		a := newArrivals(c.plan, newTimeline(c.plan))
		if rampOf(&a) != c.ramp || a.total != c.total {
			t.Errorf("%s: ramp %d, total %d; want %d, %d", c.why, rampOf(&a), a.total, c.ramp, c.total)
		}
		if p := a.of(0, 1); p.at(a.total) != never {
			t.Errorf("%s: a request after the last is planned at %d", c.why, p.at(a.total))
		}
	}
}

func TestArrivalsGrowAndStayInTheirPhase(t *testing.T) {
	plan := model.LoadPlan{Rate: 333.3, CalmMS: 100, RampMS: 3000, DurationMS: 5000}
	line := newTimeline(plan)
	a := newArrivals(plan, line)
	last, times := line.calm, a.of(0, 1)
	for k := range a.total {
		at := times.at(k)
		if at < last {
			t.Fatalf("request %d is planned at %d, before the one that precedes it at %d", k, at, last)
		}
		want := hold
		if k < rampOf(&a) {
			want = ramp
		}
		if got := line.at(at); got != want {
			t.Fatalf("request %d is planned in %v, want %v", k, got, want)
		}
		last = at
	}
}

func TestDenseArrivalsAreSentInSteps(t *testing.T) {
	for _, c := range []struct {
		rate    float64
		threads int
		grid    int64
	}{{2000, 1, 0}, {3999, 1, 0}, {4000, 1, 500_000}, {20_000, 1, 500_000}, {20_000, 4, 500_000}, {15_996, 4, 0}, {50_000, 1, 200_000}, {1e6, 1, 100_000}} {
		plan := model.LoadPlan{Rate: c.rate, Threads: c.threads, DurationMS: 1000}
		a := newArrivals(plan, newTimeline(plan))
		s := a.stretches[0]
		if s.grid != c.grid {
			t.Errorf("%g/s by %d threads: steps of %d ns, want %d", c.rate, c.threads, s.grid, c.grid)
		}
		exact := s
		exact.grid = 0
		for k := range a.total {
			early := exact.at(k) - s.at(k)
			if early < 0 || early > max(s.grid-1, 0) || s.grid > 0 && s.at(k)%s.grid != 0 {
				t.Fatalf("%g/s: request %d at %d, %d ns before its time; want a step's beginning, no more than a step before", c.rate, k, s.at(k), early)
			}
		}
	}
}

func TestArrivalsDoNotDrift(t *testing.T) {
	// Three per second: an interval is no whole number of nanoseconds.
	plan := model.LoadPlan{Rate: 3, DurationMS: 7 * 24 * 3600 * 1000}
	a := newArrivals(plan, newTimeline(plan))
	const week = 7 * 24 * 3600
	if got, want := a.stretches[0].at(3*(week-1)), int64(week-1)*int64(time.Second); got != want {
		t.Errorf("after a week: planned at %d, want %d", got, want)
	}
}

// A thread that hears of the cancellation late may have begun requests of a
// phase that the collector never saw.
func TestAPhaseBegunAfterTheCancellationIsAccountedFor(t *testing.T) {
	plan := model.LoadPlan{URL: "http://127.0.0.1:1", Connections: 1, RampMS: 1000, DurationMS: 1000}
	j, err := prepare(plan)
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{shared: shared{job: j, timeline: newTimeline(j.plan)}}
	var got Record
	c := newCollector(e, func(r Record) error { got = r; return nil })
	c.started[ramp], c.ended[ramp], c.phase, c.started[drain] = 0, 5, drain, 5
	c.sums[hold].begun, c.sums[hold].ended.of(failure(connectFailed, timedOut)).n = 1, 1
	if err := c.finalRecord(); err != nil {
		t.Fatal(err)
	}
	if hold := phaseNamed([]Record{got}, "hold"); hold.Requests != 1 || hold.Start != hold.End || got.Totals.Requests != 1 {
		t.Errorf("hold %+v, totals %+v; want the one request in both, and a phase of no length", hold, got.Totals)
	}
}
