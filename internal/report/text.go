package report

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
)

// answerStyles says how each answer stands out.
var answerStyles = map[model.Answer]style{
	model.AnswerCause:    red,
	model.AnswerHealthy:  green,
	model.AnswerCapacity: amber,
	model.AnswerUnclear:  amber,
}

func answer(p *paper, v model.Verdict) {
	p.heading(answerStyles[v.Answer], "VERDICT: "+strings.ToUpper(string(v.Answer)))
	p.para(0, bold, v.Sentence)
}

// isWatch tells a run that drove no load of ours, and that we recorded.
func isWatch(plan model.Plan) bool {
	return plan.Load == nil && plan.Remote == nil && plan.Capture == nil
}

// afterWatch says what a verdict without a load of ours cannot rest on, and
// what to do next.
func afterWatch(p *paper, r model.Report) {
	v := r.Verdict
	p.blank()
	p.item("not seen", "who did not get through to these hosts, and how long each user waited: that takes a load of our own")
	label := "next"
	add := func(text string) {
		p.item(label, text)
		label = ""
	}
	if slices.ContainsFunc(slices.Concat(v.Root, v.Grounds), func(f model.Finding) bool { return len(f.Fix) > 0 }) {
		add("what is below under “fix”; then watch again under the same load")
	}
	if v.Answer == model.AnswerCause && v.Root[0].Answer == model.Confirmed {
		return
	}
	add("plimsoll run URL drives a load and times every request")
	if len(r.Plan.Command) == 0 {
		add("plimsoll watch -- COMMAND runs your own load tool, and sees the host before it too")
	}
	if v.Answer == model.AnswerUnclear {
		add("Is the service in a container? Add --host NAME=container:NAME")
	}
}

// nearest lists what comes closest to being the cause, and what would tell.
func nearest(p *paper, list []model.Candidate) {
	if len(list) == 0 {
		return
	}
	p.heading(amber, "NEAREST CANDIDATES")
	for i, c := range list {
		if i > 0 {
			p.blank()
		}
		p.para(0, bold, fmt.Sprintf("%d. %s", i+1, c.Title))
		p.para(0, dim, c.Rule+" · "+subject(c.Subject)+" · "+string(c.Answer))
		label := "for it"
		for _, say := range c.For {
			p.bullet(label, "+ ", say)
			label = ""
		}
		p.item("to settle", c.Settle)
		if c.ByHand != "" {
			p.command(labelWidth+2, c.ByHand)
		}
	}
}

// loadAverage says what the load average of each machine was made of.
func loadAverage(p *paper, list []model.LoadAverage) {
	if len(list) == 0 {
		return
	}
	p.heading(bold, "WHY THE LOAD AVERAGE IS WHAT IT IS")
	for _, l := range list {
		text := "on average "
		if l.Load1 != nil {
			text = fmt.Sprintf("%.2f over the last minute; in the window on average ", *l.Load1)
		}
		text += loadPart(l.Runnable, "runnable") + ", and " + loadPart(l.Uninterruptible, "in uninterruptible sleep")
		p.para(0, plain, strings.Join(l.Hosts, ", ")+": "+text)
	}
}

func loadPart(l model.LoadPart, what string) string {
	if l.Threads == nil {
		return "an unknown number " + what
	}
	text := fmt.Sprintf("%.2f threads %s", *l.Threads, what)
	var groups []string
	for _, g := range l.Groups {
		groups = append(groups, layout.Line(g.Name)+" "+percent(g.Share))
	}
	if len(groups) == 0 {
		return text
	}
	return text + " (" + strings.Join(groups, ", ") + ")"
}

func rootTitle(kind string) string {
	switch kind {
	case "capacity":
		return "WHAT SETS THE LIMIT"
	case "healthy":
		return "HOW IT IS KNOWN"
	}
	return "ROOT CAUSE"
}

// root writes one root finding in full.
func root(p *paper, f model.Finding, r model.Report, much Detail) {
	p.para(0, bold, f.Title)
	p.para(0, dim, f.Rule+" · "+subject(f.Subject)+" · "+string(f.Answer))
	if f.Story != "" {
		p.blank()
		for paragraph := range strings.SplitSeq(strings.TrimSpace(f.Story), "\n") {
			p.para(0, plain, paragraph)
		}
	}
	p.blank()
	why(p, f.Clues)
	soWhat(p, f, r)
	byHand(p, f, r.Hosts)
	fixes(p, f.Fix, much)
}

