package wait

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/wait/reason"
)

// What the text shows at most; the JSON has all of it.
const (
	shownHeld = 20
	shownIdle = 12
	// towardsColumn is where the table has addresses, which may be long.
	towardsColumn = 2
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

// row is one line: a group and one whom it waited for.
type row struct {
	group  Group
	target Target
}

// idle says whether who waits so has nothing to do, rather than being held up.
func (r row) idle() bool {
	return reason.Named(r.group.Reason).Idle() || strings.HasPrefix(r.target.Towards, "clients@")
}

// rows returns all lines, the longest first: those held up, and those idle.
func rows(groups []Group) (held, idle []row) {
	for _, g := range groups {
		for _, t := range g.Targets {
			if r := (row{g, t}); r.idle() {
				idle = append(idle, r)
			} else {
				held = append(held, r)
			}
		}
	}
	for _, list := range [][]row{held, idle} {
		slices.SortStableFunc(list, func(a, b row) int { return cmp.Compare(b.target.Blocked, a.target.Blocked) })
	}
	return held, idle
}

// Text says who was held up by what, and who had nothing to do.
func (s Seen) Text(columns int) string {
	held, idle := rows(s.Groups)
	var sum time.Duration
	for _, h := range held {
		sum += h.target.Blocked
	}
	var b strings.Builder
	b.WriteString(layout.Wrap(fmt.Sprintf("%s: on average %s threads were held up.", trace.Span(s.Elapsed), s.threads(sum)), columns) + "\n")
	b.WriteString(s.table("Held up", held, shownHeld, columns))
	b.WriteString(s.table("Idle, or asleep on purpose", idle, shownIdle, columns))
	return b.String() + trace.LostText(s.Lost, columns)
}

// threads is how many threads a time is, on average.
func (s Seen) threads(d time.Duration) string {
	return layout.Rate(d.Seconds() / max(s.Elapsed.Seconds(), 1e-9))
}

// table lists the longest of one kind; "" if there are none.
func (s Seen) table(title string, list []row, most, columns int) string {
	if len(list) == 0 {
		return ""
	}
	cells := [][]string{{"process", "waits for", "towards", "threads", "waits/s", "50 % <", "99 % <"}}
	for _, l := range list {
		cells = append(cells, []string{
			layout.Line(l.group.Name), l.group.Reason, layout.Line(l.target.Towards), s.threads(l.target.Blocked),
			trace.PerSecond(l.target.Blocks, s.Elapsed), l.group.Lengths.Under(0.5), l.group.Lengths.Under(0.99),
		})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", title)
	trace.Rows(&b, cells, most, towardsColumn, columns)
	return b.String()
}
