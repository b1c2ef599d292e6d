package flame

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"html"
	"io"
	"strings"
	"unicode/utf8"
)

// The graph's measures, in pixels.
const (
	graphWidth = 1200.0
	rowHeight  = 17
	topRoom    = 58
	charWidth  = 6.6
	// thinnest is the width under which a frame is not drawn: nobody could see it.
	thinnest = 0.3
)

//go:embed flame.js
var script string

// SVG writes the graph as one SVG file: a click on a frame widens it to the whole
// width, a search marks frames and adds them up.
func (t *Tree) SVG(w io.Writer, title string) error {
	g := &graph{all: max(t.Root.Value, t.Root.Before), tree: t}
	g.draw(t.Root, 0, 0)
	height := topRoom + (g.deepest+1)*rowHeight + 24
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %d" width="100%%" font-family="monospace" font-size="11">
<style>.f{cursor:pointer}.f rect{stroke:#fff;stroke-width:.4}.f text{pointer-events:none}.hit rect{fill:#c026d3}.faded{opacity:.35}#b{fill:#fff}.ui{cursor:pointer;fill:#1d4ed8}</style>
<rect id="b" width="100%%" height="100%%"/>
<text x="8" y="18" font-size="14">%s</text><text x="8" y="36">%s</text>
<text class="ui" id="reset" x="8" y="52">whole</text><text class="ui" id="search" x="60" y="52">search</text><text id="found" x="120" y="52"></text>
<g id="frames">
%s</g>
<script><![CDATA[
%s]]></script>
</svg>
`, graphWidth, height, html.EscapeString(title), html.EscapeString(t.legend()), g.b.String(), script)
	return err
}

// HTML writes the same as a page.
func (t *Tree) HTML(w io.Writer, title string) error {
	if _, err := fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>%s</title>\n<body style=\"margin:0\">\n", html.EscapeString(title)); err != nil {
		return err
	}
	if err := t.SVG(w, title); err != nil {
		return err
	}
	_, err := io.WriteString(w, "</body></html>\n")
	return err
}

func (t *Tree) legend() string {
	if t.Compared {
		return t.total() + "; red took more than before, blue less"
	}
	return t.total() + "; click a frame to widen it"
}

// graph is a drawing in the making.
type graph struct {
	b       strings.Builder
	tree    *Tree
	all     float64
	deepest int
}

func (g *graph) draw(n *Node, x float64, depth int) {
	size := max(n.Value, n.Before)
	width := size / g.all * graphWidth
	if g.all == 0 || width < thinnest {
		return
	}
	g.deepest = max(g.deepest, depth)
	y := topRoom + depth*rowHeight
	name := printable(n.Name)
	fmt.Fprintf(&g.b, `<g class="f" data-x="%.2f" data-w="%.2f" data-n="%s"><title>%s</title><rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"/><text x="%.2f" y="%d">%s</text></g>`+"\n",
		x, width, html.EscapeString(name), html.EscapeString(g.hint(n, name)), x, y, width, rowHeight-1, g.color(n), x+3, y+12,
		html.EscapeString(cut(name, width)))
	for _, c := range n.Children {
		g.draw(c, x, depth+1)
		x += max(c.Value, c.Before) / g.all * graphWidth
	}
}

func (g *graph) hint(n *Node, name string) string {
	text := fmt.Sprintf("%s: %s, %.2f %%", name, g.tree.amount(n.Value), 100*n.Value/g.all)
	if g.tree.Compared {
		text += fmt.Sprintf("; before %s, %+.2f %%", g.tree.amount(n.Before), 100*(n.Value-n.Before)/g.all)
	}
	return text
}

// color is warm and its name's own; in a comparison red is more, blue less.
func (g *graph) color(n *Node) string {
	if !g.tree.Compared {
		h := fnv.New32a()
		_, _ = h.Write([]byte(n.Name)) // it cannot fail
		v := h.Sum32()
		return fmt.Sprintf("rgb(%d,%d,%d)", 205+v%50, 110+(v>>8)%110, 40+(v>>16)%40)
	}
	change := (n.Value - n.Before) / max(n.Value, n.Before)
	pale := int(255 * (1 - min(1, max(change, -change))))
	if change >= 0 {
		return fmt.Sprintf("rgb(255,%d,%d)", pale, pale)
	}
	return fmt.Sprintf("rgb(%d,%d,255)", pale, pale)
}

// printable leaves out what XML 1.0 has no way to write.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || r == 0xFFFE || r == 0xFFFF {
			return '?'
		}
		return r
	}, s)
}

// cut shortens a name to what has room in so many pixels.
func cut(name string, width float64) string {
	room := int((width - 6) / charWidth)
	if room < 3 {
		return ""
	}
	if runes := []rune(name); len(runes) > room {
		return string(runes[:room-2]) + ".."
	}
	return name
}
