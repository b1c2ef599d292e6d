package judge

import (
	"slices"
	"testing"

	"plimsoll/internal/model"
)

func TestLineOfAFleet(t *testing.T) {
	half, all := 0.5, 1.0
	root := model.Finding{Rule: "net.x", Kind: "cause", Answer: model.Suspected, Impact: &half}
	line := Line("web", model.Report{Verdict: model.Verdict{Answer: model.AnswerCause, Sentence: "It is x.", Root: []model.Finding{root},
		Findings: []model.Finding{root, {Rule: "load.y", Kind: "symptom", Answer: model.Near, Impact: &all}}, Unknown: make([]model.Finding, 3)}})
	if line.Impact != &half || line.Unknown != 3 || len(line.Rules) != 1 || line.Rules[0] != "net.x" || line.Notes == nil {
		t.Errorf("the line is %+v, want the impact of what holds", line)
	}
}

// Who loses most stands first; where nobody knows how much, what is wrong stands before what is not.
func TestSortOfAFleet(t *testing.T) {
	tenth, most := 0.1, 0.9
	hosts := []model.FleetHost{{Host: "silent"}, {Host: "b-well", Answer: model.AnswerHealthy}, {Host: "a-well", Answer: model.AnswerHealthy}, {Host: "vague", Answer: model.AnswerUnclear},
		{Host: "slight", Answer: model.AnswerCause, Impact: &tenth}, {Host: "full", Answer: model.AnswerCapacity}, {Host: "cause", Answer: model.AnswerCause}, {Host: "bad", Answer: model.AnswerUnclear, Impact: &most}}
	Sort(hosts)
	var got []string
	for _, h := range hosts {
		got = append(got, h.Host)
	}
	if want := []string{"bad", "slight", "cause", "full", "vague", "a-well", "b-well", "silent"}; !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
}
