package unread

import (
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/trace"
)

// What the text shows at most; the JSON has all of it.
const shownWaits = 15

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

// Text lists the readers that let bytes lie longest.
func (s Seen) Text(columns int) string {
	var b strings.Builder
	var reads uint64
	var waited time.Duration
	for _, w := range s.Waits {
		reads, waited = reads+w.Histogram.Count(), waited+w.Sum
	}
	text := fmt.Sprintf("%s: %s reads of what had come since the last (%s/s), after %s on average.",
		trace.Span(s.Elapsed), trace.Number(reads), trace.PerSecond(reads, s.Elapsed), trace.Mean(waited, reads))
	b.WriteString(layout.Wrap(text, columns) + "\n")
	if len(s.Waits) == 0 {
		return b.String() + trace.LostText(s.Lost, columns)
	}
	var in trace.Spaces
	for _, w := range s.Waits {
		in.Add(w.Netns)
	}
	b.WriteString("\n")
	rows := [][]string{{"process", "end", "waiting", "reads/s", "mean", "99 % <", "first", "99 % <"}}
	for _, w := range s.Waits {
		n := w.Histogram.Count()
		rows = append(rows, []string{layout.Line(w.Name), w.String(), layout.Rate(w.Sum.Seconds() / s.Elapsed.Seconds()), trace.PerSecond(n, s.Elapsed),
			trace.Mean(w.Sum, n), w.Histogram.Under(0.99), trace.Mean(w.First, w.Firsts.Count()), w.Firsts.Under(0.99), in.Mark(w.Netns)})
	}
	trace.Rows(&b, rows, shownWaits, 1, columns)
	b.WriteString(s.Waits[0].Histogram.Bars("How long bytes waited for " + layout.Line(s.Waits[0].Name) + " " + s.Waits[0].String()))
	return b.String() + in.Legend(columns) + trace.LostText(s.Lost, columns)
}
