package judge

import (
	"cmp"
	"slices"

	"plimsoll/internal/model"
	"plimsoll/internal/ruleset"
)

// Line is the report on a host in a line of its fleet.
func Line(host string, r model.Report) model.FleetHost {
	v := r.Verdict
	line := model.FleetHost{Host: host, Answer: v.Answer, Sentence: v.Sentence, Rules: []string{}, Unknown: len(v.Unknown), Notes: append([]string{}, r.Notes...)}
	for _, f := range slices.Concat(v.Root, v.Grounds) {
		if !slices.Contains(line.Rules, f.Rule) {
			line.Rules = append(line.Rules, f.Rule)
		}
	}
	for _, f := range slices.Concat(v.Root, v.Findings) {
		counts := f.Answer == model.Confirmed && f.Kind != ruleset.Healthy || slices.ContainsFunc(v.Root, func(root model.Finding) bool { return root.Rule == f.Rule })
		if counts && f.Impact != nil && (line.Impact == nil || *f.Impact > *line.Impact) {
			line.Impact = f.Impact
		}
	}
	return line
}

// Answers are the answers of a verdict by how much they want somebody; "" is of a host that could not be judged.
var Answers = []model.Answer{model.AnswerCause, model.AnswerCapacity, model.AnswerUnclear, model.AnswerHealthy, ""}

// Sort orders hosts by what their users lose, the most first. Where nobody can tell how much, a cause
// stands before what is none.
func Sort(hosts []model.FleetHost) {
	lost := func(h model.FleetHost) float64 {
		if h.Impact == nil {
			return -1
		}
		return *h.Impact
	}
	slices.SortFunc(hosts, func(a, b model.FleetHost) int {
		return cmp.Or(
			cmp.Compare(lost(b), lost(a)),
			cmp.Compare(slices.Index(Answers, a.Answer), slices.Index(Answers, b.Answer)),
			cmp.Compare(a.Host, b.Host),
		)
	})
}
