package diagnose

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
)

// fix fills a fix in for one subject.
func (r *run) fix(f *ruleset.Fix, subject, labels map[string]string) (model.Fix, error) {
	out := model.Fix{Title: f.Title, Risk: f.Risk, Costs: f.Costs, Undo: f.Undo, Restart: f.Restart, Accept: f.Accept}
	var commands []string
	var errs []error
	for i := range f.Change {
		c, command, err := r.change(&f.Change[i], subject, labels)
		errs = append(errs, err)
		commands = append(commands, command)
		out.Changes = append(out.Changes, c)
	}
	out.Command = strings.Join(commands, "; ")
	return out, errors.Join(errs...)
}

// change fills one change in: as what a program can act on, and as what a
// person would type.
func (r *run) change(c *ruleset.Change, subject, labels map[string]string) (model.FixChange, string, error) {
	value := c.To
	if c.ToExpr != nil {
		value = ""
		res := r.Ask(c.ToExpr)
		if res.Failed != nil {
			return model.FixChange{}, "", res.Failed
		}
		if s, ok := query.Largest(res.Samples, subject); ok {
			value = ruleset.FormatNumber(math.Ceil(s.Value))
		}
	}
	shown := value
	if shown == "" {
		shown = layout.NotKnown
	}
	f := ruleset.Facts{Subject: subject, Labels: labels, To: shown}
	name, err := c.NameText.FillAsIs(f)
	command := c.NameText.Command(f)
	switch {
	case c.Kind == model.ChangePerson:
		name = command
	case err != nil:
		name, value, err = layout.NotKnown, "", nil // a label that this run did not give: what to change is not known
		command = name
	}
	typed := model.FixChange{Kind: c.Kind, Name: name, Value: value, Host: subject["host"], Subject: subject}
	if c.AtExpr != nil {
		res := r.Ask(c.AtExpr)
		if res.Failed != nil {
			return model.FixChange{}, "", res.Failed
		}
		s, _ := query.Largest(res.Samples, subject)
		typed.ListensAt = s.Labels["listen"]
		if typed.Host = s.Labels["at"]; typed.Host == "" {
			typed.Value = "" // whose setting it is is not known, so there is none to change
		}
	}
	if c.Kind == model.ChangePerson || c.NameText.Names(".To") {
		return typed, command, err
	}
	return typed, ruleset.CommandFor(c.Kind, name, shown, subject), err
}

// Accepted says whether the fix with that index did what its rule promises of
// it, by the run after the change. It is unknown where the rule states no
// "accept", and where what that asks for was not read.
func Accepted(q *query.Run, rules ruleset.Rules, rule string, fix int, subject map[string]string) (model.Truth, error) {
	r := rules.Get(rule)
	if r == nil || fix < 0 || fix >= len(r.Fix) {
		return model.Unknown, fmt.Errorf("rule %s has no fix %d; was the verdict made with other rules", rule, fix+1)
	}
	if r.Fix[fix].Acceptance == nil {
		return model.Unknown, nil
	}
	return newRun(q, nil).accepted(r.Fix[fix].Acceptance, subject)
}

func (r *run) accepted(a *ruleset.Acceptance, subject map[string]string) (model.Truth, error) {
	res := r.Ask(a.Measure)
	if res.Missing != "" || res.Failed != nil {
		return model.Unknown, res.Failed
	}
	seen := r.sightOf(a.Measure, subject)
	found, good := false, true
	for _, s := range res.Samples {
		if query.Agree(s.Labels, subject) {
			found = true
			good = good && (!a.Split || a.Is.Holds(s.Value))
		}
	}
	switch {
	case found && !good:
		return model.False, nil
	case found && seen.dim == "":
		return model.True, nil
	case found || seen.closed != "":
		return model.Unknown, nil
	case !a.Split:
		return model.False, nil
	case a.Counted && a.Is.Holds(0):
		return model.True, nil
	}
	return model.Unknown, nil
}
