package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// mostNote is how many lines a note may have here.
const mostNote = 3

// brief writes what fits a screen: what was offered and what came of it, what is
// behind the first limit, then the answer, and last what to do about it.
func brief(p *paper, r model.Report, run string) {
	s := &sheet{o: TextOptions{Width: p.width, Color: p.color}, run: cmp.Or(run, runWord(r.Dir)), kept: run}
	if r.Program != nil {
		briefProgram(s, r)
		s.add(mustKeep, func(p *paper) { more(p, r, run) })
		p.b.WriteString(fit(s.blocks, briefLines))
		return
	}
	briefResult(s, r)
	if r.Verdict.Answer != model.AnswerHealthy { // there it stands with the answer
		s.item(further, "also", 3, closeBehind(r.Verdict))
	}
	if len(r.Notes) > 0 && len(wrap(layout.Line(r.Notes[0]), p.width-labelWidth)) <= mostNote { // half of one says nothing
		s.item(background, "note", mostNote, r.Notes[0])
	}
	open := ""
	if r.Verdict.Answer == model.AnswerUnclear {
		open = unjudged(r)
	}
	s.item(further, "not judged", mostUnjudged, open)
	s.item(further, "besides", 3, briefCounts(r, open != ""))
	s.add(context, (*paper).blank)
	briefAnswer(s, r)
	s.add(mustKeep, func(p *paper) { more(p, r, run) })
	p.b.WriteString(fit(s.blocks, briefLines))
}

// more says how to see more of this verdict; run is how the run is named on a command
// line, "" for by its directory. A long name leaves room for little else.
func more(p *paper, r model.Report, run string) {
	const how = "-v evidence, -vv everything: "
	command := evidence(cmp.Or(run, runWord(r.Dir)), r)
	if command == "" {
		p.item("more", how+"with the same command")
		return
	}
	if utf8.RuneCountInString(how+command) <= p.width-labelWidth {
		p.item("more", how+command)
		return
	}
	p.typed("more", withoutComment(command+"  # -vv: everything", p.width-labelWidth))
}

// briefResult writes what the load was and what came of it.
func briefResult(s *sheet, r model.Report) {
	s.item(mustKeep, "offered", 4, strings.TrimSpace(target(r.Plan)+": "+offered(r)))
	if !r.Closed {
		s.item(mustKeep, "cut off", 1, "the run was cut off and is judged up to its last second")
	}
	for _, t := range r.ToolSummaries {
		s.item(context, "tool says", 2, toolSaid(t))
	}
	l := r.Load
	if l == nil {
		return
	}
	s.item(mustKeep, "got", 2, fmt.Sprintf("%s good replies/s; %s", layout.Rate(l.GoodRPS), failedShare(*l))+slowest(r))
	for _, w := range l.Workers {
		if w.Gone != "" {
			s.item(mustKeep, "short", 3, layout.Line(w.WithoutIt(len(l.Workers))))
		}
	}
	wait := latency(*l)
	if l.Calm.Count > 0 {
		wait += "; with 1 connection p50 " + layout.Micros(l.Calm.P50)
	}
	s.item(background, "latency", 1, wait)
	if l.Lag.Count > 0 && l.Lag.P99 >= behind {
		s.item(context, "schedule", 2, fmt.Sprintf("the generator itself sent some late: p99 %s, at most %s; the latency above has that in it", layout.Micros(l.Lag.P99), layout.Micros(l.Lag.Max)))
	}
	if r.Verdict.Answer != model.AnswerUnclear { // there it is what is known, and stands with the answer
		s.item(further, "time", 2, longestPart(r.Breakdown))
	}
}

// slowest says how long one in a hundred waited, of a load at a rate: where that is kept nothing else shows that anything is wrong.
func slowest(r model.Report) string {
	if r.Plan.Load == nil || r.Plan.Load.Rate == 0 || r.Load.Latency.Count == 0 {
		return ""
	}
	return "; 1 in 100 waited over " + layout.Micros(r.Load.Latency.P99)
}

