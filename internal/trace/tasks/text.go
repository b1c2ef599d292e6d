package tasks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/trace"
)

// What the text shows at most; the JSON has all of it.
const (
	shownGroups  = 12
	shownWaits   = 8
	shownThreads = 10
	shownParents = 8
	shownFrames  = 8
)

// Seen is the tracer's report.
type Seen struct {
	Snapshot
	Elapsed time.Duration `json:"elapsed_ns"`
	CPUs    int           `json:"cpus"`
	// NoNames says why the kernel's functions have no names; "" if they have.
	NoNames string `json:"no_names,omitempty"`
}

// Report returns everything since the start.
func (t *Trace) Report(elapsed time.Duration) (trace.Report, error) {
	s, err := t.Snapshot()
	if err != nil {
		return nil, err
	}
	cpus, err := trace.OnlineCPUs()
	seen := Seen{Snapshot: s, Elapsed: elapsed, CPUs: cpus}
	t.mu.Lock()
	defer t.mu.Unlock()
	if why := t.symbols.KernelErr(); why != nil {
		seen.NoNames = why.Error()
	}
	return seen, err
}

// Text says who makes the load, and lists the states, the waits in D state, the
// threads that switch and the parents that do not reap.
func (s Seen) Text(columns int) string {
	var b strings.Builder
	b.WriteString(layout.Wrap(s.loadText(), columns) + "\n")
	s.statesText(&b)
	s.waitsText(&b, columns)
	s.threadsText(&b)
	s.parentsText(&b, columns)
	if s.NoNames != "" {
		b.WriteString("\n" + layout.Wrap("note: kernel functions have no names: "+s.NoNames, columns) + "\n")
	}
	return b.String() + trace.LostText(s.Lost, columns)
}

// mean is a time of all threads together as a number of threads.
func (s Seen) mean(d time.Duration) string { return layout.Rate(d.Seconds() / s.Elapsed.Seconds()) }

// loadText says of what the load average is made.
func (s Seen) loadText() string {
	var runs, waits time.Duration
	for i := range s.Groups {
		runs += s.Groups[i].runnable
		waits += s.Groups[i].uninterruptible
	}
	return fmt.Sprintf("%s, %s looks: on average %s threads were running or could have run%s, and %s were in uninterruptible sleep (D)%s. The load average counts both.",
		trace.Watched(s.Elapsed, s.CPUs), trace.Number(s.Looks), s.mean(runs), s.whose(func(g *Group) time.Duration { return g.runnable }),
		s.mean(waits), s.whose(func(g *Group) time.Duration { return g.uninterruptible }))
}

// whose names the three groups with most of a time: " (php-fpm 3.1, nginx 0.4)".
func (s Seen) whose(of func(*Group) time.Duration) string {
	var list []*Group
	for i := range s.Groups {
		if of(&s.Groups[i]) > 0 {
			list = append(list, &s.Groups[i])
		}
	}
	slices.SortStableFunc(list, func(a, b *Group) int { return cmp.Compare(of(b), of(a)) })
	var parts []string
	for _, g := range list[:min(len(list), 3)] {
		parts = append(parts, layout.Line(g.Name)+" "+s.mean(of(g)))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func (s Seen) statesText(b *strings.Builder) {
	if s.notable() == 0 {
		return
	}
	b.WriteString("\nThreads by state, on average\n")
	rows := [][]string{{"process", "runnable", "D", "sleeping", "stopped", "zombie"}}
	names := s.named(len(s.Groups), func(i int) (string, uint32) { return s.Groups[i].Name, s.Groups[i].NetNS })
	for i, g := range s.Groups[:min(s.notable(), shownGroups)] {
		row := []string{names[i]}
		for _, state := range []int{runnable, uninterruptible, sleeping, stopped, zombie} {
			row = append(row, s.mean(g.States[stateNames[state]]))
		}
		rows = append(rows, row)
	}
	layout.Table(b, rows)
	trace.More(b, len(s.Groups)-len(rows)+1, "")
}

// notable is how many groups come before the rest, which only sleep.
func (s Seen) notable() int {
	for i := range s.Groups {
		if s.Groups[i].notable() == 0 {
			return i
		}
	}
	return len(s.Groups)
}

// named writes names, with the network namespace where one name is in several.
func (s Seen) named(n int, of func(int) (string, uint32)) []string {
	in := map[string]uint32{}
	several := map[string]bool{}
	for i := range n {
		name, netns := of(i)
		if before, there := in[name]; there && before != netns {
			several[name] = true
		}
		in[name] = netns
	}
	list := make([]string, n)
	for i := range n {
		name, netns := of(i)
		list[i] = layout.Line(name)
		if several[name] {
			list[i] += fmt.Sprintf(" (netns %d)", netns)
		}
	}
	return list
}

func (s Seen) waitsText(b *strings.Builder, columns int) {
	if len(s.Waits) == 0 {
		return
	}
	b.WriteString("\nWhat uninterruptible sleep waits for\n")
	for _, w := range s.Waits[:min(len(s.Waits), shownWaits)] {
		call := "in " + w.Syscall
		if w.Syscall == "none" {
			call = "in no system call"
		}
		text := fmt.Sprintf("%s: %s on average, %s, in %s; pid %d", w.Name, s.mean(w.Time), call, w.Function, w.PID)
		b.WriteString("  " + layout.Indent(layout.Wrap(layout.Line(text), columns-2), "  ") + "\n")
		if len(w.Stack) > 0 {
			stack := strings.Join(w.Stack[:min(len(w.Stack), shownFrames)], " < ")
			b.WriteString("      " + layout.Indent(layout.Wrap(layout.Line(stack), columns-6), "      ") + "\n")
		}
	}
	trace.More(b, len(s.Waits)-shownWaits, "")
}

func (s Seen) threadsText(b *strings.Builder) {
	if len(s.Threads) == 0 {
		return
	}
	b.WriteString("\nThreads that switch, of processes with several\n")
	rows := [][]string{{"process", "thread", "own/s", "forced/s"}}
	names := s.named(len(s.Threads), func(i int) (string, uint32) { return s.Threads[i].Name, s.Threads[i].NetNS })
	for i, t := range s.Threads[:min(len(s.Threads), shownThreads)] {
		thread := layout.Line(t.Thread)
		if t.Role == "main" {
			thread += " (main)"
		}
		rows = append(rows, []string{names[i], thread, trace.PerSecond(t.Voluntary, s.Elapsed), trace.PerSecond(t.Involuntary, s.Elapsed)})
	}
	layout.Table(b, rows)
}

func (s Seen) parentsText(b *strings.Builder, columns int) {
	if len(s.Parents) == 0 {
		return
	}
	b.WriteString("\nZombies\n")
	for _, p := range s.Parents[:min(len(s.Parents), shownParents)] {
		children := trace.Number(uint64(p.Zombies)) + " children"
		if p.Zombies == 1 {
			children = "1 child"
		}
		text := fmt.Sprintf("%s (pid %d) does not reap %s, oldest at least %s", p.Name, p.PID, children, trace.Span(p.Oldest))
		b.WriteString("  " + layout.Indent(layout.Wrap(layout.Line(text), columns-2), "  ") + "\n")
	}
}
