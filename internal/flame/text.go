package flame

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/layout"
)

const (
	// What is smaller than this share of all is left out of text.
	shownShare = 0.01
	// deepest is how far lines are indented; what lies deeper is in line with it.
	deepest = 16
)

// Text lays the tree out in lines of at most so many columns: the share of all,
// then the function. Functions that call only one another stand on one line.
func (t *Tree) Text(columns int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", t.total())
	all := max(t.Root.Value, t.Root.Before)
	if all == 0 {
		return b.String()
	}
	for _, c := range t.Root.Children {
		t.lines(&b, c, all, 0, columns)
	}
	return b.String()
}

func (t *Tree) total() string {
	text := t.amount(t.Root.Value)
	if t.Seconds > 0 {
		text += " in " + layout.Micros(t.Seconds*1e6)
	}
	if t.Compared {
		text += ", before " + t.amount(t.Root.Before)
	}
	return text
}

func (t *Tree) amount(v float64) string {
	if t.Unit == "seconds" {
		return layout.Micros(v * 1e6)
	}
	return layout.Count(int64(v)) + " " + t.Unit
}

// chain writes functions that call one another, of a long chain the first and the last.
func chain(names []string, columns int) string {
	text := layout.Line(strings.Join(names, " > "))
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	if len(names) == 1 {
		return clipped(text, max(columns, 2))
	}
	between := " > "
	if more := len(names) - 2; more > 0 {
		between = fmt.Sprintf(" > … %d more … > ", more)
	}
	half := max((columns-utf8.RuneCountInString(between))/2, 1)
	return clipped(layout.Line(names[0]), half) + between + clipped(layout.Line(names[len(names)-1]), half)
}

// clipped is s in so many columns.
func clipped(s string, columns int) string {
	if letters := []rune(s); len(letters) > columns {
		return string(letters[:columns-1]) + "…"
	}
	return s
}

func (t *Tree) lines(b *strings.Builder, n *Node, all float64, depth, columns int) {
	if max(n.Value, n.Before)/all < shownShare {
		return
	}
	names := []string{n.Name}
	for depth > 0 && len(n.Children) == 1 && n.Children[0].Value == n.Value && n.Children[0].Before == n.Before {
		n = n.Children[0]
		names = append(names, n.Name)
	}
	label := fmt.Sprintf("%6.1f %%", 100*n.Value/all)
	if t.Compared {
		label += fmt.Sprintf(" %+6.1f", 100*(n.Value-n.Before)/all)
	}
	indent := strings.Repeat(" ", 2*min(depth, deepest))
	pad := strings.Repeat(" ", utf8.RuneCountInString(label)+2) + indent
	fmt.Fprintf(b, "%s  %s%s\n", label, indent, chain(names, columns-len(pad)))
	for _, c := range n.Children {
		t.lines(b, c, all, depth+1, columns)
	}
}
