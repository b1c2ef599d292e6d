// Package rulesuite holds rules to their tests: vectors, which are series written by
// hand with what the rule must make of them; slices, which are what a rule read of
// recorded runs; and mutants, which are rules with one thing wrong that some vector
// has to notice (rules/README.md).
package rulesuite

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/model"
	"plimsoll/internal/record/notation"
	"plimsoll/internal/ruleset"
)

// testsFile is the name of a rule's vectors in its folder.
const testsFile = "tests.yaml"

// Suite is the tests of a rule set.
type Suite struct {
	tests      []*tests // in the order of the rules' ids
	equivalent []Equivalent
}

// tests are those of one rule.
type tests struct {
	rule    *ruleset.Rule
	vectors []Vector // nil without a tests.yaml
	slices  []*slice
}

// Read reads the tests of a rule set, and returns all that is wrong with them at once.
func Read(set ruleset.Rules) (Suite, error) {
	var s Suite
	var errs []error
	for _, from := range set.Folders {
		list, err := readEquivalents(from)
		errs = append(errs, err)
		s.equivalent = append(s.equivalent, list...)
	}
	left, points, unpacked := int64(maxTestFiles), int64(notation.MaxPoints), int64(maxSlices)
	for _, r := range set.List {
		t := &tests{rule: r}
		s.tests = append(s.tests, t)
		var err error
		t.slices, err = readSlices(r, &unpacked)
		errs = append(errs, err)
		if t.vectors, err = readVectors(r, &left, &points); err != nil {
			errs = append(errs, err)
		}
		if left < 0 || points < 0 || unpacked < 0 {
			break
		}
	}
	return s, errors.Join(errs...)
}

// readVectors reads the rule's tests.yaml, nil without one. left and points are how
// many bytes and points all may have yet.
func readVectors(r *ruleset.Rule, left, points *int64) ([]Vector, error) {
	file := path.Join(r.Path, testsFile)
	raw, err := r.ReadFile(testsFile, maxRawVector)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if *left -= int64(len(raw)); *left < 0 {
		return nil, fmt.Errorf("%s: %w", file, tooMuch("vectors"))
	}
	list, err := parseVectors(raw)
	for i := range list {
		*points -= list[i].Points
	}
	if err == nil && *points < 0 {
		err = tooMuch("points in vectors")
	}
	if err != nil {
		return nil, ruleset.InFile(file, err)
	}
	return list, nil
}

func tooMuch(of string) error { return fmt.Errorf("more than the set may have of %s", of) }

// Vectors goes through the vectors, in the order of the rules' ids.
func (s Suite) Vectors() iter.Seq2[*ruleset.Rule, *Vector] {
	return func(yield func(*ruleset.Rule, *Vector) bool) {
		for _, t := range s.tests {
			for i := range t.vectors {
				if !yield(t.rule, &t.vectors[i]) {
					return
				}
			}
		}
	}
}

// CaseCaptured is the case of a test that is a captured slice.
const CaseCaptured = "captured"

// Result is what a vector or a slice gave. Err is nil when it passed.
type Result struct {
	Rule string
	Name string // of a slice: the lab's case
	Case string
	Err  error
}

// Run runs the vectors and slices of all rules, in the order of the rules' ids.
func (s Suite) Run() []Result {
	var out []Result
	for _, t := range s.tests {
		for i := range t.vectors {
			v := &t.vectors[i]
			out = append(out, Result{Rule: t.rule.ID, Name: v.Name, Case: v.Case, Err: v.test(t.rule)})
		}
		for _, s := range t.slices {
			out = append(out, Result{Rule: t.rule.ID, Name: s.name, Case: CaseCaptured, Err: s.test(t.rule)})
		}
	}
	return out
}

// Check finds what is wrong with vectors that Read took: a rule without one of each
// case, and series and clues that there are not. Each error names its rule.
func (s Suite) Check(known []*model.Signal) []error {
	c := checker{signals: map[string]*model.Signal{}}
	for _, sig := range known {
		c.signals[sig.Name] = sig
	}
	for _, t := range s.tests {
		c.vectors(t)
	}
	return c.errs
}

type checker struct {
	signals map[string]*model.Signal
	errs    []error
}

func (c *checker) vectors(t *tests) {
	fail := func(format string, args ...any) {
		c.errs = append(c.errs, t.rule.Fault(fmt.Errorf("tests.yaml: "+format, args...)))
	}
	if t.vectors == nil {
		fail("missing in %s", t.rule.Path)
		return
	}
	for _, want := range vectorCases {
		if !slices.ContainsFunc(t.vectors, func(v Vector) bool { return v.Case == want }) {
			fail("no vector with case: %s", want)
		}
	}
	for i := range t.vectors {
		v := &t.vectors[i]
		for _, lset := range v.Named {
			if err := c.series(lset); err != nil {
				fail("%q: %w", v.Name, err)
			}
		}
		for _, name := range v.Read {
			if c.signals[name] == nil {
				fail("%q: read: %s: no probe reads such a series", v.Name, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v.Missing)) {
			if c.signals[name] == nil {
				fail("%q: missing: %s: no probe reads such a series", v.Name, name)
			}
		}
		for _, e := range v.Expect {
			for _, id := range e.clueIDs() {
				if !slices.ContainsFunc(t.rule.Clues, func(c ruleset.Clue) bool { return c.ID == id }) && id != "applies" {
					fail("%q: the rule has no clue %s", v.Name, id)
				}
			}
		}
	}
}

// series checks a vector's series against the signal's declaration.
func (c *checker) series(lset labels.Labels) error {
	name := lset.Get("__name__")
	signal, ok := c.signals[name]
	if !ok {
		return fmt.Errorf("%s: no probe reads such a series", name)
	}
	var errs []error
	lset.Range(func(l labels.Label) {
		if l.Name != "__name__" && l.Name != "host" && !slices.Contains(signal.Labels, l.Name) {
			errs = append(errs, fmt.Errorf("%s has no label %s", name, l.Name))
		}
	})
	return errors.Join(errs...)
}
