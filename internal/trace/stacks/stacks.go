// Package stacks turns counted stacks into what other tools open (pprof, folded
// lines) and into a tree that people read.
package stacks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/pprof/profile"

	"plimsoll/internal/layout"
	"plimsoll/internal/trace/symbol"
)

// Group is the label that says whose a stack is; it is the root of trees.
const Group = "groupname"

// Sample is one counted stack.
type Sample struct {
	// Frames are from the innermost out: the kernel's, then the process's.
	Frames []symbol.Frame
	// Labels are groupname and what else tells stacks apart.
	Labels map[string]string
	// PID is the process's; 0 if the sample is of several.
	PID int
	// Values are one for each type of the profile.
	Values []int64
}

// Profile makes a profile of samples. The caller says when it was taken and what
// its period was.
func Profile(types []profile.ValueType, samples []Sample) *profile.Profile {
	b := builder{
		p: &profile.Profile{}, mappings: map[module]*profile.Mapping{},
		functions: map[function]*profile.Function{}, locations: map[symbol.Frame]*profile.Location{},
	}
	for i := range types {
		b.p.SampleType = append(b.p.SampleType, &types[i])
	}
	for _, s := range samples {
		sample := &profile.Sample{Value: s.Values, Label: map[string][]string{}}
		for name, value := range s.Labels {
			sample.Label[name] = []string{value}
		}
		if s.PID != 0 {
			sample.NumLabel = map[string][]int64{"pid": {int64(s.PID)}}
		}
		for _, f := range s.Frames {
			sample.Location = append(sample.Location, b.location(f))
		}
		b.p.Sample = append(b.p.Sample, sample)
	}
	return b.p
}

type module struct{ path, buildID string }

type function struct {
	name, file string
	start      int
}

type builder struct {
	p         *profile.Profile
	mappings  map[module]*profile.Mapping
	functions map[function]*profile.Function
	locations map[symbol.Frame]*profile.Location
}

func (b *builder) location(f symbol.Frame) *profile.Location {
	if l := b.locations[f]; l != nil {
		return l
	}
	l := &profile.Location{
		ID: uint64(len(b.p.Location) + 1), Mapping: b.mapping(module{f.Module, f.BuildID}), Address: f.Address,
		Line: []profile.Line{{Function: b.function(function{f.Name(), f.File, f.FirstLine}), Line: int64(f.Line)}},
	}
	b.locations[f], b.p.Location = l, append(b.p.Location, l)
	return l
}

// mapping stands for a binary. Its addresses are those of its own symbol table,
// so that it has no bounds in anybody's memory.
func (b *builder) mapping(m module) *profile.Mapping {
	if m.path == "" {
		return nil
	}
	known := b.mappings[m]
	if known == nil {
		known = &profile.Mapping{ID: uint64(len(b.p.Mapping) + 1), File: m.path, BuildID: m.buildID, HasFunctions: true, HasFilenames: true, HasLineNumbers: true}
		b.mappings[m], b.p.Mapping = known, append(b.p.Mapping, known)
	}
	return known
}

// function leaves SystemName empty: pprof would take it for C++, and strip what
// stands in angle brackets.
func (b *builder) function(f function) *profile.Function {
	known := b.functions[f]
	if known == nil {
		known = &profile.Function{ID: uint64(len(b.p.Function) + 1), Name: f.name, Filename: f.file, StartLine: int64(f.start)}
		b.functions[f], b.p.Function = known, append(b.p.Function, known)
	}
	return known
}

// Folded writes a line for each stack, as flamegraph.pl and speedscope read it:
// "nginx;main;ngx_process;writev_[k] 12", the root first. value says which of the
// samples' values it is.
func Folded(samples []Sample, value int) string {
	separators := strings.NewReplacer(";", ":", "\n", " ")
	sums := map[string]int64{}
	for _, s := range samples {
		names := []string{separators.Replace(s.Labels[Group])}
		for _, f := range slices.Backward(s.Frames) {
			name := separators.Replace(f.Name())
			if f.Kernel {
				name += "_[k]"
			}
			names = append(names, name)
		}
		sums[strings.Join(names, ";")] += s.Values[value]
	}
	lines := make([]string, 0, len(sums))
	for stack, n := range sums {
		lines = append(lines, fmt.Sprintf("%s %d\n", stack, n))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

const (
	// smallest is the share of all under which a branch of a tree is not shown.
	smallest = 0.01
	// deepest is how far lines are indented.
	deepest = 12
)

type node struct {
	name     string
	value    int64
	children map[string]*node
}

func (n *node) child(name string) *node {
	c := n.children[name]
	if c == nil {
		c = &node{name: name, children: map[string]*node{}}
		n.children[name] = c
	}
	return c
}

// Tree lays stacks out as a tree, in at most so many lines: the share of all, then
// the function; the kernel's end in [k]. What is smaller than one in a hundred is
// left out, and functions that call only one another share a line. value says which
// of the samples' values it is.
func Tree(samples []Sample, value, lines, columns int) string {
	root := &node{children: map[string]*node{}}
	for _, s := range samples {
		n := root.child(s.Labels[Group])
		root.value, n.value = root.value+s.Values[value], n.value+s.Values[value]
		for _, f := range slices.Backward(s.Frames) {
			name := f.Name()
			if f.Kernel {
				name += " [k]"
			}
			n = n.child(name)
			n.value += s.Values[value]
		}
	}
	t := tree{all: root.value, left: lines, columns: columns}
	t.children(root, 0)
	if t.cut {
		t.text.WriteString("and more; a profile (-o FILE) has all of it\n")
	}
	return t.text.String()
}

type tree struct {
	text          strings.Builder
	all           int64
	left, columns int
	cut           bool
}

func (t *tree) children(n *node, depth int) {
	list := make([]*node, 0, len(n.children))
	for _, c := range n.children {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *node) int { return cmp.Or(cmp.Compare(b.value, a.value), strings.Compare(a.name, b.name)) })
	for _, c := range list {
		if float64(c.value) < smallest*float64(t.all) {
			return
		}
		if t.left == 0 {
			t.cut = true
			return
		}
		t.left--
		t.line(c, depth)
	}
}

// line writes a node, with all below it that has no branch, and then its branches.
func (t *tree) line(n *node, depth int) {
	indent := strings.Repeat(" ", 10+2*min(depth, deepest))
	head := fmt.Sprintf("%6.1f %%  %s", 100*float64(n.value)/float64(t.all), indent[10:])
	names := layout.Line(n.name)
	for depth > 0 && len(n.children) == 1 {
		next := only(n)
		if next.value != n.value {
			break
		}
		n = next
		names += " > " + layout.Line(n.name)
	}
	text := layout.Wrap(names, max(20, t.columns-utf8.RuneCountInString(head)))
	t.text.WriteString(head + layout.Indent(text, indent) + "\n")
	t.children(n, depth+1)
}

func only(n *node) *node {
	for _, c := range n.children {
		return c
	}
	return nil
}
