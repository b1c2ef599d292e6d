package exec

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
	shownChains = 12
	shownRates  = 60
)

// Seen is the tracer's report.
type Seen struct {
	Snapshot
	Elapsed time.Duration `json:"elapsed_ns"`
	CPUs    int           `json:"cpus"`
	// Rates are the starts per second, a value for each look at the tracer.
	Rates []float64 `json:"starts_per_second"`
}

// looks remembers what was seen when.
type looks struct {
	rates []float64
	last  uint64
	at    time.Duration
}

func (l *looks) note(groups []Group, elapsed time.Duration) {
	total := uint64(0)
	for _, g := range groups {
		total += g.Starts
	}
	if gone := (elapsed - l.at).Seconds(); gone >= 0.5 { // the rest of a second says little
		l.rates = append(l.rates, float64(total-l.last)/gone)
		l.last, l.at = total, elapsed
	}
}

// Report returns everything since the start.
func (t *Trace) Report(elapsed time.Duration) (trace.Report, error) {
	s, err := t.Snapshot()
	if err != nil {
		return nil, err
	}
	cpus, err := trace.OnlineCPUs()
	if err != nil {
		return nil, err
	}
	t.looks.note(s.Groups, elapsed)
	return Seen{s, elapsed, cpus, t.looks.rates}, nil
}

// Text lists the chains that used most CPU.
func (s Seen) Text(columns int) string {
	var b strings.Builder
	var starts, ended, only uint64
	for _, g := range s.Groups {
		starts, ended, only = starts+g.Starts, ended+g.Ends, only+g.ForksOnly
	}
	text := fmt.Sprintf("%s: %s programs started (%s/s), %s processes ended", trace.Watched(s.Elapsed, s.CPUs),
		trace.Number(starts), trace.PerSecond(starts, s.Elapsed), trace.Number(ended))
	if only > 0 {
		text += fmt.Sprintf(", %s of them without having executed anything since their fork", trace.Number(only))
	}
	b.WriteString(layout.Wrap(text+".", columns) + "\n")
	if len(s.Rates) > 1 && slices.Max(s.Rates) > 0 {
		shown := s.Rates[max(0, len(s.Rates)-shownRates):]
		fmt.Fprintf(&b, "starts/s  %s  %s at most\n", layout.Spark(shown), layout.Rate(slices.Max(shown)))
	}
	chains := byChain(s.Groups)
	several := places(chains)
	for i, g := range chains {
		if i == shownChains {
			b.WriteString("\n")
			trace.More(&b, len(chains)-i, " chains")
			break
		}
		title := g.Chain.String()
		if several[title] > 1 {
			title += fmt.Sprintf(" (netns %d)", g.Chain.NetNS)
		}
		b.WriteString(chainText(title, g, s.Elapsed, s.CPUs, columns))
	}
	return b.String() + trace.LostText(s.Lost, columns)
}

// chainKey is how a chain is written, and where it runs.
type chainKey struct {
	name  string
	netns uint32
}

// places counts the network namespaces of each chain.
func places(groups []Group) map[string]int {
	n := map[string]int{}
	for _, g := range groups {
		n[g.Chain.String()]++
	}
	return n
}

// byChain joins the groups that are written alike and leaves out those of which
// there is nothing but a fork, which went on as another command.
func byChain(groups []Group) []Group {
	var list []Group
	at := map[chainKey]int{}
	for _, g := range groups {
		if g.Starts+g.Ends == 0 {
			continue
		}
		key := chainKey{g.Chain.String(), g.Chain.NetNS}
		i, there := at[key]
		if !there {
			at[key] = len(list)
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
	slices.SortStableFunc(list, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Starts, a.Starts))
	})
	return list
}

func chainText(title string, g Group, elapsed time.Duration, cpus, columns int) string {
	var parts []string
	if g.Starts > 0 {
		parts = append(parts, trace.Often(g.Starts, elapsed, "start"))
	}
	if g.ForksOnly > 0 {
		parts = append(parts, trace.Often(g.ForksOnly, elapsed, "fork")+" without exec")
	}
	if g.Reaped > 0 {
		parts = append(parts, layout.Share(g.CPU.Seconds()/elapsed.Seconds()/float64(cpus))+" of the CPU")
	}
	parts = append(parts, exitText(g))
	var b strings.Builder
	line := func(indent int, text string) {
		pad := strings.Repeat(" ", indent)
		b.WriteString(pad + layout.Indent(layout.Wrap(layout.Line(text), columns-indent), pad) + "\n")
	}
	b.WriteString("\n")
	line(0, title+": "+strings.Join(parts, ", "))
	if g.Ends > 0 {
		text := "lived " + trace.Mean(g.Lifetime, g.Ends) + " on average"
		if g.Reaped > 0 {
			text += ", used " + trace.Mean(g.CPU, g.Reaped) + " of CPU each"
		}
		line(4, text+lifetimes(g.Lifetimes))
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
func exitText(g Group) string {
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
		parts = append(parts, trace.Number(g.Exits[k])+" "+words(k))
	}
	return strings.Join(parts, ", ")
}

// lifetimes draws how long the processes of a group lived.
func lifetimes(h trace.Histogram) string {
	if h.Count() == 0 {
		return ""
	}
	return "; " + h.Line()
}
