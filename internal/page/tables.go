package page

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/page/svg"
	"plimsoll/internal/report"
)

// Breakdown is where the mean request's time went.
type Breakdown struct {
	Mean, Attributed string
	Parts            []Part
	Warnings         []string
}

// Part is one part of it; Depth says within which it lies.
type Part struct {
	Text, Where, Took, Share, Why string
	Indent                        string
	Bar                           template.HTML
}

func breakdownOf(b *model.Breakdown) Breakdown {
	if b == nil || b.MeanSeconds <= 0 {
		return Breakdown{}
	}
	out := Breakdown{Mean: report.Means(b), Attributed: report.Attribution(b), Warnings: b.Warnings}
	var walk func([]model.BreakdownPart, int)
	walk = func(parts []model.BreakdownPart, depth int) {
		for _, p := range parts {
			row := Part{Text: p.Text, Where: strings.TrimSpace(p.Host + " " + p.Process), Indent: strings.Repeat("\u2003", depth), Why: p.Why, Took: "not seen"}
			switch {
			case p.Seconds == nil && p.Why == "":
				walk(p.Parts, depth)
				continue
			case p.Seconds != nil && *p.Seconds == 0:
				continue
			case p.Seconds != nil:
				share := *p.Seconds / b.MeanSeconds
				row.Took, row.Share, row.Why = layout.Micros(*p.Seconds*1e6), report.Percent(share), ""
				if p.How == model.Estimate || p.How == model.Little {
					row.Took = "~" + row.Took
				}
				row.Bar = drawn(svg.Bar(p.Text+": "+row.Share, share, 0, false))
			}
			out.Parts = append(out.Parts, row)
			walk(p.Parts, depth+1)
		}
	}
	walk(b.Parts, 0)
	return out
}

// Asked is where the time went of the one program that was asked about; Is is "" where none was.
type Asked struct {
	Is, Sentence, Missing string
	Parts                 []Part
}

func askedOf(r model.Report) Asked {
	p := r.Program
	switch {
	case p == nil:
		return Asked{}
	case p.Missing != "":
		return Asked{Is: r.Plan.Program, Missing: p.Missing}
	}
	out := Asked{Is: report.ProgramIs(r), Sentence: p.Sentence}
	for _, part := range p.Parts {
		share := report.Percent(part.Share)
		out.Parts = append(out.Parts, Part{Text: part.Text, Where: part.Thread, Took: layout.Micros(part.Seconds * 1e6), Share: share, Bar: drawn(svg.Bar(part.Text+": "+share, part.Share, 0, false))})
	}
	return out
}

// Events is what happened, on the axis of time and as a list.
type Events struct {
	Lanes template.HTML
	List  []Event
	// Left is how many are not in the list.
	Left int
}

// Event is one of them.
type Event struct{ At, Host, Kind, Text string }

const (
	mostEvents = 200  // in the list
	mostLanes  = 12   // kinds
	mostLine   = 400  // runes of a line
	mostTicks  = 5000 // of a kind
)

func (r *reader) events() (Events, error) {
	var out Events
	var lanes []svg.Lane
	for e, err := range r.rec.Events() {
		if err != nil {
			return out, err
		}
		if len(out.List) < mostEvents {
			out.List = append(out.List, Event{At: fmt.Sprintf("%.2f s", float64(e.Time-r.first)/1000), Host: svg.Text(e.Host, mostName), Kind: svg.Text(e.Kind, mostName), Text: svg.Text(e.Text, mostLine)})
		} else {
			out.Left++
		}
		name := svg.Text(strings.TrimSpace(e.Host+" "+e.Kind), mostName)
		i := slices.IndexFunc(lanes, func(l svg.Lane) bool { return l.Name == name })
		if i < 0 && len(lanes) < mostLanes {
			i, lanes = len(lanes), append(lanes, svg.Lane{Name: name})
		}
		if i >= 0 && len(lanes[i].Times) < mostTicks {
			lanes[i].Times = append(lanes[i].Times, e.Time)
		}
	}
	if len(lanes) > 0 {
		out.Lanes = drawn(svg.Events(svg.Chart{Title: "Events over time", Desc: "what they say is in the list", From: r.first, To: r.last, Bands: r.bands(), Wide: true, Format: brief}, lanes))
	}
	return out, nil
}

