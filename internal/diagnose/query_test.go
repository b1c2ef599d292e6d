package diagnose

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// vectorOf builds a small run from the text of a vector.
func vectorOf(t *testing.T, text string) *Vector {
	t.Helper()
	list, err := parseVectors([]byte("- name: x\n  case: fires\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	return &list[0]
}

func expressionOf(t *testing.T, src string) *expression {
	t.Helper()
	e, err := parseExpression(src, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// asked evaluates an expression and writes its results, "" for none.
func asked(q *querier, e *expression) string {
	r := q.ask(e)
	if r.missing != "" {
		return r.missing
	}
	if r.failed != nil {
		return "failed: " + r.failed.Error()
	}
	var out []string
	for _, s := range r.samples {
		out = append(out, labels.FromMap(s.labels).String()+" "+number(s.value).String())
	}
	return strings.Join(out, "; ")
}

func TestExpressions(t *testing.T) {
	const around = "\n  windows: {baseline: [0s, 2s], hold: [2s, 6s]}\n"
	for _, c := range []struct{ name, series, expr, want string }{
		{"a difference is last less first, both ends of the window read",
			`c{host="s"} 0 1 3 10 11 12 20 100`, `increase(c[$window])`, `{host="s"} 17`},
		{"whole numbers stay whole, however large",
			`c{host="s"} 0 0 9007199254740980 9007199254740981 0 0 7`, `increase(c[$window])`, `{host="s"} 8`},
		{"a reset in the middle counts from zero",
			`c{host="s"} 0 0 100 110 5 8 9`, `increase(c[$window])`, `{host="s"} 19`},
		{"a reset to the very same value is not seen",
			`c{host="s"} 0 0 5 5 5 5 5`, `increase(c[$window])`, `{host="s"} 0`},
		{"two resets", `c{host="s"} 0 0 10 2 12 1 4`, `increase(c[$window])`, `{host="s"} 16`},
		{"a rate is the difference over the window's length",
			`c{host="s"} 0 0 100 110 120 130 140`, `rate(c[$window])`, `{host="s"} 10`},
		{"a gauge's delta is exact too", `c{host="s"} 0 0 5 9 9 9 3`, `delta(c[$window])`, `{host="s"} -2`},
		{"changes and resets count what is in the window",
			`c{host="s"} 1 2 2 3 1 1 2 9`, `changes(c[$window]) + resets(c[$window])`, `{host="s"} 4`},
		{"one reading is no result, and not zero",
			`c{host="s"} _ _ _ _ 7 _ _`, `increase(c[$window])`, ``},
		{"two readings with gaps between",
			`c{host="s"} _ _ _ 7 _ 9 _`, `increase(c[$window])`, `{host="s"} 2`},
		{"a counter first seen in mid-window, with the zero the recorder writes",
			`c{host="s"} _ _ _ 0 5 6 6`, `increase(c[$window])`, `{host="s"} 6`},
		{"a signal read more seldom: from its last reading before the window",
			`c{host="s"} 1 _ _ _ 5 _ _`, `increase(c[$window])`, `{host="s"} 4`},
		{"a reading longer ago than the look-back does not count",
			"c{host=\"s\"} 1 _x12 5 _ _'\n  windows: {hold: [12s, 15s]}\n  read: ['x", `increase(c[$window])`, ``},
		{"a short range within a subquery is exact as well",
			`c{host="s"} 0 10 20 30 140 150 160`, `max_over_time(rate(c[2s])[$window:])`, `{host="s"} 60`},
		{"both ends of a window count for x_over_time",
			`g{host="s"} 50 40 30 1 1 1 20 99`, `max_over_time(g[$window])`, `{host="s"} 30`},
		{"and the last", `g{host="s"} 50 40 3 1 1 1 20 99`, `max_over_time(g[$window])`, `{host="s"} 20`},
		{"both ends count in a subquery",
			`g{host="s"} 50 40 30 1 1 1 20 99`, `max_over_time((g * 2)[$window:])`, `{host="s"} 60`},
		{"an average in a subquery weighs each reading alike but for the first, which ends no interval",
			`g{host="s"} 0 0 2 2 2 2 2`, `avg_over_time((g + 1)[$window:])`, `{host="s"} 3`},
		{"without a range: the main window's end",
			`g{host="s"} 0 1 2 3 4 5 6 7`, `g`, `{host="s"} 6`},
		{"a moment of another window", `g{host="s"} 0 1 2 3 4 5 6 7`, `g @ $baseline_end`, `{host="s"} 2`},
		{"the length of a window", `g{host="s"} 0 1 2 3 4 5 6 7`, `$window_seconds + $baseline_seconds`, `{} 6`},
		{"the whole run", `c{host="s"} 0 1 2 3 4 5 6 7`, `increase(c[$run])`, `{host="s"} 7`},
		{"another window", `c{host="s"} 0 1 2 3 4 5 6 7`, `increase(c[$baseline])`, `{host="s"} 2`},
		{"a window that this run does not have", `c{host="s"} 0 1`, `increase(c[$calm])`, `this run has no calm window`},
		{"nothing over nothing is no result", `c{host="s"} 0x9`, `increase(c[$window]) / increase(c[$window])`, ``},
		{"nor is something over nothing", `c{host="s"} 5x9`, `c / increase(c[$window])`, ``},
		{"an error of the engine",
			"c{host=\"s\",a=\"1\"} 1x9'\n    - 'c{host=\"s\",a=\"2\"} 1x9'\n    - 'd{host=\"s\"} 1x9",
			`d / on (host) c`, `failed: found duplicate series`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "  series:\n    - '" + c.series + "'"
			if !strings.Contains(text, "windows:") {
				text += around
			} else {
				text += "]\n"
			}
			v := vectorOf(t, text)
			first, last, _ := v.store.Span()
			got := asked(newQuerier(v.meta, v.store, first, last), expressionOf(t, c.expr))
			if got != c.want && !(strings.HasPrefix(c.want, "failed") && strings.HasPrefix(got, c.want)) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestRoundsThatJitter: real rounds do not fall on whole seconds. No reading
// of a window may be missed or taken from outside.
func TestRoundsThatJitter(t *testing.T) {
	jitter := []int64{317, 322, 318, 331, 317, 340, 319, 325}
	for peak := range jitter {
		m := new(record.Memory)
		var gauge, counter []record.Point
		for i, j := range jitter {
			v := 1.0
			if i == peak {
				v = 100
			}
			at := vectorStart + int64(i)*1000 + j
			gauge = append(gauge, record.Point{Time: at, Value: v})
			counter = append(counter, record.Point{Time: at, Value: float64(i * i)})
		}
		m.Add(labels.FromStrings("__name__", "g", "host", "s"), gauge)
		m.Add(labels.FromStrings("__name__", "c", "host", "s"), counter)
		m.Sort()
		meta := model.Run{Plan: model.Plan{Interval: 1000}, Windows: []model.Window{{
			Name: model.Hold, Start: gauge[2].Time, End: gauge[6].Time,
		}}}
		q := newQuerier(meta, m, gauge[0].Time, gauge[7].Time)
		want := `{host="s"} 1`
		if peak >= 2 && peak <= 6 {
			want = `{host="s"} 100`
		}
		if got := asked(q, expressionOf(t, "max_over_time(g[$window])")); got != want {
			t.Errorf("peak in round %d: max of the series is %s, want %s", peak, got, want)
		}
		// At a subquery's first moment the reading before it still stands.
		if got := asked(q, expressionOf(t, "max_over_time((g + 0)[$window:])")); got != want && peak != 1 {
			t.Errorf("peak in round %d: max of the subquery is %s, want %s", peak, got, want)
		}
		if got := asked(q, expressionOf(t, "increase(c[$window])")); got != `{host="s"} 32` {
			t.Errorf("difference %s, want 36-4", got)
		}
	}
}

func TestTheMainWindow(t *testing.T) {
	hold := model.Window{Name: model.Hold, Start: 20, End: 30}
	base := model.Window{Name: model.Baseline, Start: 5, End: 10}
	for _, c := range []struct {
		name string
		list []model.Window
		want span
	}{
		{"hold", []model.Window{base, hold}, span{20, 30}},
		{"without hold, what follows the baseline", []model.Window{base}, span{10, 40}},
		{"without both, everything", nil, span{0, 40}},
		{"a hold still open is none", []model.Window{base, {Name: model.Hold, Start: 20}}, span{10, 40}},
	} {
		if got := windowsOf(c.list, 0, 40)["window"]; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestSelectors(t *testing.T) {
	for _, c := range []struct{ expr, want string }{
		{`a`, `a`},
		{`sum by (host) (a) + b`, `a; b`},
		{`sum(a) / sum without (host) (b)`, `a of all hosts; b of all hosts`},
		{`max by (dst) (sum by (host, dst) (a))`, `a of all hosts`},
		{`sum without (cpu) (a) unless b`, `a; b excludes`},
		{`a unless on (host) (b + c) and d`, `a; b excludes; c excludes; d`},
		{`topk by (host) (1, a{x="1",y=~"2"})`, `a x y`},
		{`max_over_time((a / b)[$hold:])`, `a; b`},
	} {
		var got []string
		for _, s := range expressionOf(t, c.expr).selectors {
			line := strings.TrimSpace(s.name + " " + strings.Join(s.labels, " "))
			if s.global {
				line += " of all hosts"
			}
			if s.excludes {
				line += " excludes"
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.expr, diff)
		}
	}
}

func TestExpressionsThatAreRefused(t *testing.T) {
	for expr, want := range map[string]string{
		``:                           "the expression is missing",
		`sum(a`:                      "unclosed left parenthesis",
		`a or vector(0)`:             "vector(): it makes a number out of an absence",
		`absent(a)`:                  "absent(): it makes a number out of an absence",
		`increase(a[1m:])`:           "increase() of a subquery extrapolates; give it a plain series",
		`{job="x"}`:                  "name the series outright",
		`a[$window]`:                 "want an instant vector or a number, got a range vector",
		`"x"`:                        "want an instant vector or a number, got a string",
		`rate(a[$nosuch])`:           "$nosuch: no such window; there are window, run, baseline",
		`a * $window`:                "$window: want it in brackets, or as $window_seconds",
		`x:y:z`:                      "x:y:z: no such record above it in records.yaml",
		`sum(rate(a[$window])) or 0`: "set operator",
	} {
		_, err := parseExpression(expr, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", expr, err, want)
		}
	}
}

func TestRecordsStandForExpressions(t *testing.T) {
	known := records{"a:b:c": {Name: "a:b:c", Expr: `sum(x{l="a:b:c"})`}}
	e, err := parseExpression(`1 - a:b:c / on () y{l="a:b:c"}`, known)
	if err != nil {
		t.Fatal(err)
	}
	if want := `1 - (sum(x{l="a:b:c"})) / on () y{l="a:b:c"}`; e.text != want {
		t.Errorf("%s, want %s", e.text, want)
	}
	for _, bad := range []string{`a:b:c{l="1"}`, `a:b:c offset 1s`, `rate(a:b:c[5s])`} {
		if _, err := parseExpression(bad, known); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func TestTexts(t *testing.T) {
	f := facts{Value: number(1234.5678), Subject: map[string]string{"host": "s"}, Labels: map[string]string{"cpu": "3"}}
	for src, want := range map[string]string{
		"plain":                             "plain",
		"{{.Value}} on {{.Subject.host}}":   "1234.568 on s",
		"{{count .Value}}":                  "1234.568",
		"{{seconds .Value}}":                "1235 s",
		"{{bytes .Value}}":                  "1.21 KiB",
		"{{percent .Labels.cpu}} of it":     "300 % of it",
		"cpu {{.Labels.cpu}}{{.Labels.no}}": "cpu 3",
	} {
		tx, err := parseText(src)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tx.fill(f)
		if got != want || (err != nil) != strings.Contains(src, ".no") {
			t.Errorf("%s: %q, %v; want %q", src, got, err, want)
		}
	}
	for _, bad := range []string{"{{.Value", "{{nosuch .Value}}", "{{range .Labels}}x{{end}}", "{{if .Value}}x{{end}}", `{{template "x"}}`} {
		if _, err := parseText(bad); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		format func(float64) string
		value  float64
		want   string
	}{
		{formatNumber, 3, "3"}, {formatNumber, 0.12345, "0.123"}, {formatNumber, 0.00012345, "0.000123"}, {formatNumber, -2.5, "-2.5"},
		{formatPercent, 0.953, "95.3 %"}, {formatPercent, 1, "100 %"}, {formatPercent, 0, "0 %"}, {formatPercent, 0.00012, "0.012 %"},
		{formatCount, 0, "0"}, {formatCount, 999, "999"}, {formatCount, 1234567, "1,234,567"}, {formatCount, -1234, "-1,234"},
		{formatSeconds, 0.0123, "12.3 ms"}, {formatSeconds, 2, "2 s"}, {formatSeconds, 0.000045, "45 µs"}, {formatSeconds, 0, "0 s"},
		{formatBytes, 512, "512 B"}, {formatBytes, 1536, "1.5 KiB"}, {formatBytes, 3 << 30, "3 GiB"},
	} {
		if got := c.format(c.value); got != c.want {
			t.Errorf("%v: %s, want %s", c.value, got, c.want)
		}
	}
}
