package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
)

// nextStep writes the one thing to do first, whatever the answer is, and what that costs.
func nextStep(s *sheet, r model.Report) {
	v := r.Verdict
	told := slices.Concat(v.Root, v.Grounds)
	switch spare := spares(v); {
	case lacksRights(r):
		rightsFirst(s, r)
	case v.Answer == model.AnswerUnclear:
		settleFirst(s, r)
	case v.Answer == model.AnswerHealthy:
		s.item(mustKeep, "next", 4, nothingToMend(v))
		s.item(context, "", 3, notSeenInWatch(r.Plan))
		tryMore(s, r)
		s.prices("nothing"+costOfMore(r.Plan), noSetting)
	case spare != nil && v.Answer == model.AnswerCapacity: // a rule can only say that there be less work
		spareFirst(s, r, *spare)
	case v.Answer == model.AnswerCapacity && len(told[0].Fix) == 0:
		lessWork(s, r, told)
	case len(told) > 0 && len(told[0].Fix) > 0:
		if told[0].Answer == model.Suspected && spare != nil { // what computes so much may be what the rest waits for
			s.item(context, "CPU time", 3, sparedPart(v.Bill))
		}
		firstFix(s, told[0], r)
		if len(titles(v.Root)) > 1 {
			secondFix(s, r)
		}
	default:
		s.item(mustKeep, "next", 2, "look at it by hand, as the evidence (-v) says how")
		s.prices(lookingAlone, nothingBack)
	}
}

// spareFirst writes what can be spared first, what that costs, and how it is taken back.
func spareFirst(s *sheet, r model.Report, spare model.Saving) {
	s.item(mustKeep, "fix", 2, layout.Line(spare.Title))
	check, then := spare.Check, spare.Then
	if check == "" {
		first := spare
		first.Remedy, _, _ = strings.Cut(spare.Remedy, "; ")
		check = whereTheTimeGoes(r, s.run)
		then = "its largest functions show where; " + Spared(first)
	} else {
		s.item(context, "", 3, promised(spare))
	}
	s.typedFirst(lookFirst, check, r)
	s.notThere(check, then)
	if spare.Back == "" {
		s.whole(saveFirst, "note what is set there now")
	}
	s.item(mustKeep, "then", 5, then)
	cost := costOfSparing(spare) + andCosts(spare.Costs)
	if looks := whileLoaded(check, r.Plan); looks != "" {
		cost += "; looking: " + looks
	}
	s.prices(cost, cmp.Or(spare.Back, strings.TrimSuffix(notedBefore, " (note that first)")))
	h := helped{reason: "the share of the CPU time above", becomes: "far smaller", part: "smaller by a fifth or more", users: usersBetter(r)}
	measureAgain(s, r, "", h, "undo it"+andSee("undo it"))
}

// costOfSparing is what it takes to spare CPU time.
func costOfSparing(spare model.Saving) string {
	restarts := strings.Contains(spare.Then, "reload") || strings.Contains(spare.Then, "restart")
	switch {
	case spare.InCode:
		return "a person's time, for a change of the program, and a restart of it (cuts its requests)"
	case spare.Check != "" && !restarts:
		return "medium risk, no restart"
	}
	return "low risk, a reload (or restart) of what is changed"
}

// secondFix writes the first step of the second of several causes, which may be gone with the first, and by what it is known.
func secondFix(s *sheet, r model.Report) {
	root := r.Verdict.Root
	told := root[slices.IndexFunc(root, func(f model.Finding) bool { return f.Title != root[0].Title })]
	const after = "if it is there still when the first is fixed"
	if len(told.Fix) == 0 {
		s.item(mustKeep, "second", 2, after+": look at it by hand, as the evidence (-v) says how")
		return
	}
	f := mostUseful(told.Fix)
	s.item(mustKeep, "second", 3, after+", "+atHost(told, f, r.Hosts)+f.Title)
	switch {
	case f.First != nil:
		s.typed(context, "", f.First.Type)
		s.item(proof, "", 3, f.First.Then)
	case adviceAlone(f):
		s.item(context, "", 3, f.Command)
	default:
		s.item(context, "", 2, changesOf(f))
	}
	if best := mostTelling(told.Clues, told.Title); len(best) > 0 {
		s.item(further, "", 2, "known by this: "+best[0].Say)
	}
}

// cpusNow says how many CPUs the first finding's host has, "" where nobody knows.
func cpusNow(told []model.Finding, hosts []model.Host) string {
	at := slices.IndexFunc(hosts, func(h model.Host) bool { return len(told) > 0 && h.Name == told[0].Subject["host"] && h.CPUs > 0 })
	if at < 0 {
		return ""
	}
	return fmt.Sprintf(" (%s has %d)", layout.Line(hosts[at].Name), hosts[at].CPUs)
}

