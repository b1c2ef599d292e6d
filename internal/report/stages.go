package report

import (
	"fmt"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// rates are what a load offers, in words: one rate, or those between which its stages are.
func rates(plan *model.LoadPlan) string {
	if len(plan.Stages) == 0 {
		return layout.Rate(plan.Rate)
	}
	least, most := plan.Rate, plan.Rate
	for _, s := range plan.Stages {
		least, most = min(least, s.Rate), max(most, s.Rate)
	}
	return fmt.Sprintf("in %d stages %s to %s", len(plan.Stages)+1, layout.Rate(least), layout.Rate(most))
}

// behind is a lag of the schedule, in microseconds, that is told as one.
const behind = 1000

// mostStages is how many stages are told one by one.
const mostStages = 20

// stages says of each stage what was offered and what came of it.
func stages(p *paper, list []model.StageLoad) {
	label := "stages"
	for i, s := range list {
		if i == mostStages {
			p.item(label, fmt.Sprintf("and %d more, which --json has", len(list)-i))
			return
		}
		p.item(label, stage(s))
		label = ""
	}
}

func stage(s model.StageLoad) string {
	text := fmt.Sprintf("from %v: offered %s/s, ", time.Duration(s.AtMS)*time.Millisecond, layout.Rate(s.Rate))
	if s.Requests == 0 {
		return text + "nothing sent"
	}
	text += layout.Rate(s.GoodRPS) + "/s good"
	if s.Latency.Count > 0 {
		text += fmt.Sprintf(", p50 %s, p99 %s", layout.Micros(s.Latency.P50), layout.Micros(s.Latency.P99))
	}
	if s.Lag.P99 >= behind {
		text += fmt.Sprintf("; the generator was behind, p99 %s", layout.Micros(s.Lag.P99))
	}
	if failed, n := failures(s.Outcomes, func(string) bool { return true }); n > 0 {
		text += "; failed: " + failed
	}
	return text
}
