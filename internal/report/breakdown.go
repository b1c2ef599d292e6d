package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
)

// The columns of the waterfall: what, how long, which share, the bar, where.
const (
	partColumns  = 26
	timeColumns  = 9
	shareColumns = 7
	whereColumns = 20
	leastBar     = 80 - partColumns - timeColumns - shareColumns - whereColumns - 4
	mostBar      = 40
)

// leastShare is below which a part has no line of its own.
const leastShare = 0.001

// breakdown draws where the mean request's time went: each part begins where
// the one before it ended, and what is inside a part stands beneath it.
func breakdown(p *paper, b *model.Breakdown) {
	if b == nil || b.MeanSeconds <= 0 {
		return
	}
	p.heading(bold, "WHERE THE TIME GOES")
	p.para(0, plain, means(b))
	p.blank()
	w := &waterfall{paper: p, mean: b.MeanSeconds, bar: min(max(p.width-80+leastBar, leastBar), mostBar)}
	w.draw(b.Parts, 0, 0, b.MeanSeconds)
	p.blank()
	p.para(0, bold, attribution(b))
	if w.small > 0 {
		p.para(0, dim, plural(w.small, "part", "parts")+" under 0.1 % not shown (--json lists them all)")
	}
	if w.estimates {
		p.para(0, dim, "~ estimated, or by Little's law; --json says how each part was measured")
	}
	for _, why := range w.unseen {
		p.hang(0, 2, "?", plain, "not seen: "+strings.Join(w.unknown[why], ", ")+": "+why)
	}
	for _, s := range b.Warnings {
		p.hang(0, 2, "!", plain, s)
	}
}

// means tells the good requests from the others where both are there.
func means(b *model.Breakdown) string {
	s := fmt.Sprintf("the mean of %s requests, %s", layout.Count(b.Requests), layout.Micros(b.MeanSeconds*1e6))
	if b.Good != nil && b.Bad != nil {
		s += fmt.Sprintf("; the good ones took %s, the other %s took %s",
			layout.Micros(b.Good.Seconds*1e6), layout.Count(b.Bad.Requests), layout.Micros(b.Bad.Seconds*1e6))
	}
	return s
}

func attribution(b *model.Breakdown) string {
	s := fmt.Sprintf("attributed %s of %s", percent(b.AttributedShare), layout.Micros(b.MeanSeconds*1e6))
	if b.NotAttributedSeconds > 0 {
		s += fmt.Sprintf("; not attributed: %s (%s)", layout.Micros(b.NotAttributedSeconds*1e6), percent(b.NotAttributedSeconds/b.MeanSeconds))
	}
	return s
}

// waterfall draws parts, and remembers what it could not draw.
type waterfall struct {
	*paper
	mean      float64
	bar       int // columns of a bar that is the whole mean
	small     int
	estimates bool
	unseen    []string            // reasons, in their order
	unknown   map[string][]string // reason → parts
}

// draw writes parts that lie within length seconds from start.
func (w *waterfall) draw(parts []model.BreakdownPart, depth int, start, length float64) {
	end := start + length
	for _, part := range parts {
		switch {
		case part.Seconds == nil:
			w.missing(part)
			w.draw(part.Parts, depth, start, 0)
		case *part.Seconds == 0:
		case *part.Seconds < leastShare*w.mean:
			w.small++
			start += *part.Seconds
		default:
			w.row(part, depth, start)
			if len(part.Parts) > 0 {
				w.draw(part.Parts, depth+1, start, *part.Seconds)
			}
			start += *part.Seconds
		}
	}
	if rest := end - start; rest >= leastShare*w.mean {
		w.row(model.BreakdownPart{Text: "not attributed", Seconds: &rest}, depth, start)
	}
}

func (w *waterfall) missing(part model.BreakdownPart) {
	if part.Why == "" {
		return
	}
	if w.unknown == nil {
		w.unknown = map[string][]string{}
	}
	if w.unknown[part.Why] == nil {
		w.unseen = append(w.unseen, part.Why)
	}
	what := part.Text
	if part.Process != "" {
		what += " (" + part.Host + " " + part.Process + ")"
	}
	w.unknown[part.Why] = append(w.unknown[part.Why], what)
}

func (w *waterfall) row(part model.BreakdownPart, depth int, start float64) {
	seconds := *part.Seconds
	took := layout.Micros(seconds * 1e6)
	if part.How == model.Estimate || part.How == model.Little {
		took = "~" + took
		w.estimates = true
	}
	text := cut(strings.Repeat("  ", depth)+layout.Line(part.Text), partColumns-1)
	where := cut(layout.Line(strings.TrimSpace(part.Host+" "+part.Process)), whereColumns)
	w.line(0, plain, padded(text, partColumns)+
		before(took, timeColumns)+before(percent(min(seconds/w.mean, 1)), shareColumns)+"  "+
		padded(bar(start/w.mean, seconds/w.mean, w.bar), w.bar)+"  "+where)
}

// bar draws the stretch of a line of so many columns that a part takes up.
func bar(start, length float64, columns int) string {
	from := int(math.Round(start * float64(columns)))
	to := int(math.Round((start + length) * float64(columns)))
	from, to = min(max(from, 0), columns), min(max(to, 0), columns)
	if length*float64(columns) >= 0.5 && to == from {
		from, to = min(from, columns-1), min(from, columns-1)+1
	}
	if to > from {
		return strings.Repeat(" ", from) + strings.Repeat("█", to-from)
	}
	return strings.Repeat(" ", min(from, columns-1)) + "▏"
}

// percent writes a share with as many digits as it deserves in a table.
func percent(v float64) string {
	switch {
	case v > 0 && v < leastShare/2:
		return "<0.1 %"
	case v < 0.0995:
		return fmt.Sprintf("%.1f %%", v*100)
	}
	return fmt.Sprintf("%.0f %%", v*100)
}

func padded(s string, columns int) string {
	return s + strings.Repeat(" ", max(columns-utf8.RuneCountInString(s), 0))
}

func before(s string, columns int) string {
	return strings.Repeat(" ", max(columns-utf8.RuneCountInString(s), 0)) + s
}

// cut shortens s to so many columns.
func cut(s string, columns int) string {
	if r := []rune(s); len(r) > columns {
		return string(r[:columns-1]) + "…"
	}
	return s
}

// queuePart is the part of a request's time in which it waited for a connection of the load's to be free.
const queuePart = "queue"

// longestPart words what took the most of the mean request's time, as deep as that
// is known; "" where nothing takes a quarter of it.
func longestPart(b *model.Breakdown) string {
	if b == nil || b.MeanSeconds <= 0 {
		return ""
	}
	const worthALine = 0.25
	var longest *model.BreakdownPart
	parts := b.Parts
	for {
		var here *model.BreakdownPart
		for i, part := range parts {
			if part.Seconds != nil && (here == nil || *part.Seconds > *here.Seconds) {
				here = &parts[i]
			}
		}
		if here == nil || *here.Seconds < worthALine*b.MeanSeconds {
			break
		}
		longest, parts = here, here.Parts
	}
	if longest == nil {
		return ""
	}
	at := longest.Host
	if longest.Process != "" {
		at = strings.TrimPrefix(at+", program "+strconv.Quote(longest.Process), ", ")
	}
	if longest.Name == queuePart {
		at = "a consequence: all were busy with requests that had no reply yet"
	}
	return fmt.Sprintf("%s of a mean request's %s: %s (%s)", layout.Share(min(*longest.Seconds/b.MeanSeconds, 1)),
		layout.Micros(b.MeanSeconds*1e6), longest.Text, at)
}
