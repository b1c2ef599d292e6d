package drops

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/trace"
)

// What the text shows at most of each table; the JSON has all of it.
const (
	shownDrops = 12
	shownPorts = 8
	shownUsual = 8
)

// Seen is the tracer's report.
type Seen struct {
	Snapshot
	Elapsed time.Duration `json:"elapsed_ns"`
	// Unnamed says why no locations are named, "" if they are.
	Unnamed string `json:"unnamed,omitempty"`
}

// Report returns everything since the start.
func (t *Trace) Report(elapsed time.Duration) (trace.Report, error) {
	s, err := t.Snapshot()
	seen := Seen{Snapshot: s, Elapsed: elapsed}
	if why := t.symbols.KernelErr(); why != nil {
		seen.Unnamed = why.Error()
	}
	return seen, err
}

// split parts the drops that also occur where all is well from the others.
func split(all []Drops) (others, usualOnes []Drops) {
	for _, d := range all {
		if slices.Contains(usual, d.Reason) {
			usualOnes = append(usualOnes, d)
		} else {
			others = append(others, d)
		}
	}
	return others, usualOnes
}

func count(all []Drops) uint64 {
	var n uint64
	for _, d := range all {
		n += d.Packets
	}
	return n
}

// Text lists the most frequent drops, those that may be a fault first.
func (s Seen) Text(columns int) string {
	var b strings.Builder
	others, usualOnes := split(s.Drops)
	text := fmt.Sprintf("%s: %s packets thrown away (%s/s); besides, %s for reasons that also occur where all is well.",
		trace.Span(s.Elapsed), trace.Number(count(others)), trace.PerSecond(count(others), s.Elapsed), trace.Number(count(usualOnes)))
	b.WriteString(layout.Wrap(text, columns) + "\n")
	var in trace.Spaces
	for _, d := range s.Drops {
		in.Add(d.Netns)
	}
	byPort, _ := split(s.ByPort)
	b.WriteString(s.table(in, columns, "reason", "in function", others, shownDrops))
	b.WriteString(s.table(in, columns, "reason", "service's port", byPort, shownPorts))
	b.WriteString(s.lateTable(in, columns))
	b.WriteString(s.refusedTable(in, columns))
	b.WriteString(s.table(in, columns, "usual reason", "in function", usualOnes, shownUsual))
	b.WriteString(in.Legend(columns))
	if s.Unnamed != "" {
		b.WriteString("\n" + layout.Indent(layout.Wrap("note: "+s.Unnamed, columns-6), "      ") + "\n")
	}
	return b.String() + trace.LostText(s.Lost, columns)
}

func (s Seen) lateTable(in trace.Spaces, columns int) string {
	if len(s.Late) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n" + layout.Wrap("Connections that stood late, since a SYN of theirs had been thrown away:", columns) + "\n")
	rows := [][]string{{"reason", "service's port", "connections", "later on average"}}
	for _, l := range s.Late {
		mean := time.Duration(uint64(l.Waited) / max(l.Connections, 1))
		rows = append(rows, []string{cmp.Or(l.Reason, "-"), strconv.Itoa(int(l.Port)), trace.Number(l.Connections), trace.Span(mean), in.Mark(l.Netns)})
	}
	trace.Rows(&b, rows, shownPorts, 1, columns)
	return b.String()
}

func (s Seen) refusedTable(in trace.Spaces, columns int) string {
	if len(s.Refused) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n" + layout.Wrap("Connects to where nobody listens, each refused (as the address is after translation):", columns) + "\n")
	rows := [][]string{{"address", "connects", "/s"}}
	for _, r := range s.Refused {
		rows = append(rows, []string{r.Address.String(), trace.Number(r.SYNs), trace.PerSecond(r.SYNs, s.Elapsed), in.Mark(r.Netns)})
	}
	trace.Rows(&b, rows, shownPorts, 1, columns)
	return b.String()
}

func (s Seen) table(in trace.Spaces, columns int, title, where string, all []Drops, shown int) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n")
	rows := [][]string{{title, where, "packets", "/s"}}
	for _, d := range all {
		at := cmp.Or(d.Location, "?")
		if d.Port > 0 {
			at = strconv.Itoa(int(d.Port))
		}
		rows = append(rows, []string{cmp.Or(d.Reason, "-"), at, trace.Number(d.Packets), trace.PerSecond(d.Packets, s.Elapsed), in.Mark(d.Netns)})
	}
	trace.Rows(&b, rows, shown, 1, columns)
	return b.String()
}
