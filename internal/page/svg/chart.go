package svg

import (
	"fmt"
	"math"
	"strings"
)

// Point is a value at a time, in Unix milliseconds.
type Point struct {
	Time  int64
	Value float64
}

// Line is one series of a chart.
type Line struct {
	Name   string
	Points []Point // in the order of time
	// Gap is the longest time between two points that belong together; beyond it
	// nothing is drawn, because nothing is known. In milliseconds.
	Gap int64
}

// Band is a stretch of time with a name.
type Band struct {
	Name       string
	Start, End int64
	Strong     bool // it is what the run is about
}

// Limit is a level that a chart's lines are held against.
type Limit struct {
	Value float64
	Text  string
}

// Chart is series over time, all in one unit, from zero unless the scale is logarithmic.
type Chart struct {
	Title, Desc string // for who does not see it
	From, To    int64  // Unix milliseconds
	Bands       []Band
	Lines       []Line
	// Stacked draws areas one upon the other; all lines then have points at the same times.
	Stacked bool
	Limits  []Limit
	// Format writes a value; Unit stands behind the scale's upper end, where Format does
	// not write it.
	Format func(float64) string
	Unit   string
	// Binary: the unit's multiples are powers of 1,024.
	Binary bool
	// Top is the least upper end of the scale, 0 for the largest value's.
	Top    float64
	Log    bool // values are all above zero
	Height int  // pixels
	Wide   bool // it has the page's whole width: more of it is drawn, and bands have names
}

// The room above the plot and below it, in pixels.
const (
	above = 16
	below = 16
)

// The plot's own coordinates, which are stretched to its place.
const depth = 1000

// columns is in how many places along the time something is drawn: each shows its
// least and its largest value.
func (c *Chart) columns() int {
	if c.Wide {
		return 600
	}
	return 240
}

// String is the chart as SVG.
func (c *Chart) String() string {
	var b strings.Builder
	begin(&b, c.Height, c.Title, c.Desc)
	c.bands(&b)
	s := c.scale()
	c.grid(&b, s)
	fmt.Fprintf(&b, `<svg class="plot" y="%d" width="100%%" height="%d" viewBox="0 0 %d %d" preserveAspectRatio="none" fill="none" stroke-width="1.6" stroke-linejoin="bevel">`,
		above, c.Height-above-below, c.width(), depth)
	if c.Stacked {
		c.stack(&b, s)
	} else {
		for i, l := range c.Lines {
			// One that is empty, too: the script tells them by their places.
			fmt.Fprintf(&b, `<path d="%s" stroke="%s"%s vector-effect="non-scaling-stroke"/>`, c.path(l, s), color(i), dash(i))
		}
	}
	b.WriteString("</svg>")
	c.limits(&b, s)
	c.labels(&b, s)
	b.WriteString("</svg>")
	return b.String()
}

// width is the plot's own width: two places a column.
func (c *Chart) width() int { return 2 * c.columns() }

// x is where a time stands along the plot, 0…1.
func (c *Chart) x(t int64) float64 {
	if c.To <= c.From {
		return 0
	}
	return min(max(float64(t-c.From)/float64(c.To-c.From), 0), 1)
}

// bands shades windows, behind all else.
func (c *Chart) bands(b *strings.Builder) {
	for _, w := range c.Bands {
		from, to := c.x(w.Start), c.x(w.End)
		if to <= from {
			continue
		}
		if w.Strong {
			fmt.Fprintf(b, `<rect class="at" x="%s%%" y="%d" width="%s%%" height="%d" fill-opacity=".06"/>`, percent(from), above, percent(to-from), c.Height-above-below)
		} else if c.Wide {
			fmt.Fprintf(b, `<rect class="at" x="%s%%" y="%d" width="%s%%" height="%d" fill-opacity=".02"/>`, percent(from), above, percent(to-from), c.Height-above-below)
		}
	}
}

// scale maps values to the plot's height.
type scale struct {
	low, high float64
	log       bool
	ticks     []float64
}

// y is where a value stands, from the top, 0…1.
func (s scale) y(v float64) float64 {
	if s.log {
		v, low, high := math.Log10(max(v, s.low)), math.Log10(s.low), math.Log10(s.high)
		return 1 - min((v-low)/(high-low), 1)
	}
	return 1 - (v-s.low)/(s.high-s.low)
}

// farAbove is how many times the largest value a limit may be and still be drawn.
const farAbove = 20

