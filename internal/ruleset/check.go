package ruleset

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
)

// Check finds what is wrong with a rule set that Load took: series and labels
// that nothing records, reasons that are missing, links that lead nowhere or in
// a circle. Each error names its rule.
func Check(rules Rules, known []*model.Signal) []error {
	c := checker{rules: rules, signals: map[string]*model.Signal{}}
	for _, s := range known {
		c.signals[s.Name] = s
	}
	for _, rec := range rules.Records {
		e, err := query.Parse(rec.Expr, nil)
		if err != nil {
			c.fail("records.yaml", "%s: %w", rec.Name, err)
			continue
		}
		c.expression("records.yaml", rec.Name, e)
		c.refining(rec, e)
	}
	for _, r := range rules.List {
		c.rule(r)
	}
	c.cycles()
	return c.errs
}

// refining holds that a record says of those signals which others refine, and of no other, that they do.
func (c *checker) refining(rec query.Record, e *query.Expression) {
	used := map[string]bool{}
	for _, sel := range e.Selectors() {
		used[sel.Name] = true
		if s := c.signals[sel.Name]; s != nil && s.Refines != "" && !slices.Contains(rec.Refining, s.Name) {
			c.fail("records.yaml", "%s: %s says more exactly what %s says: name it under refining", rec.Name, s.Name, s.Refines)
		}
	}
	for _, name := range rec.Refining {
		if s := c.signals[name]; !used[name] || s == nil || s.Refines == "" {
			c.fail("records.yaml", "%s: refining: %s is none of its signals that say more exactly what another says", rec.Name, name)
		}
	}
}

type checker struct {
	rules   Rules
	signals map[string]*model.Signal
	errs    []error
}

// fail notes what is wrong with a rule, with its file and line.
func (c *checker) fail(rule, format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if r := c.rules.Get(rule); r != nil {
		err = r.Fault(err)
	} else {
		err = fmt.Errorf("%s: %w", rule, err)
	}
	c.errs = append(c.errs, err)
}

func (c *checker) rule(r *Rule) {
	if base := path.Base(r.Path); r.ID != base && r.ID != path.Base(path.Dir(r.Path))+"."+base {
		c.fail(r.ID, "stands in %s: want the id as the folder's name", r.Path)
	}
	if strings.TrimSpace(r.Story) == "" {
		c.fail(r.ID, "story: missing; say how it works to a reader who never met it")
	}
	c.expression(r.ID, "applies", r.AppliesExpr)
	if r.ImpactExpr != nil {
		c.expression(r.ID, "impact", r.ImpactExpr)
	}
	c.subject(r)
	for i := range r.Clues {
		c.clue(r, r, "clue "+r.Clues[i].ID, &r.Clues[i])
	}
	for i := range r.Fix {
		c.fix(r, &r.Fix[i])
	}
	c.explains(r)
	c.handbook(r)
}

// expression checks that every series it names is recorded, with those labels.
func (c *checker) expression(rule, where string, e *query.Expression) {
	if err := e.Err(); err != nil {
		c.fail(rule, "%s: %w", where, err)
	}
	for _, sel := range e.Selectors() {
		signal, ok := c.signals[sel.Name]
		if !ok {
			c.fail(rule, "%s: %s: no probe reads such a series", where, sel.Name)
			continue
		}
		for _, name := range sel.Labels {
			if name != "host" && !slices.Contains(signal.Labels, name) {
				c.fail(rule, "%s: %s has no label %s; it has host %s", where, sel.Name, name, strings.Join(signal.Labels, " "))
			}
		}
	}
}

// subject checks that "applies" can have the subject's labels.
func (c *checker) subject(r *Rule) {
	can := map[string]bool{"host": true}
	for _, sel := range r.AppliesExpr.Selectors() {
		if s, ok := c.signals[sel.Name]; ok {
			for _, name := range s.Labels {
				can[name] = true
			}
		}
	}
	for _, name := range r.AppliesExpr.MadeLabels() {
		can[name] = true
	}
	for _, name := range r.Subject {
		if !can[name] {
			c.fail(r.ID, "subject: no series of applies has a label %s", name)
		}
	}
}

// clue checks a clue, or the condition of an explanation; of is the rule of whose
// findings it is asked.
func (c *checker) clue(r, of *Rule, where string, clue *Clue) {
	c.expression(r.ID, where, clue.MeasureExpr)
	for _, f := range []struct{ name, value string }{{"why", clue.Why}, {"say", clue.Say}, {"by_hand", clue.ByHand}} {
		if strings.TrimSpace(f.value) == "" {
			c.fail(r.ID, "%s: %s: missing", where, f.name)
		}
	}
	var line layout.Command
	if line.Ours(clue.ByHand); !line.Closed() {
		c.fail(r.ID, "%s: by_hand: a quote or a parenthesis is not closed; a shell takes an apostrophe for a quote, and what is copied with it for its end", where)
	}
	f := c.sampleFacts(of, clue.MeasureExpr)
	for _, t := range []*Text{clue.SayText, clue.ByHandText} {
		if _, err := t.Fill(f); err != nil {
			c.fail(r.ID, "%s: %w", where, err)
		}
	}
}

