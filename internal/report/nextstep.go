package report

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// nextStep writes the one thing to do first, whatever the answer is, and what that costs.
func nextStep(s *sheet, r model.Report) {
	v := r.Verdict
	told := slices.Concat(v.Root, v.Grounds)
	switch spare := spares(v); {
	case v.Answer == model.AnswerUnclear:
		settleFirst(s, r)
	case v.Answer == model.AnswerHealthy:
		s.item(mustKeep, "next", 2, nothingToMend(v))
		s.item(context, "", 3, cmp.Or(notSeenInWatch(r.Plan), tryMore(r.Plan)))
		s.item(mustKeep, "cost", 2, "nothing: no setting was changed"+costOfMore(r.Plan))
	case spare != nil && v.Answer == model.AnswerCapacity: // a rule can only say that there be less work
		s.item(mustKeep, "fix", 2, layout.Line(spare.Title))
		first := *spare
		first.Remedy, _, _ = strings.Cut(first.Remedy, "; ")
		s.item(mustKeep, "", 3, Spared(first))
		s.item(mustKeep, "cost", 3, "low risk, a reload of the service (a restart if it knows none), undone by setting it back (note first what is set)"+andCosts(spare.Costs))
	case v.Answer == model.AnswerCapacity:
		s.item(mustKeep, "next", 3, "no setting holds it back: more CPUs, or less work for each request")
		s.item(context, "", 3, whereTheTimeGoes(r, s.run))
		s.item(mustKeep, "cost", 2, "nothing is changed by looking; then a larger machine, or a person's time")
	case len(told) > 0 && len(told[0].Fix) > 0:
		firstFix(s, told[0], r.Plan)
		if len(titles(v.Root)) > 1 {
			s.item(proof, "then", 2, second(v.Root))
		}
	default:
		s.item(mustKeep, "next", 2, "look at it by hand, as the evidence (-v) says how")
		s.item(mustKeep, "cost", 2, "nothing is changed by looking")
	}
}

// second is what to do about the second of several causes, "" where nothing is known.
func second(root []model.Finding) string {
	at := slices.IndexFunc(root, func(f model.Finding) bool { return f.Title != root[0].Title && len(f.Fix) > 0 })
	if at < 0 {
		return ""
	}
	return fmt.Sprintf("for %d: %s (-v)", at+1, mostUseful(root[at].Fix).Title)
}

// nothingToMend says so, and what came nearest to a limit.
func nothingToMend(v model.Verdict) string {
	const all = "nothing has to be mended"
	if next, _ := besides(v); len(next) > 0 {
		return all + " now; nearest to a limit: " + next[0].Title + " (" + model.SpokenSubject(next[0].Subject) + ")"
	}
	return all
}

// tryMore is the command that tells how much more a service bears, "" where nobody loaded it.
func tryMore(plan model.Plan) string {
	l := plan.Load
	switch {
	case l == nil || l.URL == "":
		return ""
	case l.Rate > 0:
		return fmt.Sprintf("how much more it bears: the same command with --rate %.0f", 2*l.Rate)
	}
	return fmt.Sprintf("how much more it bears: the same command with -c %d", 2*l.Connections)
}

func costOfMore(plan model.Plan) string {
	if tryMore(plan) == "" {
		return ""
	}
	return "; trying more slows the service's own users down meanwhile"
}

// notSeenInWatch says what only a load of ours would tell, "" of a run that had one.
func notSeenInWatch(plan model.Plan) string {
	if !isWatch(plan) {
		return ""
	}
	return "not seen: how long each user waited, and who did not get through; plimsoll run URL drives a load and tells"
}

// whereTheTimeGoes is the command that shows what the CPUs computed, "" where no stacks were kept.
func whereTheTimeGoes(r model.Report, run string) string {
	if r.Tracing == nil || len(r.Tracing.Profiles) == 0 {
		return "plimsoll trace cpu -d 10s, while the load runs, shows the functions that take the CPU time"
	}
	return "plimsoll flame " + run + " shows the functions that take the CPU time"
}

