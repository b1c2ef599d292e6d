package report

import (
	"cmp"
	"fmt"
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
		s.item(mustKeep, "next", 2, "nothing has to be mended")
		s.item(context, "", 2, cmp.Or(notSeenInWatch(r.Plan), "for how much more it bears: plimsoll run with more connections (-c), or a higher --rate"))
		s.item(mustKeep, "cost", 2, "nothing: no setting is wrong, and none was changed")
	case spare != nil && v.Answer == model.AnswerCapacity: // a rule can only say that there be less work
		s.item(mustKeep, "fix", 2, layout.Line(spare.Title))
		first := *spare
		first.Remedy, _, _ = strings.Cut(first.Remedy, "; ")
		s.item(mustKeep, "", 3, Spared(first))
		s.item(mustKeep, "cost", 3, "low risk, a reload of the service (a restart if it knows none), undone by setting it back (note first what is set)"+andCosts(spare.Costs))
	case v.Answer == model.AnswerCapacity:
		s.item(mustKeep, "next", 3, "no setting holds it back: more CPUs, or less work for each request")
		s.item(context, "", 3, "plimsoll flame of this run shows which functions take the CPU time")
		s.item(mustKeep, "cost", 2, "looking: nothing; else a larger machine, or a person's time")
	case len(told) > 0 && len(told[0].Fix) > 0:
		firstFix(s, mostUseful(told[0].Fix), r.Plan)
	default:
		s.item(mustKeep, "next", 2, "look at it by hand, as the evidence (-v) says how")
		s.item(mustKeep, "cost", 2, "nothing is changed by looking")
	}
}

// notSeenInWatch says what only a load of ours would tell, "" of a run that had one.
func notSeenInWatch(plan model.Plan) string {
	if !isWatch(plan) {
		return ""
	}
	return "not seen: how long each user waited, and who did not get through; plimsoll run URL drives a load and tells"
}

// settleFirst says what would tell more, where nothing is known for sure.
func settleFirst(s *sheet, r model.Report) {
	const looking = "nothing is changed by looking"
	if len(r.Verdict.Nearest) > 0 {
		c := r.Verdict.Nearest[0]
		s.item(context, "to settle", 3, c.Settle)
		if fitToType(c.ByHand, s.o.Width) {
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

// firstFix writes a fix: what it changes, how that is typed, and what it costs.
func firstFix(s *sheet, f model.Fix, plan model.Plan) {
	s.item(mustKeep, "fix", 2, f.Title)
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

// changesOf words what a fix sets, old and new; what is so already is left out, and where
// things stand is said once.
func changesOf(f model.Fix) string {
	var list []string
	last := ""
	for _, c := range f.Changes {
		if c.Old != "" && c.Old == c.Value || c.Kind == model.ChangePolicy { // a class has a number that nobody knows
			continue
		}
		where := whereSet(c)
		if n := len(list); n > 0 && last == where {
			list[n-1] = strings.TrimSuffix(list[n-1], where)
		}
		from := ""
		if c.Old != "" {
			from = spokenSetting(c.Kind, c.Old) + " → "
		}
		to := cmp.Or(spokenSetting(c.Kind, c.Value), "more than now (this run does not tell how much)")
		list, last = append(list, layout.Line(settingName(c)+": "+from+to)+where), where
	}
	return strings.Join(list, "; ")
}

// spokenSetting is a value with its unit.
func spokenSetting(kind, value string) string {
	if kind != model.ChangeQuota {
		return value
	}
	var used, period float64
	if n, err := fmt.Sscan(value, &used, &period); n < 2 || err != nil || period <= 0 {
		return value
	}
	return fmt.Sprintf("%.3g CPUs", used/period)
}

// whereSet says where a setting stands that no command sets.
func whereSet(c model.FixChange) string {
	switch c.Kind {
	case model.ChangeNginx:
		return " (in nginx's configuration; then nginx -s reload)"
	case model.ChangePHPFPM:
		return " (in the pool's configuration; then reload PHP-FPM)"
	case model.ChangeBacklog:
		return " (in the service's configuration: nginx's listen with backlog=, PHP-FPM's listen.backlog)"
	}
	return ""
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