// sampleFacts are facts with every label that could be there, to try a template on.
func (c *checker) sampleFacts(r *Rule, e *query.Expression) Facts {
	f := Facts{Value: Number(1), Subject: map[string]string{}, Labels: map[string]string{"host": "1"}, To: "1"}
	for _, name := range r.Subject {
		f.Subject[name] = "1"
	}
	for _, sel := range e.Selectors() {
		if s, ok := c.signals[sel.Name]; ok {
			for _, name := range s.Labels {
				f.Labels[name] = "1"
			}
		}
	}
	for _, name := range e.MadeLabels() {
		f.Labels[name] = "1"
	}
	f.Every = f.Labels
	return f
}

func (c *checker) fix(r *Rule, fix *Fix) {
	where := fmt.Sprintf("fix %q", fix.Title)
	for _, f := range []struct {
		name, value string
		want        []string
	}{
		{"risk", fix.Risk, []string{"low", "medium", "high"}},
		{"undo", fix.Undo, []string{"automatic", "manual", "impossible", "none"}},
		{"restart", fix.Restart, []string{"none", "reload", "service", "host"}},
	} {
		if !slices.Contains(f.want, f.value) {
			c.fail(r.ID, "%s: %s %q: want one of %s", where, f.name, f.value, strings.Join(f.want, ", "))
		}
	}
	if fix.Title == "" || fix.Costs == "" {
		c.fail(r.ID, "%s: want a title, and what it costs", where)
	}
	if fix.Acceptance != nil {
		c.expression(r.ID, where+": accept", fix.Acceptance.Measure)
	}
	f := Facts{Subject: map[string]string{}, Labels: map[string]string{}, To: "1"}
	for _, name := range r.Subject {
		f.Subject[name] = "1"
	}
	for i := range r.Clues {
		for name := range c.sampleFacts(r, r.Clues[i].MeasureExpr).Labels {
			f.Labels[name] = "1"
		}
	}
	f.Value = Number(1)
	if _, err := fix.BackText.Fill(f); err != nil {
		c.fail(r.ID, "%s: back: %w", where, err)
	}
	for _, one := range fix.Change {
		if one.ToExpr != nil {
			c.expression(r.ID, where, one.ToExpr)
		}
		if one.AtExpr != nil {
			c.expression(r.ID, where+": at", one.AtExpr)
		}
		if _, err := one.NameText.Fill(f); err != nil {
			c.fail(r.ID, "%s: %w", where, err)
		}
		if fix.Undo == "automatic" && one.Kind == model.ChangePerson {
			c.fail(r.ID, "%s: what a person does has no automatic undo", where)
		}
	}
}

func (c *checker) explains(r *Rule) {
	if r.Kind == Healthy && len(r.Explains) > 0 {
		c.fail(r.ID, "explains: a healthy rule explains nothing")
	}
	for _, e := range r.Explains {
		other := c.rules.Get(e.Finding)
		switch {
		case other == nil:
			c.fail(r.ID, "explains: %s: no such rule", e.Finding)
			continue
		case other.Kind == Healthy:
			c.fail(r.ID, "explains: %s: a healthy rule is no consequence", e.Finding)
		case strings.TrimSpace(e.How) == "":
			c.fail(r.ID, "explains: %s: how: missing", e.Finding)
		}
		if e.When != nil {
			c.clue(r, other, "explains: "+e.Finding+": when", e.When)
		}
		for _, name := range e.Where {
			if !slices.Contains(r.Subject, name) || !slices.Contains(other.Subject, name) {
				c.fail(r.ID, "explains: %s: where: label %s is not in both subjects", e.Finding, name)
			}
		}
	}
}

// handbook checks what only a reader needs.
func (c *checker) handbook(r *Rule) {
	for _, u := range r.Unlike {
		switch {
		case c.rules.Get(u.Finding) == nil || u.Finding == r.ID:
			c.fail(r.ID, "unlike: %s: no such other rule", u.Finding)
		case strings.TrimSpace(u.How) == "":
			c.fail(r.ID, "unlike: %s: how: missing; say what tells them apart", u.Finding)
		}
	}
	for _, s := range r.Sources {
		if strings.TrimSpace(s) == "" {
			c.fail(r.ID, "sources: an empty line; want a link or a title")
		}
	}
}

// cycles refuses rules that explain each other in a circle, which would leave
// no root.
func (c *checker) cycles() {
	const visiting, done = 1, 2
	state := map[string]int{}
	var visit func(id string, way []string)
	visit = func(id string, way []string) {
		r := c.rules.Get(id)
		if r == nil || state[id] == done {
			return
		}
		way = append(way, id)
		if state[id] == visiting {
			c.fail(id, "explains: a circle: %s", strings.Join(way[slices.Index(way, id):], " explains "))
			return
		}
		state[id] = visiting
		for _, e := range r.Explains {
			visit(e.Finding, way)
		}
		state[id] = done
	}
	for _, r := range c.rules.List {
		visit(r.ID, nil)
	}
}
