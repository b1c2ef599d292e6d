package rulesuite

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/lab"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
	cases "plimsoll/lab"
)

// fits says what is wrong between a slice and the case that was recorded: in one
// that the rule has to be found in it holds, and for the subject that the case
// tells; in a look-alike it is not confirmed. What is suspected there, a confirmed
// cause explains.
func (s *slice) fits(rule *ruleset.Rule) error {
	causes, lookalike := slices.Contains(rule.Lab.Causes, s.name), slices.Contains(rule.Lab.Lookalikes, s.name)
	switch {
	case causes == lookalike:
		return fmt.Errorf("%s: want the case among the rule's lab causes or its lookalikes", s.name)
	case s.beneathAnother(rule):
		return fmt.Errorf("%s is a look-alike, and the rule is confirmed there: %v", s.name, s.Holds)
	case causes && len(s.Holds) == 0:
		return fmt.Errorf("%s has to be found, and the rule holds there for nothing", s.name)
	case lookalike:
		return nil
	}
	c, err := (&lab.Lab{Cases: cases.FS}).Case(s.name)
	if err != nil {
		return err
	}
	if want, told := subjectOf(c.Truth, rule.ID); told && !slices.ContainsFunc(s.Holds, func(h held) bool { return query.Agree(want, h.Subject) }) {
		return fmt.Errorf("%s: the rule holds for %v, want %v", s.name, s.Holds, want)
	}
	return nil
}

// beneathAnother says that the rule is confirmed in a look-alike, where it stands
// beneath what the case causes: nothing that it has to be quiet in.
func (s *slice) beneathAnother(rule *ruleset.Rule) bool {
	return slices.Contains(rule.Lab.Lookalikes, s.name) &&
		slices.ContainsFunc(s.Holds, func(h held) bool { return h.Answer == model.Confirmed })
}

// subjectOf is what a case's truth tells of the subject of a rule.
func subjectOf(truth lab.Truth, id string) (subject map[string]string, told bool) {
	if slices.Contains(truth.Root, id) {
		return truth.Subject, true
	}
	for _, next := range truth.Then {
		if slices.Contains(next.Root, id) {
			return next.Subject, true
		}
	}
	return nil, false
}

// TestSlices holds that the rules' slices are of lab cases that the rules name, and
// that a rule holds in those in which it has to be found. What they give, Test
// holds, as it does with the vectors; which rules have none, docs/rules says.
func TestSlices(t *testing.T) {
	set, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, of := range set.tests {
		for _, s := range of.slices {
			n++
			if err := s.fits(of.rule); err != nil {
				t.Errorf("%s: %v", of.rule.ID, err)
			}
		}
	}
	if n == 0 {
		t.Error("no rule has a slice")
	}
}

func TestParseSliceRefuses(t *testing.T) {
	const good = `{"holds": [], "first_ms": 1, "last_ms": 3, "run": {}, "series": [{"metric": {"__name__": "x", "host": "h"}, "points": [[1, 5], [3, 6]]}]}`
	for name, c := range map[string]struct{ old, new, want string }{
		"nothing wrong":           {"", "", ""},
		"an unknown field":        {`"holds"`, `"hold"`, `unknown field "hold"`},
		"a series without a host": {`, "host": "h"`, "", "want a name and a host"},
		"a time that goes back":   {"[3, 6]", "[1, 6]", "want times that grow"},
		"a time outside the run":  {"[3, 6]", "[4, 6]", "from first_ms to last_ms"},
		"too much":                {`"x"`, `"` + strings.Repeat("x", maxSlice) + `"`, "more than 16777216 bytes"},
	} {
		_, err := parseSlice(packed(t, []byte(strings.Replace(good, c.old, c.new, 1))))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
	if _, err := parseSlice([]byte(good)); err == nil || !strings.Contains(err.Error(), "packed with gzip") {
		t.Errorf("not packed: %v", err)
	}
}

func FuzzSlice(f *testing.F) {
	f.Add([]byte(`{"holds": [{"subject": {"host": "h"}, "answer": "confirmed"}], "first_ms": 1, "last_ms": 3, "run": {"plan": {"interval_ms": 1000}}, "series": []}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := parseSlice(packed(t, raw))
		if (s == nil) == (err == nil) {
			t.Errorf("%v and %v", s, err)
		}
		if s != nil {
			s.run()
		}
	})
}

// A slice that a rule no longer answers as it did is noticed.
func TestASliceHoldsItsRule(t *testing.T) {
	set, err := shipped()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(set.tests, func(t *tests) bool { return t.rule.ID == "net.conntrack.table_full" })
	rule, kept := set.tests[i].rule, set.tests[i].slices
	for _, s := range kept {
		if err := s.test(rule); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		other := *s
		other.Holds = append(slices.Clip(s.Holds), held{map[string]string{"host": "nowhere"}, model.Confirmed})
		if err := other.test(rule); err == nil || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("%s: %v, want it to miss the finding", s.name, err)
		}
	}
	if len(kept) == 0 {
		t.Error("it has no slice")
	}
}
