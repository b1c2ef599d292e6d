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

// Who went less than a fifth of the way to the threshold may not have gone at all; where no number is left between, none is named.
func TestBand(t *testing.T) {
	for _, c := range []struct {
		is           string
		value        float64
		say          string
		band, beyond string
	}{
		{">= 0.005", 0.031, "a request took 31 ms", "5 to 25.8 ms", "above"},
		{"> 2", 7.33, "it was 7.33 times that", "2 to 6.26", "above"},
		{"> 0", 241_436, "connect() failed 241,436 times", "1 to 193,148", "above"},
		{"<= 0.5", 0.2, "20 % were good", "26 to 50 %", "below"},
		{"> 0", 1, "it failed 1 time", "", ""},
		{"> 2", 2.001, "it was 2 times that", "", ""},
		{"== 1", 1, "it is 1", "", ""},
	} {
		if band, beyond := Band(c.is, &c.value, c.say); band != c.band || beyond != c.beyond {
			t.Errorf("%s of %q: %q and %q, want %q and %q", c.is, c.say, band, beyond, c.band, c.beyond)
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
