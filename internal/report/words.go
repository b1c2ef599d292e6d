package report

import (
	"encoding/json"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// What the text says in a few words is said on a page in the same ones.

// Target is what the load goes to, or what was watched.
func Target(plan model.Plan) string { return target(plan) }

// Hosts lists what was observed.
func Hosts(list []model.Host) string { return hosts(list) }

// Offered says what load was asked for.
func Offered(r model.Report) string { return offered(r) }

// Subject names what a finding is about, its host first.
func Subject(s map[string]string) string { return subject(s) }

// Percent is a share in a table of shares.
func Percent(share float64) string { return percent(share) }

// Decider returns the first clue of this truth that has a say in the answer, else the
// first one at all, nil when there is none.
func Decider(f model.Finding, truth model.Truth) *model.Clue { return decider(f, truth) }

// Told says whether a verdict has a finding among its roots or grounds.
func Told(v model.Verdict, f model.Finding) bool { return isTold(v, f) }

// Series is a series as it is asked for.
func Series(s string) string { return spokenSeries(s) }

// NothingToJudge says whether a rule was ruled out because there is none of what it judges.
func NothingToJudge(f model.Finding) bool { return hadNothing(f) }

// Missing lists what unknown clues lack, each once, with the rules that wanted it.
func Missing(list []model.Finding) (order []string, rules map[string][]string) {
	return byMissing(list, missing)
}

// Means tells the mean time of the good requests from that of the others.
func Means(b *model.Breakdown) string { return means(b) }

// Attribution says how much of the mean request's time is accounted for.
func Attribution(b *model.Breakdown) string { return attribution(b) }

// Failed lists the outcomes that are no good reply, "" for none.
func Failed(l model.Load) string {
	text, _ := failures(l.Outcomes, func(string) bool { return true })
	return text
}

// Watching says what the observation cost.
func Watching(c model.Cost) string {
	return layout.Share(c.CPUShare) + " of one core, " + layout.Bytes(c.MaxRSS) + " at most"
}

// Traced says how the kernel was watched, and what of it is an estimate.
func Traced(t model.Tracing) string { return traced(t) }

// Amount is a value of a comparison in its unit.
func Amount(v float64, unit string) string { return amount(v, unit) }

// Level is a series' level, of a counter its rate, in its unit.
func Level(series string, v float64) string { return levelOf(series, v) }

// Measure is the name of what a comparison measures.
func Measure(name string) string { return measureNames[name] }

// InOneWord is what a comparison comes to.
func InOneWord(c model.Comparison) string { return inOneWord[c.Answer()] }

// Changed is one change of a walk in a line.
func Changed(c model.TuneChange) string { return changed(c) }

// FirstSteps says what a report ends in: what to do first, and what that costs.
func FirstSteps(r model.Report) []Step {
	s := &sheet{o: TextOptions{Width: 80}} // what is too long for a terminal is not first here either
	nextStep(s, r)
	return s.steps
}

// Changes words what a fix sets, old and new; "" of one that sets nothing and says what a person does.
func Changes(f model.Fix) string {
	if adviceAlone(f) {
		return ""
	}
	return layout.Unmarked(changesOf(f))
}

// MostUseful is the fix that a report ends in, of at least one.
func MostUseful(list []model.Fix) model.Fix { return mostUseful(list) }

// Terms are what a fix risks and costs.
func Terms(f model.Fix) string { return terms(f, model.Plan{}) }

// TakeBack is how a fix is taken back that one makes by hand: in words, and what is to be typed, a line each.
func TakeBack(f model.Fix) (text, commands string) {
	text, commands = takeBack(f)
	return layout.Unmarked(text), commands
}

// Typed is a command line as it is typed.
func Typed(words []string) string { return typedWords(words) }

// Measures says whether words are a command of Plimsoll's that measures.
func Measures(words []string) bool { return ownCommand(words) }

// Advice says whether what stands with a fix is for a person to read, and not to be typed as it is.
func Advice(f model.Fix) bool { return f.First != nil || adviceAlone(f) }

// NoConsequence says why a rule that holds too was not taken for a finding's cause.
func NoConsequence(e model.Unexplained) string { return unexplained(e) }

// Written are the kept changes of a walk that stand in services' own files, by file.
func Written(t model.Tuning) map[string][]string {
	return writtenAlready(withOutcome(t, model.Kept))
}

// Number is a value as JSON has it.
func Number(v float64) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "-" // infinite, which JSON has no word for
	}
	return string(roundedNumber(raw))
}
