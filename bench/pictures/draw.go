package main

import (
	"fmt"
	"html"
	"math"
	"os"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/page/svg"
)

// Measures of a picture, in pixels.
const (
	width  = 720
	left   = 64
	right  = 30
	tall   = 170 // of a panel's plot
	head   = 44  // above it: the legend
	bottom = 40  // below the last: the axis and its name
)

// ink is of text and axes: legible on white and on black, so that no viewer need know which one it is on.
const ink = "#767676"

type xy struct{ x, y float64 }

type line struct {
	name   string
	points []xy
	broad  bool // it is what the others are held against, and drawn beneath them
}

// panel is a plot; those of a picture stand one upon the other, over the same axis.
type panel struct {
	unit  string
	log   bool
	lines []line
}

// picture has what is drawn, and what is said to who does not see it.
type picture struct {
	title, desc string
	axis        string
	ticks       []tick
	log         bool // of the axis
	mark        *tick
	panels      []panel
}

// tick is a place on the axis with a name.
type tick struct {
	at   float64
	text string
}

func numbered(values ...float64) (list []tick) {
	for _, v := range values {
		list = append(list, tick{v, short(v)})
	}
	return list
}

// x is where a value stands on the axis.
func (p *picture) x(v float64) float64 {
	low, high := p.ticks[0].at, p.ticks[len(p.ticks)-1].at
	if p.log {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	return left + (width-left-right)*(v-low)/(high-low)
}

// scale is a panel's: its ticks, of which the last is the upper end.
func (p panel) scale() []float64 {
	low, high := math.Inf(1), 0.0
	for _, l := range p.lines {
		for _, at := range l.points {
			if at.y > 0 { // others stand at the lower end, also where that is a power of ten
				low, high = min(low, at.y), max(high, at.y)
			}
		}
	}
	if high == 0 {
		low, high = 1, 1
	}
	if p.log {
		var ticks []float64
		for t := math.Pow(10, math.Floor(math.Log10(low))); ; t *= 10 {
			if ticks = append(ticks, t); t >= high && len(ticks) > 1 {
				return ticks
			}
		}
	}
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for _, part := range []float64{0.2, 0.5, 1, 2} {
		if high/(part*step) <= 5 {
			step *= part
			break
		}
	}
	var ticks []float64
	for t := 0.0; ; t += step {
		if ticks = append(ticks, t); t >= high {
			return ticks
		}
	}
}

// y is where a value stands, from the plot's upper end.
func (p panel) y(v float64, ticks []float64) float64 {
	low, high := ticks[0], ticks[len(ticks)-1]
	if p.log {
		v, low, high = math.Log(max(v, low)), math.Log(low), math.Log(high)
	}
	return tall * (1 - (v-low)/(high-low))
}

func (p *picture) write(name string) error {
	var b strings.Builder
	height := len(p.panels)*(head+tall) + bottom
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" font-family="system-ui, sans-serif" font-size="13" fill="%s">`, width, height, width, height, ink)
	fmt.Fprintf(&b, "\n<title>%s</title>\n<desc>%s</desc>\n", html.EscapeString(p.title), html.EscapeString(p.desc))
	for i, of := range p.panels {
		p.panel(&b, of, i*(head+tall)+head)
	}
	p.foot(&b, len(p.panels)*(head+tall))
	b.WriteString("</svg>\n")
	return os.WriteFile(name, []byte(b.String()), 0o644)
}

// panel draws one whose plot begins at top.
func (p *picture) panel(b *strings.Builder, of panel, top int) {
	ticks := of.scale()
	for _, t := range ticks {
		y := float64(top) + of.y(t, ticks)
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="%s" stroke-opacity=".35"/>`, left, y, width-right, ink)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left-8, y+4, html.EscapeString(short(t)))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end" font-weight="bold">%s</text>`+"\n", left-8, top-18, html.EscapeString(of.unit))
	at := left
	for i, l := range of.lines {
		color, broad := svg.Colors[i%len(svg.Colors)], 2.5
		if l.broad {
			color, broad = "#b0a060", 9
		}
		fmt.Fprintf(b, `<path d="M%d %dh18" stroke="%s" stroke-width="%g"/><text x="%d" y="%d">%s</text>`+"\n", at, top-22, color, broad, at+24, top-18, html.EscapeString(l.name))
		at += 50 + 7*len([]rune(l.name))
		var path strings.Builder
		for n, point := range l.points {
			step := 'L'
			if n == 0 {
				step = 'M'
			}
			fmt.Fprintf(&path, "%c%.1f %.1f", step, p.x(point.x), float64(top)+of.y(point.y, ticks))
		}
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="%g" stroke-linejoin="round"/>`+"\n", path.String(), color, broad)
		if len(l.points) <= 12 && !l.broad {
			for _, point := range l.points {
				fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`, p.x(point.x), float64(top)+of.y(point.y, ticks), color)
			}
		}
	}
}

// foot draws the axis below all panels, and the mark through them.
func (p *picture) foot(b *strings.Builder, y int) {
	for _, t := range p.ticks {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, p.x(t.at), y+18, html.EscapeString(t.text))
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end" font-style="italic">%s</text>`+"\n", width-right, y+35, html.EscapeString(p.axis))
	if p.mark != nil {
		x := p.x(p.mark.at)
		fmt.Fprintf(b, `<path d="M%.1f %dV%d" stroke="%s" stroke-dasharray="5 4" stroke-width="1.5"/><text x="%.1f" y="%d">%s</text>`+"\n", x, head, y, svg.Alarm, x+6, head+14, html.EscapeString(p.mark.text))
	}
}

// short writes a number of an axis.
func short(v float64) string {
	if v == math.Trunc(v) {
		return layout.Count(int64(v))
	}
	return fmt.Sprintf("%g", v)
}
