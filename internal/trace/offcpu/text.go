package offcpu

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/stacks"
)

// What the text shows at most, and what the JSON lists.
const (
	shownGroups  = 8
	shownCauses  = 5
	shownLocks   = 3
	shownIdle    = 8
	shownLines   = 40
	listedStacks = 200
	// smallest is the share of all that is shown at least.
	smallest = 0.005
)

// Group is what is known of all threads of one command's processes in one network
// namespace since the start.
type Group struct {
	NetNS uint32 `json:"netns"`
	Name  string `json:"groupname"`
	// PIDs are its processes, the first that were seen.
	PIDs []int `json:"pids"`
	// Blocked is how long they slept, HeldUp how much of it not for want of anything
	// to do.
	Blocked time.Duration `json:"blocked_ns"`
	HeldUp  time.Duration `json:"held_up_ns"`
	// Causes and Locks have the longest first.
	Causes []Cause `json:"causes"`
	Locks  []Lock  `json:"locks"`
}

// Cause is one way in which threads slept: for what, in which function of the
// kernel, and who woke them ("" if that was not seen).
type Cause struct {
	Reason  string        `json:"reason"`
	In      string        `json:"in"`
	Waker   string        `json:"waker"`
	Blocked time.Duration `json:"blocked_ns"`
	Waits   uint64        `json:"waits"`
}

// Lock is a futex that threads of a process slept for; Name is that of the
// variable, "" if it has none.
type Lock struct {
	PID     int           `json:"pid"`
	Name    string        `json:"name"`
	Module  string        `json:"module"`
	Address uint64        `json:"address"`
	Blocked time.Duration `json:"blocked_ns"`
	Waits   uint64        `json:"waits"`
}

// Stack is one of the stacks on which threads slept longest, the outermost
// function first.
type Stack struct {
	Group   string        `json:"groupname"`
	Reason  string        `json:"reason"`
	Waker   string        `json:"waker"`
	Frames  []string      `json:"frames"`
	Blocked time.Duration `json:"blocked_ns"`
	Waits   uint64        `json:"waits"`
}

// Seen is the tracer's report. Groups that were held up longest come first.
type Seen struct {
	Elapsed time.Duration `json:"elapsed_ns"`
	Groups  []Group       `json:"groups"`
	Stacks  []Stack       `json:"stacks"`
	// Lost counts what found no room, by what it was.
	Lost map[string]uint64 `json:"lost"`
	// Nameless says why the kernel's functions have no names; "" if they have.
	Nameless string `json:"nameless,omitempty"`
	slept    []slept
}

// Report returns everything since the start, with the waits that still last.
func (t *Trace) Report(elapsed time.Duration) (trace.Report, error) {
	all, err := t.slept()
	if err != nil {
		return nil, err
	}
	locks, err := t.locks()
	if err != nil {
		return nil, err
	}
	s := Seen{Elapsed: elapsed, Groups: groups(all, locks, t.taken.pids), Stacks: longest(all), slept: all}
	if err := t.taken.names.KernelErr(); err != nil {
		s.Nameless = err.Error()
	}
	s.Lost, err = t.Lost()
	return s, err
}

// groups sums up by network namespace and command.
func groups(all []slept, locks []Lock, pids map[who]map[int]bool) []Group {
	type way struct {
		who
		reason, in, waker string
	}
	causes := map[way]Cause{}
	found := map[who]*Group{}
	for _, s := range all {
		at := who{s.netns, s.Labels[stacks.Group]}
		if found[at] == nil {
			found[at] = &Group{NetNS: at.netns, Name: at.name, PIDs: slices.Sorted(maps.Keys(pids[at])), Causes: []Cause{}, Locks: []Lock{}}
		}
		found[at].add(s)
		key := way{at, s.Labels["reason"], innermost(s), s.Labels["waker"]}
		sum := causes[key]
		causes[key] = Cause{key.reason, key.in, key.waker, sum.Blocked + s.blocked(), sum.Waits + uint64(s.Values[1])}
	}
	for key, c := range causes {
		found[key.who].Causes = append(found[key.who].Causes, c)
	}
	list := make([]Group, 0, len(found))
	for _, g := range found {
		g.sort(locks)
		list = append(list, *g)
	}
	slices.SortFunc(list, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.HeldUp, a.HeldUp), cmp.Compare(b.Blocked, a.Blocked), strings.Compare(a.Name, b.Name))
	})
	return list
}

func (g *Group) add(s slept) {
	g.Blocked += s.blocked()
	if !s.idle() {
		g.HeldUp += s.blocked()
	}
}

// sort takes the group's own of all locks, and puts the longest first.
func (g *Group) sort(locks []Lock) {
	for _, l := range locks {
		if _, ours := slices.BinarySearch(g.PIDs, l.PID); ours {
			g.Locks = append(g.Locks, l)
		}
	}
	slices.SortFunc(g.Causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Blocked, a.Blocked), strings.Compare(a.Reason+a.In+a.Waker, b.Reason+b.In+b.Waker))
	})
	slices.SortFunc(g.Locks, func(a, b Lock) int {
		return cmp.Or(cmp.Compare(b.Blocked, a.Blocked), cmp.Compare(a.Address, b.Address))
	})
}

