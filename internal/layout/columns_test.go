package layout

import "testing"

func TestColumns(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "µs ›": 4, "漢字": 4, "ｆ": 2, "ｱ": 1, "e\u0301": 1, "한글x": 5, "█▁…": 3, "😀": 2} {
		if got := Columns(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
}
