package cpu

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/stacks"
)

// What the text shows at most, and what the JSON does.
const (
	shownGroups    = 12
	shownFunctions = 6
	detailedGroups = 5
	shownLines     = 40
	listedStacks   = 100
	listed         = 50
)

// Group is what is known of all processes of one command since the start.
type Group struct {
	Name string `json:"groupname"`
	// User and Kernel count samples: in the process's own code, in the kernel's.
	User   uint64 `json:"user_samples"`
	Kernel uint64 `json:"kernel_samples"`
	// Processes is how many different ones were found on a CPU.
	Processes int `json:"processes"`
	// Functions are the innermost ones, the most frequent first.
	Functions []Function `json:"functions"`
}

func (g Group) all() uint64 { return g.User + g.Kernel }

// Function is one function and how often it was found.
type Function struct {
	Name    string `json:"function"`
	Samples uint64 `json:"samples"`
}

// Stack is one of the hottest stacks, from the outermost function in.
type Stack struct {
	Group   string   `json:"groupname"`
	Thread  string   `json:"thread"`
	Mode    string   `json:"mode"`
	Frames  []string `json:"frames"`
	Samples int64    `json:"samples"`
}

// Seen is the tracer's report.
type Seen struct {
	Elapsed time.Duration `json:"elapsed_ns"`
	CPUs    int           `json:"cpus"`
	// Hertz is how many samples a second of CPU time is.
	Hertz  int     `json:"hertz"`
	Groups []Group `json:"groups"`
	Stacks []Stack `json:"stacks"`
	// Unnamed says why the kernel's functions have no names; "" if they have.
	Unnamed string `json:"kernel_functions_unnamed,omitempty"`
	// Lost counts what found no room, by what it was.
	Lost map[string]uint64 `json:"lost"`
	// all returns all stacks; only the text has use for them.
	all func() []stacks.Sample
}

// Report returns everything since the start.
func (t *Trace) Report(elapsed time.Duration) (trace.Report, error) {
	if err := t.fetch(); err != nil {
		return nil, err
	}
	s := Seen{Elapsed: elapsed, Hertz: t.hertz, Groups: t.taken.list(), Stacks: listOf(t.taken.hottest(listedStacks)), all: t.taken.copy().samples}
	if err := t.names.KernelErr(); err != nil {
		s.Unnamed = err.Error()
	}
	var err error
	if s.CPUs, err = trace.OnlineCPUs(); err != nil {
		return nil, err
	}
	s.Lost, err = t.Lost()
	return s, err
}

// list adds up the groups of all network namespaces, the busiest first.
func (t *taken) list() []Group {
	byName := map[string]*Group{}
	functions := map[string]map[string]uint64{}
	for key, g := range t.groups {
		sum := byName[key.name]
		if sum == nil {
			sum = &Group{Name: key.name}
			byName[key.name], functions[key.name] = sum, map[string]uint64{}
		}
		sum.User, sum.Kernel, sum.Processes = sum.User+g.user, sum.Kernel+g.kernel, sum.Processes+len(g.processes)
		for name, f := range g.functions {
			functions[key.name][name] += f.samples
		}
	}
	all := make([]Group, 0, len(byName))
	for name, g := range byName {
		for function, n := range functions[name] {
			g.Functions = append(g.Functions, Function{function, n})
		}
		slices.SortFunc(g.Functions, func(a, b Function) int {
			return cmp.Or(cmp.Compare(b.Samples, a.Samples), strings.Compare(a.Name, b.Name))
		})
		g.Functions = g.Functions[:min(len(g.Functions), listed)]
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.all(), a.all()), strings.Compare(a.Name, b.Name))
	})
	return all
}

func listOf(samples []stacks.Sample) []Stack {
	var list []Stack
	for _, s := range samples {
		var frames []string
		for _, f := range slices.Backward(s.Frames) {
			frames = append(frames, f.Name())
		}
		list = append(list, Stack{s.Labels[stacks.Group], s.Labels["thread"], s.Labels["mode"], frames, s.Values[0]})
	}
	return list
}

// Text lists who used the CPUs, in which functions, and how it came there.
func (s Seen) Text(columns int) string {
	var b strings.Builder
	var user, kernel uint64
	for _, g := range s.Groups {
		user, kernel = user+g.User, kernel+g.Kernel
	}
	text := fmt.Sprintf("%s: %s samples: the CPUs were busy for %s of the time, %s in user mode and %s in the kernel.",
		trace.Watched(s.Elapsed, s.CPUs), trace.Number(user+kernel), s.share(user+kernel), s.share(user), s.share(kernel))
	b.WriteString(layout.Wrap(text, columns) + "\n")
	if len(s.Groups) == 0 {
		return b.String() + trace.LostText(s.Lost, columns)
	}
	rows := [][]string{{"process", "of all CPUs", "user", "kernel", "processes"}}
	for _, g := range s.Groups {
		rows = append(rows, []string{layout.Line(g.Name), s.share(g.all()), s.share(g.User), s.share(g.Kernel), trace.Number(uint64(g.Processes))})
	}
	b.WriteString("\n")
	trace.Rows(&b, rows, shownGroups, 0, columns)
	b.WriteString(s.functionsText(columns))
	b.WriteString("\nHow it came there, as shares of all samples\n" + stacks.Tree(s.all(), 0, shownLines, columns))
	if s.Unnamed != "" {
		b.WriteString("\n" + layout.Indent(layout.Wrap("note: "+s.Unnamed, columns-6), "      ") + "\n")
	}
	return b.String() + trace.LostText(s.Lost, columns)
}

// functionsText lists the innermost functions of the busiest groups.
func (s Seen) functionsText(columns int) string {
	var b strings.Builder
	for _, g := range s.Groups[:min(len(s.Groups), detailedGroups)] {
		fmt.Fprintf(&b, "\nFunctions of %s\n", layout.Line(g.Name))
		for _, f := range g.Functions[:min(len(g.Functions), shownFunctions)] {
			name := layout.Wrap(layout.Line(f.Name), max(20, columns-10))
			fmt.Fprintf(&b, "%6.1f %%  %s\n", 100*float64(f.Samples)/float64(g.all()), layout.Indent(name, strings.Repeat(" ", 10)))
		}
	}
	return b.String()
}

// share is the share of all CPUs' time that samples stand for.
func (s Seen) share(samples uint64) string {
	possible := s.Elapsed.Seconds() * float64(s.CPUs) * float64(s.Hertz)
	if possible <= 0 {
		return "-"
	}
	return layout.Share(min(1, float64(samples)/possible))
}
