package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
)

// mostAgain is how many lines the command that measures again has on a screen; a longer one is printed by plimsoll again.
const mostAgain = 3

// shortCommand is how many letters a command has at most behind which there is room for what it tells.
const shortCommand = 36

// sameAgain stands for the command where a run does not tell it, or where there is no room.
const sameAgain = "the same command again"

// secondsAgain is how long a watch is made again where nobody typed a duration.
const secondsAgain = "60s"

// CommandAgain are the words that measure again what a report is about, nil where it does not tell, or tells what nobody should type.
func CommandAgain(plan model.Plan, hosts []model.Host) []string {
	if words := wordsAgain(plan, hosts); printable(words) {
		return words
	}
	return nil
}

// wordsAgain is CommandAgain, whatever the words are.
func wordsAgain(plan model.Plan, hosts []model.Host) []string {
	switch {
	case ownCommand(plan.CommandLine):
		return plan.CommandLine
	case len(plan.CommandLine) > 0:
		return nil
	case plan.Remote != nil:
		words := []string{"plimsoll", "diagnose", "--prometheus", plan.Remote.URL, "--window", span(plan.Remote.Window)}
		for _, m := range plan.Remote.Match {
			words = append(words, "--match", m)
		}
		return words
	case !isWatch(plan):
		return nil
	}
	words := []string{"plimsoll", "watch"}
	if plan.Program != "" {
		words = append(words, "--of", plan.Program)
	}
	for _, h := range hosts {
		if h.Spec != "local" {
			words = append(words, "--host", h.Name+"="+h.Spec)
		}
	}
	if len(plan.Command) == 0 {
		return append(words, "-d", secondsAgain)
	}
	return append(append(words, "--"), plan.Command...)
}

// flagSet is a flag with its value; short is "" of one that has only its long name.
type flagSet struct{ short, long, value string }

// String is the flag as it is typed.
func (f flagSet) String() string { return cmp.Or(f.short, f.long) + " " + f.value }

// in is a command line with the flag set: in the place of what it was, else before a command of the user's own.
func (f flagSet) in(words []string) []string {
	end := len(words)
	if at := slices.Index(words, "--"); at >= 0 {
		end = at
	}
	if at := slices.IndexFunc(words[:end], func(w string) bool { return w == f.short || w == f.long }); at >= 0 && at+1 < end {
		out := slices.Clone(words)
		out[at+1] = f.value
		return out
	}
	return slices.Insert(slices.Clone(words), end, cmp.Or(f.short, f.long), f.value)
}

// measureAgain writes how to see whether a step helped: what measures again, when (after, "" for at once), which of the numbers above shows
// it and which way it has to go, what to do where it helped, helped in part or did not, and how both runs are held beside each other.
func measureAgain(s *sheet, r model.Report, after string, h helped, otherwise string) {
	if root := r.Verdict.Root; len(root) > 0 && root[0].Rule == wrongRequests {
		s.item(mustKeep, "again", 3, "the test is at fault, not the service: `plimsoll run 'the corrected request'`; "+h.reason+" "+h.becomes+": this test is right, and its verdict is the service's. Else: what the status says now")
		return
	}
	words := CommandAgain(r.Plan, r.Hosts)
	text := andThen(strings.Join(when(r, after), ", "), strings.Join(h.judged(otherwise), ". "))
	command := s.shortAgain(r, words, "")
	if command == "" || r.Load == nil {
		s.again(r, "again", words, "", text)
		return
	}
	// which says more of the users than one number, and whether that is chance
	beside := " (`plimsoll compare " + layout.Quote(s.kept) + " last`)"
	s.again(r, "again", words, "", text+beside)
	last, p := &s.blocks[len(s.blocks)-1], newPaper(s.o)
	if p.short("again", 9, "`"+command+"`: "+text); strings.Count(p.b.String(), "\n") < last.lines() && len(command) <= shortCommand {
		last.yields, last.shorter = true, []string{p.b.String()}
	}
}

// when says when to measure again: a look by itself changes no number, and a watch where less is asked for has lower ones by that alone.
func when(r model.Report, after string) (list []string) {
	if after != "" {
		list = append(list, after)
	}
	if isWatch(r.Plan) && len(r.Plan.Command) == 0 {
		busy := ""
		if r.RequestRate != nil && *r.RequestRate >= 1 {
			busy = " (" + layout.Rate(*r.RequestRate) + " requests/s)"
		}
		list = append(list, "when it is as busy as now"+busy)
	}
	return list
}

// wrongRequests is the rule of requests that are wrong themselves: the same command again would ask the same.
const wrongRequests = "load.wrong_requests"

// afterwards says that a look by itself changes no number, and that a cache which begins empty has to be filled first.
func afterwards(f model.Fix) string {
	steps := f.Costs
	if f.First != nil {
		steps += " " + f.First.Then
	}
	switch {
	case f.Undo == nothingChanged:
		return "after the change"
	case beginsEmpty().MatchString(steps):
		return "twice: the second run counts"
	}
	return ""
}

