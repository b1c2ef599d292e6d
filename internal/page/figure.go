package page

import (
	"cmp"
	"fmt"
	"html/template"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/page/svg"
)

// Figure is a chart with its words.
type Figure struct {
	Title string
	// Note says what the chart is of, where the title does not.
	Note string
	SVG  template.HTML
	Keys []Key
	Wide bool
	// Data is what it shows, for the script; "" of what has no values at moments.
	Data template.JS
}

// Key is a line of a chart: how it is drawn, its name, and its numbers in the window
// that the verdict is about.
type Key struct {
	Swatch     template.HTML
	Name       string
	Mean, Peak string
	None       bool // there is nothing of it
}

// drawn marks what package svg made as safe: all text in it is escaped there.
func drawn(s string) template.HTML { return template.HTML(s) }

// plot is what is to be drawn of some courses.
type plot struct {
	title, note string
	unit        unit
	stacked     bool
	top         float64
	limits      []svg.Limit
	wide, log   bool
	height      int
	noPeak      bool // the lines' numbers say nothing
}

// figure draws courses; nil when there is nothing to draw.
func (r *reader) figure(p plot, list []course) *Figure {
	if len(list) == 0 {
		return nil
	}
	if p.unit.base == ratios.base {
		withinWhole(list, p.stacked)
	}
	f := &Figure{Title: p.title, Note: p.note, Wide: p.wide}
	var said []string
	w := r.window()
	for i, c := range list {
		k := Key{Swatch: drawn(svg.Swatch(i, p.stacked)), Name: svg.Text(c.name, mostName), None: len(c.points) == 0}
		if mean, peak, ok := c.stats(w); ok && !p.noPeak {
			k.Mean, k.Peak = p.unit.write(mean), p.unit.write(peak)
			said = append(said, fmt.Sprintf("%s: mean %s, at most %s", k.Name, k.Mean, k.Peak))
		}
		f.Keys = append(f.Keys, k)
	}
	height := p.height
	if height == 0 {
		height = 130
	}
	chart := svg.Chart{Title: p.title, Desc: strings.Join(said, "; "), From: r.first, To: r.last, Bands: r.bands(), Lines: r.lines(list),
		Stacked: p.stacked, Limits: p.limits, Format: p.unit.write, Unit: p.unit.counts, Binary: p.unit.binary, Top: p.top, Log: p.log, Height: height, Wide: p.wide}
	f.SVG = drawn(chart.String())
	var err error
	f.Data, err = dataOf(&chart, p.unit.base)
	r.err = cmp.Or(r.err, err)
	return f
}

// withinWhole keeps shares of a whole within it, those that are stacked together: the clocks of
// readings differ by a little, so that a rate may be some percent more than there is.
func withinWhole(list []course, stacked bool) {
	sums := map[int64]float64{}
	for _, c := range list {
		for _, p := range c.points {
			if stacked {
				sums[p.Time] += p.Value
			}
		}
	}
	for _, c := range list {
		for i, p := range c.points {
			c.points[i].Value = min(p.Value/max(sums[p.Time], 1), 1)
		}
	}
}

// mostName is how many runes of a name from outside are shown, mostText of a sentence.
const (
	mostName = 80
	mostText = 2000
)

// Fact is a number with its name.
type Fact struct{ Name, Value, More string }

// unit is what a chart's values are measured in, and how they are written.
type unit struct {
	write   func(float64) string
	counts  string // what is counted, where write does not say it
	base    string // in a table of bare numbers
	grafana string // as Grafana calls it
	binary  bool   // its multiples are powers of 1,024
}

// The units of charts.
var (
	aSecond      = unit{write: perSecond, base: "per second", grafana: "cps"}
	ratios       = unit{write: share, base: "ratio", grafana: "percentunit"}
	bytesHeld    = unit{write: size, base: "bytes", grafana: "bytes", binary: true}
	bytesASecond = unit{write: sizePerSecond, base: "bytes per second", grafana: "binBps", binary: true}
	waits        = unit{write: micros, base: "microseconds", grafana: "µs"}
	seconds      = unit{write: func(v float64) string { return micros(v * 1e6) }, base: "seconds", grafana: "s"}
)

func numberOf(what string) unit {
	return unit{write: brief, counts: what, base: what, grafana: "short"}
}

func perSecond(v float64) string { return brief(v) + "/s" }

func share(v float64) string { return layout.Share(v) }

// percents is a ratio of any size, a small one too.
func percents(v float64) string { return fmt.Sprintf("%.3g %%", 100*v) }

func size(v float64) string { return layout.Bytes(int64(v)) }

func sizePerSecond(v float64) string { return layout.Bytes(int64(v)) + "/s" }

func micros(v float64) string { return layout.Micros(v) }

// brief is a number as a chart's scale shows it.
func brief(v float64) string {
	if v >= 100 || v <= -100 || v == float64(int64(v)) {
		return layout.Count(int64(v + 0.5))
	}
	return fmt.Sprintf("%.3g", v)
}
