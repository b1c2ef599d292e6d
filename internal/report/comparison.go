package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
)

// shownChanges is how many changed signals the text lists; JSON has more.
const shownChanges = 12

var measureNames = map[string]string{
	"good_rps": "good requests/s", "good_share": "share that was good", "latency_p50": "latency p50", "latency_p99": "latency p99",
	"wait": "wait of a user",
}

var inOneWord = map[model.ComparisonAnswer]string{
	model.Better: "B IS BETTER", model.Worse: "B IS WORSE", model.NoDifference: "NO DIFFERENCE", model.NotKnown: "TOO LITTLE TO TELL",
}

// Comparison writes what compare found, in lines of o.Width columns.
func Comparison(w io.Writer, c model.Comparison, o TextOptions) error {
	p := newPaper(o)
	p.item("A", strings.Join(c.Runs[0], " "))
	p.item("B", strings.Join(c.Runs[1], " "))
	p.blank()
	rows := [][]string{{"", "A", "B", "B/A", "95 % interval", ""}}
	for _, d := range c.Differences {
		row := []string{measureNames[d.Name], amount(d.A, d.Unit), amount(d.B, d.Unit), "-", "-", string(d.Answer)}
		if d.Ratio > 0 {
			row[3], row[4] = fmt.Sprintf("%.3f", d.Ratio), fmt.Sprintf("%.3f to %.3f", d.Low, d.High)
		}
		rows = append(rows, row)
	}
	layout.Table(&p.b, rows)
	p.blank()
	p.heading(bold, inOneWord[c.Answer()])
	if slices.ContainsFunc(c.Differences, c.Outweighed) {
		p.line(0, plain, "The median does not count: half of the requests took longer, but users did not wait longer.")
	}
	if c.Faster != nil {
		p.line(0, plain, fmt.Sprintf("Of all pairs of replies, B's was the faster one in %s.", layout.Share(*c.Faster)))
	}
	p.changes("SET TO SOMETHING ELSE", c.Configuration)
	p.changes("WHAT ELSE WAS DIFFERENT (mean level, or rate per second, in the hold window)", c.Signals)
	if c.NotComparable != "" || len(c.Notes) > 0 {
		p.blank()
	}
	if c.NotComparable != "" {
		p.item("note", c.NotComparable)
	}
	for _, n := range c.Notes {
		p.item("note", n)
	}
	p.blank()
	for _, s := range AfterComparing(c) {
		p.item(s.Label, s.Text)
	}
	return p.print(w)
}

// AfterComparing says what to do with what was found, and what that costs.
func AfterComparing(c model.Comparison) []Step {
	return []Step{{Label: "next", Text: afterComparing[c.Answer()]}, {Label: "cost", Text: "nothing: comparing reads the runs, and changes nothing"}}
}

var afterComparing = map[model.ComparisonAnswer]string{
	model.Better:       "keep what B had set",
	model.Worse:        "go back to what A had set",
	model.NoDifference: "nothing: it did not matter to users; longer or more runs of each tell smaller differences",
	model.NotKnown:     "make several runs of each (plimsoll run --repeat 3), and compare their folders",
}

func (p *paper) changes(title string, list []model.SignalChange) {
	if len(list) == 0 {
		return
	}
	p.blank()
	p.line(0, bold, title)
	for i, c := range list {
		if i == shownChanges {
			p.line(0, plain, fmt.Sprintf("and %d more (--json lists them)", len(list)-i))
			break
		}
		p.line(0, plain, cut(fmt.Sprintf("%12s → %-12s %s", levelOf(c.Series, c.A), levelOf(c.Series, c.B), spokenSeries(c.Series)), p.width))
	}
}

// labelled is a label of a series as it is written in PromQL.
var labelled = lazy.Regexp(`[a-zA-Z_][a-zA-Z0-9_]*="((?:[^"\\]|\\.)*)",?`)

// spokenSeries is a series' name with what its labels say.
func spokenSeries(s string) string {
	name, labels, _ := strings.Cut(layout.Line(s), "{")
	return strings.TrimSpace(name + " " + strings.TrimSuffix(labelled().ReplaceAllString(labels, "$1 "), " }"))
}

func amount(v float64, unit string) string {
	switch {
	case unit == "µs" && v == 0: // no reply, so no latency
		return "-"
	case unit == "µs":
		return layout.Micros(v)
	case unit == "ratio":
		return layout.Share(v)
	}
	return layout.Rate(v)
}

// levelOf is a series' level, of a counter its rate, in the unit that its name ends in.
func levelOf(series string, v float64) string {
	name, _, _ := strings.Cut(series, "{")
	each := ""
	for _, end := range []string{"_total", "_sum", "_count"} {
		if less, counts := strings.CutSuffix(name, end); counts {
			name, each = less, "/s"
		}
	}
	if strings.HasPrefix(name, "node_netstat_") && !strings.HasSuffix(name, "_CurrEstab") { // node_exporter names them so
		each = "/s"
	}
	switch {
	case strings.HasSuffix(name, "_bytes") && v > -1 && v < 1:
		return plainNumber(v) + " bytes" + each
	case strings.HasSuffix(name, "_bytes"):
		return layout.Bytes(int64(v)) + each
	case strings.HasSuffix(name, "_seconds") && v >= 0:
		return layout.Micros(v*1e6) + each
	}
	return plainNumber(v) + each
}

// plainNumber is a value of any unit: whole when large, three digits when small.
func plainNumber(v float64) string {
	if v >= 100 || v <= -100 || v == float64(int64(v)) {
		return layout.Count(int64(v))
	}
	return fmt.Sprintf("%.3g", v)
}
