package load

import (
	"maps"
	"math"
	"slices"
	"testing"

	"plimsoll/internal/model"
)

// staged is a plan whose rates are stages of one second, with fractions of requests in each.
func staged(rates ...float64) model.LoadPlan {
	p := model.LoadPlan{Rate: rates[0], DurationMS: 1000 * int64(len(rates))}
	for i, r := range rates[1:] {
		p.Stages = append(p.Stages, model.Stage{AtMS: 1000 * int64(i+1), Rate: r})
	}
	return p
}

// Request k is due when the integral of the rate is k, whatever the stages before it had of a request.
func TestStagesAreDueByTheIntegralOfTheRate(t *testing.T) {
	for _, plan := range []model.LoadPlan{
		staged(100, 2000, 50), staged(0.3, 0.3, 0.3, 0.3, 2), staged(0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 7), staged(5, 0, 0, 5), staged(2.5, 1e4, 0.5, 3.25),
	} {
		line := newTimeline(plan)
		a := newArrivals(plan, line)
		for i := range a.stretches {
			a.stretches[i].grid = 0
		}
		times := a.of(0, 1)
		for k := range a.total {
			at := times.at(k)
			if due := offeredUntil(plan, at); math.Abs(due-float64(k)) > 1e-4 {
				t.Fatalf("%v %+v: request %d is due at %d ns, when %g were to have been offered", plan.Rate, plan.Stages, k, at, due)
			}
			want := plan.AllStages()[times.stretch.stage]
			if at < want.AtMS*1e6 || at >= (want.AtMS+1000)*1e6 {
				t.Fatalf("%v %+v: request %d is due at %d ns and counted in the stage at %d ms", plan.Rate, plan.Stages, k, at, want.AtMS)
			}
		}
		if all := offeredUntil(plan, line.hold); a.total != int64(math.Ceil(all-1e-9)) {
			t.Errorf("%v %+v: %d requests, want %g rounded up", plan.Rate, plan.Stages, a.total, all)
		}
	}
}

// offeredUntil is the integral of the rate of stages of a second.
func offeredUntil(plan model.LoadPlan, at int64) (sum float64) {
	for _, s := range plan.AllStages() {
		sum += s.Rate * min(max(float64(at)/1e9-float64(s.AtMS)/1e3, 0), 1)
	}
	return sum
}

// A low rate is sent without steps, also beside a stage of a high one.
func TestEachStageHasStepsOfItsOwn(t *testing.T) {
	plan := staged(100, 50_000, 100)
	plan.RampMS = 500
	a := newArrivals(plan, newTimeline(plan))
	var grids []int64
	for _, s := range a.stretches {
		grids = append(grids, s.grid)
		if (s.early > 0) != (s.grid > 0) {
			t.Errorf("steps of %d ns, requests leave %d ns early", s.grid, s.early)
		}
	}
	if want := []int64{0, 0, gridOf(50_000), 0}; !slices.Equal(grids, want) {
		t.Errorf("steps of %v ns, want %v", grids, want)
	}
}

func TestPoissonStagesHaveAsManyAsTheirRatesAskFor(t *testing.T) {
	for _, stride := range []int64{1, 3, 8} {
		plan := staged(100, 2000, 0, 5)
		plan.Arrivals, plan.ArrivalsSeed, plan.Threads = model.Poisson, 3, int(stride)
		a := newArrivals(plan, newTimeline(plan))
		got := map[int64]int{}
		for id := range stride {
			times, last := a.of(int(id), stride), int64(0)
			for k := id; k < a.total; k += stride {
				at := times.at(k)
				if at < last {
					t.Fatalf("thread %d of %d: request %d at %d, before the one that precedes it at %d", id, stride, k, at, last)
				}
				last = at
				got[at/1e9]++
			}
		}
		if want := map[int64]int{0: 100, 1: 2000, 3: 5}; !maps.Equal(got, want) {
			t.Errorf("%d threads: requests by second %v, want %v", stride, got, want)
		}
	}
}

func TestSoManyRequestsEndTheStages(t *testing.T) {
	for requests, want := range map[int64]int{50: 1, 100: 1, 101: 2, 100_000: 3} {
		for _, arrivals := range []string{"", model.Poisson} {
			plan := staged(100, 2000, 10)
			plan.DurationMS, plan.Requests, plan.Arrivals = 0, requests, arrivals
			a := newArrivals(plan, newTimeline(plan))
			times := a.of(0, 1)
			for k := range a.total {
				if at := times.at(k); at == never {
					t.Fatalf("%d requests: number %d is never due", requests, k)
				}
			}
			if a.total != requests || len(a.stretches) != want {
				t.Errorf("%d requests: %d are planned, in %d stages; want all, in %d", requests, a.total, len(a.stretches), want)
			}
		}
	}
}

