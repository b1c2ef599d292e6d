package main

import "testing"

func TestQuantities(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "200": 200, "10k": 10_000, "1.5K": 1500, "2M": 2_000_000, "1m": 1_000_000, "-3": -3, "1e3": 1000} {
		var n int
		if err := (quantity[int]{&n}).Set(text); err != nil || n != want {
			t.Errorf("%q: %d, %v, want %d", text, n, err, want)
		}
	}
	for _, text := range []string{"", "k", "10kk", "ten", "1.5", "0.0001k", "NaN", "inf", "1e300", "0x10", "1_000", "10 k"} {
		n := 7
		if err := (quantity[int]{&n}).Set(text); err == nil || n != 7 {
			t.Errorf("%q: %d, %v, want an error and nothing set", text, n, err)
		}
	}
	var rate float64
	if err := (quantity[float64]{&rate}).Set("0.5"); err != nil || rate != 0.5 {
		t.Errorf("a rate of 0.5: %v, %v", rate, err)
	}
	if got := (quantity[float64]{&rate}).String(); got != "0.5" {
		t.Errorf("shown as %q", got)
	}
}
