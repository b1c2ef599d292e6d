package page

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"plimsoll/internal/layout"
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
	// Other are the clues that do not hold or could not be measured.
	Other []Clue
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
}

// findings are the roots and the grounds of a verdict.
func (d *drawer) findings(v model.Verdict) []Finding {
	var list []Finding
	for _, f := range slices.Concat(v.Root, v.Grounds) {
		out := Finding{Finding: f, Subject: report.Subject(f.Subject)}
		if f.Impact != nil {
			out.SoWhat = layout.Share(*f.Impact) + " of the requests were lost or delayed by it"
		} else if f.Kind == "cause" {
			out.SoWhat = "How many requests it lost or delayed cannot be told from this run"
		}
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

// moves matches measures that change with the main window; others are facts.
var moves = regexp.MustCompile(`\$window\b`)

// clue draws a measure's course: the same expression over short windows, one after the
// other. nil where it has none.
func (d *drawer) clue(f model.Finding, c model.Clue) *Figure {
	measure := d.measure(f.Rule, c.ID)
	if measure == nil || !moves.MatchString(measure.MeasureExpr.Text) {
		return nil
	}
	points, length := d.over(measure.MeasureExpr, f.Subject)
	line := course{name: c.ID, points: points}
	if len(points) < 2 || !line.moves() {
		return nil
	}
	p := plot{title: strings.ReplaceAll(c.ID, "_", " "), unit: numberOf(""), height: 150, noPeak: true,
		note: "measured over every " + layout.Micros(float64(length)*1e3)}
	if bound := measure.Threshold.Bound; measure.MeasureExpr.Counts && bound != 0 {
		p.note = "counted in every " + layout.Micros(float64(length)*1e3) + "; the threshold is for the whole window"
	} else {
		p.limits = []svg.Limit{{Value: bound, Text: "threshold " + c.Is}}
	}
	fig := d.figure(p, []course{line})
	fig.Keys = nil
	return fig
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

// over measures an expression of a subject over windows of so many milliseconds.
func (d *drawer) over(e *query.Expression, subject map[string]string) (points []svg.Point, length int64) {
	run, ok := d.q.Window("run")
	if !ok {
		return nil, 0
	}
	interval := max(d.meta.Plan.Interval, 1)
	step := max(interval, (run.End-run.Start)/courseSteps)
	length = max(2*interval, step)
	var spans []query.Span
	for end := run.Start + length; end <= run.End; end += step {
		spans = append(spans, query.Span{Start: end - length, End: end})
	}
	ahead := run.Start - d.first
	for i, res := range d.ask(e, spans) {
		if res.Missing != "" || res.Failed != nil {
			return nil, 0
		}
		if s, ok := query.Largest(res.Samples, subject); ok {
			points = append(points, svg.Point{Time: spans[i].End - ahead, Value: s.Value})
		}
	}
	return points, length
}

// ask asks an expression of several windows, on all CPUs.
func (d *drawer) ask(e *query.Expression, spans []query.Span) []query.Result {
	list := make([]query.Result, len(spans))
	var next atomic.Int64
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(spans)); i = next.Add(1) - 1 {
				list[i] = d.q.AskOver(e, spans[i])
			}
		})
	}
	all.Wait()
	return list
}