// innermost is the function in which a thread slept.
func innermost(s slept) string {
	if len(s.Frames) == 0 {
		return "[unknown]"
	}
	return s.Frames[0].Name()
}

// longest returns the stacks on which threads slept longest.
func longest(all []slept) []Stack {
	all = slices.SortedFunc(slices.Values(all), func(a, b slept) int { return cmp.Compare(b.Values[0], a.Values[0]) })
	list := []Stack{}
	for _, s := range all[:min(len(all), listedStacks)] {
		frames := make([]string, 0, len(s.Frames))
		for _, f := range slices.Backward(s.Frames) {
			frames = append(frames, f.Name())
		}
		list = append(list, Stack{s.Labels[stacks.Group], s.Labels["reason"], s.Labels["waker"], frames,
			s.blocked(), uint64(s.Values[1])})
	}
	return list
}

// Text says what each group slept for, the tree of their stacks, and who had
// nothing to do.
func (s Seen) Text(columns int) string {
	var b strings.Builder
	var held time.Duration
	var stuck []stacks.Sample
	for _, one := range s.slept {
		if !one.idle() {
			held += one.blocked()
			stuck = append(stuck, one.Sample)
		}
	}
	b.WriteString(layout.Wrap(fmt.Sprintf("%s: on average %s threads were held up.", trace.Span(s.Elapsed), s.threads(held)), columns) + "\n")
	for i, g := range s.Groups {
		if i == shownGroups || float64(g.HeldUp) < smallest*float64(held) || g.HeldUp == 0 {
			break
		}
		b.WriteString(s.group(g, columns))
	}
	if len(stuck) > 0 {
		b.WriteString("\nWhere they were held up\n" + stacks.Tree(stuck, 0, shownLines, columns))
	}
	b.WriteString(s.idle())
	if s.Nameless != "" {
		b.WriteString("\nnote: " + layout.Indent(layout.Wrap(layout.Line(s.Nameless), columns-6), "      ") + "\n")
	}
	return b.String() + trace.LostText(s.Lost, columns)
}

// threads is how many threads a time is, on average.
func (s Seen) threads(d time.Duration) string {
	return layout.Rate(d.Seconds() / max(s.Elapsed.Seconds(), 1e-9))
}

// group says what one group was blocked by.
func (s Seen) group(g Group, columns int) string {
	var b strings.Builder
	line := func(indent int, text string) {
		pad := strings.Repeat(" ", indent)
		b.WriteString(strings.Repeat(" ", indent/2) + layout.Indent(layout.Wrap(layout.Line(text), max(20, columns-indent)), pad) + "\n")
	}
	who := g.Name
	switch n := len(g.PIDs); {
	case n == 1:
		who += fmt.Sprintf(", pid %d", g.PIDs[0])
	case n == maxPIDs:
		who += fmt.Sprintf(", %d processes or more", n)
	default:
		who += fmt.Sprintf(", %d processes", n)
	}
	b.WriteString("\n")
	line(0, fmt.Sprintf("%s: %s threads blocked on average, %s of them held up", who, s.threads(g.Blocked), s.threads(g.HeldUp)))
	for _, c := range g.Causes[:min(len(g.Causes), shownCauses)] {
		text := fmt.Sprintf("%s of the time in %s (%s)", layout.Share(c.Blocked.Seconds()/g.Blocked.Seconds()), c.In, c.Reason)
		if c.Waker != "" {
			text += ", woken by " + c.Waker
		}
		switch {
		case c.Waits == 0:
			text += "; it still lasts"
		case c.Waker != "": // else what still lasts may be among it
			text += fmt.Sprintf("; %s, %s each", trace.Often(c.Waits, s.Elapsed, "wait"), trace.Mean(c.Blocked, c.Waits))
		}
		line(4, text)
	}
	for _, l := range g.Locks[:min(len(g.Locks), shownLocks)] {
		name := l.Name
		if name == "" {
			name = fmt.Sprintf("at %#x", l.Address)
		}
		line(4, fmt.Sprintf("lock %s: %s, %s in all", name, trace.Often(l.Waits, s.Elapsed, "wait"), trace.Span(l.Blocked)))
	}
	return b.String()
}

// idle lists who slept without being held up.
func (s Seen) idle() string {
	sums := map[[2]string]time.Duration{}
	for _, one := range s.slept {
		if one.idle() {
			sums[[2]string{one.Labels[stacks.Group], one.Labels["reason"]}] += one.blocked()
		}
	}
	if len(sums) == 0 {
		return ""
	}
	keys := make([][2]string, 0, len(sums))
	for key := range sums {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), strings.Compare(a[0]+a[1], b[0]+b[1]))
	})
	rows := [][]string{{"process", "waits for", "threads"}}
	for _, key := range keys[:min(len(keys), shownIdle)] {
		rows = append(rows, []string{layout.Line(key[0]), key[1], s.threads(sums[key])})
	}
	var b strings.Builder
	b.WriteString("\nIdle, or asleep on purpose\n")
	layout.Table(&b, rows)
	return b.String()
}