// markOf is what stands before a clue that holds: what was assumed is no measurement.
func markOf(c model.Clue) string {
	if c.Assumed {
		return "? "
	}
	return "+ "
}

// why lists the clues that hold, and those that would have decided but could
// not be measured.
func why(p *paper, clues []model.Clue) {
	label := "why"
	for _, c := range clues {
		var mark, text string
		switch {
		case c.Truth == model.True:
			mark, text = markOf(c), c.Say
			if c.Why != "" {
				text += " (threshold " + c.Is + ": " + c.Why + ")"
			}
		case c.Truth == model.Unknown && c.Role != model.Supports:
			mark, text = "? ", "not measured: "+missing(c)
		default:
			continue
		}
		p.bullet(label, mark, text)
		label = ""
	}
}

// soWhat writes what a finding cost, and what it explains.
func soWhat(p *paper, f model.Finding, r model.Report) {
	label := "so what"
	if cost(p, f, r, "it") {
		label = ""
	}
	for _, e := range f.Explains {
		p.bullet(label, "> ", "explains "+e.Rule+" ("+subject(e.Subject)+"): "+e.How)
		label = ""
	}
	for _, e := range f.Unexplained {
		p.bullet(label, "> ", unexplained(e))
		label = ""
	}
}

// unexplained says why a rule that holds too was not taken for this one's cause.
func unexplained(e model.Unexplained) string {
	if e.When.Truth == model.Unknown {
		return "whether it is a consequence of " + e.Rule + ", which holds too, cannot be told: " + missing(e.When)
	}
	return "is no consequence of " + e.Rule + ", which holds too: " + e.When.Say
}

// cost writes what a finding cost, if there is anything to say.
func cost(p *paper, f model.Finding, r model.Report, by string) bool {
	text := lostTo(f, r, by)
	if text != "" {
		p.item("so what", text)
	}
	return text != ""
}

// SoWhat words what a finding cost, "" where there is nothing to say.
func SoWhat(f model.Finding, r model.Report) string { return lostTo(f, r, "it") }

// lostTo words what a finding cost: one number, and what it is a share of.
func lostTo(f model.Finding, r model.Report, by string) string {
	switch {
	case f.Impact == nil && f.Kind == "cause":
		return "what " + by + " costs the requests cannot be told from this run"
	case f.Impact == nil || isWatch(r.Plan) && saidAlready(f):
		return ""
	}
	share := layout.Share(*f.Impact)
	switch impactOf(f, r) {
	case model.ImpactMachineCPU:
		return share + " of the machine's CPU time goes into " + by
	case model.ImpactPackets:
		return share + " of the packets that arrived belong to " + by
	case model.ImpactProgramCPU:
		return share + " of the program's CPU time goes into " + by
	case model.ImpactFailed:
		return share + " of the requests failed because of " + by
	case model.ImpactDelayed:
		if r.Load != nil && r.Load.GoodShare == 1 {
			return share + " of the requests were delayed by " + by
		}
		return share + " of the requests failed or came late because of " + by
	}
	if ofAProgram(f, r) {
		return share + " of the program's time was lost to " + by
	}
	return share + " of the requests' time was lost to " + by + slowOnes(r)
}

// impactOf is what a finding's impact is a share of, "" for time. No more can have failed than did: the others were tried again, and
// came late.
func impactOf(f model.Finding, r model.Report) string {
	const rounding = 0.005
	if f.ImpactOf == model.ImpactFailed && r.Load != nil && *f.Impact > 1-r.Load.GoodShare+rounding {
		return model.ImpactDelayed
	}
	return f.ImpactOf
}

// slowOnes says that few requests hold most of the time, "" where that is not so.
func slowOnes(r model.Report) string {
	const farFromHalf, farAway = 3, 10
	if r.Load == nil || r.Breakdown == nil || r.Load.Latency.P50 <= 0 {
		return ""
	}
	q := r.Load.Latency
	if r.Breakdown.MeanSeconds*1e6 < farFromHalf*q.P50 || q.Max < farAway*q.P50 {
		return ""
	}
	return "; most requests were quick (half took at most " + layout.Micros(q.P50) + "), a few slow ones hold that time (up to " + layout.Micros(q.Max) + ")"
}

