package diagnose

import (
	"fmt"
	"testing"

	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/model"
	"plimsoll/internal/probe/all"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
	"plimsoll/internal/record/notation"
	"plimsoll/internal/ruleset"
	"plimsoll/rules"
)

// BenchmarkVerdict is the time from a run of 60 s with 5,000 series on two hosts
// to its verdict, rules loaded already: go test -bench Verdict ./internal/diagnose
func BenchmarkVerdict(b *testing.B) {
	set, err := ruleset.Load(rules.FS)
	if err != nil {
		b.Fatal(err)
	}
	var signals []*model.Signal
	for _, p := range all.All() {
		signals = append(signals, p.Signals...)
	}
	const wanted, seconds = 5000, 70
	m := new(record.Memory)
	status := map[string]map[string]model.Status{"server": {}, "client": {}}
	each := wanted / len(signals) / 2
	for _, s := range signals {
		n := 1
		if len(s.Labels) > 0 {
			n = 2*each + 4
		}
		for host := range status {
			status[host][s.Name] = model.Status{State: model.Read}
			for i := range n {
				lb := labels.NewBuilder(labels.FromStrings("__name__", s.Name, "host", host))
				for _, name := range s.Labels {
					lb.Set(name, fmt.Sprint(name, i))
				}
				points := make([]record.Point, seconds)
				for t := range points {
					points[t] = record.Point{Time: notation.Start + int64(t)*1000, Value: float64(t * (i + 1))}
				}
				m.Add(lb.Labels(), points)
			}
		}
	}
	m.Sort()
	meta := model.Run{Status: status, Plan: model.Plan{Interval: 1000}, Windows: []model.Window{
		{Name: model.Baseline, Start: notation.Start, End: notation.Start + 2000},
		{Name: model.Hold, Start: notation.Start + 5000, End: notation.Start + 65000}}}
	run := record.InMemory(meta, m)
	for b.Loop() {
		q, err := query.Of(run)
		if err != nil {
			b.Fatal(err)
		}
		Diagnose(q, set, asItIs)
	}
	b.ReportMetric(float64(len(set.List)), "rules")
}