func TestStagesThatAreNone(t *testing.T) {
	second := []model.Stage{{AtMS: 1000, Rate: 5}}
	for why, plan := range map[string]model.LoadPlan{
		"a closed loop":          {Stages: second, DurationMS: 5000},
		"at the very beginning":  {Rate: 1, DurationMS: 5000, Stages: []model.Stage{{Rate: 5}}},
		"out of order":           {Rate: 1, DurationMS: 5000, Stages: []model.Stage{{AtMS: 2000, Rate: 5}, {AtMS: 1000, Rate: 5}}},
		"twice the same moment":  {Rate: 1, DurationMS: 5000, Stages: []model.Stage{{AtMS: 2000, Rate: 5}, {AtMS: 2000, Rate: 6}}},
		"after the end":          {Rate: 1, DurationMS: 1000, Stages: second},
		"a rate below 0":         {Rate: 1, DurationMS: 5000, Stages: []model.Stage{{AtMS: 1, Rate: -1}}},
		"no rate":                {Rate: 1, DurationMS: 5000, Stages: []model.Stage{{AtMS: 1, Rate: math.NaN()}}},
		"nothing for ever":       {Rate: 1, Requests: 5, Stages: []model.Stage{{AtMS: 1, Rate: 0}}},
		"more than can be told":  {Rate: 1, DurationMS: 5000, Stages: make([]model.Stage, maxStages+1)},
		"later than in any year": {Rate: 1, Requests: 5, Stages: []model.Stage{{AtMS: maxMillis + 1, Rate: 1}}},
	} {
		plan.URL, plan.Connections = "http://127.0.0.1/", 1
		if err := Check(plan); err == nil {
			t.Errorf("%s: was taken", why)
		}
	}
}

// All that is planned is sent, and counted in the stage in which it was due: also what leaves a little
// early, on a grid, and what ends in a later stage.
func TestStagesAreCountedApart(t *testing.T) {
	for _, arrivals := range []string{"", model.Poisson} {
		s := serve(t, say(okReply))
		plan := model.LoadPlan{URL: s.url, Connections: 60, Threads: 2, Rate: 200, RampMS: 100, DurationMS: 900, KeepAlive: true, TimeoutMS: 60_000,
			Arrivals: arrivals, ArrivalsSeed: 5, Stages: []model.Stage{{AtMS: 300, Rate: 12_000}, {AtMS: 400, Rate: 0}, {AtMS: 700, Rate: 100}}}
		all := runPlan(t, t.Context(), plan)
		got := map[int]int64{}
		for _, r := range all[len(all)-1].Stages {
			got[r.Stage] = r.Outcomes["2xx"]
			if r.Response.Count != r.Outcomes["2xx"] || r.Lag.Count != r.Outcomes["2xx"] {
				t.Errorf("stage %d: %d latencies and %d lags of %d replies", r.Stage, r.Response.Count, r.Lag.Count, r.Outcomes["2xx"])
			}
		}
		if want := map[int]int64{0: 60, 1: 1200, 3: 20}; !maps.Equal(got, want) {
			t.Errorf("%q: good replies by stage %v, want %v", arrivals, got, want)
		}
		s.mustCount(t, 60+1200+20+10)
	}
}

// A request that finds no connection in time is one of the stage in which it was due.
func TestWhatWasNeverSentIsCountedInItsStage(t *testing.T) {
	s := newStage(t, model.LoadPlan{Connections: 1, DurationMS: 4000, KeepAlive: true, Rate: 10, Stages: []model.Stage{{AtMS: 1000, Rate: 20}}})
	th := s.thread
	th.now, th.shared.timeout = 3_900_000_000, 100_000_000
	th.dispatch()
	if first, second := th.tally.stages[0].outcomes, th.tally.stages[1].outcomes; first[failure(queueFailed, timedOut)] != 10 || second[failure(queueFailed, timedOut)] != 57 {
		t.Errorf("3.9 s after the beginning, no connection, a timeout of 0.1 s: %v and %v waited in vain; want 10 and 57", first, second)
	}
}