// saidAlready says whether a clue tells what the impact is of, such as CPU time: of requests it is nothing then that
// anybody measured, and once is enough.
func saidAlready(f model.Finding) bool {
	return slices.ContainsFunc(f.Clues, func(c model.Clue) bool {
		return c.Truth == model.True && strings.Contains(c.Say, layout.Share(*f.Impact)) && !ofRequests().MatchString(c.Say)
	})
}

// ofRequests are the words of a clue that was measured of users.
var ofRequests = lazy.Regexp(`\b(requests?|repl(y|ies)|users?|connections?|connects?)\b`)

// ofAProgram says whether an impact is of a program's time: in a watch a host may serve nobody,
// and then no clue of the finding, and no load tool, speaks of requests.
func ofAProgram(f model.Finding, r model.Report) bool {
	counted := func(t model.ToolSummary) bool { return t.Requests != nil }
	return isWatch(r.Plan) && !slices.ContainsFunc(r.ToolSummaries, counted) &&
		!slices.ContainsFunc(f.Clues, func(c model.Clue) bool { return c.Truth == model.True && ofRequests().MatchString(c.Say) })
}

// byHand lists the commands that show the same numbers, each once.
func byHand(p *paper, f model.Finding, hosts []model.Host) {
	var commands []string
	for _, c := range f.Clues {
		if c.ByHand != "" && c.Truth == model.True && !slices.Contains(commands, c.ByHand) {
			commands = append(commands, c.ByHand)
		}
	}
	if len(commands) == 0 {
		return
	}
	p.item("by hand", "see it yourself"+onHost(f.Subject["host"], hosts)+":")
	for _, c := range commands {
		p.command(labelWidth+2, c)
	}
}

// onHost says where to type a command, when there is a choice.
func onHost(name string, hosts []model.Host) string {
	for _, h := range hosts {
		if h.Name == name && (len(hosts) > 1 || h.Spec != "local") {
			return " on " + name + " (" + h.Spec + ")"
		}
	}
	return ""
}

// fixes lists what would mend a finding; by which query that is checked is for those who
// want everything.
func fixes(p *paper, list []model.Fix, much Detail) {
	shown := ""
	if len(list) > 0 {
		shown = mostUseful(list).Title
	}
	for i, x := range list {
		label := "fix"
		if len(list) > 1 {
			label = fmt.Sprintf("fix %d", i+1)
		}
		p.item(label, x.Title)
		if text := changesOf(x); text != "" && !adviceAlone(x) {
			p.para(labelWidth+2, plain, text)
		}
		switch {
		case x.First != nil:
			if x.Title != shown { // what stands at the end is not said twice
				first(p, *x.First)
			}
			p.para(labelWidth+2, plain, x.Command)
		case x.Command == "":
		case adviceAlone(x):
			p.para(labelWidth+2, plain, x.Command)
		default:
			p.command(labelWidth+2, x.Command)
		}
		if x.Save != "" {
			p.para(labelWidth, dim, "before that: "+x.Save)
		}
		p.para(labelWidth, dim, "costs "+terms(x, model.Plan{})) // of a load that comes again the last lines tell
		wayBack(p, x)
		if x.Accept != "" && much == Everything {
			p.para(labelWidth, dim, "it worked when, in the next run: "+x.Accept)
		}
	}
}

// wayBack writes how a fix is taken back.
func wayBack(p *paper, f model.Fix) {
	text, commands := takeBack(f)
	if commands != "" {
		p.para(labelWidth, dim, "it is taken back by")
		p.command(labelWidth+2, commands)
		if text != "" {
			p.para(labelWidth+2, dim, text)
		}
	} else if text != "" {
		p.para(labelWidth, dim, "it is taken back by: "+text)
	}
}

// first writes the step to begin with; all that can be done follows.
func first(p *paper, s model.FirstStep) {
	if s.Type != "" {
		p.command(labelWidth+2, s.Type)
	}
	if s.Then != "" {
		p.para(labelWidth+2, plain, s.Then)
	}
}

// others lists what holds or nearly holds besides the roots and what they explain.
func others(p *paper, v model.Verdict) {
	next, seen := besides(v)
	section(p, amber, "WHAT COMES NEXT", next, func(f model.Finding) string {
		if f.Aside != "" {
			return string(f.Answer) + ", but " + f.Aside
		}
		return string(f.Answer) + ": " + says(f, model.True)
	})
	section(p, amber, "SEEN, AND EXPLAINED BY NO CAUSE", seen, func(f model.Finding) string {
		return says(f, model.True)
	})
}

