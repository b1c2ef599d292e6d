package diagnose

import (
	"slices"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// Sample is one result of an expression: a finite number, and what it is of.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Asker evaluates expressions over one run, in the language of the rules
// (rules/README.md). It is for one goroutine.
type Asker struct {
	querier *querier
	known   records
}

// Ask prepares a run for questions; the rules give the shared terms.
func Ask(rec *record.Run, rules Rules) (*Asker, error) {
	first, last, err := rec.Span()
	if err != nil {
		return nil, err
	}
	known := records{}
	for _, r := range rules.Records {
		known[r.Name] = r
	}
	return &Asker{newQuerier(rec.Meta(), rec.Queryable(), first, last), known}, nil
}

// Samples evaluates one expression at the end of the main window. A window that
// the run does not have gives no result.
func (a *Asker) Samples(text string) ([]Sample, error) {
	e, err := parseExpression(text, a.known)
	if err != nil {
		return nil, err
	}
	res := a.querier.ask(e)
	var list []Sample
	for _, s := range res.samples {
		list = append(list, Sample{s.labels, s.value})
	}
	return list, res.failed
}

// Signals names the series that the rule's clues of these roles measure, sorted.
func (r *Rule) Signals(roles ...model.Role) []string {
	var names []string
	for _, c := range r.Clues {
		if !slices.Contains(roles, c.Role) {
			continue
		}
		for _, s := range c.measure.selectors {
			names = append(names, s.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
