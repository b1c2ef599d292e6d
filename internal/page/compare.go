package page

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/page/svg"
	"plimsoll/internal/record"
	"plimsoll/internal/report"
)

// Comparison is how the runs of one side fared beside another's.
type Comparison struct {
	A, B    string // the runs' directories
	Answer  string // in words
	Faster  string
	First   []report.Step
	Rows    []Difference
	Changes []ChangeList
	Figures []Figure
	Flames  []Figure // stacks that both have
	Notes   []string
}

// Difference is one measure on both sides, with its interval drawn.
type Difference struct {
	Name, A, B, Ratio, Interval, Answer string
	SVG                                 template.HTML
}

// ChangeList is what else was different, under a title.
type ChangeList struct {
	Title string
	List  []Change
	Left  int // how many more there are
}

// Change is one series on both sides.
type Change struct{ Series, A, B string }

// mostChanges is how many changed series are listed.
const mostChanges = 40

// Compare words a comparison and lays the first run of each side over the other.
func Compare(c model.Comparison, a, b *record.Run) (*Comparison, error) {
	out := &Comparison{A: strings.Join(c.Runs[0], " "), B: strings.Join(c.Runs[1], " "), Answer: report.InOneWord(c), First: report.AfterComparing(c), Notes: c.Notes}
	if c.NotComparable != "" {
		out.Notes = append([]string{c.NotComparable}, out.Notes...)
	}
	if c.Faster != nil {
		out.Faster = "Of all pairs of replies, B's was the faster one in " + layout.Share(*c.Faster) + "."
	}
	for _, d := range c.Differences {
		row := Difference{Name: report.Measure(d.Name), A: report.Amount(d.A, d.Unit), B: report.Amount(d.B, d.Unit), Ratio: "-", Interval: "-", Answer: string(d.Answer)}
		if d.Ratio > 0 {
			row.Ratio, row.Interval = fmt.Sprintf("%.3f", d.Ratio), fmt.Sprintf("%.3f to %.3f", d.Low, d.High)
			row.SVG = drawn(svg.Ratio(row.Name+": B/A "+row.Ratio+", "+row.Interval, d.Ratio, d.Low, d.High))
		}
		out.Rows = append(out.Rows, row)
	}
	out.changes("Set to something else", c.Configuration)
	out.changes("What else was different: mean level, or rate per second, in the hold window", c.Signals)
	out.Flames = changedStacks(a, b)
	return out, out.overlay(a, b)
}

func (c *Comparison) changes(title string, list []model.SignalChange) {
	if len(list) == 0 {
		return
	}
	l := ChangeList{Title: title, Left: max(len(list)-mostChanges, 0)}
	for _, x := range list[:min(len(list), mostChanges)] {
		l.List = append(l.List, Change{Series: report.Series(x.Series), A: report.Level(x.Series, x.A), B: report.Level(x.Series, x.B)})
	}
	c.Changes = append(c.Changes, l)
}

// overlay draws both runs on one axis of time, on which their hold windows begin together.
func (c *Comparison) overlay(a, b *record.Run) error {
	ra, err := newReader(a)
	if err != nil {
		return err
	}
	rb, err := newReader(b)
	if err != nil {
		return err
	}
	shift := ra.window().Start - rb.window().Start
	ra.last = max(ra.last, rb.last+shift)
	both := func(p plot, read func(*reader) []course) {
		list := append(named("A", read(ra)), named("B", shifted(read(rb), shift))...)
		if !slices.ContainsFunc(list, func(c course) bool { return len(c.points) > 0 }) {
			return
		}
		if f := ra.figure(p, list); f != nil {
			c.Figures = append(c.Figures, *f)
		}
	}
	both(plot{title: "Good replies", unit: aSecond, wide: true, height: 180}, func(r *reader) []course {
		replies, _ := r.outcomes()
		return slices.DeleteFunc(replies, func(c course) bool { return c.name != "good" })
	})
	both(plot{title: "Latency, p99 of every interval", note: "logarithmic", unit: waits, wide: true, height: 180, log: true}, func(r *reader) []course {
		list, _, err := r.latency()
		if err != nil {
			r.err = err
		}
		return slices.DeleteFunc(list, func(c course) bool { return c.name != "p99" })
	})
	seen := map[string]bool{"": false}
	for _, h := range ra.meta.Hosts {
		if seen[h.Machine] {
			continue
		}
		seen[h.Machine] = h.Machine != ""
		both(plot{title: "CPU of " + h.Name, unit: ratios, top: 1, wide: true}, func(r *reader) []course { return cpuBusy(r, h.Name) })
	}
	if ra.err != nil {
		return ra.err
	}
	return rb.err
}

// named are a side's courses under its name; an empty one where it has none, so that each side looks the same in all charts.
func named(name string, list []course) []course {
	if len(list) == 0 {
		list = []course{{}}
	}
	for i := range list {
		list[i].name = name
	}
	return list
}

func shifted(list []course, by int64) []course {
	for _, c := range list {
		for i := range c.points {
			c.points[i].Time += by
		}
	}
	return list
}
