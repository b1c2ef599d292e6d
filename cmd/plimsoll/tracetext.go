package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"plimsoll/internal/model"
	"plimsoll/internal/report"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/exec"
	"plimsoll/internal/trace/runqueue"
)

// What the text shows at most; --json has all of it.
const (
	shownChains = 12
	shownGroups = 15
	shownPairs  = 8
	shownRates  = 60
	barColumns  = 30
)

// execSeen is the document of trace exec.
type execSeen struct {
	traceSeen
	exec.Snapshot
	// Rates are the starts per second, a value for each look at the tracer.
	Rates []float64 `json:"starts_per_second"`
	last  uint64
	at    time.Duration
}

// round notes how many programs were started since the last look.
func (s *execSeen) round(elapsed time.Duration) {
	total := uint64(0)
	for _, g := range s.Groups {
		total += g.Starts
	}
	if gone := (elapsed - s.at).Seconds(); gone >= 0.5 { // the rest of a second says little
		s.Rates = append(s.Rates, float64(total-s.last)/gone)
		s.last, s.at = total, elapsed
	}
}

// runqueueSeen is the document of trace runqueue.
type runqueueSeen struct {
	traceSeen
	runqueue.Snapshot
}

func (*runqueueSeen) round(time.Duration) {}

func execText(s execSeen, width int) string {
	var b strings.Builder
	var starts, ended, only uint64
	for _, g := range s.Groups {
		starts, ended, only = starts+g.Starts, ended+g.Ends, only+g.ForksOnly
	}
	text := fmt.Sprintf("%s: %s programs started (%s/s), %s processes ended", watched(s.traceSeen), number(starts), rate(starts, s.Seconds), number(ended))
	if only > 0 {
		text += fmt.Sprintf(", %s of them without having executed anything since their fork", number(only))
	}
	b.WriteString(wrapWords(text+".", width) + "\n")
	if len(s.Rates) > 1 && slices.Max(s.Rates) > 0 {
		shown := s.Rates[max(0, len(s.Rates)-shownRates):]
		fmt.Fprintf(&b, "starts/s  %s  %s at most\n", spark(shown), report.Rate(slices.Max(shown)))
	}
	chains := byChain(s.Groups)
	for i, g := range chains {
		if i == shownChains {
			fmt.Fprintf(&b, "\nand %s more chains; --json has them all\n", number(uint64(len(chains)-i)))
			break
		}
		b.WriteString(chainText(g, s.traceSeen, width))
	}
	return b.String() + notes(s.traceSeen, s.Lost, width)
}

// byChain joins the groups that are written alike and leaves out those of which
// there is nothing but a fork, which went on as another command.
func byChain(groups []exec.Group) []exec.Group {
	var list []exec.Group
	at := map[string]int{}
	for _, g := range groups {
		if g.Starts+g.Ends == 0 {
			continue
		}
		name := g.Chain.String()
		i, there := at[name]
		if !there {
			at[name] = len(list)
			g.Exits, g.Lifetimes = maps.Clone(g.Exits), slices.Clone(g.Lifetimes)
			list = append(list, g)
			continue
		}
		to := &list[i]
		to.Starts, to.Forks, to.Ends, to.ForksOnly = to.Starts+g.Starts, to.Forks+g.Forks, to.Ends+g.Ends, to.ForksOnly+g.ForksOnly
		to.Reaped, to.CPU, to.Lifetime = to.Reaped+g.Reaped, to.CPU+g.CPU, to.Lifetime+g.Lifetime
		for slot, n := range g.Lifetimes {
			to.Lifetimes[slot] += n
		}
		if to.Exits == nil {
			to.Exits = map[string]uint64{}
		}
		for exit, n := range g.Exits {
			to.Exits[exit] += n
		}
		if to.First == nil {
			to.First = g.First
		}
	}
	slices.SortStableFunc(list, func(a, b exec.Group) int {
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Starts, a.Starts))
	})
	return list
}

