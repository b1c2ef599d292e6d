package report

import (
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// mostUseful is the first fix of which all values are known, and that changes anything: one that
// would do nothing here has no value (a process that hardly computes is not to be slowed down),
// or sets what is set. Else the first.
func mostUseful(list []model.Fix) model.Fix {
	unknown := func(c model.FixChange) bool { return c.Kind != model.ChangePerson && c.Value == "" }
	moves := func(c model.FixChange) bool { return c.Value == "" || c.Value != c.Old }
	for _, f := range list {
		if !slices.ContainsFunc(f.Changes, unknown) && (len(f.Changes) == 0 || slices.ContainsFunc(f.Changes, moves)) {
			return f
		}
	}
	return list[0]
}

// automatic is a fix that tune makes, and takes back.
const automatic = "automatic"

// mostCost is how many lines the price of a fix has at most.
const mostCost = 4

// terms are what a fix risks and costs, in words.
func terms(f model.Fix) string {
	parts := []string{f.Risk + " risk", restarts(f), undoing(f)}
	if f.MemoryBytes != nil && *f.MemoryBytes >= 1 {
		parts = append(parts, "up to "+layout.Bytes(int64(*f.MemoryBytes))+" of memory")
	}
	return strings.Join(parts, ", ") + andCosts(f.Costs)
}

func andCosts(text string) string {
	if text == "" {
		return ""
	}
	return "; " + layout.Line(text)
}

// restarts says what has to start anew for a fix that one makes by hand. A backlog, which tune sets
// on the open socket, stands for a person in the configuration that the service reads when it starts.
func restarts(f model.Fix) string {
	typed := func(c model.FixChange) bool {
		return c.Kind == model.ChangeBacklog && (c.Old == "" || c.Old != c.Value)
	}
	switch {
	case slices.ContainsFunc(f.Changes, typed):
		return "a restart of the service"
	case f.Restart == "none" || f.Restart == "":
		return "no restart"
	case f.Restart == "reload":
		return "a reload of the service"
	}
	return "a restart of the " + f.Restart
}

// sameLine are the kinds that one command sets, and sets back.
var sameLine = []string{model.ChangeSysctl, model.ChangeQuota, model.ChangeLimit, model.ChangeNice}

// undoing says how a fix is taken back that one makes by hand.
func undoing(f model.Fix) string {
	switch f.Undo {
	case "impossible":
		return "cannot be undone"
	case automatic:
		for _, c := range f.Changes {
			if c.Kind == model.ChangePolicy {
				return "undone by the same line with --other for --idle"
			}
			if c.Old == "" {
				return "undone by setting it back (note what is set now)"
			}
		}
		if len(f.Changes) == 1 && slices.Contains(sameLine, f.Changes[0].Kind) {
			return "undone by the same line with " + f.Changes[0].Old
		}
		return "undone by setting the old values again"
	}
	return "undone by hand"
}

// adviceAlone says whether what stands with a fix is for a person to read, and not to be
// typed as it is.
func adviceAlone(f model.Fix) bool {
	return len(f.Changes) > 0 && !slices.ContainsFunc(f.Changes, func(c model.FixChange) bool { return c.Kind != model.ChangePerson })
}