// closeTo is the clue of a healthy answer that tells what is close to a limit, false where nothing is.
func closeTo(grounds []model.Finding) (model.Clue, bool) {
	for _, f := range grounds {
		if i := slices.IndexFunc(f.Clues, func(c model.Clue) bool { return c.ID == "close" && c.Truth == model.True }); i >= 0 {
			return f.Clues[i], true
		}
	}
	return model.Clue{}, false
}

// nothingToMend says so, and what came nearest to a limit.
func nothingToMend(v model.Verdict) string {
	const all = "nothing needs fixing"
	if where, ok := whereItComputes(v.Grounds); ok {
		return where
	}
	next, _ := besides(v)
	next = slices.DeleteFunc(next, func(f model.Finding) bool { // of what was not there at all nothing is near
		return !slices.ContainsFunc(f.Clues, func(c model.Clue) bool { return c.Role == model.Decides && c.Value != nil && *c.Value != 0 })
	})
	if len(next) > 0 && next[0].Aside != "" {
		return all + " for users; seen: " + next[0].Title + " (" + model.SpokenSubject(next[0].Subject) + "), but " + next[0].Aside
	}
	if len(next) > 0 {
		return all + " now; nearest to a limit: " + next[0].Title + " (" + model.SpokenSubject(next[0].Subject) + ")" + howNear(next[0])
	}
	if c, ok := closeTo(v.Grounds); ok {
		return all + " now; nearest to a limit: " + c.Say
	}
	return all
}

// whereItComputes is for whoever asked since a program takes long, where nothing holds that up and half of its CPU time goes by in one
// function; false where that is not known. That nothing is wrong with the host is no answer to that question.
func whereItComputes(grounds []model.Finding) (string, bool) {
	for _, f := range grounds {
		i := slices.IndexFunc(f.Clues, func(c model.Clue) bool { return c.ID == "function" && c.Truth == model.True })
		if i < 0 || *f.Clues[i].Value < 0.5 {
			continue
		}
		c := f.Clues[i]
		return fmt.Sprintf("nothing holds %s up. If it should take less time all the same, have it compute less, or another way, in %s",
			layout.Line(c.Names["groupname"]), layout.Line(c.Names["function"])), true
	}
	return "", false
}

// howNear is the value that came nearest to a limit, and the limit, "" where nothing was measured.
func howNear(f model.Finding) string {
	for _, truth := range []model.Truth{model.False, model.True} {
		if c := decider(f, truth); c != nil && c.Value != nil && c.Role != model.Supports {
			return ": " + c.Say + threshold(*c)
		}
	}
	return ""
}

// tryMore writes how to see how much more a service bears, where a load of ours was served.
func tryMore(s *sheet, r model.Report) {
	l := r.Plan.Load
	if l == nil || l.URL == "" {
		return
	}
	const tells = " tells how much more it can take"
	switch {
	case len(l.Stages) > 0:
		s.item(context, "again", 2, "the same command with twice the rates (--stage)"+tells)
		return
	case l.Recorded != nil && l.Recorded.Speed > 0:
		s.item(context, "again", 2, "the same command with twice the speed (--speed)"+tells)
		return
	}
	more := twiceConnections(l)
	if l.Rate > 0 {
		more = flagSet{"-R", "--rate", strconv.FormatFloat(2*l.Rate, 'f', -1, 64)}
	}
	words := CommandAgain(r.Plan, r.Hosts)
	if words == nil {
		s.item(context, "again", 2, "the same command with "+more.String()+tells)
		return
	}
	s.again(r, "again", more.in(words), more.String(), "twice the load"+tells)
}

// twiceConnections sets twice as many connections as a load may open: those of --max-connections, where it begins with fewer.
func twiceConnections(l *model.LoadPlan) flagSet {
	if l.MaxConnections > 0 {
		return flagSet{"", "--max-connections", strconv.Itoa(2 * l.MaxConnections)}
	}
	return flagSet{"-c", "--connections", strconv.Itoa(2 * l.Connections)}
}

func costOfMore(plan model.Plan) string {
	if plan.Load == nil || plan.Load.URL == "" {
		return ""
	}
	return "; trying more: the service's own users are slower meanwhile"
}

// notSeenInWatch says what only a load of ours would tell, "" of a run that had one.
func notSeenInWatch(plan model.Plan) string {
	if !isWatch(plan) {
		return ""
	}
	return "not seen: how long each user waited, and who did not get through; plimsoll run URL drives a load and tells"
}

