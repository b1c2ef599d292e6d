package alerts

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
	"plimsoll/internal/ruleset"
)

// alertName is a rule's id in the form of alerts: NetConntrackTableFull.
func alertName(id string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(id, func(r rune) bool { return r == '.' || r == '_' || r == '-' }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// annotations are what a person reads of an alert.
func annotations(r *ruleset.Rule, opt Options) map[string]string {
	var places []string
	for _, name := range r.Subject {
		if name == "host" {
			places = append([]string{"{{ $labels." + opt.host() + " }}"}, places...)
		} else {
			places = append(places, fmt.Sprintf("%s {{ $labels.%s }}", name, name))
		}
	}
	var hand []string
	for _, c := range r.Clues {
		if line := commandText(c.ByHand); c.From == "" && !slices.Contains(hand, line) {
			hand = append(hand, line)
		}
	}
	out := map[string]string{
		"summary":     plain(r.Title) + " (" + strings.Join(places, ", ") + ")",
		"description": plain(strings.TrimSpace(r.Story)),
		"by_hand":     strings.Join(hand, "\n"),
		"mend":        mend(r),
		"handbook":    "plimsoll rules show " + r.ID,
	}
	if opt.Handbook != "" {
		out["runbook_url"] = strings.TrimSuffix(opt.Handbook, "/") + "/" + r.ID + ".md"
	}
	for name, text := range out {
		if text == "" {
			delete(out, name)
		}
	}
	return out
}

// labelPlace is a place for a label in our templates.
var labelPlace = lazy.Regexp(`\{\{\s*\.(?:Subject|Labels)\.([a-zA-Z_]+)\s*\}\}`)

// commandText writes the places of our template as words that stand for them:
// Prometheus' templates cannot quote, and these are commands that are copied. The
// summary tells what the labels are.
func commandText(s string) string {
	return plain(labelPlace().ReplaceAllStringFunc(strings.TrimSpace(s), func(place string) string {
		return strings.ToUpper(labelPlace().FindStringSubmatch(place)[1])
	}))
}

// plain keeps Prometheus from reading braces in a text as a template of its own.
func plain(s string) string { return strings.ReplaceAll(s, "{{", `{{ "{{" }}`) }

// mend tells what to do about it.
func mend(r *ruleset.Rule) string {
	var lines []string
	for _, f := range r.Fix {
		line := f.Title
		for _, c := range f.Change {
			if c.Kind == model.ChangePerson {
				line += ": " + commandText(c.Name)
			}
		}
		if f.Costs != "" {
			line += ". It costs " + f.Costs
		}
		lines = append(lines, line+". Risk "+f.Risk+", restart "+f.Restart+".")
	}
	for _, b := range r.Blind {
		lines = append(lines, "Not seen: "+b)
	}
	return strings.Join(lines, "\n")
}