// Tables are what the page rests on, as plain tables, and what it cannot say.
type Tables struct {
	RuledOut []Row
	NoSign   []string // rules that had nothing to judge by
	Next     []Row
	Unseen   []Unseen
	Cost     []Fact
	Course   []model.Second
	// CourseStep is how many seconds a row of the course holds.
	CourseStep int
	AllClues   []Row
	// MoreClues and MoreRuledOut are how many are not in the tables.
	MoreClues, MoreRuledOut int
}

// mostRows is how many rows a table has of what is one for each rule and subject, of which
// a run may have thousands.
const mostRows = 1500

// firstRows cuts a table that is too long, and says how many rows are left out.
func firstRows(list []Row) ([]Row, int) {
	return list[:min(len(list), mostRows)], max(len(list)-mostRows, 0)
}

// Row is a finding, or a clue of one, in a table.
type Row struct{ Rule, Subject, Answer, Says, Value, Is string }

// Unseen is what was missing, and what so could not be judged.
type Unseen struct{ What, Rules string }

func (r *reader) tables(rep model.Report) Tables {
	var t Tables
	v := rep.Verdict
	for _, f := range v.Findings {
		if f.Kind != "healthy" && !report.Told(v, f) {
			row := Row{Rule: f.Rule, Subject: report.Subject(f.Subject), Answer: string(f.Answer), Says: says(f, model.True)}
			if f.ExplainedBy != "" {
				row.Answer += ", explained by " + f.ExplainedBy
			}
			t.Next = append(t.Next, row)
		}
	}
	for _, f := range v.RuledOut {
		if report.NothingToJudge(f) {
			if !slices.Contains(t.NoSign, f.Rule) {
				t.NoSign = append(t.NoSign, f.Rule)
			}
			continue
		}
		t.RuledOut = append(t.RuledOut, Row{Rule: f.Rule, Subject: report.Subject(f.Subject), Says: says(f, model.False)})
	}
	order, rules := report.Missing(v.Unknown)
	for _, m := range order {
		t.Unseen = append(t.Unseen, Unseen{m, strings.Join(rules[m], ", ")})
	}
	t.Cost = costs(rep)
	t.RuledOut, t.MoreRuledOut = firstRows(t.RuledOut)
	t.AllClues, t.MoreClues = firstRows(clues(v))
	if rep.Load != nil {
		t.Course, t.CourseStep = coarse(rep.Load.Course)
	}
	return t
}

func says(f model.Finding, truth model.Truth) string {
	if c := report.Decider(f, truth); c != nil {
		return c.Say
	}
	return f.Title
}

// costs say what the observation took, and how it was done.
func costs(r model.Report) []Fact {
	list := []Fact{{Name: "watching", Value: report.Watching(r.Cost)}}
	if r.Cost.LoadCPUSeconds > 0 {
		list = append(list, Fact{Name: "the load itself", Value: layout.Micros(r.Cost.LoadCPUSeconds*1e6) + " of CPU time"})
	}
	if r.Tracing != nil {
		list = append(list, Fact{Name: "traced", Value: report.Traced(*r.Tracing)})
	}
	return append(list, Fact{Name: "run", Value: r.Dir}, Fact{Name: "version", Value: r.Version}, Fact{Name: "rules", Value: r.RulesHash})
}

// clues lists every clue of every finding with the value that was measured.
func clues(v model.Verdict) []Row {
	var list []Row
	for _, f := range slices.Concat(v.Findings, v.RuledOut, v.Unknown) {
		if report.NothingToJudge(f) {
			continue
		}
		for _, c := range f.Clues {
			value := "-"
			if c.Value != nil {
				value = report.Number(*c.Value)
			}
			list = append(list, Row{Rule: f.Rule, Subject: report.Subject(f.Subject), Answer: string(c.Truth), Says: c.ID, Value: value, Is: c.Is})
		}
	}
	return list
}

// mostSeconds is how many rows the course of a load has.
const mostSeconds = 300

// coarse adds up seconds until the course fits; of the quantiles the largest stay.
func coarse(list []model.Second) ([]model.Second, int) {
	step := (len(list) + mostSeconds - 1) / mostSeconds
	if step <= 1 {
		return list, 1
	}
	var out []model.Second
	for i := 0; i < len(list); i += step {
		sum := list[i]
		for _, s := range list[i+1 : min(i+step, len(list))] {
			sum.Time, sum.Phase = s.Time, s.Phase
			sum.Replies, sum.Good, sum.Failed = sum.Replies+s.Replies, sum.Good+s.Good, sum.Failed+s.Failed
			sum.P50, sum.P99 = max(sum.P50, s.P50), max(sum.P99, s.P99)
		}
		out = append(out, sum)
	}
	return out, step
}
