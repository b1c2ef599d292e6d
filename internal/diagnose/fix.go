package diagnose

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
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
		if command != "" {
			commands = append(commands, command)
		}
		out.Changes = append(out.Changes, c)
	}
	out.Command = strings.Join(commands, "; ")
	facts := ruleset.Facts{Subject: subject, Labels: labels}
	var err error
	if f.First != nil {
		out.First, facts, err = r.first(f.First, subject, labels)
		errs = append(errs, err)
	}
	for text, to := range map[*ruleset.Text]*string{f.BackText: &out.Back, f.SaveText: &out.Save} {
		if tellsAll(text, facts) {
			said, err := text.Fill(facts)
			errs = append(errs, err)
			*to = r.commandsIn(said, subject, labels)
		}
	}
	out.Before = r.commandsIn(f.Before, subject, labels)
	out.MemoryBytes, err = r.largest(f.MemoryExpr, subject)
	return out, errors.Join(append(errs, err)...)
}

// tellsAll says whether the run knows the numbers that a text names: no command is better than one with a hole.
func tellsAll(t *ruleset.Text, f ruleset.Facts) bool {
	return (f.Value != nil || !t.Names(".Value")) && (f.To != "" && f.To != layout.NotKnown || !t.Names(".To"))
}

// first fills a first step in for one subject, nil where the run does not tell what to type; facts are what its texts name.
func (r *run) first(s *ruleset.FirstStep, subject, labels map[string]string) (_ *model.FirstStep, f ruleset.Facts, _ error) {
	old, more, err := r.largestOf(s.FromExpr, subject)
	set, serr := r.largest(s.ToExpr, subject)
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, more) // what is set now says itself where it stands
	f = ruleset.Facts{Subject: subject, Labels: labels, To: layout.NotKnown}
	if old != nil {
		f.Value = ruleset.Number(*old)
	}
	switch {
	case set != nil:
		f.To = ruleset.FormatNumber(math.Ceil(*set))
	case s.ToExpr != nil:
		return nil, f, errors.Join(err, serr) // the run does not tell what to type
	}
	if old == nil && (s.TypeText.Names(".Value") || s.ThenText.Names(".Value")) {
		return nil, f, errors.Join(err, serr)
	}
	then, terr := s.ThenText.Fill(f)
	step := &model.FirstStep{Type: r.command(s.TypeText.Pieces(f), subject, labels), Then: r.commandsIn(then, subject, labels)}
	if set != nil && old != nil && strings.Contains(s.Type, ".To") { // else it is for a person to set
		step.Old = ruleset.FormatNumber(*old)
		was := f
		was.To = step.Old
		step.Back = r.command(s.TypeText.Pieces(was), subject, labels)
	}
	return step, f, errors.Join(err, serr, terr)
}

// shellWords begin a command that is about a network, in the middle of a sentence or of a line of commands: as much of it as tells whose it is.
var shellWords = lazy.Regexp("(`|^|[ (])(" +
	`nft (?:-\w |'|list|replace|insert|delete|add)|iptables-(?:save|restore)|ipvsadm|ip (?:-\w |route|link|neigh|rule|addr)|ethtool -|tc (?:-\w |qdisc)|conntrack -|` +
	`ss -|nc -|nstat|dig |redis-cli |varnishadm |nghttp |sysctl (?:-a |(?:-w )?net\.[\w.]+))`)

// runsOn is a marked command and a sentence that goes on behind it: without a dash nobody sees where the command ends.
var runsOn = lazy.Regexp("(`[^` ]+ [^`]*[^` ]`) ([a-z])")

// commandsIn writes the commands that a sentence names as the one before it is typed: in the same namespace, and at the same port.
func (r *run) commandsIn(text string, subject, labels map[string]string) string {
	text = runsOn().ReplaceAllString(text, "$1 – $2")
	for _, command := range layout.Marked(text) {
		if port := r.command([]layout.Piece{{Text: "PORT"}}, subject, labels); strings.Contains(command+" ", " PORT ") && port != "PORT" {
			text = strings.Replace(text, "`"+command+"`", "`"+strings.TrimSuffix(strings.ReplaceAll(command+" ", " PORT ", " "+port+" "), " ")+"`", 1)
		}
	}
	all := shellWords().FindAllStringSubmatchIndex(text, -1)
	for _, at := range slices.Backward(all) {
		begins := text[at[3]:at[5]]
		word := strings.TrimRight(strings.TrimSuffix(begins, " -"), " ")
		if !strings.HasPrefix(word, "sysctl ") {
			word, _, _ = strings.Cut(word, " ")
		}
		if typed := r.command([]layout.Piece{{Text: word}}, subject, labels); strings.HasSuffix(typed, word) {
			text = text[:at[3]] + strings.TrimSuffix(typed, word) + text[at[3]:]
		}
	}
	return text
}

