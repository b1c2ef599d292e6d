package ruleset

import (
	"slices"
	"strings"

	"plimsoll/internal/lazy"
)

// oneMark stands behind a count that is one until its sentence is whole, so that what is counted can agree with it. No label has it:
// no name in Linux may.
const oneMark = "\x00"

// markOne is a format of counts that marks one.
func markOne(format func(float64) string) func(float64) string {
	return func(v float64) string {
		if v == 1 {
			return format(v) + oneMark
		}
		return format(v)
	}
}

func unmarked(text string) string { return strings.ReplaceAll(text, oneMark, "") }

// countedOne is a count of one, what is counted, with a word that may stand between, and the verb behind it.
var countedOne = lazy.Regexp(oneMark + `( [a-z-]+)?? ([a-z]{2,}s)\b( were\b| are\b| have\b)?`)

// noPlural are words that end in s and are none, or are both; after them no count is spoken of.
var noPlural = []string{"was", "has", "is", "as", "does", "this", "its", "less", "plus", "always", "series"}

// betweenWords are those that a sentence may have between a number and what is counted; behind others the number counts something else.
var betweenWords = []string{"further", "other", "more", "idle", "busy", "new", "open", "good", "failed", "waiting", "tcp"}

// inSingular has what is counted agree with a count of one: "1 request was", in place of "1 requests were".
func inSingular(say string) string {
	if !strings.Contains(say, oneMark) {
		return say
	}
	return countedOne().ReplaceAllStringFunc(say, func(found string) string {
		p := countedOne().FindStringSubmatch(found)
		if p[1] != "" && !slices.Contains(betweenWords, strings.TrimSpace(p[1])) || slices.Contains(noPlural, p[2]) {
			return found
		}
		verb := map[string]string{" were": " was", " are": " is", " have": " has"}[p[3]]
		return p[1] + " " + singular(p[2]) + verb
	})
}

// singular is a word in the plural in the singular.
func singular(word string) string {
	for _, end := range []struct{ many, one string }{{"caches", "cache"}, {"ries", "ry"}, {"esses", "ess"}, {"sses", "ss"}, {"xes", "x"}, {"ches", "ch"}, {"shes", "sh"},
		{"ss", "ss"}, {"us", "us"}, {"is", "is"}} { // the last three are no plurals
		if stem, is := strings.CutSuffix(word, end.many); is {
			return stem + end.one
		}
	}
	return strings.TrimSuffix(word, "s")
}
