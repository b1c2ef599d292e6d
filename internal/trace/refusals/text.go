package refusals

import (
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/trace"
)

// What the text shows at most; the JSON has all of it.
const shown = 20

// Seen is the tracer's report.
type Seen struct {
	Snapshot
	Elapsed time.Duration `json:"elapsed_ns"`
}

// Report returns all that was refused since the start.
func (t *Trace) Report(elapsed time.Duration) (trace.Report, error) {
	s, err := t.Snapshot()
	return Seen{s, elapsed}, err
}

// Text lists what was refused, the commonest first.
func (s Seen) Text(columns int) string {
	var b strings.Builder
	var n uint64
	for _, r := range s.Refusals {
		n += r.Count
	}
	text := fmt.Sprintf("%s: %s system calls were refused for want of something (%s/s).", trace.Span(s.Elapsed), trace.Number(n), trace.PerSecond(n, s.Elapsed))
	b.WriteString(layout.Wrap(text, columns) + "\n")
	if n == 0 {
		return b.String() + trace.LostText(s.Lost, columns)
	}
	var in trace.Spaces
	for _, r := range s.Refusals {
		in.Add(r.Netns)
	}
	b.WriteString("\n")
	rows := [][]string{{"process", "call", "error", "calls", "calls/s"}}
	for _, r := range s.Refusals {
		rows = append(rows, []string{layout.Line(r.Name), r.Call, r.Error, trace.Number(r.Count), trace.PerSecond(r.Count, s.Elapsed), in.Mark(r.Netns)})
	}
	trace.Rows(&b, rows, shown, 3, columns)
	return b.String() + in.Legend(columns) + trace.LostText(s.Lost, columns)
}
