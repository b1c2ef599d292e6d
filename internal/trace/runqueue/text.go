package runqueue

import (
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/trace"
)

// What the text shows at most; the JSON has all of it.
const (
	shownGroups = 15
	shownPairs  = 8
)

// Seen is the tracer's report.
type Seen struct {
	Snapshot
	Elapsed time.Duration `json:"elapsed_ns"`
	CPUs    int           `json:"cpus"`
}

// Report returns everything since the start.
func (t *Trace) Report(elapsed time.Duration) (trace.Report, error) {
	s, err := t.Snapshot()
	if err != nil {
		return nil, err
	}
	cpus, err := trace.OnlineCPUs()
	return Seen{s, elapsed, cpus}, err
}

// Text lists the groups that waited longest.
func (s Seen) Text(columns int) string {
	var b strings.Builder
	var waits, woken uint64
	var waited time.Duration
	for _, g := range s.Groups {
		waits, woken, waited = waits+g.Waits, woken+g.Wakeups, waited+g.Waited
	}
	text := fmt.Sprintf("%s: %s waits for a CPU (%s/s), %s of them after a wake-up; on average %s threads were waiting.", trace.Watched(s.Elapsed, s.CPUs),
		trace.Number(waits), trace.PerSecond(waits, s.Elapsed), trace.Number(woken), layout.Rate(waited.Seconds()/s.Elapsed.Seconds()))
	b.WriteString(layout.Wrap(text, columns) + "\n")
	if len(s.Groups) == 0 {
		return b.String() + trace.LostText(s.Lost, columns)
	}
	rows := [][]string{{"process", "waiting", "mean", "50 % <", "99 % <", "own/s", "forced/s", "moved/s"}}
	for _, g := range s.Groups {
		rows = append(rows, []string{s.named(g), layout.Rate(g.Waited.Seconds() / s.Elapsed.Seconds()),
			trace.Mean(g.Waited, g.Waits), g.Histogram.Under(0.5), g.Histogram.Under(0.99),
			trace.PerSecond(g.Voluntary, s.Elapsed), trace.PerSecond(g.Involuntary, s.Elapsed), trace.PerSecond(g.Migrations, s.Elapsed)})
	}
	b.WriteString("\n")
	trace.Rows(&b, rows, shownGroups, 0, columns)
	b.WriteString(s.Groups[0].Histogram.Bars("How long " + s.named(s.Groups[0]) + " waited"))
	b.WriteString(pairsText(s))
	return b.String() + trace.LostText(s.Lost, columns)
}

// named is a group's name, with its network namespace if another has the same name.
func (s Seen) named(g Group) string {
	for _, other := range s.Groups {
		if other.Name == g.Name && other.NetNS != g.NetNS {
			return fmt.Sprintf("%s (netns %d)", layout.Line(g.Name), g.NetNS)
		}
	}
	return layout.Line(g.Name)
}

func pairsText(s Seen) string {
	if len(s.Pairs) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nWho takes the CPU from whom\n")
	var rows [][]string
	for _, p := range s.Pairs[:min(len(s.Pairs), shownPairs)] {
		rows = append(rows, []string{" ", layout.Line(p.By), "takes it from", layout.Line(p.Victim), trace.PerSecond(p.Count, s.Elapsed) + "/s"})
	}
	layout.Table(&b, rows)
	return b.String()
}
