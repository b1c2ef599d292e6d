package page

import (
	"strings"
	"testing"

	"plimsoll/internal/flame"
	"plimsoll/internal/page/svg"
)

// What became more is red, what became less blue, what stayed grey; numbers of both stand with each.
func TestChangedStacksSayWhatBecameOfThem(t *testing.T) {
	node := func(name string, value, before float64, children ...*flame.Node) *flame.Node {
		return &flame.Node{Name: name, Value: value, Before: before, Children: children}
	}
	tree := &flame.Tree{Compared: true, Root: node("all", 100, 80, node("same", 50, 50), node("more", 50, 10), node("gone", 0, 20))}
	f := flameOf("On a CPU", "red took more", tree, mostFrames)
	drawn := string(f.SVG)
	for name, want := range map[string][2]string{"same": {"currentColor", "same: A 50 %, B 50 %"}, "more": {svg.Alarm, "more: A 10 %, B 50 %"}, "gone": {svg.Colors[0], "gone: A 20 %, B 0 %"}} {
		_, rest, ok := strings.Cut(drawn, "<title>"+want[1]+"</title>")
		if !ok || !strings.HasPrefix(rest, `<rect width="100%" height="16" fill="`+want[0]+`"`) {
			t.Errorf("%s is not %v in %s", name, want, drawn)
		}
	}
}

// Of the same stacks from their ends each figure says which it is, and they are folded away below the others.
func TestStacksAreShownFromTheirEndsToo(t *testing.T) {
	tree := &flame.Tree{Root: &flame.Node{Name: "all", Value: 3, Children: []*flame.Node{{Name: "php", Value: 3, Children: []*flame.Node{{Name: "sqrt", Value: 3}}}}}}
	ends, err := tree.Inverted()
	check(t, err)
	_, run := read(t, made{seconds: 12, hosts: []string{"client", "server"}}.write(t))
	run.Flames = []Stacks{{*flameOf("On a CPU", "", tree, mostFrames), flameOf("From the ends", "", ends, mostEnds)}}
	doc := written(t, run)
	wellFormed(t, doc)
	_, folded, ok := strings.Cut(doc, "the same stacks from their ends")
	if !ok || !strings.Contains(folded[:strings.Index(folded, "</details>")], "<title>sqrt: 100 %</title>") {
		t.Error("the page has no stacks from their ends")
	}
}