// besides are the findings that no root explains: causes and limits, and symptoms
// that were felt.
func besides(v model.Verdict) (next, seen []model.Finding) {
	for _, f := range v.Findings {
		switch {
		case f.ExplainedBy != "" || f.Kind == "healthy" || isTold(v, f):
		case f.Kind == "symptom":
			if f.Answer != model.Near { // a symptom that was nearly felt was not felt
				seen = append(seen, f)
			}
		default:
			next = append(next, f)
		}
	}
	return next, seen
}

// isTold says whether f was written in full already.
func isTold(v model.Verdict, f model.Finding) bool {
	return slices.ContainsFunc(slices.Concat(v.Root, v.Grounds), func(r model.Finding) bool {
		return r.Rule == f.Rule && subject(r.Subject) == subject(f.Subject)
	})
}

// ruledOut lists the causes that it was not, with the value that did it, and
// in one line the symptoms that nobody felt.
func ruledOut(p *paper, v model.Verdict) {
	var causes []model.Finding
	var quiet, nothing []string
	add := func(list *[]string, rule string) {
		if !slices.Contains(*list, rule) {
			*list = append(*list, rule)
		}
	}
	for _, f := range slices.Concat(v.RuledOut, v.Findings) {
		cleared := f.Answer == model.RuledOut
		switch {
		case f.Kind == "symptom" && (cleared || f.Answer == model.Near && f.ExplainedBy == ""):
			if !isSeen(v, f.Rule) {
				add(&quiet, f.Rule)
			}
		case !cleared || f.Kind == "symptom" || f.Kind == "healthy":
		case hadNothing(f):
			add(&nothing, f.Rule)
		default:
			causes = append(causes, f)
		}
	}
	// What was judged on one host is not listed for those that have none of it.
	nothing = slices.DeleteFunc(nothing, func(rule string) bool {
		return slices.ContainsFunc(slices.Concat(causes, v.Findings, v.Unknown), func(f model.Finding) bool { return f.Rule == rule })
	})
	slices.SortStableFunc(causes, closestFirst)
	section(p, green, "RULED OUT", causes, func(f model.Finding) string { return says(f, model.False) })
	if len(causes) == 0 && len(quiet)+len(nothing) > 0 {
		p.heading(green, "RULED OUT")
	}
	for _, line := range []struct {
		label string
		rules []string
	}{{"no sign of", quiet}, {"nothing here to judge by", nothing}} {
		if len(line.rules) > 0 {
			p.hang(0, ruleWidth, line.label, plain, strings.Join(line.rules, ", "))
		}
	}
}

// hadNothing says whether a rule was ruled out because there is none of what it judges.
func hadNothing(f model.Finding) bool {
	return len(f.Clues) == 1 && f.Clues[0].ID == "applies"
}

// isSeen says whether a rule holds for some subject.
func isSeen(v model.Verdict, rule string) bool {
	return slices.ContainsFunc(v.Findings, func(f model.Finding) bool {
		return f.Rule == rule && (f.Answer == model.Confirmed || f.Answer == model.Suspected)
	})
}

// closestFirst orders what one rule was ruled out for, the subject that came
// closest to its threshold first: only some are shown. Rules keep their order.
func closestFirst(a, b model.Finding) int {
	x, y := decider(a, model.False), decider(b, model.False)
	if a.Rule != b.Rule || x == nil || y == nil || x.ID != y.ID || x.Value == nil || y.Value == nil {
		return 0
	}
	if strings.HasPrefix(x.Is, "<") {
		return cmp.Compare(*x.Value, *y.Value)
	}
	return cmp.Compare(*y.Value, *x.Value)
}

// ruleWidth is the column beside a list of rules.
const ruleWidth = 32

// where puts the subject before a sentence: the host, and of the rest what the
// sentence does not say itself.
func where(s map[string]string, sentence string) string {
	rest := map[string]string{}
	for k, v := range s {
		if k == "host" || !strings.Contains(sentence, v) {
			rest[k] = v
		}
	}
	return subject(rest) + ": " + sentence
}

// mostOfAKind is how many subjects of one rule a list shows before it counts the rest.
const mostOfAKind = 2

