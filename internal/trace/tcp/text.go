package tcp

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/trace"
)

// What the text shows at most of each table; the JSON has all of it.
const (
	shownConnects = 12
	shownSides    = 12
	shownResets   = 12
)

// Seen is the tracer's report.
type Seen struct {
	Snapshot
	Elapsed time.Duration `json:"elapsed_ns"`
}

// Report returns everything since the start.
func (t *Trace) Report(elapsed time.Duration) (trace.Report, error) {
	s, err := t.Snapshot()
	return Seen{s, elapsed}, err
}

// Text lists what took longest and what went wrong.
func (s Seen) Text(columns int) string {
	var b strings.Builder
	var connected, failed, arrivals, again uint64
	for _, c := range s.Connects {
		connected, failed = connected+c.Connected.Count(), failed+c.failed()
	}
	for _, side := range s.Sides {
		arrivals, again = arrivals+side.Arrivals(), again+sum(side.Retransmits)
	}
	text := fmt.Sprintf("%s: %s connects (%s/s) and %s that failed; %s connections arrived at listeners (%s/s); %s segments were sent again.",
		trace.Span(s.Elapsed), trace.Number(connected), trace.PerSecond(connected, s.Elapsed), trace.Number(failed),
		trace.Number(arrivals), trace.PerSecond(arrivals, s.Elapsed), trace.Number(again))
	b.WriteString(layout.Wrap(text, columns) + "\n")
	in := s.spaces()
	s.connects(&b, in, columns)
	s.failures(&b, in, columns)
	s.sides(&b, in, columns)
	s.resets(&b, in, columns)
	return b.String() + in.Legend(columns) + trace.LostText(s.Lost, columns)
}

func sum(counts map[string]uint64) uint64 {
	var n uint64
	for _, v := range counts {
		n += v
	}
	return n
}

func (s Seen) spaces() trace.Spaces {
	var all trace.Spaces
	for _, c := range s.Connects {
		all.Add(c.Netns)
	}
	for _, side := range s.Sides {
		all.Add(side.Netns)
	}
	return all
}

func (s Seen) connects(b *strings.Builder, in trace.Spaces, columns int) {
	list := slices.DeleteFunc(slices.Clone(s.Connects), func(c Connects) bool { return c.Connected.Count() == 0 })
	if len(list) == 0 {
		return
	}
	b.WriteString("\n")
	rows := [][]string{{"process", "connects to", "/s", "mean", "99 % <", "own work", "99 % <"}}
	for _, c := range list {
		n := c.Connected.Count()
		rows = append(rows, []string{layout.Line(c.Name), c.Destination, trace.PerSecond(n, s.Elapsed), trace.Mean(c.Took, n), c.Connected.Under(0.99),
			trace.Mean(c.Setup, c.Setups.Count()), c.Setups.Under(0.99), in.Mark(c.Netns)})
	}
	trace.Rows(b, rows, shownConnects, 1, columns)
}

func (s Seen) failures(b *strings.Builder, in trace.Spaces, columns int) {
	rows := [][]string{{"process", "failed to connect to", "times", "error"}}
	for _, c := range s.Connects {
		for _, e := range slices.Sorted(maps.Keys(c.Failures)) {
			rows = append(rows, []string{layout.Line(c.Name), c.Destination, trace.Number(c.Failures[e]), e, in.Mark(c.Netns)})
		}
	}
	if len(rows) == 1 {
		return
	}
	b.WriteString("\n")
	trace.Rows(b, rows, shownConnects, 1, columns)
}

// sides shows each end's connections: those that came, how they were ended, and
// what was lost on the way.
func (s Seen) sides(b *strings.Builder, in trace.Spaces, columns int) {
	if len(s.Sides) == 0 {
		return
	}
	list := slices.Clone(s.Sides)
	slices.SortStableFunc(list, func(a, b Side) int {
		return cmp.Or(cmp.Compare(sum(b.Retransmits), sum(a.Retransmits)), cmp.Compare(total(b), total(a)))
	})
	b.WriteString("\n")
	rows := [][]string{{"end", "new/s", "ahead", "closed first", "other first", "sent again"}}
	for _, side := range list {
		opened, ahead := side.Arrivals(), "-"
		if side.Role == "client" {
			opened = side.Changes[Change{"SYN_SENT", "ESTABLISHED"}]
		} else if opened > 0 {
			ahead = layout.Rate(float64(side.Ahead) / float64(opened))
		}
		rows = append(rows, []string{side.String(), trace.PerSecond(opened, s.Elapsed), ahead,
			trace.Number(side.Changes[Change{"ESTABLISHED", "FIN_WAIT1"}]), trace.Number(side.Changes[Change{"ESTABLISHED", "CLOSE_WAIT"}]),
			trace.Number(sum(side.Retransmits)), in.Mark(side.Netns)})
	}
	trace.Rows(b, rows, shownSides, 0, columns)
}

func total(s Side) uint64 {
	var n uint64
	for _, v := range s.Changes {
		n += v
	}
	return n
}

func (s Seen) resets(b *strings.Builder, in trace.Spaces, columns int) {
	type row struct {
		n     uint64
		cells []string
	}
	var list []row
	for _, side := range s.Sides {
		for reason, n := range side.ResetsSent {
			list = append(list, row{n, []string{trace.Number(n), "sent", side.String(), cmp.Or(reason, "-"), in.Mark(side.Netns)}})
		}
		for state, n := range side.ResetsReceived {
			list = append(list, row{n, []string{trace.Number(n), "received", side.String(), "in " + state, in.Mark(side.Netns)}})
		}
	}
	if len(list) == 0 {
		return
	}
	slices.SortFunc(list, func(a, b row) int { return cmp.Or(cmp.Compare(b.n, a.n), slices.Compare(a.cells, b.cells)) })
	b.WriteString("\n")
	rows := [][]string{{"resets", "", "end", "why"}}
	for _, r := range list {
		rows = append(rows, r.cells)
	}
	trace.Rows(b, rows, shownResets, 2, columns)
}
