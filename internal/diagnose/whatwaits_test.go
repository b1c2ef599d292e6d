package diagnose

import (
	"testing"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
)

// How far away users are is told first, and beside what programs did.
func TestWhatWaits(t *testing.T) {
	for want, clues := range map[string][]model.Clue{
		"nothing held it back":                 nil,
		"40 ms away; nothing held it back":     {{ID: "way", Truth: model.True, Say: "40 ms away"}},
		"40 ms away; it slept; a tty was slow": {{ID: "terminal", Truth: model.True, Say: "a tty was slow"}, {ID: "paces", Truth: model.True, Say: "it slept"}, {ID: "way", Truth: model.True, Say: "40 ms away"}},
		"make started cc":                      {{ID: "who", Truth: model.True, Say: "cc used a CPU"}, {ID: "again", Truth: model.True, Say: "make started cc"}},
		"a tty was slow":                       {{ID: "terminal", Truth: model.True, Say: "a tty was slow"}, {ID: "way", Truth: model.False, Say: "40 ms away"}},
	} {
		if got := whatWaits(&candidate{Finding: model.Finding{Clues: clues}}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A sentence lists what a label says, each value once, the largest sample's first, and no more than can be read.
func TestEvery(t *testing.T) {
	of := func(host, command string, value float64) query.Sample {
		return query.Sample{Labels: map[string]string{"host": host, "command": command}, Value: value}
	}
	subject := map[string]string{"host": "s"}
	few := []query.Sample{of("s", "sort", 1), of("other", "tar", 9), of("s", "find", 3), of("s", "sort", 2)}
	if got := every(few, subject); got["command"] != "find, sort" || got["host"] != "s" {
		t.Errorf("%v", got)
	}
	var many []query.Sample
	for i := range mostNames + 2 {
		many = append(many, of("s", string(rune('a'+i)), float64(-i)))
	}
	if got := every(many, subject)["command"]; got != "a, b, c, d, e, f, g, h, 2 more" {
		t.Error(got)
	}
}