// settleFirst says what would tell more, where nothing is known for sure.
func settleFirst(s *sheet, r model.Report) {
	const looking = "nothing is changed by looking"
	if len(r.Verdict.Nearest) > 0 && !(isWatch(r.Plan) && wantsOurLoad.MatchString(r.Verdict.Nearest[0].Settle)) {
		c := r.Verdict.Nearest[0]
		s.item(context, "to settle", 3, c.Settle)
		if fitToType(c.ByHand, s.o.Width) && !noCheck.MatchString(c.ByHand) {
			s.item(mustKeep, "next", 1, "look for yourself"+onHost(c.Subject["host"], r.Hosts))
			s.typed(mustKeep, c.ByHand)
			s.item(mustKeep, "cost", 1, looking)
			return
		}
	}
	next, price := "the same command again with --trace full, which sees what threads wait for", "the service is some percent slower while it is measured; nothing is changed"
	switch {
	case r.Plan.Remote != nil || r.Plan.Capture != nil:
		next, price = "plimsoll run or watch on the hosts themselves: they see what is not in these data", "a run takes some percent of a CPU; nothing is changed"
	case isWatch(r.Plan):
		next, price = "plimsoll run URL drives a load of its own, and times every request", "its load comes on top of the users' own, for some 15 s; nothing is changed"
	case r.Tracing != nil && r.Tracing.Level == "full":
		next, price = "read what came near, and what could not be seen (-vv)", looking
	}
	s.item(mustKeep, "next", 2, next)
	s.item(mustKeep, "cost", 2, price)
}

// wantsOurLoad is what would settle it where that takes a load of ours.
var wantsOurLoad = regexp.MustCompile(`plimsoll_load_\w+: was not looked for$|this run has no \w+ window$`)

// firstFix writes a fix: what it changes, how that is typed, and what it costs.
func firstFix(s *sheet, told model.Finding, plan model.Plan) {
	f, label := mostUseful(told.Fix), "fix"
	switch {
	case f.Undo == nothingChanged:
		label = "look"
	case told.Answer == model.Suspected:
		label = "try"
	}
	s.item(mustKeep, label, 2, f.Title)
	switch {
	case f.First != nil:
		s.typed(mustKeep, f.First.Type)
		s.item(mustKeep, "", 4, f.First.Then)
	case adviceAlone(f):
		s.item(mustKeep, "", mostCommand, f.Command)
	default:
		s.item(mustKeep, "", 4, changesOf(f))
		s.item(context, "", 2, sizedToTest(f, plan))
		s.typed(mustKeep, typedLines(f))
	}
	s.item(mustKeep, "cost", mostCost, terms(f))
	if f.Undo == automatic && plan.Load != nil {
		s.item(niceToKnow, "or", 2, "plimsoll tune URL --apply does it, measures again, and takes back what is in vain")
	}
}

// sizedToTest says of a number of workers that it is no more than this test's own, "" of anything else.
func sizedToTest(f model.Fix, plan model.Plan) string {
	at := slices.IndexFunc(f.Changes, func(c model.FixChange) bool { return c.Kind == model.ChangePHPFPM && c.Value != "" })
	if at < 0 {
		return ""
	}
	value := f.Changes[at].Value
	if plan.Load != nil && value == strconv.Itoa(plan.Load.Connections+1) {
		return value + ": one for each of the " + plural(plan.Load.Connections, "connection", "connections") + " of this test, and one more"
	}
	return value + ": as many as there are, and one for each request that waited in this test"
}

// typedLines are the commands that make a fix's changes, a line each.
func typedLines(f model.Fix) string {
	var list []string
	for _, c := range f.Changes {
		if c.Type != "" && (c.Old == "" || c.Old != c.Value) {
			list = append(list, c.Type)
		}
	}
	return strings.Join(list, "\n")
}
