package tune

import (
	"context"
	"errors"
	"math"
	"testing"

	"plimsoll/internal/model"
)

// search looks for the limit of something that meets a rate if met says so of its nth try.
func search(t *testing.T, start float64, met func(n int, rate float64) bool) model.Limit {
	t.Helper()
	goals, err := ParseGoals("p99<50ms")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	try := func(_ context.Context, rate float64) (model.LimitStep, error) {
		n++
		if n > 200 {
			t.Fatal("200 steps, and still no end")
		}
		s := model.LimitStep{Met: met(n, rate)}
		if !s.Met {
			s.By = model.ByService
		}
		return s, nil
	}
	shown := 0
	found, err := FindLimit(t.Context(), goals, start, try, func(model.LimitStep) { shown++ })
	if err != nil || shown != n || len(found.Steps) != n {
		t.Fatalf("%v; %d steps, %d shown, %d kept", err, n, shown, len(found.Steps))
	}
	return found
}

func TestTheLimitIsFoundWhereverItIs(t *testing.T) {
	for _, start := range []float64{1, 100, 5000} {
		for limit := 1.3; limit < MostRate; limit *= 1.7 {
			found := search(t, start, func(_ int, rate float64) bool { return rate <= limit })
			if found.Rate > limit || found.Missed <= limit || found.Rate < limit/closeness-0.01 || found.By != model.ByService {
				t.Errorf("from %g, limit %g: found %g, missed %g by %q", start, limit, found.Rate, found.Missed, found.By)
			}
			last := found.Steps[len(found.Steps)-1]
			if !last.Confirms || !last.Met || last.Rate != found.Rate {
				t.Errorf("limit %g: the last step is %+v, want one that confirms %g", limit, last, found.Rate)
			}
			if n := len(found.Steps); n > 16+2*int(math.Abs(math.Log2(limit/start))+0.5) {
				t.Errorf("from %g, limit %g: %d steps", start, limit, n)
			}
		}
	}
}

func TestAServiceWithoutALimit(t *testing.T) {
	found := search(t, 100, func(int, float64) bool { return true })
	if found.Rate != MostRate || found.Missed != 0 || found.By != "" {
		t.Errorf("found %+v, want the highest rate there is, and none missed", found)
	}
}

func TestNoRateIsMet(t *testing.T) {
	found := search(t, 100, func(int, float64) bool { return false })
	if found.Rate != 0 || found.Missed != LeastRate {
		t.Errorf("found %g, missed %g; want none, down to %d", found.Rate, found.Missed, LeastRate)
	}
}

func TestAHiccupIsNoLimit(t *testing.T) {
	for hiccup := range 20 {
		found := search(t, 100, func(n int, rate float64) bool { return n != hiccup && rate <= 10_000 })
		if found.Rate < 9500 {
			t.Errorf("found %g after one miss in step %d; want about 10,000", found.Rate, hiccup)
		}
	}
}

// What was met by luck is not believed.
func TestALimitHoldsTwice(t *testing.T) {
	lucky := true
	found := search(t, 100, func(_ int, rate float64) bool {
		if rate > 1000 && rate < 1500 && lucky {
			lucky = false
			return true
		}
		return rate <= 1000
	})
	if found.Rate > 1000 || found.Rate < 780 || found.Missed > 1500 {
		t.Errorf("found %g, missed %g; want a rate up to 1,000: %+v", found.Rate, found.Missed, found.Steps)
	}
	calls := map[float64]int{}
	found = search(t, 100, func(_ int, rate float64) bool { calls[rate]++; return calls[rate] == 1 && rate < 5000 })
	if found.Rate != 0 || found.Missed == 0 {
		t.Errorf("found %g, of rates that are never met twice", found.Rate)
	}
}

func TestASearchThatIsCutShortTellsWhatItHas(t *testing.T) {
	cause := errors.New("cut")
	found, err := FindLimit(t.Context(), nil, 100, func(_ context.Context, rate float64) (model.LimitStep, error) {
		if rate > 500 {
			return model.LimitStep{}, cause
		}
		return model.LimitStep{Met: true}, nil
	}, func(model.LimitStep) {})
	if !errors.Is(err, cause) || len(found.Steps) != 3 || found.Rate != 0 {
		t.Errorf("%v, %+v; want the three steps before it, and no rate that was confirmed", err, found)
	}
}

func TestWhatWasInTheWay(t *testing.T) {
	goals, err := ParseGoals("p99<50ms,errors<0.1%")
	if err != nil {
		t.Fatal(err)
	}
	q := func(p99 float64) model.Quantiles { return model.Quantiles{Count: 100, P99: p99} }
	for _, c := range []struct {
		why  string
		load model.Load
		cpu  float64
		met  bool
		by   string
	}{
		{"all is well", model.Load{Waited: q(20_000), Latency: q(20_000), Service: q(19_000)}, 0.5, true, ""},
		{"well, and the generator is busy", model.Load{Waited: q(20_000), Latency: q(20_000), Service: q(19_000), Lag: q(15_000)}, 1, true, ""},
		{"a slow service", model.Load{Waited: q(60_000), Latency: q(60_000), Service: q(59_000), Lag: q(50)}, 0.5, false, model.ByService},
		{"a late generator", model.Load{Waited: q(60_000), Latency: q(60_000), Service: q(20_000), Lag: q(39_000)}, 0.5, false, model.ByGenerator},
		{"a generator without CPU time to spare", model.Load{Waited: q(60_000), Latency: q(60_000), Service: q(59_000), Lag: q(50)}, 0.99, false, model.ByGenerator},
		{"too few connections", model.Load{Waited: q(60_000), Latency: q(60_000), Service: q(20_000), Lag: q(50)}, 0.5, false, model.ByConnections},
		{"errors", model.Load{Waited: q(2_000), Latency: q(2_000), Service: q(2_000), Lag: q(50), Outcomes: map[string]int64{"5xx": 3}}, 0.1, false, model.ByService},
	} {
		c.load.Requests, c.load.GoodShare = 100, 1
		if c.load.Outcomes != nil {
			c.load.GoodShare = 0.97
		}
		got := LimitStepOf(goals, &c.load, c.cpu)
		if got.Met != c.met || got.By != c.by || len(got.Goals) != 2 {
			t.Errorf("%s: met %v, %q; want %v, %q", c.why, got.Met, got.By, c.met, c.by)
		}
	}
}

func TestALatencyAloneIsNoServiceLevel(t *testing.T) {
	for text, want := range map[string]int{"p99<50ms": 2, "p99<50ms,errors<5%": 2, "share>99%": 1, "good>100/s,max<1s": 2} {
		goals, err := ParseGoals(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := WithErrors(goals); len(got) != want {
			t.Errorf("%s: %d goals, want %d", text, len(got), want)
		}
	}
}
