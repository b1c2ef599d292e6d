package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// withOutcome are the changes of a walk of which that came.
func withOutcome(t model.Tuning, o model.TuneOutcome) (list []model.TuneFix) {
	for _, s := range t.Steps {
		if s.Fix != nil && s.Fix.Outcome == o {
			list = append(list, *s.Fix)
		}
	}
	return list
}

// lasting lists all changes that were kept, by file: the lines that are still to be written there,
// and what was written into a service's own files.
func lasting(p *paper, t model.Tuning) {
	kept := withOutcome(t, model.Kept)
	if len(kept) == 0 {
		return
	}
	byFile := map[string][]string{}
	for _, l := range t.Last {
		byFile[l.File] = append(byFile[l.File], l.Line)
	}
	p.heading(bold, "TO MAKE THIS LAST")
	listFiles(p, byFile, "")
	written := writtenAlready(kept)
	if len(byFile) == 0 {
		p.para(0, plain, "Nothing needs to be written: what was changed is in the services' own files.")
	}
	listFiles(p, written, ": stands there already, nothing to write")
}

func listFiles(p *paper, lines map[string][]string, remark string) {
	for _, file := range slices.Sorted(maps.Keys(lines)) {
		p.para(0, plain, file+remark)
		for _, l := range lines[file] {
			p.command(4, l)
		}
	}
}

// writtenAlready are the kept changes that tune itself wrote into files, by file; of a setting
// that was raised twice the last.
func writtenAlready(kept []model.TuneFix) map[string][]string {
	type setting struct{ what, host string }
	last := map[setting]model.TuneChange{}
	var order []setting
	for _, f := range kept {
		for _, c := range f.Changes {
			s := setting{c.What, c.Host}
			if _, again := last[s]; !again {
				order = append(order, s)
			}
			last[s] = c
		}
	}
	byFile := map[string][]string{}
	for _, s := range order {
		if c := last[s]; len(c.Files) > 0 {
			file := strings.Join(c.Files, ", ")
			byFile[file] = append(byFile[file], layout.Line(c.What+" on "+c.Host+": "+c.New))
		}
	}
	return byFile
}

// walkEnding writes what to do with what a walk left, and what that costs.
func walkEnding(p *paper, t model.Tuning) {
	p.blank()
	if len(withOutcome(t, model.Kept)) > 0 {
		p.item("result", gained(t.Steps))
		p.item("how sure", "each change that was kept was measured by the step after it: it was better beyond chance, or was missed when left out")
	}
	for _, s := range AfterWalk(t) {
		if s.Label != "" {
			p.item(s.Label, s.Text)
		} else {
			p.bullet("", "- ", s.Text)
		}
	}
}

// AfterWalk says what to do with what a walk left, and what that costs.
func AfterWalk(t model.Tuning) []Step {
	kept, proposed, stand := withOutcome(t, model.Kept), withOutcome(t, model.Proposed), withOutcome(t, model.Stands)
	switch {
	case len(stand) > 0:
		return price("plimsoll undo --all, as root: it takes back what stands, once what was in the way of that is fixed", "until then what stands is in effect", stand)
	case len(kept) > 0 && len(t.Last) > 0:
		return price("write the lines under TO MAKE THIS LAST into these files: until then a restart of the machine or service loses them", "all of it is set already; plimsoll undo --all takes it back (but not lines that you wrote)", kept)
	case len(kept) > 0:
		return price("nothing: what was changed stays, and is in effect", "plimsoll undo --all takes it back", kept)
	case len(proposed) > 0:
		return price("the same command with --apply makes this change, measures again, and takes it back where it is in vain", "so far nothing was changed; what is, plimsoll undo --all takes back", proposed)
	case len(t.Person) > 0:
		return []Step{{Label: "next", Text: "what stands first under FOR A PERSON TO DECIDE"}, {Label: "cost", Text: "nothing so far: no change is left"}}
	default:
		return []Step{{Label: "next", Text: "plimsoll show last: what the last run says, and what to do about it"}, {Label: "cost", Text: "nothing: no change is left"}}
	}
}

// gained says what the walk brought as a whole.
func gained(steps []model.TuneStep) string {
	first, last := steps[0].TuneLoad, standing(steps).TuneLoad
	if first.GoodRPS == nil || last.GoodRPS == nil {
		return "what users got is the command's to tell: see what it printed at first and at last"
	}
	text := fmt.Sprintf("%s → %s good replies/s", layout.Rate(*first.GoodRPS), layout.Rate(*last.GoodRPS))
	if first.P99 != nil && last.P99 != nil && *first.GoodRPS > 0 {
		text += fmt.Sprintf("; p99 %s → %s", layout.Micros(*first.P99), layout.Micros(*last.P99))
	}
	return text
}

// standing is the last step whose state is the one that the walk left: what the
// change after it was worth was measured by a step of a state that is gone, if it was undone.
func standing(steps []model.TuneStep) model.TuneStep {
	last := len(steps) - 1
	for last > 0 && steps[last-1].Fix != nil && steps[last-1].Fix.Outcome == model.Undone {
		last--
	}
	return steps[last]
}

// price says what is next, and lists what fixes risk and cost, all of them, each thing said once.
func price(next, undo string, list []model.TuneFix) []Step {
	steps := []Step{{Label: "next", Text: next}, {Label: "cost", Text: undo}}
	say := func(text string) { steps = append(steps, Step{Text: text}) }
	var risks, costs, reloaded []string
	memory := map[string]float64{} // of a limit that was raised twice both times' together
	add := func(to *[]string, text string) {
		if text != "" && !slices.Contains(*to, text) {
			*to = append(*to, text)
		}
	}
	for _, f := range list {
		add(&risks, f.Risk)
		add(&costs, f.Costs)
		for _, c := range f.Changes {
			if c.Restart == "reload" {
				add(&reloaded, c.Kind+" on "+c.Host)
			}
		}
		if f.MemoryBytes != nil && *f.MemoryBytes >= 1 && len(f.Changes) > 0 {
			memory[f.Changes[0].What] += *f.MemoryBytes
		}
	}
	say(strings.Join(risks, " to ") + " risk")
	for _, what := range slices.Sorted(maps.Keys(memory)) {
		say("up to " + layout.Bytes(int64(memory[what])) + " more memory: " + what)
	}
	if len(reloaded) > 0 {
		say("reloaded for it, and to take it back: " + strings.Join(reloaded, ", "))
	}
	for _, c := range costs {
		say(c)
	}
	return steps
}
