package lab

import (
	"fmt"
	"strings"
)

// Outcome is how the case as it is was judged.
func (t *Trial) Outcome() Outcome {
	switch {
	case t.Refused != "":
		return NotDriven
	case t.Faulty == nil:
		return Failed
	}
	return t.Faulty.Outcome
}

// ModeScore counts the outcomes of the trials in a mode.
type ModeScore struct {
	Mode   Mode            `json:"mode"`
	Counts map[Outcome]int `json:"counts"`
	// Cases holds, for each case, the same.
	Cases map[string]map[Outcome]int `json:"cases"`
}

// CountModes sorts trials by mode, in the order of Modes; those in the cases' own way are left out.
func CountModes(trials []*Trial) []ModeScore {
	list := []ModeScore{}
	for _, m := range Modes {
		s := ModeScore{Mode: m, Counts: map[Outcome]int{}, Cases: map[string]map[Outcome]int{}}
		for _, t := range trials {
			if t.Mode != m {
				continue
			}
			if s.Cases[t.Case] == nil {
				s.Cases[t.Case] = map[Outcome]int{}
			}
			s.Counts[t.Outcome()]++
			s.Cases[t.Case][t.Outcome()]++
		}
		if len(s.Cases) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// Words are counts of outcomes in words: "right", or "2 right, 1 unclear".
func Words(counts map[Outcome]int) string {
	var parts []string
	all := 0
	for _, o := range Outcomes {
		if n := counts[o]; n > 0 {
			all += n
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	if all == 1 {
		return strings.TrimPrefix(parts[0], "1 ")
	}
	return strings.Join(parts, ", ")
}