// section lists findings, a rule and its subject in front of a sentence.
func section(p *paper, st style, title string, list []model.Finding, sentence func(model.Finding) string) {
	if len(list) == 0 {
		return
	}
	p.heading(st, title)
	for i := 0; i < len(list); {
		n := 1
		for i+n < len(list) && list[i+n].Rule == list[i].Rule {
			n++
		}
		shown := min(n, mostOfAKind)
		for j, f := range list[i : i+shown] {
			lead := f.Rule
			if j > 0 {
				lead = ""
			}
			p.hang(0, ruleWidth, lead, plain, where(f.Subject, sentence(f)))
		}
		if n > shown {
			p.hang(0, ruleWidth, "", plain, "and "+plural(n-shown, "more", "more")+" (--json lists them all)")
		}
		i += n
	}
}

// says returns the sentence of the clue that did it, else the finding's title.
func says(f model.Finding, truth model.Truth) string {
	if c := decider(f, truth); c != nil {
		return c.Say
	}
	return f.Title
}

// decider returns the first clue of this truth that has a say in the answer,
// else the first one at all, nil when there is none.
func decider(f model.Finding, truth model.Truth) *model.Clue {
	var first *model.Clue
	for i := range f.Clues {
		c := &f.Clues[i]
		if c.Truth != truth || c.Say == "" {
			continue
		}
		if c.Role == model.Needs || c.Role == model.Decides {
			return c
		}
		if first == nil {
			first = c
		}
	}
	return first
}

// notSeen lists what no answer could be given for, a missing signal once with
// all the rules that wanted it.
func notSeen(p *paper, r model.Report) {
	if len(r.Verdict.Unknown) == 0 {
		return
	}
	p.heading(amber, "NOT SEEN")
	say := missing
	if isWatch(r.Plan) {
		say = missingInWatch
	}
	order, rules := byMissing(r.Verdict.Unknown, say)
	for _, m := range order {
		p.hang(0, 2, "?", plain, m+" (so nothing can be said about "+strings.Join(rules[m], ", ")+")")
	}
}

// notCollected is notSeen for series that others collected: of those so much is
// missing that it is listed by the reason.
func notCollected(p *paper, list []model.Finding) {
	if len(list) == 0 {
		return
	}
	p.heading(amber, "NOT SEEN")
	order, rules := byMissing(list, func(c model.Clue) string {
		m := missing(c)
		if _, why, ok := strings.Cut(m, ": "); ok {
			return why
		}
		return m
	})
	for _, m := range order {
		p.hang(0, 2, "?", plain, strings.Join(rules[m], ", ")+": "+m)
	}
}

// byMissing lists what unknown clues lack, in the words of say, each once with
// the rules that wanted it.
func byMissing(list []model.Finding, say func(model.Clue) string) (order []string, rules map[string][]string) {
	rules = map[string][]string{}
	for _, f := range list {
		for _, c := range f.Clues {
			if c.Truth != model.Unknown {
				continue
			}
			m := say(c)
			if rules[m] == nil {
				order = append(order, m)
			}
			if !slices.Contains(rules[m], f.Rule) {
				rules[m] = append(rules[m], f.Rule)
			}
		}
	}
	return order, rules
}

func missing(c model.Clue) string {
	if c.Missing != "" {
		return c.Missing
	}
	return c.Say
}

// ofOurLoad is how what only a run with a load of ours has is missing: its
// numbers, and the windows before it.
var ofOurLoad = lazy.Regexp(`^(plimsoll_load_\w+: was not looked for|this run has no \w+ window$)`)

// missingInWatch takes together what is missing since there was no load of ours.
func missingInWatch(c model.Clue) string {
	m := missing(c)
	if ofOurLoad().MatchString(m) {
		return "what only a load of our own tells: how long each request took, alone and under load, and how the host was before"
	}
	return m
}

// subject writes a finding's subject: the host first, then the rest by name of label.
func subject(s map[string]string) string {
	keys := make([]string, 0, len(s))
	for k := range s {
		if k != "host" {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	var parts []string
	if h, ok := s["host"]; ok {
		parts = append(parts, h)
	}
	for _, k := range keys {
		parts = append(parts, s[k])
	}
	if len(parts) == 0 {
		return "the run"
	}
	return strings.Join(parts, " ")
}

func titles(list []model.Finding) map[string]bool {
	all := map[string]bool{}
	for _, f := range list {
		all[f.Title] = true
	}
	return all
}