// beginsEmpty are the words by which a fix says that a restart empties a cache.
var beginsEmpty = lazy.Regexp(`empty cache|cache is empty|cache in its memory is empty|begins empty`)

// shortAgain is the command that has a kept run made again, with what is changed in it; "" of a run that it does not make.
func (s *sheet) shortAgain(r model.Report, words []string, changed string) string {
	if s.kept == "" || r.Plan.Capture != nil || !ownCommand(words) || Masked(words) || FromHere(words) {
		return ""
	}
	return strings.TrimSuffix("plimsoll again "+layout.Quote(s.kept)+" "+changed, " ")
}

// namesRun has a rule's step that measures again with something more say of which run.
func (s *sheet) namesRun(step string) string {
	again := "the same command again with -"
	if s.kept != "" {
		again = "plimsoll again " + layout.Quote(s.kept) + " -"
	}
	return strings.ReplaceAll(step, "plimsoll again -", again)
}

// Masked says whether words lack what gives access, which a run does not keep.
func Masked(words []string) bool { return strings.Contains(strings.Join(words, " "), "(masked)") }

// FromHere says whether words have a command of the user's own whose program is named by a path from the working directory, which a run
// does not keep: what lies there elsewhere may be anybody's.
func FromHere(words []string) bool {
	at := slices.Index(words, "--")
	return at >= 0 && at+1 < len(words) && strings.Contains(words[at+1], "/") && !strings.HasPrefix(words[at+1], "/")
}

// again adds a command that measures again, with what was changed in it ("" for nothing), and what to make of it; where there is no room
// for both the command is left to the evidence.
func (s *sheet) again(r model.Report, label string, words []string, changed, text string) {
	if command := s.shortAgain(r, words, changed); command != "" {
		s.typedAgain(label, command, text, "")
		return
	}
	command, text, without := s.wholeAgain(r, words, changed, text)
	s.typedAgain(label, command, text, without)
}

// wholeAgain is a command that measures again, what to make of it, and what says the same without the command, which is "" where it is
// too long for a screen.
func (s *sheet) wholeAgain(r model.Report, words []string, changed, text string) (command, told, without string) {
	command, without = typedWords(words), sameAgain
	switch {
	case r.Plan.Capture != nil:
		without = "a new capture, read the same way"
	case changed != "":
		without = "the same command with " + changed
	case command != "":
		without += " (-v has it)"
	}
	without = andThen(without, text)
	long := len(breakCommand(command, s.o.Width-labelWidth-4)) > mostAgain
	if Masked(words) {
		text = andThen(text, "fill in what is (masked)")
	}
	text = andThen(fromTheRun(words), text)
	switch {
	case r.Plan.Capture != nil || command == "" || long && !ownCommand(words):
		return "", without, without
	case long && changed != "":
		return "plimsoll again " + s.run, "prints the command: type it with " + changed + "; " + text, without
	case long:
		return "plimsoll again " + s.run, "prints the command to type; " + text, without
	}
	return command, text, without
}

// typedAgain adds a command that measures again and what to make of it, or where there is no room what says the same without it, "" for
// no such words.
func (s *sheet) typedAgain(label, command, text, without string) {
	behind := label
	switch {
	case command != "" && label == doFirst:
		behind = "then"
	case command != "":
		behind = ""
	}
	write := func(p *paper, most int) {
		switch {
		case command != "" && text != "" && behind == "" && len(command) <= shortCommand:
			p.short(label, most, "`"+command+"`: "+text)
			return
		case command != "":
			p.typed(label, command)
		}
		if text != "" {
			p.short(behind, most, text)
		}
	}
	const all = 9 // how both a fix that helped and one that did not are known is never left out
	s.add(mustKeep, func(p *paper) { write(p, all) })
	if last := &s.blocks[len(s.blocks)-1]; without != "" {
		p := newPaper(s.o)
		p.short(label, all, without)
		if shorter := p.b.String(); strings.Count(shorter, "\n") < last.lines() {
			last.dear, last.yields, last.shorter = dearness(label), true, []string{shorter}
		}
	}
	if command != "" {
		s.steps = append(s.steps, Step{Label: label, Text: command, Typed: true})
	}
	if text != "" {
		s.steps = append(s.steps, Step{Label: behind, Text: layout.Unmarked(text)})
	}
}

// labelUnless is a label, "" where it stood before something already.
func labelUnless(before, label string) string {
	if before != "" {
		return ""
	}
	return label
}

// helped is by what one sees that a step helped: the reason that stands above, what becomes of it, what it becomes where the step helped in part,
// "" where it can not, and where it did not, all "" where there is none; and what users get now and then, "" where nobody measured that.
type helped struct{ reason, becomes, part, beyond, users string }