// failedShare words how much of what was tried was no good reply, and what it was.
func failedShare(l model.Load) string {
	failed, n := failures(l.Outcomes, func(string) bool { return true })
	if n == 0 {
		return "no request failed"
	}
	return layout.Share(1-l.GoodShare) + " of what was tried failed: " + failed
}

// closeBehind words what would be next to hold it back, "" where nothing was near.
func closeBehind(v model.Verdict) string {
	next, _ := besides(v)
	next = slices.DeleteFunc(next, func(f model.Finding) bool { return f.Answer == model.Near && (nothingOf(f) || isAboutRoot(v, f)) })
	if len(next) == 0 {
		return ""
	}
	f := next[0]
	text := howClose(f, v.Answer) + f.Title + " (" + model.SpokenSubject(f.Subject) + ")"
	if f.Aside != "" {
		text += "; " + f.Aside
	}
	if len(next) > 1 {
		text += fmt.Sprintf("; %d more", len(next)-1)
	}
	return text
}

// isAboutRoot says whether a root is about the same thing, so that one answer for it was found.
func isAboutRoot(v model.Verdict, f model.Finding) bool {
	return len(f.Subject) > 1 && slices.ContainsFunc(v.Root, func(r model.Finding) bool { return maps.Equal(r.Subject, f.Subject) })
}

// howClose says what is known of a cause or limit that the verdict does not rest on.
func howClose(f model.Finding, answer model.Answer) string {
	only := map[model.Answer]string{
		model.AnswerCause:    ", and may only follow from the cause below",
		model.AnswerCapacity: ", and may only follow from the limit below",
	}[answer]
	switch {
	case f.Aside != "":
		return "seen, and no user's: "
	case f.Answer == model.Near && answer == model.AnswerUnclear:
		return "worth a look, not proven: "
	case f.Answer == model.Near:
		return "near its limit, but not the cause: "
	case f.Answer == model.Suspected:
		return "not proven" + only + ": "
	}
	return "measured too" + only + ": "
}

// briefCounts says how many causes it was not, and how many nobody can tell about, where these are not named.
func briefCounts(r model.Report, named bool) string {
	v := r.Verdict
	open := map[string]bool{}
	for _, f := range v.Findings {
		open[f.Rule] = true
	}
	unknown := rulesOf(v.Unknown, open)
	for rule := range unknown {
		open[rule] = true
	}
	var parts []string
	if n := len(rulesOf(v.RuledOut, open)); n > 0 {
		parts = append(parts, plural(n, "other cause", "other causes")+" ruled out")
	}
	if n := len(unknown); n > 0 && !named {
		parts = append(parts, fmt.Sprintf("%d could not be judged here", n))
	}
	if n := len(r.Notes); n > 1 {
		parts = append(parts, plural(n-1, "more note", "more notes"))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "; ") + " (-vv)"
}

// mostUnjudged is how many lines the causes have that could not be judged; of more the number is told.
const mostUnjudged = 3

// unjudged names the causes and limits that could not be judged, by what that lacked; "" where that takes too many lines.
func unjudged(r model.Report) string {
	causes := slices.DeleteFunc(slices.Clone(r.Verdict.Unknown), func(f model.Finding) bool { return f.Kind != "cause" && f.Kind != "capacity" })
	order, rules := byMissing(causes, func(c model.Clue) string {
		if isWatch(r.Plan) && ofOurLoad().MatchString(missing(c)) {
			return "they need a time without load: plimsoll run"
		}
		return missing(c)
	})
	told := map[string]bool{}
	var parts []string
	for _, m := range order {
		names := slices.DeleteFunc(rules[m], func(rule string) bool { return told[rule] })
		for _, rule := range names {
			told[rule] = true
		}
		if len(names) > 0 {
			parts = append(parts, strings.Join(names, ", ")+" ("+m+")")
		}
	}
	text := strings.Join(parts, "; ")
	if len(wrap(text, 80-labelWidth)) > mostUnjudged {
		return ""
	}
	return text
}
