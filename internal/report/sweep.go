package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// Sweep draws what a sweep found: for each combination of values the good
// replies a second and the 99th percentile, with their intervals.
func Sweep(w io.Writer, s model.Sweep, o TextOptions) error {
	p := newPaper(o)
	p.chart(s, "GOOD REQUESTS PER SECOND", layout.Rate, func(x model.SweepPoint) model.Interval { return x.GoodRPS })
	p.blank()
	p.chart(s, "99TH PERCENTILE OF WHAT USERS WAITED", layout.Micros, func(x model.SweepPoint) model.Interval { return x.P99 })
	p.blank()
	text := fmt.Sprintf("%d runs each, in random order (seed %d); o is the mean, the dashes its 95 %% interval", s.Repeat, s.Seed)
	if s.Repeat == 1 {
		text = fmt.Sprintf("one run each, in random order (seed %d), so how runs differ by themselves is not known; --repeat 3 tells", s.Seed)
	}
	p.para(0, dim, text)
	for _, f := range s.Findings {
		if s.Repeat > 1 {
			p.para(0, plain, sweepSentence(f))
		}
	}
	if s.Restored {
		p.para(0, plain, "What was set before is set again.")
	}
	return p.print(w)
}

// sweepSentence says whether the values of a setting made a difference.
func sweepSentence(f model.SweepFinding) string {
	what := "Good requests a second"
	if f.Measure == "p99_us" {
		what = "The 99th percentile"
	}
	switch best := layout.Line(strings.Join(f.Best, " ")); {
	case slices.Equal(f.Best, f.Worst):
		return what + ": one value, so nothing to compare."
	case !f.Known:
		return what + ": whether the values make a difference is not known."
	case f.Beyond:
		return fmt.Sprintf("%s: the values make a difference (chance alone would show as much in %s of such sweeps); best is %s.", what, rarely(f.Chance), best)
	default:
		return fmt.Sprintf("%s: no difference beyond chance (which would show as much in %s of such sweeps).", what, rarely(f.Chance))
	}
}

func rarely(chance float64) string {
	if chance < 0.01 {
		return "less than 1 %"
	}
	return layout.Share(chance)
}

// chart draws one measure: a line for each point, from 0 to the largest value.
func (p *paper) chart(s model.Sweep, title string, amount func(float64) string, of func(model.SweepPoint) model.Interval) {
	p.line(0, bold, title)
	widest, most := 0, 0.0
	var labels []string
	for _, x := range s.Points {
		label := layout.Line(strings.Join(x.Settings, " "))
		labels = append(labels, label)
		widest = max(widest, len(label))
		most = max(most, of(x).High)
	}
	if most == 0 {
		most = 1
	}
	beside := widest+2+11 <= p.width/2
	room := p.width - 11
	if beside {
		room -= widest + 2
	}
	for i, x := range s.Points {
		e := of(x)
		picture := fmt.Sprintf("%9s  %s", amount(e.Mean), whiskers(e, most, room))
		if beside {
			p.line(0, plain, fmt.Sprintf("%-*s  %s", widest, labels[i], picture))
			continue
		}
		p.line(0, plain, labels[i])
		p.line(0, plain, picture)
	}
}

// whiskers draws an interval with its mean on a line of so many columns.
func whiskers(e model.Interval, most float64, columns int) string {
	at := func(v float64) int { return min(int(v/most*float64(columns-1)+0.5), columns-1) }
	line := []rune(strings.Repeat(" ", columns))
	for i := at(e.Low); i <= at(e.High); i++ {
		line[i] = '-'
	}
	if e.Known {
		line[at(e.Low)], line[at(e.High)] = '[', ']'
	}
	line[at(e.Mean)] = 'o'
	return strings.TrimRight(string(line), " ")
}
