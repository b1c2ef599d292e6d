package rulesuite

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
)

// equivalentFile lists the mutants that answer as their rule does.
const equivalentFile = "equivalent.yaml"

// maxEquivalents is the most of that file, in bytes.
const maxEquivalents = 1 << 20

// Mutant is a rule with one thing wrong.
type Mutant struct {
	Rule string `yaml:"rule"`
	Clue string `yaml:"clue"`
	// Change says what was done: "without it", "> 0 for >= 0" …
	Change string `yaml:"change"`
}

func (m Mutant) String() string { return m.Rule + ": " + m.Clue + ": " + m.Change }

// Equivalent is a mutant that no vector can tell from its rule.
type Equivalent struct {
	Mutant `yaml:",inline"`
	Why    string `yaml:"why"`
}

// readEquivalents reads equivalent.yaml, which a folder of rules need not have.
func readEquivalents(from ruleset.Folder) ([]Equivalent, error) {
	raw, err := ruleset.ReadFile(from.FS, equivalentFile, maxEquivalents)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	file := path.Join(from.Name, equivalentFile)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	var list []Equivalent
	if err := ruleset.DecodeStrict(raw, &list); err != nil {
		return nil, ruleset.InFile(file, err)
	}
	for _, e := range list {
		if e.Why == "" {
			return nil, fmt.Errorf("%s: %s: want a why: the reason that no vector can notice it", file, e.Mutant)
		}
	}
	return list, nil
}

// moved is by how much a threshold is moved: as little as a site that sets its
// own would.
const moved = 0.1

// opposite and nearly are what a comparison is mistaken for.
var (
	opposite = map[string]string{">": "<", ">=": "<", "<": ">=", "<=": ">", "==": "!=", "!=": "=="}
	nearly   = map[string]string{">": ">=", ">=": ">", "<": "<=", "<=": "<"}
)

// Survivors breaks every rule in every way there is, one at a time, and returns
// the mutants that pass all vectors of their rule: the vectors do not hold it in
// its place. Clues that only add a sentence are let be: they decide nothing. Those
// of equivalent.yaml may survive; stale are its entries that do not, or that are
// no mutants. It tells nothing of a rule that does not pass its own vectors.
func (s Suite) Survivors() (survivors, stale []Mutant) {
	for _, t := range s.tests {
		survivors = append(survivors, t.survivors()...)
	}
	for _, e := range s.equivalent {
		i := slices.Index(survivors, e.Mutant)
		if i < 0 {
			stale = append(stale, e.Mutant)
			continue
		}
		survivors = slices.Delete(survivors, i, i+1)
	}
	slices.SortFunc(survivors, func(a, b Mutant) int { return strings.Compare(a.String(), b.String()) })
	return survivors, stale
}

func (t *tests) survivors() []Mutant {
	// A mutant measures the same, so what a run was asked once it knows for all.
	runs := make([]*query.Run, len(t.vectors))
	for i := range t.vectors {
		runs[i] = t.vectors[i].run(t.rule)
	}
	var list []Mutant
	for i, c := range t.rule.Clues {
		if c.Role == model.Supports {
			continue
		}
		for change, mutant := range t.mutants(i) {
			if mutant.passes(runs) {
				list = append(list, Mutant{t.rule.ID, c.ID, change})
			}
		}
	}
	for i, e := range t.rule.Explains {
		if e.When == nil {
			continue
		}
		for change, mutant := range t.otherwise(i) {
			if mutant.passes(runs) {
				list = append(list, Mutant{t.rule.ID, "when of " + e.Finding, change})
			}
		}
	}
	return list
}

// otherwise returns what can be done wrong with the condition of one explanation.
func (t *tests) otherwise(explain int) map[string]*tests {
	list := map[string]*tests{}
	for change, is := range thresholds(t.rule.Explains[explain].When.Threshold) {
		rule := *t.rule
		rule.Explains = slices.Clone(rule.Explains)
		when := *rule.Explains[explain].When
		when.Threshold = is
		rule.Explains[explain].When = &when
		list[change] = &tests{rule: &rule, vectors: t.vectors}
	}
	return list
}

// mutants returns what can be done wrong with one clue.
func (t *tests) mutants(clue int) map[string]*tests {
	list := map[string]*tests{"without it": t.without(clue)}
	for change, is := range thresholds(t.rule.Clues[clue].Threshold) {
		rule := *t.rule
		rule.Clues = slices.Clone(rule.Clues)
		rule.Clues[clue].Threshold = is
		list[change] = &tests{rule: &rule, vectors: t.vectors}
	}
	return list
}

// thresholds returns what can be done wrong with one, by what was done.
func thresholds(is ruleset.Comparison) map[string]ruleset.Comparison {
	list := map[string]ruleset.Comparison{}
	with := func(op string, bound float64) {
		list[fmt.Sprintf("%s %.4g for %s %v", op, bound, is.Op, is.Bound)] = ruleset.Comparison{Op: op, Bound: bound}
	}
	with(opposite[is.Op], is.Bound)
	if op := nearly[is.Op]; op != "" {
		with(op, is.Bound)
	}
	if is.Op == "==" || is.Op == "!=" || is.Bound == 0 {
		return list // of what is counted, a little more than none is nothing
	}
	with(is.Op, is.Bound*(1+moved))
	with(is.Op, is.Bound*(1-moved))
	return list
}

// without returns the rule without a clue. Its vectors ask for the answers
// alone, or each that names the clue would notice.
func (t *tests) without(clue int) *tests {
	rule := *t.rule
	rule.Clues = slices.Delete(slices.Clone(rule.Clues), clue, clue+1)
	m := &tests{rule: &rule, vectors: slices.Clone(t.vectors)}
	for i := range m.vectors {
		v := &m.vectors[i]
		v.Expect = slices.Clone(v.Expect)
		for j, e := range v.Expect {
			v.Expect[j] = Expectation{Subject: e.Subject, Answer: e.Answer}
		}
	}
	return m
}

func (t *tests) passes(runs []*query.Run) bool {
	for i := range t.vectors {
		if t.vectors[i].compare(runs[i], t.rule) != nil {
			return false
		}
	}
	return true
}
