package syscalls

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

// What the text shows at most; the JSON has all of it.
const (
	shownGroups = 6
	shownCalls  = 10
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

// Text shows the calls of each group as strace -c does, the group first that was
// in the kernel longest.
func (s Seen) Text(columns int) string {
	var b strings.Builder
	var calls, failed uint64
	namespaces := map[uint32]bool{}
	for _, g := range s.Groups {
		calls, failed = calls+g.Count, failed+g.Failed
		namespaces[g.Netns] = true
	}
	text := fmt.Sprintf("%s: %s system calls (%s/s), of which %s failed. Time is wall time: what a call slept is in it.",
		trace.Watched(s.Elapsed, s.CPUs), trace.Number(calls), trace.PerSecond(calls, s.Elapsed), trace.Number(failed))
	b.WriteString(layout.Wrap(text, columns) + "\n")
	for _, g := range s.Groups[:min(len(s.Groups), shownGroups)] {
		b.WriteString("\n" + groupText(g, s.Elapsed, columns, len(namespaces) > 1))
	}
	if more := len(s.Groups) - shownGroups; more > 0 {
		b.WriteString("\n")
		trace.More(&b, more, " processes")
	}
	return b.String() + trace.LostText(s.Lost, columns)
}

// groupText is one group's table. The namespace is told where there are several.
func groupText(g Group, elapsed time.Duration, columns int, withNetns bool) string {
	var b strings.Builder
	where := ""
	if withNetns {
		where = fmt.Sprintf(" (network namespace %d)", g.Netns)
	}
	title := fmt.Sprintf("%s%s: %s, %s in them", layout.Line(g.Name), where, trace.Often(g.Count, elapsed, "call"), span(g.Time))
	b.WriteString(layout.Wrap(title, columns) + "\n")
	rows := [][]string{{"    %", "time", "mean", "50 % <", "99 % <", "calls", "errors", "syscall"}}
	for _, c := range g.Calls[:min(len(g.Calls), shownCalls)] {
		rows = append(rows, []string{fmt.Sprintf("%5.1f", 100*c.Time.Seconds()/max(g.Time.Seconds(), 1e-9)), span(c.Time),
			trace.Mean(c.Time, c.Count), c.Histogram.Under(0.5), c.Histogram.Under(0.99), trace.Number(c.Count), dashOr(c.Failed), c.Name})
	}
	layout.Table(&b, rows)
	trace.More(&b, len(g.Calls)-shownCalls, " calls")
	if text := errorsText(g); text != "" {
		b.WriteString(layout.Indent(layout.Wrap("errors: "+text, columns-8), "        ") + "\n")
	}
	return b.String()
}

// span writes long sums in seconds: they are of many threads, so minutes would
// say no more, and take more room.
func span(d time.Duration) string {
	if d >= 100*time.Second {
		return trace.Number(uint64(d.Seconds())) + " s"
	}
	return trace.Span(d)
}

func dashOr(n uint64) string {
	if n == 0 {
		return "-"
	}
	return trace.Number(n)
}

// errorsText tells the errors of a group, the most frequent first: "accept4
// EAGAIN 12, openat ENOENT 3".
func errorsText(g Group) string {
	type failure struct {
		what string
		n    uint64
	}
	var all []failure
	for _, c := range g.Calls {
		for _, name := range slices.Sorted(maps.Keys(c.Errors)) {
			all = append(all, failure{c.Name + " " + name, c.Errors[name]})
		}
	}
	slices.SortStableFunc(all, func(a, b failure) int { return cmp.Compare(b.n, a.n) })
	var parts []string
	for _, f := range all[:min(len(all), shownCalls)] {
		parts = append(parts, f.what+" "+trace.Number(f.n))
	}
	if more := len(all) - shownCalls; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}
