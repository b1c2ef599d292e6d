package rulesuite

import (
	"encoding/json"
	"testing"

	"plimsoll/internal/diagnose"
	"plimsoll/internal/ruleset"
	"plimsoll/rules"
)

// What a rule keeps of one run (its expressions, parsed) changes nothing about the next: of each recording its findings
// are, to the byte, those of a rule that was read anew.
func TestARuleKeepsNothingOfARun(t *testing.T) {
	var sets [2]ruleset.Rules
	for i := range sets {
		var err error
		if sets[i], err = ruleset.LoadTried(rules.FS); err != nil {
			t.Fatal(err)
		}
	}
	left, compared := int64(1<<30), 0
	for i, used := range sets[0].List {
		list, err := readSlices(used, &left)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) < 2 {
			continue
		}
		first, last := list[0], list[len(list)-1]
		found(t, last, used)
		if got, want := found(t, first, used), found(t, first, sets[1].List[i]); got != want {
			t.Errorf("%s, %s after %s: %s\nwant %s", used.ID, first.name, last.name, got, want)
		}
		compared++
	}
	if compared < 50 {
		t.Errorf("%d recordings were compared", compared)
	}
}

func found(t *testing.T, s *slice, rule *ruleset.Rule) string {
	t.Helper()
	list, err := diagnose.Findings(s.run(), rule)
	if err != nil {
		t.Errorf("%s, %s: %v", rule.ID, s.name, err)
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
