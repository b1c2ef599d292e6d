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

// TestDataTellsOfEachMomentThatWasRead: of an hour that was read every second each moment has a value, though there are fewer places than
// readings, and of a hole in it there is none.
func TestDataTellsOfEachMomentThatWasRead(t *testing.T) {
	c := svg.Chart{To: 3_600_000, Format: micros, Lines: []svg.Line{{Gap: 2500}}}
	hole := func(at int64) bool { return at > 1_000_000 && at < 1_200_000 }
	for at := int64(0); at <= c.To; at += 1000 {
		if !hole(at) {
			c.Lines[0].Points = append(c.Lines[0].Points, svg.Point{Time: at, Value: 1})
		}
	}
	raw, err := dataOf(&c, waits.base)
	check(t, err)
	var got struct {
		Lines []struct {
			Gap   int64
			Times []int64
		}
	}
	check(t, json.Unmarshal([]byte(raw), &got))
	line := got.Lines[0]
	if len(line.Times) >= len(c.Lines[0].Points)/2 {
		t.Fatalf("%d places of %d readings: nothing was thinned", len(line.Times), len(c.Lines[0].Points))
	}
	for moment := int64(0); moment <= c.To; moment += 500 {
		nearest, at := c.To, int64(0)
		for _, step := range line.Times {
			at += step
			nearest = min(nearest, max(at-moment, moment-at))
		}
		if told := nearest <= line.Gap; told != !hole(moment) && (moment < 970_000 || moment > 1_030_000) && (moment < 1_170_000 || moment > 1_230_000) {
			t.Fatalf("after %d ms: told %v, the nearest place is %d ms away, of at most %d", moment, told, nearest, line.Gap)
		}
	}
}
