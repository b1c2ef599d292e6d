package page

import (
	"html/template"
	"slices"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/page/svg"
	"plimsoll/internal/report"
)

// Tuning is a walk: its steps as a staircase of good replies.
type Tuning struct {
	model.Tuning
	Rows    []Step
	First   []report.Step
	ByFile  []FileLines // what makes it last
	Written map[string][]string
}

// FileLines are lines to be written into one file.
type FileLines struct {
	File  string
	Lines []string
}

// byFile gathers lines by their files, in the order in which these first come.
func byFile(list []model.TuneLine) (out []FileLines) {
	for _, l := range list {
		i := slices.IndexFunc(out, func(f FileLines) bool { return f.File == l.File })
		if i < 0 {
			i, out = len(out), append(out, FileLines{File: l.File})
		}
		out[i].Lines = append(out[i].Lines, l.Line)
	}
	return out
}

// Step is one run of a walk, and what was changed after it.
type Step struct {
	Number                  int // 0 for a trial
	Good, Share, P50, P99   string
	Bar                     template.HTML
	HeldBack, Rule, Outcome string
	Changes                 []string
	Says                    string
}

// Walk words what tune did.
func Walk(t model.Tuning) *Tuning {
	out := &Tuning{Tuning: t, First: report.AfterWalk(t), ByFile: byFile(t.Last), Written: report.Written(t)}
	top := 0.0
	best := func(l model.TuneLoad) {
		if l.GoodRPS != nil {
			top = max(top, *l.GoodRPS)
		}
	}
	best(t.End.TuneLoad)
	for _, s := range t.Steps {
		best(s.TuneLoad)
	}
	for _, s := range t.Steps {
		row := step(s.TuneLoad, top)
		row.Number, row.HeldBack = s.Number, s.Sentence
		if s.Root != nil {
			row.HeldBack, row.Rule = s.Root.Title, s.Root.Rule
		}
		if s.Fix != nil {
			row.Outcome, row.Says = string(s.Fix.Outcome), s.Fix.Sentence
			for _, c := range s.Fix.Changes {
				row.Changes = append(row.Changes, report.Changed(c))
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// step words what the load saw, against the best of all steps.
func step(l model.TuneLoad, top float64) Step {
	s := Step{Good: layout.OrDash(l.GoodRPS, layout.Rate), Share: layout.OrDash(l.GoodShare, layout.Share),
		P50: layout.OrDash(waited(l.P50), layout.Micros), P99: layout.OrDash(waited(l.P99), layout.Micros)}
	if l.GoodRPS != nil && top > 0 {
		s.Bar = drawn(svg.Bar(s.Good+" good replies a second", *l.GoodRPS/top, 0, false))
	}
	return s
}

// waited is how long somebody waited, nil where nobody's wait came to an end: then it is 0.
func waited(micros *float64) *float64 {
	if micros != nil && *micros == 0 {
		return nil
	}
	return micros
}
