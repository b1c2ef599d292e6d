package report

import (
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// Success says by which of a finding's clues one sees that its cause is gone, and what its value becomes then; "" for both where only users
// tell.
func Success(f model.Finding) (clue, becomes string) {
	c := signOf(f.Clues)
	if c == nil {
		return "", ""
	}
	return c.ID, layout.Gone(c.Is, c.Value, c.Say)
}
