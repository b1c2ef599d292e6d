package main

import "testing"

// TestHeld holds the places against those of tables of the sign test.
func TestHeld(t *testing.T) {
	for n, want := range map[int]int{1: 0, 5: 0, 6: 0, 8: 0, 9: 1, 12: 2, 20: 5, 30: 9} {
		if low, high := held(n); low != want || high != n-1-want {
			t.Errorf("of %d values the median lies between the places %d and %d, want %d and %d", n, low, high, want, n-1-want)
		}
	}
}
