package svg

import (
	"cmp"
	"fmt"
	"math"
	"strings"
)

// Heat is how often a value of some size came, over time: darker is more.
type Heat struct {
	Chart
	// Low is the lower end of the first row; each row is Step times as high as the
	// one before it.
	Low, Step float64
	Rows      int
	// Counts are by column of equal time, then by row.
	Counts [][]int64
}

// shades are how many strengths there are.
const shades = 7

// String is the map as SVG.
func (h *Heat) String() string {
	rows := h.Rows
	var most int64
	for _, column := range h.Counts {
		for _, n := range column {
			most = max(most, n)
		}
	}
	var b strings.Builder
	begin(&b, h.Height, h.Title, h.Desc)
	h.bands(&b)
	s := scale{low: h.Low, high: h.Low * math.Pow(h.Step, float64(rows)), log: true}
	for t := math.Pow(10, math.Ceil(math.Log10(s.low)-1e-9)); t <= s.high*1.0001; t *= 10 {
		s.ticks = append(s.ticks, t)
	}
	h.grid(&b, s)
	fmt.Fprintf(&b, `<svg class="plot" y="%d" width="100%%" height="%d" viewBox="0 0 %d %d" preserveAspectRatio="none" fill="%s" shape-rendering="crispEdges">`,
		above, h.Height-above-below, max(len(h.Counts), 1), max(rows, 1), color(0))
	for shade := 1; shade <= shades; shade++ {
		if d := h.cells(shade, rows, most); d != "" {
			fmt.Fprintf(&b, `<path d="%s" fill-opacity="%s"/>`, d, number(math.Round(100*(0.12+0.88*float64(shade)/shades))/100))
		}
	}
	b.WriteString("</svg>")
	h.labels(&b, s)
	b.WriteString("</svg>")
	return b.String()
}

// cells are all of one shade. Shades grow with the logarithm of the count, so that one
// slow request among thousands is still seen.
func (h *Heat) cells(shade, rows int, most int64) string {
	var b strings.Builder
	for x, column := range h.Counts {
		for y, n := range column {
			if n > 0 && 1+int(float64(shades-1)*math.Log1p(float64(n-1))/math.Max(math.Log1p(float64(most-1)), 1e-9)) == shade {
				fmt.Fprintf(&b, "M%d %dh1v1h-1z", x, rows-1-y)
			}
		}
	}
	return b.String()
}

// Lane is a row of ticks on the axis of time.
type Lane struct {
	Name  string
	Times []int64
}

// Events draws lanes of ticks over the windows of a run.
func Events(c Chart, lanes []Lane) string {
	const row = 20
	c.Height = above + below + row*len(lanes)
	var b strings.Builder
	begin(&b, c.Height, c.Title, c.Desc)
	c.bands(&b)
	for i, l := range lanes {
		y := above + row*i
		fmt.Fprintf(&b, `<rect y="%d" width="100%%" height="1" fill-opacity=".13"/>`, y+row-1)
		text(&b, "2", y+13, ` fill-opacity=".75"`, l.Name)
		last := -1
		for _, t := range l.Times {
			if at := int(1000 * c.x(t)); at != last { // more would fall on the same pixel
				fmt.Fprintf(&b, `<rect class="at" x="%s%%" y="%d" width="2" height="%d" fill="%s"/>`, number(float64(at)/10), y+3, row-5, color(i))
				last = at
			}
		}
	}
	c.labels(&b, scale{})
	b.WriteString("</svg>")
	return b.String()
}

// Frame is a part of a flame graph: where it lies (0…1), how deep, and what it says.
type Frame struct {
	From, Width float64
	Depth       int
	Name, Hint  string
	Shade       int    // the place of its colour in Colors
	Fill        string // its colour, "" for its shade's
}

// pageWidth is the widest that a drawing gets, and letter how wide a letter is at least, in pixels.
const (
	pageWidth = 1200
	letter    = 5
)

// Flame draws frames from the root down. A name is written as far as it fits into its frame
// where the page is widest, and is cut off where the frame ends.
func Flame(title, desc string, frames []Frame) string {
	const row = 17
	deepest := 0
	for _, f := range frames {
		deepest = max(deepest, f.Depth)
	}
	var b strings.Builder
	begin(&b, row*(deepest+1), title, desc)
	for _, f := range frames {
		fmt.Fprintf(&b, `<svg class="frame" x="%s%%" y="%d" width="%s%%" height="16"><title>%s</title><rect width="100%%" height="16" fill="%s" fill-opacity=".28" stroke="Canvas"/>`,
			percent(f.From), f.Depth*row, percent(f.Width), escaped(f.Hint), cmp.Or(f.Fill, color(f.Shade)))
		if fits := int(f.Width * pageWidth / letter); fits > 2 {
			fmt.Fprintf(&b, `<text x="3" y="12">%s</text>`, escaped(Text(f.Name, min(fits, 80))))
		}
		b.WriteString("</svg>")
	}
	b.WriteString("</svg>")
	return b.String()
}