// lessWork writes what is left where no setting holds it back: less work for each request, or more CPUs.
func lessWork(s *sheet, r model.Report, told []model.Finding) {
	s.item(mustKeep, "next", 2, "no setting holds it back; first look for less work for each request:")
	command := whereTheTimeGoes(r, s.run)
	s.typedFirst(lookFirst, command, r)
	s.item(mustKeep, "then", 3, whatToSpare(told))
	s.item(mustKeep, "if not", 2, "so: more CPUs"+cpusNow(told, r.Hosts)+": twice as many for twice the requests")
	look := model.Fix{First: &model.FirstStep{Type: command}, Undo: nothingChanged, Costs: "then a person's time, or a larger machine"}
	s.prices(terms(look, r.Plan), nothingBack+"; of a program: its version before")
	measureAgain(s, r, "", helped{users: usersBetter(r)}, "the next longest part of a request's time")
}

// whatToSpare is what to do with the functions that take the CPU time. Where most of a request's time passes with a service that is asked
// with each one, what it answers may be the same each time.
func whatToSpare(told []model.Finding) string {
	for _, f := range told {
		for _, c := range f.Clues {
			if c.ID == "once" && c.Truth == model.True {
				return fmt.Sprintf("%s asks %s with each request: is the answer the same each time (a token, settings, rights)? Then keep it. Else: the functions that take the CPU time, the largest first",
					layout.Line(c.Names["groupname"]), layout.Line(c.Names["dst"]))
			}
		}
	}
	return "it shows the functions that take the CPU time, the largest first: what of that can be left out, or kept?"
}

// whereTheTimeGoes is the command that shows what the CPUs computed.
func whereTheTimeGoes(r model.Report, run string) string {
	if r.Tracing == nil || len(r.Tracing.Profiles) == 0 {
		return "plimsoll trace cpu -d 10s"
	}
	return "plimsoll flame " + run
}

// settleFirst says what was looked at that came nearest, and what would tell more.
func settleFirst(s *sheet, r model.Report) {
	if c, ok := worthALook(r); ok {
		s.item(context, "looked at", 3, lookedAt(r.Verdict.Sentence, c))
		if fitToType(c.ByHand, s.o.Width) && !noCheck().MatchString(c.ByHand) {
			s.item(mustKeep, "next", 1, "look for yourself"+onHost(c.Subject["host"], r.Hosts))
			s.typed(mustKeep, doFirst, c.ByHand)
			s.item(mustKeep, "then", 2, "plimsoll rules show "+c.Rule+" says from what number on it is this cause, and what to do")
			const more = "--trace full"
			s.item(mustKeep, "if not", 1, "there: "+cmp.Or(s.shortAgain(r, CommandAgain(r.Plan, r.Hosts), more), "the same command again with "+more))
			s.prices(lookingAlone+"; "+more+": "+theLoadAgain(r.Plan)+slowerFull+" meanwhile", nothingBack)
			return
		}
	}
	if isWatch(r.Plan) {
		afterUnclearWatch(s, r)
		return
	}
	next := moreToSee(r)
	s.item(mustKeep, "next", 4, next.text)
	if next.words != nil {
		s.again(r, doFirst, next.words, next.changed, next.then)
	}
	s.prices(next.price, nothingBack)
}

// worthALook is the cause that came nearest, false where none did or only a load of ours would tell.
func worthALook(r model.Report) (model.Candidate, bool) {
	if len(r.Verdict.Nearest) == 0 {
		return model.Candidate{}, false
	}
	c := r.Verdict.Nearest[0]
	return c, !isWatch(r.Plan) || !wantsOurLoad().MatchString(c.Settle)
}

// lookedAt says what the nearest cause's measurement came to, without the series it was read from.
func lookedAt(sentence string, c model.Candidate) string {
	text := c.Settle
	if lacks, ok := strings.CutPrefix(text, "measure what was not: "); ok {
		text = "it was not measured (" + lacks[strings.LastIndex(lacks, ": ")+1:] + ")"
		text = strings.Replace(text, "( ", "(", 1)
	}
	if !strings.Contains(sentence, c.Title) { // else it stands right above
		text = c.Title + ": " + text
	}
	return text
}

// waitsForConnection says whether most of the mean request's time passed before a connection was free.
func waitsForConnection(b *model.Breakdown) bool {
	const most = 0.5
	return b != nil && slices.ContainsFunc(b.Parts, func(p model.BreakdownPart) bool {
		return p.Name == queuePart && p.Seconds != nil && *p.Seconds >= most*b.MeanSeconds
	})
}

// answersErrors says whether most of what was tried got a reply that is the service's own error.
func answersErrors(l model.Load) bool {
	var all, errors int64
	for outcome, n := range l.Outcomes {
		all += n
		if strings.HasSuffix(outcome, "5xx") {
			errors += n
		}
	}
	return errors > all/2
}

