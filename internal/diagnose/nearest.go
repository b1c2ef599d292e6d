package diagnose

import (
	"cmp"
	"math"
	"slices"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/ruleset"
)

// mostNearest is how many candidates an unclear verdict lists.
const mostNearest = 3

// halfway is how near a clue that was not measured brings a cause: it may be
// true or not.
const halfway = 0.5

// nearest lists the causes, and the limits, that come closest to being it, of
// each rule the closest subject: suspected ones, then those of which most holds. What
// was ruled out is none.
func nearest(open []*candidate, unknown []model.Finding) []model.Candidate {
	var list []model.Finding
	for _, c := range open {
		if c.Answer != model.Confirmed && !c.explained {
			list = append(list, c.Finding)
		}
	}
	list = slices.DeleteFunc(append(list, unknown...), func(f model.Finding) bool {
		return f.Kind != ruleset.Cause && f.Kind != ruleset.Capacity || len(f.Clues) > 0 && f.Clues[0].ID == "applies" ||
			f.Answer != model.Suspected && closeness(f) == 0 // of which there was nothing: not near
	})
	slices.SortStableFunc(list, func(a, b model.Finding) int {
		return cmp.Or(
			cmp.Compare(suspicion(b), suspicion(a)),
			cmp.Compare(closeness(b), closeness(a)),
			byImpact(a, b),
		)
	})
	out := []model.Candidate{}
	for _, f := range list {
		known := slices.ContainsFunc(out, func(c model.Candidate) bool { return c.Rule == f.Rule })
		if known || len(out) == mostNearest {
			continue
		}
		c := model.Candidate{Rule: f.Rule, Title: f.Title, Subject: f.Subject, Answer: f.Answer, For: []string{}}
		c.Settle, c.ByHand = settle(f)
		for _, clue := range f.Clues {
			if clue.Truth == model.True && clue.Say != "" {
				c.For = append(c.For, clue.Say)
			}
		}
		out = append(out, c)
	}
	return out
}

func suspicion(f model.Finding) int {
	if f.Answer == model.Suspected {
		return 1
	}
	return 0
}

// closeness is 1 where all that a cause needs is there, and less for each clue
// that is not, by how far it is from its threshold. A cause of which much else
// holds is closer than one that has a single clue, not far from its threshold.
func closeness(f model.Finding) float64 {
	near, hold, all := 1.0, 1.0, 1.0
	for _, c := range f.Clues {
		if c.Role != model.Needs && c.Role != model.Decides {
			continue
		}
		all++
		switch c.Truth {
		case model.True:
			hold++
		case model.Unknown:
			near *= halfway
		default:
			near *= approach(c)
		}
	}
	return near * hold / all
}

// approach says how far a clue that is false got towards its threshold: 0 not
// at all, never quite 1.
func approach(c model.Clue) float64 {
	const never = 0.99
	is, err := ruleset.ParseComparison(c.Is)
	if err != nil || c.Value == nil {
		return 0
	}
	way := *c.Value / is.Bound
	if is.Op == "<" || is.Op == "<=" {
		way = is.Bound / *c.Value
	}
	if math.IsNaN(way) {
		return 0
	}
	return min(max(way, 0), never)
}

// settle says what would tell whether a finding is the cause: the clue that is
// missing, or else the one that speaks against it, or where to look.
func settle(f model.Finding) (say, byHand string) {
	for _, t := range []model.Truth{model.Unknown, model.False} {
		for _, c := range f.Clues {
			if c.Truth != t || c.Role != model.Needs && c.Role != model.Decides {
				continue
			}
			if t == model.Unknown {
				return "measure what was not: " + c.Missing, c.ByHand
			}
			return c.Say + "; it would be the cause at " + layout.Limit(c.Is, c.Value, c.Say), c.ByHand
		}
	}
	for _, x := range f.Fix {
		if x.Command != "" {
			return "all that was measured fits; whether its fix helps would tell", x.Command
		}
	}
	return "see what its clues say, by hand", ""
}
