package page

import (
	"math"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
	"plimsoll/internal/page/svg"
	"plimsoll/internal/query"
	"plimsoll/internal/report"
	"plimsoll/internal/ruleset"
)

// Finding is what the verdict rests on, with its clues.
type Finding struct {
	model.Finding
	ID      string // where links to it lead
	Subject string
	SoWhat  string
	Clues   []Clue
	Fixes   []Fix
	// Other are the clues that do not hold or could not be measured.
	Other []Clue
}

// Fix is a way to mend a finding, in the text report's words.
type Fix struct {
	model.Fix
	Sets   string // old and new
	Advice bool   // Command is to be read, and not to be typed as it is
	Cost   string
	// Back is how it is taken back in words, BackTyped what is to be typed for it.
	Back, BackTyped string
}

// fixesOf are the ways to mend what is told; of the one that the page begins with, the first step stands there.
func fixesOf(list []model.Fix, begunWith bool) (out []Fix) {
	for _, f := range list {
		x := Fix{Fix: f, Sets: report.Changes(f), Advice: report.Advice(f), Cost: report.Terms(f)}
		x.Back, x.BackTyped = report.TakeBack(f)
		if f.First != nil {
			step := *f.First
			step.Then = layout.Unmarked(step.Then)
			x.First = &step
		}
		if begunWith && f.Command != "" && f.Title == report.MostUseful(list).Title {
			x.First = nil
		}
		out = append(out, x)
	}
	return out
}

// Clue is a clue with its course over the run.
type Clue struct {
	model.Clue
	Figure *Figure
}

// courseSteps is at how many moments of a run a measure is taken for its course.
const courseSteps = 60

// drawer draws the courses of clues.
type drawer struct {
	*reader
	q   *query.Run
	set ruleset.Rules
	// asked are what measures gave over spans of the run, one after the other.
	spans  query.Spans
	length int64 // of each
	asked  map[*query.Expression][]query.Result
}

// findings are the roots and the grounds of a verdict.
func (d *drawer) findings(r model.Report) []Finding {
	v := r.Verdict
	d.askAll(v)
	var list []Finding
	for i, f := range slices.Concat(v.Root, v.Grounds) {
		out := Finding{Finding: f, Subject: report.Subject(f.Subject), SoWhat: report.SoWhat(f, r), Fixes: fixesOf(f.Fix, i == 0 && v.Answer == model.AnswerCause)}
		for _, c := range f.Clues {
			if c.Truth != model.True {
				out.Other = append(out.Other, Clue{Clue: c})
				continue
			}
			out.Clues = append(out.Clues, Clue{Clue: c, Figure: d.clue(f, c)})
		}
		list = append(list, out)
	}
	return list
}

// moves matches measures that change with the main window.
var moves = lazy.Regexp(`\$window\b`)

// askAll asks the measures that have a course, over all spans.
func (d *drawer) askAll(v model.Verdict) {
	run, ok := d.q.Window("run")
	if !ok {
		return
	}
	interval := max(d.meta.Plan.Interval, 1)
	step := max(interval, (run.End-run.Start)/courseSteps)
	d.length = max(2*interval, step)
	d.spans = query.Spans{First: query.Span{Start: run.Start, End: run.Start + d.length}, Step: step}
	if whole := run.End - run.Start - d.length; whole >= 0 {
		d.spans.Count = int(whole/step) + 1
	}
	var list []*query.Expression
	for _, f := range slices.Concat(v.Root, v.Grounds) {
		for _, c := range f.Clues {
			if m := d.measure(f.Rule, c.ID); c.Truth == model.True && hasCourse(m) && !slices.Contains(list, m.MeasureExpr) {
				list = append(list, m.MeasureExpr)
			}
		}
	}
	d.asked = d.ask(list)
}

// hasCourse says whether a measure changes with the main window; others are facts.
func hasCourse(c *ruleset.Clue) bool { return c != nil && moves().MatchString(c.MeasureExpr.Text) }

// clue draws a measure's course: the same expression over short windows, one after the
// other. nil where it has none.
func (d *drawer) clue(f model.Finding, c model.Clue) *Figure {
	measure := d.measure(f.Rule, c.ID)
	if !hasCourse(measure) {
		return nil
	}
	points := d.course(measure.MeasureExpr, f.Subject)
	line := course{name: c.ID, points: points}
	if len(points) < 2 || !line.moves() {
		return nil
	}
	p := plot{title: strings.ReplaceAll(c.ID, "_", " "), unit: unitOf(measure), height: 150, noPeak: true,
		note: "measured over every " + layout.Micros(float64(d.length)*1e3)}
	if bound := measure.Threshold.Bound; measure.MeasureExpr.Counts() && bound != 0 {
		p.note = "counted in every " + layout.Micros(float64(d.length)*1e3) + "; the threshold is for the whole window"
	} else {
		p.limits = []svg.Limit{{Value: bound, Text: "threshold " + measure.Threshold.Op + " " + p.unit.write(bound)}}
	}
	fig := d.figure(p, []course{line})
	fig.Keys = nil
	return fig
}

// unitOf is what a clue's values are measured in, by how its sentence writes one.
func unitOf(c *ruleset.Clue) unit {
	switch c.SayText.Form() {
	case "percent":
		return unit{write: percents, base: ratios.base}
	case "ratio", "hundred":
		return unit{write: percents, base: "of what it is compared with"}
	case "seconds", "millis":
		return seconds
	case "bytes":
		return bytesHeld
	}
	return numberOf("")
}

func (d *drawer) measure(rule, clue string) *ruleset.Clue {
	for _, r := range d.set.List {
		if r.ID != rule {
			continue
		}
		for i := range r.Clues {
			if r.Clues[i].ID == clue {
				return &r.Clues[i]
			}
		}
	}
	return nil
}

// course is what an expression gave for a subject.
func (d *drawer) course(e *query.Expression, subject map[string]string) (points []svg.Point) {
	run, _ := d.q.Window("run")
	ahead := run.Start - d.first
	for i, res := range d.asked[e] {
		if res.Missing != "" || res.Failed != nil {
			return nil
		}
		// Where nothing was counted, a share of it is no number.
		if s, ok := query.Largest(res.Samples, subject); ok && !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) {
			points = append(points, svg.Point{Time: d.spans.At(i).End - ahead, Value: s.Value})
		}
	}
	return points
}

// stretch is over how many spans measures are asked at a time.
const stretch = courseSteps / 4

// ask asks expressions of each span, on all CPUs.
func (d *drawer) ask(list []*query.Expression) map[*query.Expression][]query.Result {
	if len(list) == 0 {
		return nil
	}
	found := make([][][]query.Result, (d.spans.Count+stretch-1)/stretch)
	onAllCPUs(len(found), func(i int) {
		from := i * stretch
		found[i] = d.q.AskOver(list, d.spans.Part(from, min(stretch, d.spans.Count-from)))
	})
	by := map[*query.Expression][]query.Result{}
	for k, e := range list {
		for _, part := range found {
			by[e] = append(by[e], part[k]...)
		}
	}
	return by
}
