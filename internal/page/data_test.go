package page

import (
	"encoding/json"
	"math"
	"testing"

	"plimsoll/internal/page/svg"
)

// TestDataHasWordsAndNumbers: each word of a chart comes with its number, for a table, and what is no number with none.
func TestDataHasWordsAndNumbers(t *testing.T) {
	c := svg.Chart{From: 1000, To: 4000, Format: micros, Lines: []svg.Line{{Points: []svg.Point{{Time: 1000, Value: 1234.567}, {Time: 2000, Value: 2e6}, {Time: 3000, Value: math.NaN()}}}}}
	raw, err := dataOf(&c, waits.base)
	check(t, err)
	var got struct {
		Unit   string
		Words  []string
		Values []*float64
		Lines  []struct{ Most []int }
	}
	check(t, json.Unmarshal([]byte(raw), &got))
	if len(got.Words) != 3 || len(got.Values) != 3 || got.Unit != "microseconds" {
		t.Fatalf("%s", raw)
	}
	most := got.Lines[0].Most
	for i, want := range []struct {
		word  string
		value float64
	}{{"1.23 ms", 1234.6}, {"2 s", 2e6}} {
		if at := most[i]; got.Words[at] != want.word || *got.Values[at] != want.value {
			t.Errorf("point %d is %q, %v", i, got.Words[at], *got.Values[at])
		}
	}
	if got.Values[most[2]] != nil {
		t.Errorf("what is no number is %v", *got.Values[most[2]])
	}
}
