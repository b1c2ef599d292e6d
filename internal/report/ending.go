package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// The most lines that a brief report has for one thing.
const (
	mostSentence  = 4
	leastSentence = 2 // where there is no room
	mostShown     = 9 // of what packets show, where no rule says what that means: nothing else is said then
	mostReasons   = 3
)

// ending writes the answer and what to do about it, which is what stands last.
func ending(p *paper, r model.Report, run string) {
	s := &sheet{o: TextOptions{Width: p.width, Color: p.color}, run: cmp.Or(run, runWord(r.Dir)), kept: run}
	if r.Program != nil {
		briefProgram(s, r)
	} else {
		briefAnswer(s, r)
	}
	p.b.WriteString(fit(s.blocks, briefLines))
}

// briefAnswer is the answer with its best evidence and its first fix.
func briefAnswer(s *sheet, r model.Report) {
	v := r.Verdict
	told := slices.Concat(v.Root, v.Grounds)
	title := "VERDICT: " + strings.ToUpper(string(v.Answer))
	switch {
	case v.Answer == model.AnswerCapacity && spares(v) != nil:
		title += ", with work that can be saved"
	case v.Answer == model.AnswerCapacity:
		title += ", nothing is broken"
	}
	word, rests := certainty(r)
	if word != "" {
		title += ", " + word
	}
	most := mostSentence
	if r.Plan.Capture != nil && v.Answer == model.AnswerUnclear {
		most = mostShown
	}
	write := func(p *paper, most int) {
		p.para(0, answerStyles[v.Answer], title)
		for _, text := range sentences(v) {
			p.para(0, bold, shortest(text, p.width, most))
		}
	}
	s.add(mustKeep, func(p *paper) { write(p, most) })
	s.blocks[len(s.blocks)-1].shorten(s.o, 1+leastSentence, func(p *paper, lines int) { write(p, lines-1) })
	most = 3
	if strings.HasPrefix(rests, "not sure") {
		most = 2
	}
	s.item(mustKeep, "how sure", most, rests)
	if rests != "" { // in one line it stays, whatever else there is
		s.blocks[len(s.blocks)-1].yields = true
	}
	which := "it"
	if len(titles(v.Root)) > 1 {
		which = "the first"
	}
	if len(told) > 0 {
		s.add(soWhatKeeps(told[0], v.Sentence), func(p *paper) { cost(p, told[0], r, which) })
		reasons(s, told[0], v.Sentence)
	}
	goesInto(s, v)
	if v.Answer == model.AnswerUnclear {
		s.item(mustKeep, whoFeels(v), 3, looksToUsers(r))
		s.item(context, "known", 2, longestPart(r.Breakdown))
	}
	nextStep(s, r)
}

// soWhatKeeps is what it is worth to say what a finding cost: little where the first reason has the same number.
func soWhatKeeps(f model.Finding, told string) int {
	best := mostTelling(f.Clues, told)
	if f.Kind == "cause" && signOf(f.Clues) == nil { // by it one sees whether a step helped
		return mustKeep
	}
	if f.Impact != nil && len(best) > 0 && strings.Contains(best[0].Say, layout.Share(*f.Impact)) {
		return further
	}
	return context
}

func hasDigit(text string) bool { return strings.ContainsAny(text, "0123456789") }

// briefProgram writes where a program's time went, and the one thing that would make it faster: by the verdict, where that is
// about this program, else by what it spends most of its time on.
func briefProgram(s *sheet, r model.Report) {
	p := r.Program
	word := layout.Line(r.Plan.Program)
	if p.Missing != "" {
		s.item(mustKeep, "program", 3, word+": nothing is known of its time: "+layout.Line(p.Missing))
		s.add(mustKeep, (*paper).blank)
		briefAnswer(s, r)
		return
	}
	s.item(mustKeep, "program", 3, programIs(p, word))
	s.add(mustKeep, func(out *paper) { programParts(out, p, mostParts, leastPart) })
	if spends(p, "running") >= leastTold {
		s.item(context, "computes", 3, functionsIn(p))
	}
	s.add(mustKeep, (*paper).blank)
	if len(p.About) > 0 {
		briefAnswer(s, r)
		return
	}
	s.add(mustKeep, func(out *paper) {
		out.line(0, amber, "ANSWER: "+strings.ToUpper(doingTitle(p.Parts[0].Doing)))
		out.para(0, bold, shortest(layout.Line(p.Sentence)+".", out.width, 3))
	})
	how := fasterBy(p, s.run)
	s.item(mustKeep, "faster", 4, how.text)
	s.typed(mustKeep, doFirst, how.command)
	s.prices(how.cost, how.back)
	s.item(further, "the host", 2, strings.ToLower(string(r.Verdict.Answer))+": "+layout.Line(r.Verdict.Sentence))
}

// sentences are the verdict's own, or, where it has two causes, a line of each.
func sentences(v model.Verdict) []string {
	if len(titles(v.Root)) < 2 {
		return []string{strings.TrimPrefix(v.Sentence, "Probably: ")}
	}
	var list []string
	for i, f := range v.Root {
		if i == mostCauses {
			return append(list, fmt.Sprintf("and %d more (-v)", len(v.Root)-i))
		}
		list = append(list, fmt.Sprintf("%d. %s (%s).", i+1, f.Title, model.SpokenSubject(f.Subject)))
	}
	return list
}

// mostCauses is how many causes of one verdict are told.
const mostCauses = 2

// reasons are the clues that say the most for a finding, and of one that is suspected how to see the first.
func reasons(s *sheet, f model.Finding, told string) {
	best := mostTelling(f.Clues, told)
	for i, c := range best[:min(len(best), mostReasons)] {
		label := ""
		if i == 0 {
			label = "why"
		}
		say := c.Say
		if i == 0 {
			say += nearWhat(c)
		}
		write := func(p *paper, most int) { p.bullet(label, markOf(c), shortest(say, p.width-labelWidth-2, most)) }
		s.add([mostReasons]int{mustKeep, context, background}[i], func(p *paper) { write(p, 3) })
		if short := shortest(say, s.o.Width-labelWidth-2, 1); i == 0 && hasDigit(short) == hasDigit(say) { // half of it says nothing without its number
			s.blocks[len(s.blocks)-1].shorten(s.o, 1, write)
		}
	}
	if f.Answer == model.Confirmed { // what is proven needs no check here; -v has it
		return
	}
	for _, c := range best {
		if (c.Role == model.Decides || c.Role == model.Proves) && fitToType(c.ByHand, s.o.Width) && !noCheck().MatchString(c.ByHand) {
			s.add(proof, func(p *paper) { p.typed("by hand", withoutComment(c.ByHand, p.width-labelWidth)) })
			return
		}
	}
}
