package rulesuite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
	"plimsoll/internal/report"
	"plimsoll/internal/ruleset"
	"plimsoll/rules"
)

// Of every cause it is written down, and was read by a person, by what one sees that it is gone: a value that fell below what makes the
// cause, or rose above. What tells the cause from others, and is the same without it, says "stays: true" and is none. A new rule's
// line comes with PLIMSOLL_UPDATE=1; read whether more of it, or less, is good.
func TestSuccessOfEveryCauseHasTheRightDirection(t *testing.T) {
	set, err := ruleset.LoadTried(rules.FS)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, rule := range set.List {
		if rule.Kind != ruleset.Cause {
			continue
		}
		clue, becomes := report.Success(ofRule(rule))
		b.WriteString(rule.ID + ": " + sentenceOf(rule, clue, becomes) + "\n")
	}
	name := filepath.Join("testdata", "success.txt")
	if os.Getenv("PLIMSOLL_UPDATE") != "" {
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("what shows success (-read +now):\n%s", diff)
	}
}

// ofRule is a finding of a rule of which all holds, each value on its threshold.
func ofRule(rule *ruleset.Rule) model.Finding {
	f := model.Finding{Rule: rule.ID, Kind: rule.Kind}
	for _, c := range rule.Clues {
		if c.From == ruleset.Packets {
			continue
		}
		value := c.Threshold.Bound
		say, _ := c.SayText.Fill(ruleset.Facts{Value: ruleset.Number(value), Subject: map[string]string{}, Labels: map[string]string{}})
		if say == "" {
			say = c.Say
		}
		f.Clues = append(f.Clues, model.Clue{ID: c.ID, Role: c.Role, Is: c.Is, Say: say, Value: &value, Truth: model.True, Stays: c.Stays})
	}
	return f
}

// sentenceOf is the line of a rule: the sentence that its sign is known by, and what becomes of its number.
func sentenceOf(rule *ruleset.Rule, id, becomes string) string {
	for _, c := range rule.Clues {
		if c.ID == id && becomes != "" {
			return becomes + " of: " + c.Say
		}
		if c.ID == id {
			return "gone is: " + c.Say
		}
	}
	return "only users tell"
}
