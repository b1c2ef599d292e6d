package page

import (
	"encoding/json"
	"html/template"
	"math"
	"slices"
	"strconv"

	"plimsoll/internal/page/svg"
)

// data is what a chart shows, for a script that tells values at a moment. They are words
// as the page has them, so that there is one way to write a number.
type data struct {
	Length int64      `json:"length"` // of the axis, in milliseconds
	Unit   string     `json:"unit,omitempty"`
	Lines  []lineData `json:"lines"`
	Words  []string   `json:"words"` // values, each once
	// Values are the words as numbers for a table, as precise as they are shown.
	Values []number `json:"values"`
}

// lineData is what a chart shows of one line.
type lineData struct {
	Gap int64 `json:"gap"` // how far a moment may be from the nearest of Times that tells of it, in milliseconds; 0 is any distance
	// Times are milliseconds since the one before, the first since the axis' beginning;
	// empty where they are those of the line before.
	Times []int64 `json:"times,omitempty"`
	// Most are places in Words, one for each time; Least where several readings are drawn
	// at one place, and empty where none of them differ.
	Most  []int `json:"most"`
	Least []int `json:"least,omitempty"`
}

// number is written with no more digits than a word of it has.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', 5, 64), nil
}

// dataOf writes what a chart shows as JSON that can stand in a page: encoding/json writes
// <, > and & by their numbers.
func dataOf(c *svg.Chart, unit string) (template.JS, error) {
	d := data{Length: c.To - c.From, Unit: unit, Words: []string{}, Values: []number{}}
	places := map[string]int{}
	place := func(v float64) int {
		word := c.Format(v)
		at, known := places[word]
		if !known {
			at = len(d.Words)
			places[word], d.Words, d.Values = at, append(d.Words, word), append(d.Values, number(v))
		}
		return at
	}
	var before []int64
	for _, l := range c.Lines {
		line := lineData{Gap: c.Reach(l), Most: []int{}}
		last := c.From
		for _, cell := range c.Cells(l) {
			line.Times = append(line.Times, cell.Time-last)
			line.Most, line.Least = append(line.Most, place(cell.Most)), append(line.Least, place(cell.Least))
			last = cell.Time
		}
		if slices.Equal(line.Most, line.Least) {
			line.Least = nil
		}
		if times := line.Times; len(d.Lines) > 0 && slices.Equal(times, before) {
			line.Times = nil
		} else {
			before = times
		}
		d.Lines = append(d.Lines, line)
	}
	raw, err := json.Marshal(d)
	return template.JS(raw), err
}
