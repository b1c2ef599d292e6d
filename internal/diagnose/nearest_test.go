package diagnose

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
	"plimsoll/internal/ruleset"
)

// clueOf writes a clue that holds a value against a threshold.
func clueOf(id string, t model.Truth, value float64, is string) model.Clue {
	return model.Clue{ID: id, Role: model.Needs, Truth: t, Value: &value, Is: is, Say: fmt.Sprintf("%s is %v", id, value), ByHand: "look " + id}
}

func causeOf(rule string, a model.FindingAnswer, clues ...model.Clue) model.Finding {
	return model.Finding{Rule: rule, Title: "T " + rule, Kind: ruleset.Cause, Answer: a, Subject: map[string]string{"host": "s"}, Clues: clues}
}

func TestNearest(t *testing.T) {
	half := clueOf("half", model.False, 0.4, ">= 0.8")
	missing := model.Clue{ID: "gone", Role: model.Needs, Truth: model.Unknown, Missing: "x_total: denied"}
	suspected := causeOf("suspected", model.Suspected, clueOf("there", model.True, 1, "> 0"))
	suspected.Fix = []model.Fix{{Command: "look there"}}
	explained := &candidate{Finding: causeOf("explained", model.Suspected, clueOf("there", model.True, 1, "> 0")), explained: true}
	symptom := causeOf("symptom", model.Near, half)
	symptom.Kind = ruleset.Symptom
	limit := causeOf("much.else", model.Near, clueOf("one", model.True, 1, "> 0"), clueOf("two", model.True, 1, "> 0"), clueOf("last", model.False, 0.6, ">= 0.8"))
	limit.Kind = ruleset.Capacity
	further := causeOf("unknown", model.UnknownState, missing, clueOf("small", model.False, 900, "< 6"))
	further.Subject = map[string]string{"host": "t"}

	got := nearest([]*candidate{{Finding: suspected}, explained, {Finding: symptom}}, []model.Finding{
		limit,
		causeOf("two.off", model.UnknownState, missing, half, half), further,
		causeOf("unknown", model.UnknownState, missing, clueOf("small", model.False, 9, "< 6")),
		causeOf("nothing", model.UnknownState, model.Clue{ID: "applies", Truth: model.Unknown}),
	})
	var lines []string
	for _, c := range got {
		lines = append(lines, strings.Join([]string{c.Rule, c.Subject["host"], string(c.Answer), strings.Join(c.For, "; "), c.Settle, c.ByHand}, "|"))
	}
	want := `suspected|s|suspected|there is 1|all that was measured fits; whether its fix helps would tell|look there
much.else|s|near|one is 1; two is 1|last is 0.6; it would be the cause at 0.8 or more|look last
unknown|s|unknown||measure what was not: x_total: denied|`
	if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
