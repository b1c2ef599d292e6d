package report

import (
	"slices"
	"testing"

	"plimsoll/internal/model"
)

// Who or what it was stands behind what decides and proves, and before what was needed, unless it is told already.
func TestWhoItWasIsToldEarly(t *testing.T) {
	clues := []model.Clue{
		{ID: "several", Role: model.Needs, Truth: model.True, Say: "ten waited"},
		{ID: "where", Role: model.Supports, Truth: model.True, Say: "in app", Names: map[string]string{"groupname": "app"}},
		{ID: "holder", Role: model.Supports, Truth: model.True, Say: "for mails", Names: map[string]string{"application_name": "mails"}},
		{ID: "age", Role: model.Supports, Truth: model.True, Say: "it began 2 s before"},
		{ID: "false", Role: model.Supports, Truth: model.False, Say: "for nobody", Names: map[string]string{"application_name": "x"}},
		{ID: "exact", Role: model.Proves, Truth: model.True, Say: "the kernel says so"},
		{ID: "theirs", Role: model.Decides, Truth: model.True, Say: "users waited"},
	}
	var got []string
	for _, c := range mostTelling(clues, "app waits") {
		got = append(got, c.ID)
	}
	want := []string{"theirs", "exact", "holder", "several", "where", "age"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
