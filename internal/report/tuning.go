package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

var outcomeStyles = map[model.TuneOutcome]style{
	model.Kept: green, model.OnTrial: amber, model.Undone: red, model.Stands: red, model.Refused: red, model.Proposed: amber,
}

// TuneStep writes one step of tune as it ends: what the run saw, what was
// changed, and what came of it.
func TuneStep(w io.Writer, s model.TuneStep, o TextOptions) error {
	p := newPaper(o)
	p.line(0, bold, fmt.Sprintf("STEP %d   %s", s.Number, loadLine(s)))
	if s.Root != nil {
		p.item("held back", s.Root.Title)
		p.para(labelWidth, dim, s.Root.Rule+" · "+subject(s.Root.Subject))
	} else {
		p.item(string(s.Answer), s.Sentence)
	}
	if s.Fix != nil {
		tuneFix(p, *s.Fix)
	}
	p.blank()
	return p.print(w)
}

// TuneJudged writes what became, at the end, of a step's change that was on trial.
func TuneJudged(w io.Writer, s model.TuneStep, o TextOptions) error {
	p := newPaper(o)
	p.line(0, bold, fmt.Sprintf("AT THE END   the change of step %d", s.Number))
	for _, c := range s.Fix.Changes {
		p.item("", changed(c))
	}
	p.hang(0, labelWidth, string(s.Fix.Outcome), outcomeStyles[s.Fix.Outcome], s.Fix.Sentence)
	p.blank()
	return p.print(w)
}

func loadLine(s model.TuneStep) string {
	if s.CommandExit != nil {
		return fmt.Sprintf("watched while the command ran, which ended with %d", *s.CommandExit)
	}
	return fmt.Sprintf("%s good/s of %s (%s good), p50 %s, p99 %s",
		layout.OrDash(s.GoodRPS, layout.Rate), layout.OrDash(s.RPS, layout.Rate), layout.OrDash(s.GoodShare, layout.Share), layout.OrDash(s.P50, layout.Micros), layout.OrDash(s.P99, layout.Micros))
}

func tuneFix(p *paper, f model.TuneFix) {
	for i, c := range f.Changes {
		label := ""
		if i == 0 {
			label = "change"
		}
		p.item(label, changed(c))
		if f.Outcome != model.Proposed {
			continue
		}
		for _, file := range c.Files {
			p.para(labelWidth, dim, "in "+file)
		}
		for _, note := range append(slices.Clone(c.Notes), reach(c)...) {
			p.para(labelWidth, dim, note)
		}
		p.para(labelWidth, dim, "undo: "+c.Undo)
	}
	if f.Outcome == model.Proposed {
		p.item("risk", f.Risk+"; costs "+f.Costs)
		return
	}
	p.hang(0, labelWidth, string(f.Outcome), outcomeStyles[f.Outcome], f.Sentence)
	if text := effects(f.Effect); text != "" {
		p.para(labelWidth, dim, text)
	}
}

// changed is one change in a line.
func changed(c model.TuneChange) string {
	old := c.Old
	if old == "" {
		old = "(not set)"
	}
	return fmt.Sprintf("%s on %s: %s → %s", c.What, c.Host, old, c.New)
}

// reach says what of a change a person would want to know beforehand.
func reach(c model.TuneChange) []string {
	var list []string
	if c.Scope == "machine" {
		list = append(list, "it is the whole machine's: every host on it feels it")
	}
	if c.Restart == "reload" {
		list = append(list, "the service is reloaded; its configuration is tested first")
	}
	return list
}

// effects writes the measures that moved beyond noise, with their intervals.
func effects(list []model.Difference) string {
	moved := movements(list)
	if len(moved) == 0 && len(list) > 0 {
		return "no measure moved beyond the noise"
	}
	return strings.Join(moved, "; ")
}

// movements are what became better, then what became worse, and said so: what paid as a whole may have its price.
func movements(list []model.Difference) []string {
	var parts, prices []string
	for _, d := range list {
		if d.Answer != model.Better && d.Answer != model.Worse {
			continue
		}
		text := fmt.Sprintf("%s %s → %s", measureNames[d.Name], amount(d.A, d.Unit), amount(d.B, d.Unit))
		if d.Ratio > 0 {
			text += fmt.Sprintf(" (×%s, %s to %s at 95 %%)", times(d.Ratio), times(d.Low), times(d.High))
		}
		if d.Answer == model.Worse {
			prices = append(prices, "worse: "+text)
		} else {
			parts = append(parts, text)
		}
	}
	return append(parts, prices...)
}

func times(v float64) string {
	if v >= 10 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Tuning writes the whole walk: the table, why it stopped, what makes it last.
func Tuning(w io.Writer, t model.Tuning, o TextOptions) error {
	p := newPaper(o)
	p.line(0, bold, fmt.Sprintf("%4s %8s %11s %9s %9s  %s", "STEP", "GOOD/S", "OF ALL", "P50", "P99", "HELD BACK BY"))
	for _, s := range t.Steps {
		p.tuneRow(fmt.Sprint(s.Number), s.TuneLoad, heldBackBy(s))
		if s.Root != nil {
			p.para(rowIndent, plain, layout.Line(s.Root.Title))
		}
		if s.Fix != nil {
			p.fixRows(*s.Fix)
		}
	}
	for _, x := range t.Trials {
		p.tuneRow("-", x.TuneLoad, fmt.Sprintf("tried without the change of step %d", x.Step))
		p.para(rowIndent, dim, x.Sentence)
	}
	p.heading(bold, "WHY IT STOPPED")
	p.para(0, plain, t.Stopped)
	for _, g := range t.Goals {
		word := "not met"
		if g.Met {
			word = "met"
		}
		p.para(0, plain, g.Goal+": "+word)
	}
	lasting(p, t)
	if len(t.Person) > 0 {
		p.heading(bold, "FOR A PERSON TO DECIDE")
		for _, x := range t.Person {
			p.hang(0, 2, "-", plain, x)
		}
	}
	walkEnding(p, t)
	return p.print(w)
}

// rowIndent is where the text beneath a row of the table begins.
const rowIndent = 7

func (p *paper) tuneRow(step string, l model.TuneLoad, text string) {
	if l.GoodRPS != nil && *l.GoodRPS == 0 { // how long users waited for nothing is no latency
		l.P50, l.P99 = nil, nil
	}
	row := fmt.Sprintf("%4s %8s %11s %9s %9s  %s", step, layout.OrDash(l.GoodRPS, layout.Rate), layout.OrDash(l.GoodShare, layout.Share),
		layout.OrDash(l.P50, layout.Micros), layout.OrDash(l.P99, layout.Micros), text)
	p.line(0, plain, row)
}

func heldBackBy(s model.TuneStep) string {
	if s.Root == nil {
		return string(s.Answer)
	}
	return s.Root.Rule
}

// fixRows says in as few lines as can be what was changed and what became of it; the rest
// was told when the step ended.
func (p *paper) fixRows(f model.TuneFix) {
	var list []string
	for _, c := range f.Changes {
		list = append(list, changed(c))
	}
	text := strings.Join(list, "; ")
	if f.Outcome != model.Kept {
		text += "; " + f.Sentence
	}
	p.hang(rowIndent, rowIndent+10, string(f.Outcome), outcomeStyles[f.Outcome], text)
}
