package model

import "testing"

func TestLimitIsInTheSentencesUnit(t *testing.T) {
	at := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		clue Clue
		want string
	}{
		{Clue{Is: ">= 0.5", Value: at(0.947), Say: "94.7 % were waiting"}, "50 % or more"},
		{Clue{Is: ">= 0.9", Value: at(1.002), Say: "it used 100 % of its maxmemory"}, "90 % or more"},
		{Clue{Is: "< 0.9", Value: at(0.25), Say: "used 0.25 of a CPU"}, "less than 0.9"},
		{Clue{Is: "> 2", Value: at(0.5), Say: "it took 500 ms"}, "more than 2 s"},
		{Clue{Is: "<= 1048576", Value: at(2048), Say: "2 KiB were sent"}, "1 MiB or less"},
		{Clue{Is: "> 2", Say: "there was none of it"}, "more than 2"},
	} {
		if got := c.clue.Limit(); got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.clue.Is, c.clue.Say, got, c.want)
		}
	}
}
