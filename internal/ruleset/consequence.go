package ruleset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kinds are what a cause may do to users, or to what tools see, in the order in which
// a symptom looks for them; rules/README.md describes each.
var Kinds = []string{
	"limits", "delays", "delays_alone", "loses_connects", "refuses_connects", "breaks_off",
	"fails", "cuts_off", "turns_away", "drops_packets", "takes_cpu", "lacks_ports",
}

// kindFaults says what is wrong with the kinds that a rule names.
func (r *Rule) kindFaults() []string {
	var list []string
	if r.Kind == Symptom && len(r.Shows) == 0 {
		list = append(list, "shows: missing; a symptom says by which kinds of harm it is seen")
	}
	if r.Kind != Symptom && (len(r.Shows) > 0 || r.Where != nil) {
		list = append(list, "shows: only a symptom shows something; a cause does something")
	}
	if len(r.Does) > 0 && r.Kind != Cause && r.Kind != Capacity {
		list = append(list, "does: only a cause or a capacity does something; a symptom shows something")
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Does)) {
		if strings.TrimSpace(r.Does[kind]) == "" {
			list = append(list, fmt.Sprintf("does: %s: missing; say how", kind))
		}
	}
	for _, field := range []struct {
		name  string
		kinds map[string]string
	}{{"does", r.Does}, {"shows", r.Shows}} {
		for _, kind := range slices.Sorted(maps.Keys(field.kinds)) {
			if !slices.Contains(Kinds, kind) {
				list = append(list, fmt.Sprintf("%s: no kind %s; there are %s", field.name, kind, strings.Join(Kinds, ", ")))
			}
		}
	}
	return list
}

// byKind is the consequence that a symptom is of the rule by the first kind that the
// one does and the other shows; false where there is none.
func (r *Rule) byKind(symptom *Rule) (Explain, bool) {
	for _, kind := range Kinds {
		does, did := r.Does[kind]
		shows, shown := symptom.Shows[kind]
		if !did || !shown {
			continue
		}
		how := does
		if shows != "" {
			how += ", " + shows
		}
		return Explain{Finding: symptom.ID, How: how, Where: symptom.Where}, true
	}
	return Explain{}, false
}

// Consequences returns in what ways a finding of another rule is a consequence of this
// one: by what it declares, else by kind.
func (r *Rule) Consequences(of *Rule) []Explain {
	var list []Explain
	for _, e := range r.Explains {
		if e.Finding == of.ID {
			list = append(list, e)
		}
	}
	if e, ok := r.byKind(of); ok {
		list = append(list, e)
	}
	return list
}

// doubled returns, as errors, what these rules of the set declare and the kinds give
// already.
func (rs Rules) doubled(of []*Rule) []error {
	var errs []error
	for _, r := range of {
		for _, e := range r.Explains {
			if other := rs.Get(e.Finding); other != nil {
				if kind, ok := r.byKind(other); ok {
					errs = append(errs, r.Fault(fmt.Errorf("explains: %s: the kinds give it already (%s); take it out", e.Finding, kind.How)))
				}
			}
		}
	}
	return errs
}
