package softirq

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/trace"
)

// What the text shows at most of each table; the JSON has all of it.
const (
	shownSoft = 16
	shownHard = 8
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

func total(list []Slot) time.Duration {
	var sum time.Duration
	for _, s := range list {
		sum += s.Took
	}
	return sum
}

// share is a time as a part of so many CPUs' time.
func (s Seen) share(d time.Duration, cpus int) string {
	return layout.Share(d.Seconds() / s.Elapsed.Seconds() / float64(cpus))
}

// Text lists the kinds that took most time.
func (s Seen) Text(columns int) string {
	var b strings.Builder
	text := fmt.Sprintf("%s: softirqs took %s of the CPU time, handlers of hardware interrupts %s.",
		trace.Watched(s.Elapsed, s.CPUs), s.share(total(s.Soft), s.CPUs), s.share(total(s.Hard), s.CPUs))
	b.WriteString(layout.Wrap(text, columns) + "\n")
	s.table(&b, "softirq", s.Soft, shownSoft, columns)
	s.table(&b, "interrupt", s.Hard, shownHard, columns)
	if len(s.Waits) > 0 {
		b.WriteString("\nHow long softirqs were pending\n")
		rows := [][]string{{"softirq", "waits/s", "mean", "50 % <", "99 % <"}}
		for _, w := range s.Waits {
			n := w.Histogram.Count()
			rows = append(rows, []string{w.Vector, trace.PerSecond(n, s.Elapsed), trace.Mean(w.Sum, n), w.Histogram.Under(0.5), w.Histogram.Under(0.99)})
		}
		layout.Table(&b, rows)
	}
	return b.String() + trace.LostText(s.Lost, columns)
}

func (s Seen) table(b *strings.Builder, what string, list []Slot, shown, columns int) {
	if len(list) == 0 {
		return
	}
	b.WriteString("\n")
	rows := [][]string{{what, "cpu", "of that CPU", "runs/s", "mean"}}
	for _, slot := range list {
		rows = append(rows, []string{layout.Line(slot.Kind), strconv.Itoa(slot.CPU), s.share(slot.Took, 1),
			trace.PerSecond(slot.Runs, s.Elapsed), trace.Mean(slot.Took, slot.Runs)})
	}
	trace.Rows(b, rows, shown, 0, columns)
}
