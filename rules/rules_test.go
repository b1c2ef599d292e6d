package rules_test

import (
	"errors"
	"testing"

	"plimsoll/internal/diagnose"
	"plimsoll/internal/load"
	"plimsoll/internal/model"
	probes "plimsoll/internal/probe/all"
	tracers "plimsoll/internal/trace/all"
	"plimsoll/rules"
)

func tested(t *testing.T) diagnose.Rules {
	t.Helper()
	set, err := diagnose.Load(rules.FS)
	if err = errors.Join(err, set.ReadTests()); err != nil {
		t.Fatal(err)
	}
	return set
}

// TestRules holds the built-in rules to what check asks of any rule set, and
// runs their vectors.
func TestRules(t *testing.T) {
	set := tested(t)
	known := append([]*model.Signal{}, load.Signals...)
	for _, p := range probes.All() {
		known = append(known, p.Signals...)
	}
	for _, t := range tracers.All() {
		known = append(known, t.Signals...)
	}
	for _, err := range diagnose.Check(set, known) {
		t.Error(err)
	}
	for _, r := range diagnose.Test(set) {
		if r.Err != nil {
			t.Errorf("%s: %s: %q: %v", r.Rule, r.Case, r.Name, r.Err)
		}
	}
}

// TestNoMutantSurvives holds that each clue, its comparison and its threshold are
// held in place by a vector.
func TestNoMutantSurvives(t *testing.T) {
	set := tested(t)
	survivors, stale := diagnose.Survivors(set)
	for _, m := range survivors {
		t.Errorf("%s: no vector notices", m)
	}
	for _, m := range stale {
		t.Errorf("equivalent.yaml: %s: no such mutant survives; take it out", m)
	}
}
