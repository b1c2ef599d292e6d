package trace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"plimsoll/internal/layout"
)

const barColumns = 30

// What reports of all tracers are worded with.

// Span writes a duration as people read it.
func Span(d time.Duration) string { return layout.Micros(float64(d) / float64(time.Microsecond)) }

// Number writes a count.
func Number(n uint64) string { return layout.Count(int64(n)) }

// PerSecond writes a count as a rate, without its unit.
func PerSecond(n uint64, elapsed time.Duration) string {
	if elapsed <= 0 {
		return "0"
	}
	return layout.Rate(float64(n) / elapsed.Seconds())
}

// Often is "87 starts/s", or "3 starts" where a rate would say more than is known.
func Often(n uint64, elapsed time.Duration, thing string) string {
	if n >= 10 && float64(n) >= elapsed.Seconds() {
		return PerSecond(n, elapsed) + " " + thing + "s/s"
	}
	if n == 1 {
		return "1 " + thing
	}
	return Number(n) + " " + thing + "s"
}

// Mean is a dash where there is nothing to take the mean of.
func Mean(sum time.Duration, n uint64) string {
	if n == 0 {
		return "-"
	}
	return Span(sum / time.Duration(n))
}

// Watched begins a report: how long, on how many CPUs.
func Watched(elapsed time.Duration, cpus int) string {
	if cpus == 1 {
		return Span(elapsed) + " on 1 CPU"
	}
	return Span(elapsed) + " on " + Number(uint64(cpus)) + " CPUs"
}

// Under is the bound under which the share q of all times lies, "-" if there are
// none, "longer" if it is the last slot's.
func (h Histogram) Under(q float64) string {
	if h.Count() == 0 {
		return "-"
	}
	d, ok := h.Quantile(q)
	if !ok {
		return "longer"
	}
	return Span(d)
}

// inUse returns the first and the last slot that hold something.
func (h Histogram) inUse() (first, last int, any bool) {
	first = slices.IndexFunc(h, func(n uint64) bool { return n > 0 })
	if first < 0 {
		return 0, 0, false
	}
	last = len(h) - 1
	for h[last] == 0 {
		last--
	}
	return first, last, true
}

// Line draws it between its bounds: "4.1 ms █▄ 16.4 ms"; "" if it is empty.
func (h Histogram) Line() string {
	first, last, any := h.inUse()
	if !any {
		return ""
	}
	values := make([]float64, 0, last-first+1)
	for _, n := range h[first : last+1] {
		values = append(values, float64(n))
	}
	from, to := "0", "more than "+Span(h.Bound(len(h)-2))
	if first > 0 {
		from = Span(h.Bound(first - 1))
	}
	if last < len(h)-1 {
		to = Span(h.Bound(last))
	}
	return fmt.Sprintf("%s %s %s", from, layout.Spark(values), to)
}

// Bars draws it under a title, a line for each slot; "" if it is empty.
func (h Histogram) Bars(title string) string {
	first, last, any := h.inUse()
	if !any {
		return ""
	}
	var b strings.Builder
	peak := slices.Max(h)
	fmt.Fprintf(&b, "\n%s\n", title)
	for slot := first; slot <= last; slot++ {
		label := "under " + Span(h.Bound(slot))
		if slot == len(h)-1 {
			label = "longer"
		}
		bar := strings.Repeat("█", int((h[slot]*barColumns+peak-1)/peak))
		fmt.Fprintf(&b, "  %s%s  %s%s  %s\n", strings.Repeat(" ", max(0, 13-utf8.RuneCountInString(label))), label,
			bar, strings.Repeat(" ", barColumns-utf8.RuneCountInString(bar)), Number(h[slot]))
	}
	return b.String()
}

// LostText says what found no room, a line each; "" if nothing was lost.
func LostText(lost map[string]uint64, columns int) string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(lost)) {
		if lost[what] > 0 {
			text := fmt.Sprintf("note: %s events were lost (%s)", Number(lost[what]), what)
			if b.Len() == 0 {
				b.WriteString("\n")
			}
			b.WriteString(layout.Indent(layout.Wrap(text, columns-6), "      ") + "\n")
		}
	}
	return b.String()
}
