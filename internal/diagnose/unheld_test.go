package diagnose

import (
	"testing"

	"plimsoll/internal/model"
	"plimsoll/internal/ruleset"
)

// TestUnheld: without a load of ours nothing found is never "healthy", and the
// sentence says what was not seen; where something may hold it names the nearest.
func TestUnheld(t *testing.T) {
	watch, far, load := model.Plan{}, model.Plan{Remote: &model.RemotePlan{}}, model.Plan{Load: &model.LoadPlan{}}
	cause := func(a model.FindingAnswer) []model.Finding { return []model.Finding{{Kind: ruleset.Cause, Answer: a}} }
	for name, c := range map[string]struct {
		plan     model.Plan
		findings []model.Finding
		want     string
		nearest  int
	}{
		"a watch":                      {watch, cause(model.Near), "No cause was found; how long users waited was not seen, so this does not prove that all is well.", 0},
		"series of others":             {far, nil, "Nothing in these series holds the service back; 1 rules could not be judged from them.", 0},
		"a load of ours":               {load, nil, "before", 1},
		"a watch, something suspected": {watch, cause(model.Suspected), "before", 1},
		"a watch, a symptom confirmed": {watch, []model.Finding{{Kind: ruleset.Symptom, Answer: model.Confirmed}}, "before", 1},
		"a watch, healthy and yet not": {watch, []model.Finding{{Kind: ruleset.Healthy, Answer: model.Confirmed}}, "No cause was found; how long users waited was not seen, so this does not prove that all is well.", 0},
	} {
		v := model.Verdict{Answer: model.AnswerUnclear, Sentence: "before", Findings: c.findings, Nearest: []model.Candidate{{}},
			Unknown: []model.Finding{{Rule: "a"}, {Rule: "a"}}}
		unheld(&v, c.plan)
		if v.Sentence != c.want || len(v.Nearest) != c.nearest || v.Answer != model.AnswerUnclear {
			t.Errorf("%s: %s: %q, %d nearest", name, v.Answer, v.Sentence, len(v.Nearest))
		}
	}
	v := model.Verdict{Answer: model.AnswerHealthy, Sentence: "before"}
	if unheld(&v, watch); v.Sentence != "before" {
		t.Errorf("healthy with grounds: %q", v.Sentence)
	}
}
