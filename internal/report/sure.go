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
		if v.Answer == model.AnswerCause {
			text += "; " + refuted(f)
		}
		return each(told) + "confirmed (proven by measuring)", text
	case model.Suspected:
		return each(told) + "suspected (likely, not proven)", "not sure: " + signs(f) + "; " + notProven(f)
	}
	return string(told[0].Answer), ""
}

// refuted is what would show that a cause is not it: where its fix is only a look, that; else its sign, where the fix does not change it.
func refuted(f model.Finding) string {
	if len(f.Fix) > 0 && mostUseful(f.Fix).Undo == nothingChanged {
		return "the look decides"
	}
	if c := signOf(f.Clues); c != nil && c.Value != nil {
		if number := layout.Said(*c.Value, c.Say); number != "" {
			return "wrong if the fix leaves it at " + number
		}
	}
	return "wrong if the fix changes nothing"
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

// signs says how many of the signs that a finding rests on were measured, by whom, and what became of the others.
func signs(f model.Finding) string {
	seen, all, absent, taken, unread := 0, 0, 0, 0, 0
	for _, c := range f.Clues {
		switch {
		case c.Truth == model.Unknown && c.Role != model.Supports:
			unread, all = unread+1, all+1
		case !counts(c):
		case c.Truth == model.True && c.Assumed:
			taken, all = taken+1, all+1
		case c.Truth == model.True:
			seen, all = seen+1, all+1
		default:
			absent, all = absent+1, all+1
		}
	}
	text := by(f) + " measured "
	switch {
	case seen == all && all == 1:
		text += "its one sign"
	case seen == all && all == 2:
		text += "both its signs"
	case seen == all:
		text += fmt.Sprintf("all %d signs", all)
	default:
		text += fmt.Sprintf("%d of its %d signs", seen, all)
	}
	enough := ""
	if f.Answer == model.Confirmed {
		enough = ", which is enough"
	}
	if absent > 0 {
		text += enough + fmt.Sprintf("; %d %s looked for, and %s not there", absent, was(absent), was(absent))
		enough = ""
	}
	if taken > 0 {
		text += enough + fmt.Sprintf("; %d %s assumed%s", taken, was(taken), whichAssumed(f))
		enough = ""
	}
	if unread > 0 {
		text += enough + fmt.Sprintf("; %d could not be read", unread)
	}
	return text
}

// whichAssumed is the first sign of a finding that was not measured, in brackets, without its value, which nobody read.
func whichAssumed(f model.Finding) string {
	at := slices.IndexFunc(f.Clues, func(c model.Clue) bool { return counts(c) && c.Truth == model.True && c.Assumed })
	if at < 0 {
		return ""
	}
	say := f.Clues[at].Say[strings.LastIndex(f.Clues[at].Say, ": ")+1:] // without why it was not
	say, _, _ = strings.Cut(strings.TrimSpace(say), " (")
	return " (" + say + ")"
}

// was is the verb of so many.
func was(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
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

// notProven says what would prove a suspected finding.
func notProven(f model.Finding) string {
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
	return "none of them alone proves it; " + refuted(f)
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
