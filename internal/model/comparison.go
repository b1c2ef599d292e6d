package model

import "slices"

// Comparison is what compare finds between two sides, A and B, each one run or
// several.
type Comparison struct {
	// Runs are the directories of both sides.
	Runs        [2][]string  `json:"runs"`
	Differences []Difference `json:"differences"`
	// Faster is the share of all pairs of replies, one of each side, in which B's
	// came faster; ties count half. nil where a side has no reply.
	Faster *float64 `json:"b_faster_share,omitempty"`
	// Configuration is what was set to something else, Signals what else was
	// different in the hold window, the largest effect first.
	Configuration []SignalChange `json:"configuration"`
	Signals       []SignalChange `json:"signals"`
	// NotComparable says what makes the runs runs of different things, if that was waived.
	NotComparable string   `json:"not_comparable,omitempty"`
	Notes         []string `json:"notes,omitempty"`
}

// ComparisonAnswer says what B is beside A.
type ComparisonAnswer string

// The answers.
const (
	Better       ComparisonAnswer = "better"
	Worse        ComparisonAnswer = "worse"
	NoDifference ComparisonAnswer = "no difference"
	// NotKnown: there is too little to tell by.
	NotKnown ComparisonAnswer = "not known"
)

// Difference is one measure on both sides.
type Difference struct {
	Name           string  `json:"name"`
	Unit           string  `json:"unit"`
	HigherIsBetter bool    `json:"higher_is_better"`
	A              float64 `json:"a"`
	B              float64 `json:"b"`
	// Ratio is B over A; Low and High are its 95 % interval. All are 0 where there
	// is no ratio, or too little to tell.
	Ratio  float64          `json:"ratio"`
	Low    float64          `json:"low"`
	High   float64          `json:"high"`
	Answer ComparisonAnswer `json:"answer"`
}

// SignalChange is one series on both sides: its mean level in the hold window, of
// a counter its mean rate.
type SignalChange struct {
	Series string  `json:"series"`
	A      float64 `json:"a"`
	B      float64 `json:"b"`
	// Effect is the difference in units of how much the series moves by itself.
	Effect float64 `json:"effect,omitempty"`
}

// Answer is the comparison in one word: worse if any measure is that counts, else
// better if any is, else that there is no difference.
func (c Comparison) Answer() ComparisonAnswer {
	best := NotKnown
	for _, d := range c.Differences {
		switch {
		case d.Answer == Worse && c.Outweighed(d):
		case d.Answer == Worse:
			return Worse
		case d.Answer == Better, d.Answer == NoDifference && best == NotKnown:
			best = d.Answer
		}
	}
	return best
}

// Outweighed says that a worse median does not count: users surely waited less than
// it says. Half of the requests were slower, but the others quicker by as much; or
// those who got in at once made most requests, and now all get in. Where the wait
// is too unsteady to tell, the median is the better witness, and counts.
func (c Comparison) Outweighed(d Difference) bool {
	if d.Name != "latency_p50" || d.Answer != Worse {
		return false
	}
	i := slices.IndexFunc(c.Differences, func(d Difference) bool { return d.Name == "wait" })
	if i < 0 {
		return false
	}
	wait := c.Differences[i]
	return wait.Answer == Better || wait.Answer == NoDifference && wait.High < d.Low
}
