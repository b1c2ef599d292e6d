package report

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// HowSure says how well an answer is known and what that rests on, "" where nothing was found and nothing had to be proven.
func HowSure(r model.Report) string {
	word, rests := certainty(r)
	if word == "" || rests == "" {
		return word + rests
	}
	return word + ": " + rests
}

// certainty is how well an answer is known, in a word with what that means, and what it rests on; each is "" where there is none.
func certainty(r model.Report) (word, rests string) {
	v := r.Verdict
	told := slices.Concat(v.Root, v.Grounds)
	switch {
	case len(told) == 0 && v.Answer == model.AnswerUnclear:
		return "nothing is proven", ""
	case len(told) == 0:
		return "", ""
	case v.Answer == model.AnswerHealthy:
		return "measured", heldFor(r, told[0])
	}
	switch f := told[0]; f.Answer {
	case model.Confirmed:
		text := "sure: " + signs(f)
		if v.Answer == model.AnswerCause && len(titles(v.Root)) < 2 {
			text += "; " + nothingElse(v)
		}
		return each(told) + confirmedHow(f), text
	case model.Suspected:
		return each(told) + "suspected (likely, not proven)", "not sure: " + notProven(f) + looksTheSame(v, f)
	}
	return string(told[0].Answer), ""
}

// confirmedHow says by what a finding is confirmed: what was assumed is no measurement.
func confirmedHow(f model.Finding) string {
	switch n := len(tallied(f).taken); n {
	case 0:
		return "confirmed (proven by measuring)"
	case 1:
		return "confirmed, one sign assumed"
	default:
		return fmt.Sprintf("confirmed, %d signs assumed", n)
	}
}

// nothingElse says that no other cause was found, and of how many that is not known.
func nothingElse(v model.Verdict) string {
	open := rulesOf(v.Unknown, rulesOf(v.Findings, nil))
	if len(open) == 0 {
		return "nothing else fits"
	}
	return fmt.Sprintf("nothing else fits (%s could not be judged: -vv)", plural(len(open), "other", "others"))
}

// counts says whether a clue is a sign that its finding's answer rests on: one that only supports has no say, and of several that could
// prove it one is enough.
func counts(c model.Clue) bool {
	return c.Role == model.Needs || c.Role == model.Decides || c.Role == model.Proves && c.Truth == model.True
}

// tally is how many of the signs that a finding rests on were measured, and which were not there, were assumed or could not be read.
type tally struct {
	seen, all             int
	absent, taken, unread []model.Clue
}

// tallied counts the signs of a finding.
func tallied(f model.Finding) (t tally) {
	for _, c := range f.Clues {
		switch {
		case c.Truth == model.Unknown && c.Role != model.Supports && c.Role != model.Proves: // one proof is enough
			t.unread = append(t.unread, c)
		case !counts(c):
			continue
		case c.Truth == model.True && c.Assumed:
			t.taken = append(t.taken, c)
		case c.Truth == model.True:
			t.seen++
		default:
			t.absent = append(t.absent, c)
		}
		t.all++
	}
	return t
}

// signs says how many of the signs that a confirmed finding rests on were measured, by whom, and which were not.
func signs(f model.Finding) string {
	t := tallied(f)
	text := by(f) + " measured "
	switch {
	case t.seen == t.all && t.all == 1:
		return text + "its one sign"
	case t.seen == t.all && t.all == 2:
		return text + "both its signs"
	case t.seen == t.all:
		return text + fmt.Sprintf("all %d signs", t.all)
	}
	text += fmt.Sprintf("%d of %d signs", t.seen, t.all)
	if len(t.absent) > 0 {
		text += "; not so: " + saidShort(t.absent[0]) + andMore(t.absent)
	}
	if len(t.taken) > 0 {
		text += "; assumed: " + saidShort(t.taken[0]) + andMore(t.taken)
	}
	if len(t.unread) > 0 {
		text += "; not read: " + t.unread[0].ID + " (-v)" + andMore(t.unread)
	}
	return text
}

// andMore counts those behind the first one.
func andMore(list []model.Clue) string {
	if len(list) < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d more: -v)", len(list)-1)
}

// mostSign is how many letters a sign has at most that is named beside how sure it is.
const mostSign = 44

