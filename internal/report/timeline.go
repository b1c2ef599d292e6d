package report

import (
	"strings"
	"unicode/utf8"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

const (
	timelineColumns = 54 // leaves room for the highest value in 80 columns
	columnsASecond  = 4  // a short run is drawn no wider than this
)

// scale maps the seconds of a course to columns.
type scale struct {
	perSecond int // columns a second takes, or
	perColumn int // seconds a column takes
	columns   int
}

func newScale(seconds int) scale {
	if seconds <= timelineColumns {
		k := min(timelineColumns/seconds, columnsASecond)
		return scale{k, 1, k * seconds}
	}
	n := (seconds + timelineColumns - 1) / timelineColumns
	return scale{1, n, (seconds + n - 1) / n}
}

// column returns the column in which second i begins.
func (s scale) column(i int) int { return i / s.perColumn * s.perSecond }

// spark draws one row of values, a value a second; a column that holds several
// seconds shows their mean.
func (s scale) spark(values []float64) string {
	means := make([]float64, 0, s.columns)
	for i := 0; i < len(values); i += s.perColumn {
		part := values[i:min(i+s.perColumn, len(values))]
		sum := 0.0
		for _, v := range part {
			sum += v
		}
		means = append(means, sum/float64(len(part)))
	}
	peak := 0.0
	for _, v := range means {
		peak = max(peak, v)
	}
	var b strings.Builder
	for _, v := range means {
		b.WriteString(strings.Repeat(string(layout.Bar(v, peak)), s.perSecond))
	}
	return b.String()
}

// phases writes each phase's name under the column where it begins, as much of
// it as there is room for.
func (s scale) phases(timeline []model.Second) string {
	row := []rune(strings.Repeat(" ", s.columns+8))
	end := 0
	for i := 0; i < len(timeline); {
		j := i
		for j < len(timeline) && timeline[j].Phase == timeline[i].Phase {
			j++
		}
		at, next := s.column(i), s.column(j)
		if j == len(timeline) {
			next = len(row)
		}
		if at >= end {
			copy(row[at:next], []rune("|"+timeline[i].Phase))
			end = at + 1
		}
		i = j
	}
	return strings.TrimRight(string(row), " ")
}

// times writes the first and the last second under the picture.
func (s scale) times(seconds int) string {
	last := layout.Count(int64(seconds)) + " s"
	pad := s.columns - utf8.RuneCountInString("0 s"+last)
	return "0 s" + strings.Repeat(" ", max(pad, 2)) + last
}

// timeline draws good and failed replies by the second.
func timeline(p *paper, seconds []model.Second) {
	if len(seconds) < 2 {
		return
	}
	s := newScale(len(seconds))
	good, failed := make([]float64, len(seconds)), make([]float64, len(seconds))
	for i, x := range seconds {
		good[i] = float64(x.Good)
		failed[i] = float64(x.Replies - x.Good + x.Failed)
	}
	p.blank()
	row := func(label string, st style, text string) {
		p.put(0, p.paint(bold, label), p.paint(plain, strings.Repeat(" ", labelWidth-len(label))), p.paint(st, text))
	}
	row("good/s", green, s.spark(good)+"  "+peak(good))
	row("failed/s", red, s.spark(failed)+"  "+peak(failed))
	row("", dim, s.phases(seconds))
	row("", dim, s.times(len(seconds)))
}

// peak words the highest of values; none of it is worth a word of its own.
func peak(values []float64) string {
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	if top == 0 {
		return "none"
	}
	return "max " + layout.Count(int64(top))
}
