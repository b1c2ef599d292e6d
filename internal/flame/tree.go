// Package flame shows sampled stacks: as a flame graph in one file that needs
// nothing else, as the difference of two, and as a tree of text.
package flame

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// Node is a function where it was called from, with all that it called.
type Node struct {
	Name string `json:"name"`
	// Value is what was sampled in it and below it, in the tree's unit; Before is
	// the same in the profile that it is compared with.
	Value    float64 `json:"value"`
	Before   float64 `json:"before,omitempty"`
	Children []*Node `json:"children,omitempty"`

	index map[string]*Node // the children by name; nil while they are few
}

// manyChildren is how many children are not looked through one by one.
const manyChildren = 32

// Tree is the stacks of a profile, from the root down.
type Tree struct {
	Root *Node `json:"root"`
	// Unit of the values: "seconds" or what the profile counts ("samples").
	Unit string `json:"unit"`
	// Seconds is how long was sampled; 0 if the profile does not say.
	Seconds float64 `json:"seconds"`
	// Compared says that the nodes' Before is filled.
	Compared bool `json:"compared"`

	room int // for so many bytes of nodes more
}

// The bounds of a tree.
const (
	maxDepth = 2000       // frames of a stack
	maxName  = 1000       // bytes of a function's name
	maxTree  = 64 << 20   // bytes of all nodes
	maxSteps = 20_000_000 // frames of all samples
	nodeSize = 128        // bytes of a node without its name
)

// New builds the tree of a profile's last value, which is the one that pprof
// shows by default. Processes stand below the root, if the profile names them.
func New(p *profile.Profile) (*Tree, error) {
	if len(p.SampleType) == 0 {
		return nil, errors.New("the profile says nothing of what it counts")
	}
	last := len(p.SampleType) - 1
	unit, scale := p.SampleType[last].Unit, 1.0
	if unit == "nanoseconds" {
		unit, scale = "seconds", 1e-9
	}
	t := &Tree{Root: &Node{Name: "all"}, Unit: unit, Seconds: float64(p.DurationNanos) / 1e9, room: maxTree}
	steps := 0
	for _, s := range p.Sample {
		if len(s.Value) <= last {
			return nil, fmt.Errorf("a sample of the profile has %d values, want %d", len(s.Value), last+1)
		}
		stack, err := frames(s)
		if err != nil {
			return nil, err
		}
		t.add(stack, float64(s.Value[last])*scale)
		if steps += len(stack); steps > maxSteps || t.room < 0 {
			return nil, fmt.Errorf("the profile's stacks make a tree of more than %d bytes, or of more than %d frames", maxTree, maxSteps)
		}
	}
	t.Root.sort()
	return t, nil
}

// processLabels name the process of a sample, the best first.
var processLabels = []string{"groupname", "comm", "process"}

// frames lists the names of a stack from the root to the leaf.
func frames(s *profile.Sample) ([]string, error) {
	var names []string
	for _, l := range processLabels {
		if v := s.Label[l]; len(v) > 0 {
			names = append(names, v[0])
			break
		}
	}
	for _, loc := range slices.Backward(s.Location) {
		if len(names)+len(loc.Line) > maxDepth {
			return nil, fmt.Errorf("a stack of the profile has more than %d frames", maxDepth)
		}
		if len(loc.Line) == 0 {
			names = append(names, unnamed(loc))
		}
		for _, line := range slices.Backward(loc.Line) {
			if line.Function == nil {
				names = append(names, unnamed(loc))
				continue
			}
			names = append(names, line.Function.Name)
		}
	}
	return names, nil
}

func unnamed(loc *profile.Location) string {
	if loc.Mapping != nil && loc.Mapping.File != "" {
		return "[" + loc.Mapping.File[strings.LastIndexByte(loc.Mapping.File, '/')+1:] + "]"
	}
	return "[unknown]"
}

// add puts a stack into the tree.
func (t *Tree) add(stack []string, v float64) {
	n := t.Root
	n.Value += v
	for _, name := range stack {
		if len(name) > maxName {
			name = strings.ToValidUTF8(name[:maxName], "") + "…"
		}
		c, made := n.child(name)
		if made {
			t.room -= nodeSize + len(name)
		}
		n = c
		n.Value += v
	}
}

// child returns the child of that name, and whether it had to be made.
func (n *Node) child(name string) (c *Node, made bool) {
	if n.index != nil {
		c = n.index[name]
	} else if i := slices.IndexFunc(n.Children, func(c *Node) bool { return c.Name == name }); i >= 0 {
		c = n.Children[i]
	}
	if c != nil {
		return c, false
	}
	c = &Node{Name: name}
	n.Children = append(n.Children, c)
	if n.index != nil {
		n.index[name] = c
	} else if len(n.Children) == manyChildren {
		n.index = make(map[string]*Node, 2*manyChildren)
		for _, c := range n.Children {
			n.index[c.Name] = c
		}
	}
	return c, true
}

// sort puts the largest child first, for reading; equal ones by name.
func (n *Node) sort() {
	slices.SortFunc(n.Children, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(max(b.Value, b.Before), max(a.Value, a.Before)), strings.Compare(a.Name, b.Name))
	})
	for _, c := range n.Children {
		c.sort()
	}
}

// Inverted is the same stacks read from their ends: below the root stand the functions that had the time
// themselves, below each of them who called it.
func (t *Tree) Inverted() (*Tree, error) {
	out := &Tree{Root: &Node{Name: t.Root.Name}, Unit: t.Unit, Seconds: t.Seconds, room: maxTree}
	least := t.Root.Value * 1e-9 // less is what adding and taking away leaves
	steps := 0
	var walk func(n *Node, stack []string)
	walk = func(n *Node, stack []string) {
		own := n.Value
		for _, c := range n.Children {
			own -= c.Value
			if steps <= maxSteps && out.room >= 0 {
				walk(c, append(stack, c.Name))
			}
		}
		if own > least && len(stack) > 0 {
			ends := slices.Clone(stack)
			slices.Reverse(ends)
			out.add(ends, own)
			steps += len(ends)
		}
	}
	walk(t.Root, nil)
	if steps > maxSteps || out.room < 0 {
		return nil, fmt.Errorf("read from their ends the stacks make a tree of more than %d bytes, or of more than %d frames", maxTree, maxSteps)
	}
	out.Root.sort()
	return out, nil
}

// Compare puts what before holds beside t, which it changes. Where both say how
// long they sampled, before is stretched to t's time, so that what did not change
// is equal.
func (t *Tree) Compare(before *Tree) error {
	if t.Unit != before.Unit {
		return fmt.Errorf("compare stacks: one counts %s, the other %s", t.Unit, before.Unit)
	}
	scale := 1.0
	if t.Seconds > 0 && before.Seconds > 0 {
		scale = t.Seconds / before.Seconds
	}
	t.Root.compare(before.Root, scale)
	t.Root.sort()
	t.Compared = true
	return nil
}

func (n *Node) compare(before *Node, scale float64) {
	n.Before = before.Value * scale
	for _, b := range before.Children {
		c, _ := n.child(b.Name)
		c.compare(b, scale)
	}
}
