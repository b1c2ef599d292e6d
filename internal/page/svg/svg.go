// Package svg draws series over time as SVG that needs neither styles nor scripts:
// all looks are presentation attributes. Classes say to a script what moves with time
// ("plot", "at", "begin", "end") and what is a frame of stacks. A drawing is as wide as the place it
// stands in, its text never scales, and its ink is the page's own colour, so that it
// fits a narrow screen, a wide one, a dark one and paper.
package svg

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/layout"
)

// Colors are those of lines, in their order: apart for colour-blind eyes, and seen
// on white as on black.
var Colors = []string{"#0072b2", "#d55e00", "#4a9a80", "#a04090", "#9a6a00", "#3a90c8", "#7a7a7a"}

// Alarm is the colour of thresholds and of what binds.
const Alarm = "#d92b3a"

// dashes tell lines apart where colours do not; of the same order as Colors.
var dashes = []string{"", "7 3", "2 2", "9 3 2 3", "4 2", "1 3", "12 4"}

func color(i int) string { return Colors[i%len(Colors)] }

// Text makes text from outside fit for a page: into one line of at most most runes,
// with what steers, hides or is not of XML written out.
func Text(s string, most int) string {
	s = layout.Line(s)
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most-1]) + "…"
	}
	return strings.Map(func(r rune) rune {
		if r == 0xFFFE || r == 0xFFFF {
			return '?'
		}
		return r
	}, s)
}

// mostText is how many runes of a text a drawing shows.
const mostText = 200

func escaped(s string) string { return html.EscapeString(Text(s, mostText)) }

// number writes a coordinate, as short as it is.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// begin opens a drawing of that height in pixels, and says what it shows to who
// does not see it.
func begin(b *strings.Builder, height int, title, desc string) {
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="100%%" height="%d" role="img" font-family="system-ui, sans-serif" font-size="11" fill="currentColor"><title>%s</title>`,
		height, escaped(title))
	if desc != "" {
		fmt.Fprintf(b, "<desc>%s</desc>", escaped(desc))
	}
}

// halo keeps text legible before lines.
const halo = ` stroke="Canvas" stroke-width="3" paint-order="stroke" stroke-linejoin="round"`

func text(b *strings.Builder, x string, y int, more, s string) {
	fmt.Fprintf(b, `<text x="%s" y="%d"%s%s>%s</text>`, x, y, halo, more, escaped(s))
}

// Swatch is a short piece of the line that has this place in a chart.
func Swatch(i int, area bool) string {
	if area {
		return fmt.Sprintf(`<svg width="12" height="10" aria-hidden="true"><rect width="12" height="10" fill="%s" fill-opacity=".75"/></svg>`, color(i))
	}
	return fmt.Sprintf(`<svg width="22" height="10" aria-hidden="true"><path d="M0 5h22" stroke="%s" stroke-width="2.5"%s/></svg>`, color(i), dash(i))
}

func dash(i int) string {
	if d := dashes[i%len(dashes)]; d != "" {
		return ` stroke-dasharray="` + d + `"`
	}
	return ""
}

// Bar is a share of 0…1 as a bar, with a mark at a limit unless that is 0.
func Bar(title string, share, limit float64, alarm bool) string {
	fill := color(0)
	if alarm {
		fill = Alarm
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg width="100%%" height="14" role="img"><title>%s</title><rect y="3" width="100%%" height="8" fill="currentColor" fill-opacity=".09"/><rect y="3" width="%s%%" height="8" fill="%s"/>`,
		escaped(title), percent(share), fill)
	if limit > 0 {
		fmt.Fprintf(&b, `<svg x="%s%%" width="4" height="14" overflow="visible"><path d="M-1 0v14" stroke="currentColor" stroke-width="2"/></svg>`, percent(limit))
	}
	b.WriteString("</svg>")
	return b.String()
}

// percent writes a share of 0…1 as a coordinate in per cent.
func percent(v float64) string {
	return strconv.FormatFloat(100*min(max(v, 0), 1), 'f', 2, 64)
}

// Mark is the load line on a ship's hull: a circle with a line through it.
func Mark(size int, stroke string) string {
	return fmt.Sprintf(`<svg width="%d" height="%d" viewBox="0 0 24 24" aria-hidden="true"><circle cx="12" cy="12" r="7" fill="none" stroke="%s" stroke-width="2.5"/><path d="M1 12h22" stroke="%s" stroke-width="2.5"/></svg>`,
		size, size, stroke, stroke)
}

// widest is how far from 1 a drawn ratio reaches, on either side.
const widest = 4

// Ratio draws a ratio with its interval on a logarithmic scale from a quarter to four
// times, the middle of which is 1: no difference. What lies beyond is an arrow at the end.
func Ratio(title string, ratio, low, high float64) string {
	at := func(v float64) float64 { return 0.5 + math.Log(max(v, 1e-9))/math.Log(widest)/2 }
	fill := color(0)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg width="100%%" height="18" role="img"><title>%s</title><rect x="50%%" width="1" height="18" fill="currentColor" fill-opacity=".5"/>`, escaped(title))
	fmt.Fprintf(&b, `<rect x="%s%%" y="7" width="%s%%" height="4" fill="%s" fill-opacity=".5"/>`, percent(at(low)), percent(min(at(high), 1)-max(at(low), 0)), fill)
	switch {
	case ratio > widest:
		fmt.Fprintf(&b, `<svg x="100%%" width="1" height="18" overflow="visible"><path d="M-10 3l10 6l-10 6z" fill="%s"/></svg>`, fill)
	case ratio < 1/float64(widest):
		fmt.Fprintf(&b, `<path d="M10 3l-10 6l10 6z" fill="%s"/>`, fill)
	default:
		fmt.Fprintf(&b, `<circle cx="%s%%" cy="9" r="4.5" fill="%s"/>`, percent(at(ratio)), fill)
	}
	b.WriteString("</svg>")
	return b.String()
}
