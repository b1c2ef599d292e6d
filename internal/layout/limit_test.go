package layout

import "testing"

func TestLimitIsInTheSentencesUnit(t *testing.T) {
	at := func(v float64) *float64 { return &v }
	for _, c := range []struct {
		is    string
		value *float64
		say   string
		want  string
	}{
		{">= 0.5", at(0.947), "94.7 % were waiting", "50 % or more"},
		{">= 0.9", at(1.002), "it used 100 % of its maxmemory", "90 % or more"},
		{"< 0.9", at(0.25), "used 0.25 of a CPU", "less than 0.9"},
		{"> 2", at(0.5), "it took 500 ms", "more than 2 s"},
		{"<= 1048576", at(2048), "2 KiB were sent", "1 MiB or less"},
		{"> 2", nil, "there was none of it", "more than 2"},
	} {
		if got := Limit(c.is, c.value, c.say); got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.is, c.say, got, c.want)
		}
	}
}

// A value that is better goes away from its threshold, whichever side of it is the bad one.
func TestBetter(t *testing.T) {
	for is, want := range map[string]string{"> 0": "fewer", ">= 0.5": "less", "> 2": "less", "<= 0.1": "more", "< 3": "more", "== 1": ""} {
		if got := Better(is, nil, ""); got != want {
			t.Errorf("%s: %q, want %q", is, got, want)
		}
	}
}

func TestNear(t *testing.T) {
	for is, want := range map[string]bool{">= 0.5": true, ">= 0.45": false, "< 0.7": true, "> 0.76": false, "> 0": false, "odd": false} {
		if got := Near(is, 0.6); got != want {
			t.Errorf("0.6 is near %q: %v, want %v", is, got, want)
		}
	}
}
