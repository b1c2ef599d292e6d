package page

import (
	"slices"
	"strings"

	"plimsoll/internal/flame"
	"plimsoll/internal/model"
	"plimsoll/internal/page/svg"
	"plimsoll/internal/record"
	"plimsoll/internal/report"
)

// narrowest is the share of all samples up to which a frame is not drawn; where there would be
// more than mostFrames, the narrowest of them are not drawn either. Of the same stacks from their
// ends there are fewer: what a function had itself is what is looked for there.
const (
	narrowest  = 0.004
	mostFrames = 400
	mostEnds   = 150
)

// Stacks are those of one kind: from where they begin, and from their ends.
type Stacks struct {
	Figure
	Ends *Figure // nil where there are none
}

// stacks draws what a run holds of them. What cannot be read is said in its place.
func stacks(rec *record.Run, r model.Report) []Stacks {
	if r.Tracing == nil || r.Dir == "" {
		return nil
	}
	var list []Stacks
	for _, name := range r.Tracing.Profiles {
		tree, err := treeOf(rec, name)
		if err != nil {
			list = append(list, Stacks{Figure: Figure{Title: svg.Text(name, mostName), Note: svg.Text(err.Error(), mostText)}})
			continue
		}
		f := flameOf(titleOf(name), "the wider a frame, the more was sampled in it and in what it called", tree, mostFrames)
		if f == nil {
			continue
		}
		s := Stacks{Figure: *f}
		if ends, err := tree.Inverted(); err == nil { // else it is too much to be looked at
			s.Ends = flameOf(titleOf(name)+", from the ends", "below all stand the functions that had the time themselves, below each of them who called it", ends, mostEnds)
		}
		list = append(list, s)
	}
	return list
}

// changedStacks are those that two runs have, the second's beside the first's.
func changedStacks(a, b *record.Run) (list []Figure) {
	ta, tb := a.Meta().Tracing, b.Meta().Tracing
	if ta == nil || tb == nil {
		return nil
	}
	for _, name := range tb.Profiles {
		if !slices.Contains(ta.Profiles, name) {
			continue
		}
		before, err := treeOf(a, name)
		if err != nil {
			continue // each run's own page says why
		}
		after, err := treeOf(b, name)
		if err != nil || after.Compare(before) != nil {
			continue
		}
		if f := flameOf(titleOf(name), "red took more in B than in A, blue less, grey as much; the wider, the more was sampled in the one that has more", after, mostFrames); f != nil {
			list = append(list, *f)
		}
	}
	return list
}

func treeOf(rec *record.Run, name string) (*flame.Tree, error) {
	raw, err := rec.Stacks(name)
	if err != nil {
		return nil, err
	}
	return flame.Read(raw)
}

// titleOf is what stacks of a name are of; those of another machine carry its name.
func titleOf(name string) string {
	kind, host, far := strings.Cut(name, "-")
	title, known := map[string]string{"cpu": "On a CPU", "offcpu": "Off the CPU: what was waited for"}[kind]
	switch {
	case !known:
		return name
	case far:
		return host + ": " + strings.ToLower(title[:1]) + title[1:]
	}
	return title
}

// flameOf draws at most so many frames of a tree; nil where nothing was sampled.
func flameOf(title, note string, tree *flame.Tree, most int) *Figure {
	all := max(tree.Root.Value, tree.Root.Before)
	if all <= 0 {
		return nil
	}
	var frames []svg.Frame
	var walk func(n *flame.Node, from float64, depth int)
	walk = func(n *flame.Node, from float64, depth int) {
		width := max(n.Value, n.Before) / all
		if width <= narrowest {
			return
		}
		f := svg.Frame{From: from, Width: width, Depth: depth, Name: n.Name, Shade: shadeOf(n.Name), Hint: n.Name + ": " + report.Percent(n.Value/all)}
		if tree.Compared {
			f.Hint = n.Name + ": A " + percentOr0(n.Before/all) + ", B " + percentOr0(n.Value/all)
			f.Fill = changeOf(n, all)
		}
		frames = append(frames, f)
		for _, c := range n.Children {
			walk(c, from, depth+1)
			from += max(c.Value, c.Before) / all
		}
	}
	walk(tree.Root, 0, 0)
	frames, least := widest(frames, most)
	return &Figure{Title: title, Wide: true, SVG: drawn(svg.Flame(title, "a flame graph: "+note, frames)),
		Note: note + "; frames under " + report.Percent(least) + " are left out"}
}

func percentOr0(share float64) string {
	if share <= 0 {
		return "0 %"
	}
	return report.Percent(share)
}

// sameShare is by how much of all two sides may differ in a frame and count as equal, sameRatio by how much of the larger.
const (
	sameShare = 0.005
	sameRatio = 0.1
)

// changeOf is a frame's colour by what became of it.
func changeOf(n *flame.Node, all float64) string {
	switch more := n.Value - n.Before; {
	case max(more, -more) < max(sameShare*all, sameRatio*max(n.Value, n.Before)):
		return "currentColor"
	case more > 0:
		return svg.Alarm
	default:
		return svg.Colors[0]
	}
}

// widest are the frames that are drawn: at most so many, those of one width all or
// none. It returns the width up to which they are left out, too.
func widest(frames []svg.Frame, most int) ([]svg.Frame, float64) {
	if len(frames) <= most {
		return frames, narrowest
	}
	widths := make([]float64, len(frames))
	for i, f := range frames {
		widths[i] = f.Width
	}
	slices.Sort(widths)
	least := widths[len(widths)-most-1]
	return slices.DeleteFunc(frames, func(f svg.Frame) bool { return f.Width <= least }), least
}

// shadeOf is a name's own place in the colours.
func shadeOf(name string) int {
	sum := 0
	for _, c := range []byte(name) {
		sum = sum*31 + int(c)
	}
	return (sum & 0x7fffffff) % (len(svg.Colors) - 1)
}
