package svg

import (
	"fmt"
	"math"
	"strings"
)

// path is a line's way over the plot. Of all points in a column the first, the
// least, the largest and the last are drawn, in the order of time, so that no spike
// is lost.
func (c *Chart) path(l Line, s scale) string {
	var b strings.Builder
	pen := pen{b: &b}
	for _, run := range unbroken(l) {
		thin := c.thinned(run)
		for i, p := range thin {
			x, y := c.at(p, s)
			switch {
			case i > 0:
				pen.to(x, y)
			case len(thin) == 1:
				pen.move(max(x-1, 0), y)
				pen.to(x+1, y)
			default:
				pen.move(x, y)
			}
		}
	}
	return b.String()
}

// at is where a point stands in the plot's own coordinates.
func (c *Chart) at(p Point, s scale) (x, y int) {
	return int(math.Round(c.x(p.Time) * float64(c.width()))), int(math.Round(s.y(p.Value) * depth))
}

// unbroken cuts a line where nothing was read for longer than its gap.
func unbroken(l Line) [][]Point {
	var list [][]Point
	for i, p := range l.Points {
		if i == 0 || l.Gap > 0 && p.Time-l.Points[i-1].Time > l.Gap {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], p)
	}
	return list
}

// thinned keeps the extremes of each column, where there are more points than that.
func (c *Chart) thinned(points []Point) []Point {
	if len(points) <= 2*c.columns() {
		return points
	}
	var out []Point
	for i := 0; i < len(points); {
		column := c.column(points[i].Time)
		first, least, most, last := i, i, i, i
		for ; i < len(points) && c.column(points[i].Time) == column; i++ {
			last = i
			if points[i].Value < points[least].Value {
				least = i
			}
			if points[i].Value > points[most].Value {
				most = i
			}
		}
		kept := -1
		for _, k := range []int{first, min(least, most), max(least, most), last} {
			if k > kept {
				out, kept = append(out, points[k]), k
			}
		}
	}
	return out
}

// Cell is what a chart draws of a line at one place: the least and the largest of the values
// there, and when the first of them was read.
type Cell struct {
	Time        int64
	Least, Most float64
}

// Cells are what is drawn of a line, in the order of time: each point by itself, or, where
// there are more points than that, those of a column together.
func (c *Chart) Cells(l Line) []Cell {
	var list []Cell
	thin, before := c.crowded(l), -1
	for _, p := range l.Points {
		column := c.column(p.Time)
		if n := len(list) - 1; thin && column == before {
			list[n].Least, list[n].Most = min(list[n].Least, p.Value), max(list[n].Most, p.Value)
		} else {
			list = append(list, Cell{p.Time, p.Value, p.Value})
		}
		before = column
	}
	return list
}

// crowded: a line has more points than are drawn one by one.
func (c *Chart) crowded(l Line) bool { return len(l.Points) > 2*c.columns() }

// Reach is how far a moment may be from the time of the nearest cell of a line that tells of it, in milliseconds; 0 is any distance. The cell of a
// column has the time of its first point, so between two that follow one another it is half a column more than between points.
func (c *Chart) Reach(l Line) int64 {
	if l.Gap == 0 || !c.crowded(l) {
		return l.Gap
	}
	return l.Gap + (c.To-c.From)/int64(2*c.columns())
}

func (c *Chart) column(t int64) int { return int(c.x(t) * float64(c.columns())) }

// stack draws lines as areas, the first lowest.
func (c *Chart) stack(b *strings.Builder, s scale) {
	if len(c.Lines) == 0 {
		return
	}
	base := make([]Point, len(c.Lines[0].Points))
	for i, p := range c.Lines[0].Points {
		base[i].Time = p.Time
	}
	for i, l := range c.Lines {
		top := make([]Point, len(base))
		for k := range base {
			top[k] = Point{base[k].Time, base[k].Value + l.Points[k].Value}
		}
		if d := c.area(base, top, l.Gap, s); d != "" {
			fmt.Fprintf(b, `<path d="%s" fill="%s" fill-opacity=".75"/>`, d, color(i))
		}
		base = top
	}
}

// area is what lies between two lines with points at the same times.
func (c *Chart) area(base, top []Point, gap int64, s scale) string {
	var b strings.Builder
	pen := pen{b: &b}
	start := 0
	for _, run := range unbroken(Line{Points: top, Gap: gap}) {
		under := c.thinned(base[start : start+len(run)])
		start += len(run)
		over := c.thinned(run)
		for i, p := range over {
			if x, y := c.at(p, s); i == 0 {
				pen.move(x, y)
			} else {
				pen.to(x, y)
			}
		}
		for i := range under {
			pen.to(c.at(under[len(under)-1-i], s))
		}
		b.WriteByte('z')
	}
	return b.String()
}

// pen writes a path, in steps from where it is.
type pen struct {
	b    *strings.Builder
	x, y int
}

func (p *pen) move(x, y int) {
	fmt.Fprintf(p.b, "M%d %d", x, y)
	p.x, p.y = x, y
}

func (p *pen) to(x, y int) {
	dx, dy := x-p.x, y-p.y
	p.x, p.y = x, y
	switch {
	case dy == 0:
		fmt.Fprintf(p.b, "h%d", dx)
	case dx == 0:
		fmt.Fprintf(p.b, "v%d", dy)
	case dy < 0:
		fmt.Fprintf(p.b, "l%d%d", dx, dy)
	default:
		fmt.Fprintf(p.b, "l%d %d", dx, dy)
	}
}
