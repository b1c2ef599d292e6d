package diagnose

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"plimsoll/internal/model"
)

// equivalentFile lists the mutants that answer as their rule does.
const equivalentFile = "equivalent.yaml"

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

// loadEquivalents reads equivalent.yaml, which a rule set need not have.
func loadEquivalents(fsys fs.FS, dir string) ([]Equivalent, error) {
	raw, err := readFile(fsys, equivalentFile, maxRecords)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	file := path.Join(dir, equivalentFile)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	var list []Equivalent
	if err := decodeStrict(raw, &list); err != nil {
		return nil, inFile(file, err)
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
func Survivors(rules Rules) (survivors, stale []Mutant) {
	for _, r := range rules.List {
		survivors = append(survivors, r.survivors()...)
	}
	for _, e := range rules.Equivalent {
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

func (r *Rule) survivors() []Mutant {
	// A mutant measures the same, so what a run was asked once it knows for all.
	runs := make([]*run, len(r.Vectors))
	for i := range r.Vectors {
		runs[i] = r.Vectors[i].run(r)
	}
	var list []Mutant
	for i, c := range r.Clues {
		if c.Role == model.Supports {
			continue
		}
		for change, mutant := range mutants(r, i) {
			if mutant.passes(runs) {
				list = append(list, Mutant{r.ID, c.ID, change})
			}
		}
	}
	return list
}

// mutants returns what can be done wrong with one clue.
func mutants(r *Rule, clue int) map[string]*Rule {
	list := map[string]*Rule{"without it": without(r, clue)}
	is := r.Clues[clue].is
	with := func(op string, bound float64) {
		m := *r
		m.Clues = slices.Clone(r.Clues)
		m.Clues[clue].is = comparison{op, bound}
		list[fmt.Sprintf("%s %.4g for %s %v", op, bound, is.op, is.bound)] = &m
	}
	with(opposite[is.op], is.bound)
	if op := nearly[is.op]; op != "" {
		with(op, is.bound)
	}
	if is.op == "==" || is.op == "!=" || is.bound == 0 {
		return list // of what is counted, a little more than none is nothing
	}
	with(is.op, is.bound*(1+moved))
	with(is.op, is.bound*(1-moved))
	return list
}

// without returns the rule without a clue. Its vectors ask for the answers
// alone, or each that names the clue would notice.
func without(r *Rule, clue int) *Rule {
	m := *r
	m.Clues = slices.Delete(slices.Clone(r.Clues), clue, clue+1)
	m.Vectors = slices.Clone(r.Vectors)
	for i := range m.Vectors {
		v := &m.Vectors[i]
		v.Expect = slices.Clone(v.Expect)
		for j, e := range v.Expect {
			v.Expect[j] = Expectation{Subject: e.Subject, Answer: e.Answer}
		}
	}
	return &m
}

func (r *Rule) passes(runs []*run) bool {
	for i := range r.Vectors {
		if r.Vectors[i].compare(runs[i], r) != nil {
			return false
		}
	}
	return true
}
