package diagnose

import (
	"testing"

	"plimsoll/internal/model"
)

// How far away users are is told first, and beside what programs did.
func TestWhatWaits(t *testing.T) {
	for want, clues := range map[string][]model.Clue{
		"nothing held it back":                 nil,
		"40 ms away; nothing held it back":     {{ID: "way", Truth: model.True, Say: "40 ms away"}},
		"40 ms away; it slept; a tty was slow": {{ID: "terminal", Truth: model.True, Say: "a tty was slow"}, {ID: "paces", Truth: model.True, Say: "it slept"}, {ID: "way", Truth: model.True, Say: "40 ms away"}},
		"a tty was slow":                       {{ID: "terminal", Truth: model.True, Say: "a tty was slow"}, {ID: "way", Truth: model.False, Say: "40 ms away"}},
	} {
		if got := whatWaits(&candidate{Finding: model.Finding{Clues: clues}}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