// largest is the largest result of an expression for a subject, nil for none, and without an expression.
func (r *run) largest(expr *query.Expression, subject map[string]string) (*float64, error) {
	value, _, err := r.largestOf(expr, subject)
	return value, err
}

// largestOf is largest with the labels of that result.
func (r *run) largestOf(expr *query.Expression, subject map[string]string) (*float64, map[string]string, error) {
	if expr == nil {
		return nil, nil, nil
	}
	res := r.Ask(expr)
	if res.Failed != nil {
		return nil, nil, res.Failed
	}
	if s, ok := query.Largest(res.Samples, subject); ok {
		return &s.Value, s.Labels, nil
	}
	return nil, nil, nil
}

// change fills one change in: as what a program can act on, and as what a
// person would type.
func (r *run) change(c *ruleset.Change, subject, labels map[string]string) (model.FixChange, string, error) {
	value := c.To
	if c.ToExpr != nil {
		value = ""
		v, err := r.largest(c.ToExpr, subject)
		if err != nil {
			return model.FixChange{}, "", err
		}
		if v != nil {
			value = setting(c.Kind, *v)
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
		// A label that this run did not give: what to change is not known, so there is nothing to type.
		return model.FixChange{Kind: c.Kind, Name: layout.NotKnown, Host: subject["host"], Subject: subject}, "", nil
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
	old, oerr := r.old(c, subject, typed.Host)
	typed.Old = old
	err = errors.Join(err, oerr)
	switch c.Kind { // as it stands in a file, where nothing is quoted
	case model.ChangeNginx:
		return typed, layout.Line(name + " " + shown + ";"), err
	case model.ChangePHPFPM:
		return typed, layout.Line(name + " = " + shown), err
	}
	command = r.command(ruleset.CommandFor(c.Kind, name, shown, subject), subject, labels)
	if c.Kind != model.ChangeBacklog { // which is the service's own to ask for
		typed.Type = command
		if before := setsBack(c.Kind, old); before != "" {
			typed.Back = r.command(ruleset.CommandFor(c.Kind, name, before, subject), subject, labels)
		}
	}
	return typed, command, err
}

// setsBack is what a command sets to take a change back, "" where that is not known: of CPUs it is known how many there were, and
// not which; what is in the idle class was in the normal one, or the rule had not asked for it.
func setsBack(kind, old string) string {
	switch kind {
	case model.ChangePolicy:
		return "0"
	case model.ChangeAffinity, model.ChangeRPS:
		return ""
	}
	return old
}

// old is what is set now at a host, "" where the run does not tell. A setting of several numbers has a
// series for each.
func (r *run) old(c *ruleset.Change, subject map[string]string, host string) (string, error) {
	if c.FromExpr == nil {
		return "", nil
	}
	of := maps.Clone(subject)
	if host != "" {
		of["host"] = host
	}
	res := r.Ask(c.FromExpr)
	numbers := map[string]string{}
	for _, s := range res.Samples {
		if query.Agree(s.Labels, of) {
			numbers[s.Labels["index"]] = setting(c.Kind, s.Value)
		}
	}
	var list []string
	for _, index := range slices.Sorted(maps.Keys(numbers)) {
		list = append(list, numbers[index])
	}
	return strings.Join(list, " "), res.Failed
}

// quotaPeriod is the kernel's own period of a CPU quota, in microseconds.
const quotaPeriod = 100_000

// setting writes a number as a setting of that kind; a quota's is in CPUs.
func setting(kind string, v float64) string {
	if kind == model.ChangeQuota {
		return fmt.Sprintf("%.0f %d", math.Ceil(v*quotaPeriod/1000)*1000, quotaPeriod)
	}
	return ruleset.FormatNumber(math.Ceil(v))
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