func (c *Chart) scale() scale {
	low, high := math.Inf(1), math.Inf(-1)
	sums := map[int64]float64{}
	for _, l := range c.Lines {
		for _, p := range l.Points {
			low, high = min(low, p.Value), max(high, p.Value)
			if c.Stacked {
				sums[p.Time] += p.Value
				high = max(high, sums[p.Time])
			}
		}
	}
	if math.IsInf(low, 1) {
		low, high = 0, 1
	}
	for _, m := range c.Limits {
		if m.Value <= farAbove*high || high <= 0 {
			low, high = min(low, m.Value), max(high, m.Value)
		}
	}
	high = max(high, c.Top)
	if c.Log {
		return logScale(max(low, 1e-9), max(high, 1e-9))
	}
	return linearScale(min(low, 0), high, c.Binary)
}

func logScale(low, high float64) scale {
	from := math.Pow(10, math.Floor(math.Log10(low)))
	to := math.Pow(10, math.Ceil(math.Log10(high)))
	if to <= from {
		to = 10 * from
	}
	s := scale{low: from, high: to, log: true}
	for t := from; t <= to*1.001; t *= 10 {
		s.ticks = append(s.ticks, t)
	}
	return s
}

func linearScale(low, high float64, binary bool) scale {
	if high <= low {
		high = low + 1
	}
	top := nice(high, binary)
	s := scale{low: 0, high: top, ticks: []float64{0, top / 2, top}}
	if low < 0 {
		s.low = -nice(-low, binary)
		s.ticks = []float64{s.low, 0, top}
	}
	return s
}

// nice is the least round number that is not below v.
func nice(v float64, binary bool) float64 {
	if step := math.Pow(1024, math.Floor(math.Log(v)/math.Log(1024))); binary && v > 1024 {
		return step * nice(v/step, false)
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8} {
		if m*unit >= v*0.9999999 {
			return m * unit
		}
	}
	return 10 * unit
}

// pixel is where a share of the plot's height is in the drawing.
func (c *Chart) pixel(y float64) int {
	return above + int(math.Round(y*float64(c.Height-above-below)))
}

func (c *Chart) grid(b *strings.Builder, s scale) {
	for _, t := range s.ticks {
		opacity := ".13"
		if t == 0 {
			opacity = ".5"
		}
		fmt.Fprintf(b, `<rect y="%d" width="100%%" height="1" fill-opacity="%s"/>`, c.pixel(s.y(t)), opacity)
	}
}

func (c *Chart) limits(b *strings.Builder, s scale) {
	for _, m := range c.Limits {
		if m.Value > s.high {
			text(b, "100%", above-3, ` text-anchor="end"`, m.Text+", above this")
			continue
		}
		y := c.pixel(s.y(m.Value))
		fmt.Fprintf(b, `<svg y="%d" width="100%%" height="4" viewBox="0 0 100 4" preserveAspectRatio="none"><path d="M0 2h100" stroke="%s" stroke-width="1.5" stroke-dasharray="6 4" vector-effect="non-scaling-stroke"/></svg>`, y-2, Alarm)
		at := y - 4
		if at < above+8 {
			at = y + 13
		}
		text(b, "100%", at, ` text-anchor="end"`, m.Text)
	}
}

// labels writes the scale's ends, the windows' names and the times.
func (c *Chart) labels(b *strings.Builder, s scale) {
	for i, t := range s.ticks {
		if i > 0 && i < len(s.ticks)-1 && c.Height < 100 {
			continue
		}
		label := c.Format(t)
		if i == len(s.ticks)-1 && c.Unit != "" {
			label += " " + c.Unit
		}
		text(b, "2", c.pixel(s.y(t))-3, ` fill-opacity=".75"`, label)
	}
	if c.Wide {
		for _, w := range c.Bands {
			if from := c.x(w.Start); c.x(w.End)-from >= 0.06 && from < 0.9 {
				class := "at"
				if !w.Strong {
					class = "at weak" // there is no room for all names on a narrow screen
				}
				text(b, percent(from)+"%", c.Height-3, ` class="`+class+`" dx="3" fill-opacity=".75"`, w.Name)
			}
		}
	} else {
		text(b, "0", c.Height-3, ` class="begin" fill-opacity=".75"`, "0 s")
	}
	text(b, "100%", c.Height-3, ` class="end" text-anchor="end" fill-opacity=".75"`, seconds(c.To-c.From))
}

func seconds(ms int64) string {
	s := (ms + 500) / 1000
	if s < 180 {
		return fmt.Sprintf("%d s", s)
	}
	return fmt.Sprintf("%d min %02d s", s/60, s%60)
}