// saidShort is the first part of a sign's sentence; of one that nobody measured without why, and without its value, which nobody read.
func saidShort(c model.Clue) string {
	say := c.Say
	if c.Assumed {
		say = strings.TrimSpace(say[strings.LastIndex(say, ": ")+1:])
	}
	say, _, _ = strings.Cut(say, " (")
	say, _, _ = strings.Cut(say, "; ")
	say, _, _ = strings.Cut(say, ", ")
	if len(say) > mostSign || say == "there was none of it" { // its name, under which the evidence has it
		return c.ID + " (-v)"
	}
	return say
}

// countersOf are those who counted what some clues that hold were measured by.
func countersOf(f model.Finding, which func(model.Clue) bool) (who []string) {
	for _, c := range f.Clues {
		if c.Truth != model.True || c.Assumed || !which(c) {
			continue
		}
		for _, name := range c.By {
			if !slices.Contains(who, name) {
				who = append(who, layout.Line(name))
			}
		}
	}
	slices.Sort(who)
	return who
}

// by says who counted what decides, else what is needed, the kernel first; the tool itself where no run tells.
func by(f model.Finding) string {
	who := countersOf(f, func(c model.Clue) bool { return c.Role == model.Decides || c.Role == model.Proves })
	if len(who) == 0 {
		who = countersOf(f, counts)
	}
	if at := slices.Index(who, "the kernel"); at > 0 {
		who = slices.Insert(slices.Delete(who, at, at+1), 0, "the kernel")
	}
	switch len(who) {
	case 0:
		return "Plimsoll"
	case 1:
		return who[0]
	case 2:
		return who[0] + " and " + who[1]
	case 3:
		return who[0] + ", " + who[1] + " and " + who[2]
	}
	return who[0] + " and others"
}

// notProven says why a suspected finding is no more than that.
func notProven(f model.Finding) string {
	t := tallied(f)
	for _, truth := range []model.Truth{model.Unknown, model.False} {
		for _, c := range f.Clues {
			if c.Truth != truth || c.Role != model.Proves && c.Role != model.Decides {
				continue
			}
			if truth == model.Unknown {
				return "what would prove it was not read: " + spokenMissing(missing(c))
			}
			return "what would prove it was not seen: " + c.Say
		}
	}
	text := "all " + plural(t.seen, "sign", "signs") + " fit, but none of them is proof"
	if t.seen == 1 {
		text = "its one sign fits, but is no proof"
	}
	if len(t.taken) > 0 {
		text += "; assumed: " + saidShort(t.taken[0]) + andMore(t.taken)
	}
	return text
}

// looksTheSame names what a suspected finding may be instead: what its rule is mistaken for, and this run did not rule out; "" where nobody
// knows of anything.
func looksTheSame(v model.Verdict, f model.Finding) string {
	out := rulesOf(v.RuledOut, rulesOf(slices.Concat(v.Findings, v.Unknown), nil))
	open := slices.DeleteFunc(slices.Clone(f.Unlike), func(u model.Lookalike) bool { return out[u.Rule] })
	switch {
	case len(open) > 0:
		return "; it may also be: " + layout.Line(open[0].Title)
	case len(f.Unlike) > 0:
		return "; what looks most like it was ruled out"
	}
	return ""
}

// spokenMissing is why a signal was not read, without its name where the reason stands by itself.
func spokenMissing(text string) string {
	if _, reason, found := strings.Cut(text, ": "); found {
		return reason
	}
	return text
}

// heldFor says for how long, and of how many requests, a healthy answer holds.
func heldFor(r model.Report, f model.Finding) string {
	if l := r.Load; l != nil {
		return plural(int(l.Requests), "request", "requests") + " in " + layout.Micros(l.Seconds*1e6) + ", each timed"
	}
	us := watched(r.Windows)
	if us <= 0 {
		return ""
	}
	text := "holds for these " + layout.Micros(us)
	for _, c := range f.Clues {
		if c.ID == "many" && c.Truth == model.True && c.Value != nil {
			text += ", and for the " + plural(int(*c.Value), "request", "requests") + " in them"
		}
	}
	return text
}

// each says of how many causes the first one's answer speaks, "" of one.
func each(told []model.Finding) string {
	n := len(titles(told))
	same := !slices.ContainsFunc(told, func(f model.Finding) bool { return f.Answer != told[0].Answer })
	switch {
	case n < 2 || told[0].Kind != "cause":
		return ""
	case !same:
		return "the first is "
	case len(told) == 2:
		return "both "
	}
	return "all "
}