func chainText(g exec.Group, s traceSeen, width int) string {
	var parts []string
	if g.Starts > 0 {
		parts = append(parts, often(g.Starts, s.Seconds, "start"))
	}
	if g.ForksOnly > 0 {
		parts = append(parts, often(g.ForksOnly, s.Seconds, "fork")+" without exec")
	}
	if g.Reaped > 0 {
		parts = append(parts, report.Share(g.CPU.Seconds()/s.Seconds/float64(s.CPUs))+" of the CPU")
	}
	parts = append(parts, exitText(g))
	var b strings.Builder
	line := func(indent int, text string) {
		pad := strings.Repeat(" ", indent)
		b.WriteString(pad + indentRest(wrapWords(report.Clean(text), width-indent), pad) + "\n")
	}
	b.WriteString("\n")
	line(0, g.Chain.String()+": "+strings.Join(parts, ", "))
	if g.Ends > 0 {
		text := "lived " + mean(g.Lifetime, g.Ends) + " on average"
		if g.Reaped > 0 {
			text += ", used " + mean(g.CPU, g.Reaped) + " of CPU each"
		}
		line(4, text+spread(g.Lifetimes))
	}
	if g.First != nil && len(g.First.Arguments) > 0 {
		text := strings.ReplaceAll(strings.Join(g.First.Arguments, " "), "\n", " ")
		if g.First.Cut {
			text += " …"
		}
		line(4, fmt.Sprintf("first: pid %d: %s", g.First.PID, text))
	}
	return b.String()
}

// exitText says how the processes of a group ended, the most frequent way first.
func exitText(g exec.Group) string {
	words := func(exit string) string {
		switch {
		case exit == "0":
			return "end well"
		case exit[0] >= '0' && exit[0] <= '9':
			return "fail with exit " + exit
		}
		return "are killed by " + exit
	}
	kinds := slices.SortedFunc(maps.Keys(g.Exits), func(a, b string) int {
		return cmp.Or(cmp.Compare(g.Exits[b], g.Exits[a]), strings.Compare(a, b))
	})
	switch {
	case len(kinds) == 0 && g.Ends == 0:
		return "none has ended"
	case len(kinds) == 0:
		return "how they ended found no room"
	case len(kinds) == 1 && g.Ends == 1:
		return "the one that ended: " + strings.NewReplacer("end well", "well", "fail with ", "", "are killed", "killed").Replace(words(kinds[0]))
	case len(kinds) == 1:
		return fmt.Sprintf("all %s", words(kinds[0]))
	}
	var parts []string
	for i, k := range kinds {
		if i == 3 {
			parts = append(parts, "others otherwise")
			break
		}
		parts = append(parts, number(g.Exits[k])+" "+words(k))
	}
	return strings.Join(parts, ", ")
}

// spread draws a histogram as one line from its first to its last slot in use.
func spread(h trace.Histogram) string {
	first := slices.IndexFunc(h, func(n uint64) bool { return n > 0 })
	if first < 0 {
		return ""
	}
	last := len(h) - 1
	for h[last] == 0 {
		last--
	}
	values := make([]float64, 0, last-first+1)
	for _, n := range h[first : last+1] {
		values = append(values, float64(n))
	}
	from, to := "0", "more than "+span(h.Bound(len(h)-2))
	if first > 0 {
		from = span(h.Bound(first - 1))
	}
	if last < len(h)-1 {
		to = span(h.Bound(last))
	}
	return fmt.Sprintf("; %s %s %s", from, spark(values), to)
}

func spark(values []float64) string {
	peak := slices.Max(values)
	var b strings.Builder
	for _, v := range values {
		b.WriteRune(report.Bar(v, peak))
	}
	return b.String()
}

func runqueueText(s runqueueSeen, width int) string {
	var b strings.Builder
	var waits uint64
	var waited time.Duration
	for _, g := range s.Groups {
		waits, waited = waits+g.Waits, waited+g.Waited
	}
	text := fmt.Sprintf("%s: %s waits for a CPU (%s/s); on average %s threads were waiting.",
		watched(s.traceSeen), number(waits), rate(waits, s.Seconds), report.Rate(waited.Seconds()/s.Seconds))
	b.WriteString(wrapWords(text, width) + "\n")
	if len(s.Groups) == 0 {
		return b.String() + notes(s.traceSeen, s.Lost, width)
	}
	rows := [][]string{{"process", "waiting", "waits/s", "mean", "50 % <", "99 % <", "own/s", "forced/s"}}
	for _, g := range s.Groups[:min(len(s.Groups), shownGroups)] {
		rows = append(rows, []string{report.Clean(g.Name), report.Rate(g.Waited.Seconds() / s.Seconds), rate(g.Waits, s.Seconds),
			mean(g.Waited, g.Waits), under(g.Histogram, 0.5), under(g.Histogram, 0.99),
			rate(g.Voluntary, s.Seconds), rate(g.Involuntary, s.Seconds)})
	}
	b.WriteString("\n")
	writeTable(&b, rows)
	if more := len(s.Groups) - shownGroups; more > 0 {
		fmt.Fprintf(&b, "and %s more; --json has them all\n", number(uint64(more)))
	}
	b.WriteString(bars("How long "+report.Clean(s.Groups[0].Name)+" waited", s.Groups[0].Histogram))
	b.WriteString(pairsText(s))
	return b.String() + notes(s.traceSeen, s.Lost, width)
}

