package lab

import (
	"cmp"
	"slices"
	"strings"

	"plimsoll/internal/model"
)

// Tally is what came of many trials.
type Tally struct {
	Trials int `json:"trials"`
	Right  int `json:"right"`
	// Failed trials gave no judgement.
	Failed int `json:"failed"`
	// Cells is the confusion matrix without its zeros: of runs with that truth, how
	// many got that name. Healthy twins are in it, with the truth "mended".
	Cells []Cell `json:"cells"`
	// Rules are those that were the truth of a run, or were named in one.
	Rules []RuleScore `json:"rules"`
	// Healthy counts runs in which nothing was to be named (twins among them), Quiet
	// those of them in which nothing was.
	Healthy int `json:"healthy"`
	Quiet   int `json:"quiet"`
	// Compared counts the twins, Moved those that were better than their case.
	Compared int `json:"compared"`
	Moved    int `json:"moved"`
	// VerdictSeconds are all times from a run's last reading to its verdict, ascending.
	VerdictSeconds []float64 `json:"verdict_seconds"`
}

// Cell is one place of the confusion matrix.
type Cell struct {
	Truth string `json:"truth"`
	Named string `json:"named"`
	Runs  int    `json:"runs"`
	Right bool   `json:"right"`
}

// RuleScore counts, for one rule, the runs in which it was the truth, those in
// which it was named, and those in which both.
type RuleScore struct {
	Rule  string `json:"rule"`
	Truth int    `json:"truth"`
	Named int    `json:"named"`
	Both  int    `json:"both"`
	// Precision is Both of Named, Recall Both of Truth (ratios); nil of none.
	Precision *float64 `json:"precision"`
	Recall    *float64 `json:"recall"`
}

// Mended is the truth of a healthy twin in the confusion matrix.
const Mended = "mended"

// noRule is the truth, in the confusion matrix, of a fault that no rule names.
const noRule = "no rule names it"

// Count adds up trials. Those that could not be driven are none.
func Count(trials []*Trial) Tally {
	t := Tally{Cells: []Cell{}, VerdictSeconds: []float64{}}
	cells := map[Cell]int{}
	scores := map[string]*RuleScore{}
	for _, trial := range trials {
		if trial.Refused != "" {
			continue
		}
		t.Trials++
		if trial.Failure != "" {
			t.Failed++
		}
		if len(trial.Wrong()) == 0 {
			t.Right++
		}
		if trial.Moved != nil {
			t.Compared++
			if trial.Moved.Yes {
				t.Moved++
			}
		}
		for _, s := range trial.Shots() {
			cells[s.cell(s == trial.Twin)]++
			s.score(scores)
			if s.Truth.Answer != model.AnswerCause {
				t.Healthy++
				if s.Answer != model.AnswerCause {
					t.Quiet++
				}
			}
			if s.VerdictSeconds != nil {
				t.VerdictSeconds = append(t.VerdictSeconds, *s.VerdictSeconds)
			}
		}
	}
	slices.Sort(t.VerdictSeconds)
	t.Cells, t.Rules = sortedCells(cells), sortedScores(scores)
	return t
}

// cell is the run's place in the confusion matrix: what binds first against
// what is named first. Where several rules are right and one of them is named,
// it is the truth.
func (s *Shot) cell(twin bool) Cell {
	c := Cell{Truth: string(s.Truth.Answer), Named: string(s.Answer), Right: s.Answer == s.Truth.Answer}
	if twin {
		c.Truth = Mended
	}
	if s.Truth.Answer == model.AnswerCause {
		c.Truth = noRule
		if len(s.Truth.Root) > 0 {
			c.Truth = s.truth(s.Truth.Root)
		}
	}
	if s.Answer == model.AnswerCause && len(s.Named) > 0 {
		c.Named = s.Named[0]
		c.Right = c.Named == c.Truth
	}
	return c
}

// truth is the rule that stands for a limit: the one that was named, else the first.
func (s *Shot) truth(rules []string) string {
	for _, r := range s.Named {
		if slices.Contains(rules, r) {
			return r
		}
	}
	return rules[0]
}

// score counts a run for each rule that is its truth or is named. A limit that
// cannot show yet is neither.
func (s *Shot) score(scores map[string]*RuleScore) {
	of := func(rule string) *RuleScore {
		if scores[rule] == nil {
			scores[rule] = &RuleScore{Rule: rule}
		}
		return scores[rule]
	}
	right := map[string]bool{}
	for i, n := range s.Truth.Limits() {
		rule := s.truth(n.Root)
		named := slices.Contains(s.Named, rule)
		if i > 0 && n.Hidden && !named || right[rule] {
			continue
		}
		right[rule] = true
		of(rule).Truth++
		if named {
			of(rule).Both++
		}
	}
	for _, r := range s.Named {
		of(r).Named++
		if !right[r] && slices.Contains(s.Truth.roots(), r) {
			of(r).Truth++ // another of several that are right
			of(r).Both++
		}
	}
}

func sortedCells(cells map[Cell]int) []Cell {
	list := []Cell{}
	for c, n := range cells {
		c.Runs = n
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Cell) int {
		return cmp.Or(strings.Compare(a.Truth, b.Truth), compareBool(b.Right, a.Right), cmp.Compare(b.Runs, a.Runs), strings.Compare(a.Named, b.Named))
	})
	return list
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func sortedScores(scores map[string]*RuleScore) []RuleScore {
	list := []RuleScore{}
	for _, s := range scores {
		s.Precision, s.Recall = ratio(s.Both, s.Named), ratio(s.Both, s.Truth)
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b RuleScore) int { return strings.Compare(a.Rule, b.Rule) })
	return list
}

func ratio(a, b int) *float64 {
	if b == 0 {
		return nil
	}
	r := float64(a) / float64(b)
	return &r
}

// Score is how another way of judging did on the same recordings.
type Score struct {
	// Causes counts runs with a cause, Right those in which the rules that the
	// way leads to hold what binds first, Alone those in which they hold
	// nothing that is not the truth.
	Causes int `json:"causes"`
	Right  int `json:"right"`
	Alone  int `json:"alone"`
	// Healthy counts runs in which nothing is to be named, Quiet those in which nothing was.
	Healthy int `json:"healthy"`
	Quiet   int `json:"quiet"`
}

// Add counts one run: says tells whether anything was said of it, rules is what
// that leads to.
func (sc *Score) Add(s *Shot, says bool, rules []string) {
	if s.Truth.Answer != model.AnswerCause {
		sc.Healthy++
		if !says {
			sc.Quiet++
		}
		return
	}
	sc.Causes++
	if !slices.ContainsFunc(rules, func(r string) bool { return slices.Contains(s.Truth.Root, r) }) {
		return
	}
	sc.Right++
	if !slices.ContainsFunc(rules, func(r string) bool { return !slices.Contains(s.Truth.roots(), r) }) {
		sc.Alone++
	}
}
