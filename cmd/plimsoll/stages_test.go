package main

import (
	"slices"
	"testing"

	"plimsoll/internal/model"
)

func TestStagesOfTheCommandLine(t *testing.T) {
	for _, c := range []struct {
		rate   float64
		stages []string
		first  float64
		later  []model.Stage
	}{
		{0, []string{"0:100/s", "30s:2000/s"}, 100, []model.Stage{{AtMS: 30_000, Rate: 2000}}},
		{5, []string{"1m30s:2k", "120:0"}, 5, []model.Stage{{AtMS: 90_000, Rate: 2000}, {AtMS: 120_000}}},
		{0, []string{"0s:0.5/s"}, 0.5, nil},
	} {
		plan := model.LoadPlan{Rate: c.rate}
		if err := addStages(&plan, c.stages); err != nil || plan.Rate != c.first || !slices.Equal(plan.Stages, c.later) {
			t.Errorf("-R %g, %v: begins with %g, then %v, %v; want %g and %v", c.rate, c.stages, plan.Rate, plan.Stages, err, c.first, c.later)
		}
	}
	for _, bad := range [][]string{{"30s:5"}, {"0:1", "0:2"}, {"5s:1", "0:2"}, {"0:0"}, {"0"}, {""}, {"0:"}, {":5"}, {"0:5/m"}, {"-1s:5"}, {"1us:5"}, {"0:NaN"}} {
		if err := addStages(&model.LoadPlan{}, bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
