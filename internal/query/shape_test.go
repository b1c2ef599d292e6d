package query

import (
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// filledIn is what an expression's text says with these windows, parsed.
func filledIn(t testing.TB, text string, w windows, g grain) parser.Expr {
	t.Helper()
	text = ReplaceVariables(text, func(v VariableUse) string {
		span, ok := w[v.Window]
		length := strconv.FormatInt(span.End-span.Start+1, 10)
		switch {
		case !ok && v.Part == "":
			return rangeMark + strconv.FormatInt(2*g.interval.Milliseconds()+1, 10) + rangeMark + moment(beforeAll) + rangeMark
		case !ok:
			return "NaN"
		case v.Part == "_seconds":
			return strconv.FormatFloat(float64(span.End-span.Start)/1000, 'f', -1, 64)
		case v.Part == "_start":
			return moment(span.Start)
		case v.Part == "_end":
			return moment(span.End)
		}
		return rangeMark + length + rangeMark + moment(span.End) + rangeMark
	})
	root, err := Parser.ParseExpr(pinRanges(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return root
}

// What is parsed once and filled in is what would be parsed of the text with everything filled in.
func TestShapesAreTheirTexts(t *testing.T) {
	known := Records{}
	for _, r := range [][2]string{
		{"host:busy:rate", `sum by (host) (rate(busy_total[$window]))`},
		{"host:idle:share", `1 - host:busy:rate / $window_seconds`},
		{"one:two:three", `3`},
	} {
		e, err := Parse(r[1], known)
		if err != nil {
			t.Fatal(err)
		}
		known[r[0]] = Record{Name: r[0], Written: r[1], Expr: e.Text}
	}
	a := asking{Run: &Run{grain: grainOf(1000)}, frame: windows{"run": {1699999980123, 1700000009123}, "window": {1700000000123, 1700000009123}, "late": {1700000006123, 1700000009123}, "baseline": {1699999990123, 1700000000123}}}
	for _, src := range []string{
		`a`, `a offset 5m`, `a @ $window_end`, `a @ $baseline_start offset -3s`,
		`increase(a{b="c"}[$window])`, `max_over_time(a[$late])`, `rate(a[2s])`, `changes(a[$calm?])`,
		`max_over_time(rate(a[2s])[$window:])`, `max_over_time((a * 2)[$window:500ms])`,
		`max_over_time((a * 2)[5m:1s] @ $baseline_end)`, `sum_over_time(max_over_time(rate(a[2s])[$baseline:])[$window:2s])`,
		`-$window_seconds`, `a > -$run_seconds * 2`, `a - $window_start`, `a > 0 * $calm_seconds?`,
		`host:idle:share`, `topk by (z, host) (2, host:idle:share > on (q, host) group_left (y, x) b)`, `-host:busy:rate`,
		`sum(host:busy:rate) by (host) or on () label_replace(host:idle:share, "z", "$1", "host", "(.*)")`,
		`one:two:three + a`, `a and one:two:three * one:two:three + host:busy:rate`,
		`777777.5 + a`, `time() - $run_start`, `quantile_over_time(0.9, a[$run]) unless a @ 7`,
	} {
		e, err := Parse(src, known)
		if err != nil {
			t.Fatal(err)
		}
		s, err := e.shape()
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		before := s.whole.String()
		want, got := a.instance(sorted(filledIn(t, e.Text, a.frame, a.grain))), a.instance(s.whole)
		if want.String() != got.String() || want.Type() != got.Type() || parser.Tree(want) != parser.Tree(got) {
			t.Errorf("%s\nwant %s\n got %s", src, want, got)
		}
		if s.whole.String() != before || strings.Contains(got.String(), "7777777.0") {
			t.Errorf("%s: it was changed in being filled in, or not filled in: %s", src, got)
		}
	}
}

func sorted(e parser.Expr) parser.Expr {
	sortNames(e)
	return e
}

// A term that looks at the main window is another with another main window, and the same otherwise.
func TestTermsAreOfTheirWindow(t *testing.T) {
	q := runOf(t, `
windows: {baseline: [0s, 2s], hold: [2s, 6s]}
series:
  - c{host="a"} 0 1 3 6 10 15 21
`)
	for src, want := range map[string]string{`sum(increase(c[$window]))`: `{} 18`, `sum(increase(c[$run])) / $window_seconds`: `{} 5.25`, `sum(increase(c[$run]) / $window_seconds)`: `{} 5.25`} {
		if got := asked(q, expressionOf(t, src)); got != want {
			t.Errorf("%s is %s, want %s", src, got, want)
		}
	}
	for src, want := range map[string]float64{`sum(increase(c[$window]))`: 3, `sum(increase(c[$run])) / $window_seconds`: 10.5, `sum(increase(c[$run]) / $window_seconds)`: 10.5} {
		if got := q.AskBefore(expressionOf(t, src)); len(got.Samples) != 1 || got.Samples[0].Value != want {
			t.Errorf("%s before is %+v, want %v", src, got, want)
		}
	}
	if n := len(q.shared.list); n != 8 { // the increase of the whole run and its sum once
		t.Errorf("%d terms were evaluated", n)
	}
}