// slowerFull is how much slower a saturated service is with all of the tracing on (README, "what it costs": 6.6 %).
const slowerFull = "some 7 % slower"

// measurement is one that would tell more: what to do, the command that makes it, what to make of what it shows, and its price.
type measurement struct {
	text  string
	words []string
	// changed is what words have that the run had not.
	changed string
	then    string
	price   string
}

// moreToSee is the measurement that would tell more.
func moreToSee(r model.Report) measurement {
	const (
		waits = "if the verdict names no cause then either, look in its -v for the longest wait, and fix what it waits for"
		full  = "measure again with --trace full, which sees what threads wait for"
	)
	words := CommandAgain(r.Plan, r.Hosts)
	switch {
	case r.Plan.Remote != nil || r.Plan.Capture != nil:
		return measurement{text: "plimsoll run or watch on the hosts themselves: they see what is not in these data", price: "a run takes some percent of a CPU"}
	case r.Load != nil && answersErrors(*r.Load):
		return measurement{text: "read what the service's own log says of the replies that are errors (5xx): nothing that Plimsoll sees tells why it makes them", price: lookingAlone}
	case r.Plan.Load != nil && waitsForConnection(r.Breakdown):
		twice := twiceConnections(r.Plan.Load)
		m := measurement{changed: twice.String(), text: "measure again with " + twice.String() + ": if p99 falls, the test had too few connections; if it does not, with --trace full, which sees what threads wait for",
			price: "the load again with twice the connections: the service's own users may be slower meanwhile; --trace full: " + slowerFull}
		if words != nil {
			m.words = twice.in(words)
		}
		return m
	case r.Tracing != nil && r.Tracing.Level == "full":
		return measurement{text: "read what came near, and what could not be seen (-vv)", price: lookingAlone}
	}
	m := measurement{text: full + ": " + waits, price: theLoadAgain(r.Plan) + "the service is " + slowerFull + " meanwhile"}
	if words != nil {
		trace := flagSet{"", "--trace", "full"}
		m.text, m.then, m.words, m.changed = full+":", waits, trace.in(words), trace.String()
	}
	return m
}

// denied is how something is missing that takes rights which the run had not.
var denied = lazy.Regexp(`was denied on |[Pp]ermission denied|not permitted`)

// wantsRights says whether rights would help. What the kernel's verifier refuses is "permission denied", too, whoever asks.
func wantsRights(missing string) bool {
	return denied().MatchString(missing) && !strings.Contains(missing, "verifier refuses")
}

// lacksRights says whether an answer is not sure for want of rights: what would prove it, or what would have been found, was denied.
func lacksRights(r model.Report) bool {
	v := r.Verdict
	if r.Plan.Remote != nil || r.Plan.Capture != nil {
		return false
	}
	unsure := v.Unknown
	switch {
	case v.Answer == model.AnswerUnclear:
		if c, ok := worthALook(r); ok && !wantsRights(c.Settle) { // something came nearer than what was not seen
			return false
		}
	case len(v.Root) > 0 && v.Root[0].Answer == model.Suspected:
		unsure = v.Root[:1]
	default:
		return false
	}
	return slices.ContainsFunc(unsure, func(f model.Finding) bool {
		return (f.Kind == "cause" || f.Kind == "capacity") && slices.ContainsFunc(f.Clues, func(c model.Clue) bool {
			return c.Truth == model.Unknown && c.Role != model.Supports && wantsRights(missing(c))
		})
	})
}

// rightsFirst writes that the first step is the same measurement with the rights that it lacked.
func rightsFirst(s *sheet, r model.Report) {
	s.item(mustKeep, "next", 3, "measure again with more rights: what would tell was not shown to this user (-vv lists it)")
	if words := CommandAgain(r.Plan, r.Hosts); words != nil && !Masked(words) {
		s.typed(mustKeep, doFirst, "sudo "+typedWords(words))
	} else {
		s.item(mustKeep, doFirst, 1, "the same command with sudo")
	}
	then := "go by its answer; until then change nothing"
	if root := r.Verdict.Root; len(root) > 0 && len(root[0].Fix) > 0 {
		then = "if it names the same cause: " + mostUseful(root[0].Fix).Title + " (the steps stand there); until then change nothing"
	}
	s.item(mustKeep, "then", 3, then)
	s.item(mustKeep, "if not", 2, "more is seen: as root already, or in a container? plimsoll doctor names the rights that are missing, and how they are given")
	s.prices(cmp.Or(strings.TrimSuffix(theLoadAgain(r.Plan), ", "), lookingAlone), nothingBack)
}

// wantsOurLoad is what would settle it where that takes a load of ours.
var wantsOurLoad = lazy.Regexp(`plimsoll_load_\w+: was not looked for$|this run has no \w+ window$`)
