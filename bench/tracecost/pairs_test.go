package main

import (
	"bytes"
	"testing"
)

// The numbers are those of the binomial distribution's tables.
func TestIntervalOfTheMedian(t *testing.T) {
	for n, want := range map[int]int{1: 0, 5: 0, 6: 0, 9: 1, 12: 2, 20: 5, 24: 6, 30: 9, 40: 13} {
		if got := outside(n); got != want {
			t.Errorf("of %d values %d lie outside on each side, want %d", n, got, want)
		}
	}
}

func TestPairsAreFoundAgain(t *testing.T) {
	const name = "bin/plimsoll watch -d 60s --trace full"
	var text bytes.Buffer
	text.WriteString("something else\n")
	want := pair{0.99125, 1.0125}
	want.print(&text, name)
	found := 0
	err := eachPair(&text, func(n string, p pair) {
		found++
		if n != name || p != want {
			t.Errorf("found %v of %q", p, n)
		}
	})
	if err != nil || found != 1 {
		t.Errorf("found %d pairs, %v, want one", found, err)
	}
	for _, bad := range []string{pairLine + "0.99", pairLine + "x\t1\tlight", pairLine + "1\tx\tlight"} {
		if err := eachPair(bytes.NewBufferString(bad), func(string, pair) {}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