// judged says what to look at, and what to do with what is seen there; what users get comes last, and first where there is nothing else.
func (h helped) judged(otherwise string) (list []string) {
	const partly = ": in part, keep it"
	otherwise = capitalized(cmp.Or(h.beyond, "else")) + ": " + otherwise
	switch {
	case h.reason == "" && h.users != "":
		return []string{"users: " + h.users, otherwise}
	case h.reason == "":
		return []string{"more is served, or users wait less: helped", otherwise}
	}
	list = append(list, h.reason+" "+h.becomes+": helped")
	if h.part != "" {
		list = append(list, capitalized(h.part)+partly)
	}
	list = append(list, otherwise)
	if h.users != "" {
		list = append(list, "Users: "+h.users)
	}
	return list
}

// capitalized is a text as a sentence begins.
func capitalized(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// helpedIf says which of the numbers of a report shows that a step helped: what the sign's value becomes, and what users get.
func helpedIf(r model.Report, f model.Finding) helped {
	h := helped{users: usersBetter(r)}
	if f.Kind == "capacity" { // what is full of work stays so
		return h
	}
	c := signOf(f.Clues)
	if c == nil {
		return lostLess(r, f, h)
	}
	h.reason, h.becomes, h.part = "why", "gone or far weaker", "weaker by a fifth or more" // a share, or a time, may be the sign, or what it was seen by
	if c.Value == nil {
		return h
	}
	number, becomes := layout.Said(*c.Value, c.Say), layout.Gone(c.Is, c.Value, c.Say)
	if number != "" && becomes != "" && (becomes != "0" || !hasUnit(number)) {
		h.reason, h.becomes = "why (now "+number+")", becomes+" or gone"
		h.part, h.beyond = layout.Band(c.Is, c.Value, c.Say)
	}
	if becomes == "0" && r.Load != nil && r.Load.GoodShare < 1-fewFail {
		return failLess(1 - r.Load.GoodShare)
	}
	return h
}

// failLess is helpedIf where requests fail and the sign is a mere count: how many there are depends on how often clients try again, and
// whoever sees it fall to half is not helped by half.
func failLess(x float64) helped {
	const gone, most = 0.1, 0.8
	return helped{reason: "users (now " + layout.Share(x) + " fail)", becomes: "below " + layout.Share(gone*x),
		part: strings.TrimSuffix(layout.Share(gone*x), " %") + " to " + layout.Share(most*x), beyond: "above"}
}

// fewFail is from when on failures are what users notice.
const fewFail = 0.01

// lostLess is helpedIf where no sign tells: by what it cost, where that stands there and no load of ours tells what users got.
func lostLess(r model.Report, f model.Finding, h helped) helped {
	if r.Load != nil || f.Impact == nil || lostTo(f, r, "it") == "" {
		return h
	}
	const half, most = 0.5, 0.8
	x := *f.Impact
	h.reason, h.becomes = "so what (now "+layout.Share(x)+")", "below "+layout.Share(half*x)+" or gone"
	h.part, h.beyond = strings.TrimSuffix(layout.Share(half*x), " %")+" to "+layout.Share(most*x), "above"
	return h
}

// usersBetter says what users get now, and what they get where a step helped; "" where nobody measured that.
func usersBetter(r model.Report) string {
	const (
		most = 0.1 // of what it was, where they are as good as gone
		half = 0.5
		more = 1.2
	)
	l := r.Load
	switch {
	case l == nil:
		return ""
	case l.GoodShare < 1-fewFail:
		return "now " + layout.Share(1-l.GoodShare) + " fail; below " + layout.Share(most*(1-l.GoodShare)) + ": helped"
	case r.Plan.Load != nil && r.Plan.Load.Rate > 0 && l.Latency.Count > 0:
		return "now p99 " + layout.Micros(l.Latency.P99) + "; below " + layout.Micros(half*l.Latency.P99) + ": helped"
	}
	return "now " + layout.Rate(l.GoodRPS) + " good replies/s; above " + layout.Rate(more*l.GoodRPS) + ": helped"
}

// andSee leads to the evidence, behind what is to be done before, "" for nothing.
func andSee(before string) string {
	if before == "" {
		return "see -v"
	}
	return ", see -v"
}

// orElse says what to do where the first fix of a finding did not help.
func orElse(v model.Verdict, f model.Finding, fix model.Fix) string {
	first := "undo it; "
	if fix.Undo == nothingChanged || fix.Undo == impossible {
		first = ""
	}
	next, _ := besides(v)
	next = slices.DeleteFunc(next, func(f model.Finding) bool { return f.Aside != "" || f.Answer == model.Near && nothingOf(f) })
	switch others := len(f.Fix) - 1; {
	case len(titles(v.Root)) > 1:
		return first + "then the second"
	case others == 1:
		return first + "-v has another"
	case others > 1:
		return first + fmt.Sprintf("-v has %d others", others)
	case len(next) > 0:
		return first + fmt.Sprintf("next to look at: %s (-v)", next[0].Title)
	}
	return strings.TrimSuffix(first, "; ") + andSee(first)
}

// hasUnit says whether a number is a share, a time or a size.
func hasUnit(number string) bool {
	at := strings.LastIndexByte(number, ' ')
	return at >= 0 && slices.Contains(units, number[at+1:])
}