// bars draws a histogram, a line for each slot from the first to the last in use.
func bars(title string, h trace.Histogram) string {
	var b strings.Builder
	last := len(h) - 1
	for last >= 0 && h[last] == 0 {
		last--
	}
	if last < 0 {
		return ""
	}
	peak := slices.Max(h)
	fmt.Fprintf(&b, "\n%s\n", title)
	begun := false
	for slot, n := range h[:last+1] {
		if begun = begun || n > 0; !begun {
			continue
		}
		label := "under " + span(h.Bound(slot))
		if slot == len(h)-1 {
			label = "longer"
		}
		bar := strings.Repeat("█", int((n*barColumns+peak-1)/peak))
		fmt.Fprintf(&b, "  %s%s  %s%s  %s\n", strings.Repeat(" ", max(0, 13-utf8.RuneCountInString(label))), label,
			bar, strings.Repeat(" ", barColumns-utf8.RuneCountInString(bar)), number(n))
	}
	return b.String()
}

func pairsText(s runqueueSeen) string {
	if len(s.Pairs) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nWho takes the CPU from whom\n")
	var rows [][]string
	for _, p := range s.Pairs[:min(len(s.Pairs), shownPairs)] {
		rows = append(rows, []string{" ", report.Clean(p.By), "takes it from", report.Clean(p.Victim), rate(p.Count, s.Seconds) + "/s"})
	}
	writeTable(&b, rows)
	return b.String()
}

func writeTable(b *strings.Builder, rows [][]string) {
	var table bytes.Buffer
	printTable(&table, rows)
	b.Write(table.Bytes())
}

// notes says what was not seen: programs that are not attached, and losses.
func notes(s traceSeen, lost map[string]uint64, width int) string {
	var lines []string
	for _, p := range s.Programs {
		if p.Status.State != model.Read {
			lines = append(lines, fmt.Sprintf("not seen: %s (%s)", p.Tracepoint, p.Status.Why))
		}
	}
	for _, what := range slices.Sorted(maps.Keys(lost)) {
		if lost[what] > 0 {
			lines = append(lines, fmt.Sprintf("%s events were lost (%s)", number(lost[what]), what))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n")
	for _, l := range lines {
		b.WriteString("note: " + indentRest(wrapWords(report.Clean(l), width-6), "      ") + "\n")
	}
	return b.String()
}

func listingText(l traceListing, width int) string {
	can := "yes"
	if l.CanRun.State != model.Read {
		can = "no: " + l.CanRun.Why
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", l.Name)
	field := func(label, text string) {
		fmt.Fprintf(&b, "  %-9s %s\n", label, indentRest(wrapWords(text, width-12), strings.Repeat(" ", 12)))
	}
	field("shows", l.About)
	field("can run", can)
	field("cost", l.Cost)
	for _, blind := range l.Blind {
		field("blind", blind)
	}
	field("by hand", l.ByHand)
	return b.String()
}

func watched(s traceSeen) string {
	cpus := "1 CPU"
	if s.CPUs != 1 {
		cpus = number(uint64(s.CPUs)) + " CPUs"
	}
	return fmt.Sprintf("%s on %s", span(time.Duration(s.Seconds*float64(time.Second))), cpus)
}

// often is "87 starts/s", or "3 starts" where a rate would say more than is known.
func often(n uint64, seconds float64, thing string) string {
	if n >= 10 && float64(n) >= seconds {
		return rate(n, seconds) + " " + thing + "s/s"
	}
	if n == 1 {
		return "1 " + thing
	}
	return number(n) + " " + thing + "s"
}

func number(n uint64) string { return report.Count(int64(n)) }

func rate(n uint64, seconds float64) string {
	if seconds <= 0 {
		return "0"
	}
	return report.Rate(float64(n) / seconds)
}

func span(d time.Duration) string { return report.Micros(float64(d) / float64(time.Microsecond)) }

// mean is a dash where there is nothing to take the mean of.
func mean(sum time.Duration, n uint64) string {
	if n == 0 {
		return "-"
	}
	return span(sum / time.Duration(n))
}

func under(h trace.Histogram, q float64) string {
	if h.Count() == 0 {
		return "-"
	}
	d, ok := h.Quantile(q)
	if !ok {
		return "longer"
	}
	return span(d)
}
