package diagnose

import (
	"fmt"
	"testing"

	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/model"
	"plimsoll/internal/probe/all"
	"plimsoll/internal/record"
	"plimsoll/rules"
)

// BenchmarkVerdict is the time from a run of 60 s with 5,000 series on two hosts
// to its verdict, rules loaded already: go test -bench Verdict ./internal/diagnose
func BenchmarkVerdict(b *testing.B) {
	set, err := Load(rules.FS)
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
					points[t] = record.Point{Time: vectorStart + int64(t)*1000, Value: float64(t * (i + 1))}
				}
				m.Add(lb.Labels(), points)
			}
		}
	}
	m.Sort()
	meta := model.Run{Status: status, Plan: model.Plan{Interval: 1000}, Windows: []model.Window{
		{Name: model.Baseline, Start: vectorStart, End: vectorStart + 2000},
		{Name: model.Hold, Start: vectorStart + 5000, End: vectorStart + 65000}}}
	run := record.InMemory(meta, m)
	for b.Loop() {
		if _, err := Diagnose(run, set); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(set.List)), "rules")
}
