package ruleset

import "fmt"

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
