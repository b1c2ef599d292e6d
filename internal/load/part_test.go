package load

import (
	"slices"
	"testing"

	"plimsoll/internal/model"
)

// The workers of one load have between them each arrival, at its time, and each connection once, whatever threads they have.
func TestPartsMakeTheWhole(t *testing.T) {
	whole := model.LoadPlan{URL: "http://127.0.0.1:1/", Connections: 11, MaxConnections: 17, Threads: 2, Rate: 331, RampMS: 500, DurationMS: 3000, CalmMS: 10,
		Stages: []model.Stage{{AtMS: 1500, Rate: 97}}}
	timesOf := func(plan model.LoadPlan) (times, opens []int64, places int) {
		j, err := prepare(plan)
		if err != nil {
			t.Fatal(err)
		}
		e, err := newEngine(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		defer (&Ready{e}).Close()
		for _, thread := range e.threads {
			places += len(thread.conns)
			for _, c := range thread.sleepers {
				opens = append(opens, c.wakes)
			}
			for k := thread.due; k < e.arrivals.total; k += e.stride {
				times = append(times, thread.duePlan.at(k))
			}
		}
		slices.Sort(times)
		slices.Sort(opens)
		return times, opens, places
	}
	want, _, wantPlaces := timesOf(whole)
	var got []int64
	connections, places := 0, 0
	for k, threads := range []int{1, 3, 2} {
		plan := whole
		plan.Threads, plan.Part = threads, &model.Part{Worker: k, All: 3}
		times, opens, n := timesOf(plan)
		got, connections, places = append(got, times...), connections+len(opens), places+n
	}
	slices.Sort(got)
	if !slices.Equal(got, want) || len(want) != 82+642 {
		t.Errorf("%d arrivals, want %d, at the same times", len(got), len(want))
	}
	if connections != 11 || places != 17 || wantPlaces != 17 {
		t.Errorf("%d connections, %d with those in reserve, want 11 and 17 (%d)", connections, places, wantPlaces)
	}
	for n, want := range map[int64][3]int64{10: {4, 3, 3}, 2: {1, 1, 0}, 0: {}} {
		for k := range 3 {
			if got := (&model.Part{Worker: k, All: 3}).Of(n); got != want[k] {
				t.Errorf("worker %d's share of %d: %d, want %d", k, n, got, want[k])
			}
		}
	}
}
