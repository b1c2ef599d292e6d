package query

import (
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"go.yaml.in/yaml/v3"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/notation"
	"plimsoll/internal/record/writer"
)

// runOf makes a small run of what a vector says of it.
func runOf(t *testing.T, text string) *Run {
	t.Helper()
	var v notation.Run
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if err := v.Compile(); err != nil {
		t.Fatal(err)
	}
	first, last, _ := v.Store.Span()
	return Over(v.Meta, v.Store, first, last)
}

func expressionOf(t *testing.T, src string) *Expression {
	t.Helper()
	e, err := Parse(src, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// asked evaluates an expression and writes its results, "" for none.
func asked(q *Run, e *Expression) string {
	r := q.Ask(e)
	if r.Missing != "" {
		return r.Missing
	}
	if r.Failed != nil {
		return "failed: " + r.Failed.Error()
	}
	var out []string
	for _, s := range r.Samples {
		out = append(out, labels.FromMap(s.Labels).String()+" "+strconv.FormatFloat(s.Value, 'f', -1, 64))
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
		{"one that it need not have", `c{host="s"} 0 1`, `(c > 0 * $calm_seconds?) or on () max(c)`, `{} 1`},
		{"a range that it need not have", `c{host="s"} 0 1`, `increase(c[$calm?]) or c`, `{host="s"} 1`},
		{"a range that it need not have, and nothing else", `c{host="s"} 0 1`, `increase(c[$calm?])`, `this run has no calm window`},
		{"one that it need not have, and nothing else", `c{host="s"} 0 1`, `c > 0 * $calm_seconds?`, `this run has no calm window`},
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
			got := asked(runOf(t, text), expressionOf(t, c.expr))
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
			at := notation.Start + int64(i)*1000 + j
			gauge = append(gauge, record.Point{Time: at, Value: v})
			counter = append(counter, record.Point{Time: at, Value: float64(i * i)})
		}
		m.Add(labels.FromStrings("__name__", "g", "host", "s"), gauge)
		m.Add(labels.FromStrings("__name__", "c", "host", "s"), counter)
		m.Sort()
		meta := model.Run{Plan: model.Plan{Interval: 1000}, Windows: []model.Window{{
			Name: model.Hold, Start: gauge[2].Time, End: gauge[6].Time,
		}}}
		q := Over(meta, m, gauge[0].Time, gauge[7].Time)
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

// TestThirdsOfSeriesReadAtOtherMoments: of two things that grow alike, one is read just before a third ends, the other
// just after.
func TestThirdsOfSeriesReadAtOtherMoments(t *testing.T) {
	m := new(record.Memory)
	for name, at := range map[string]int64{"cpu": 90, "replies": 10} {
		var points []record.Point
		for i := range int64(10) {
			points = append(points, record.Point{Time: notation.Start + 1000*i + at, Value: float64(1000*i + at)})
		}
		m.Add(labels.FromStrings("__name__", name, "host", "s"), points)
	}
	m.Sort()
	meta := model.Run{Plan: model.Plan{Interval: 1000}, Windows: []model.Window{{Name: model.Hold, Start: notation.Start + 2050, End: notation.Start + 8050}}}
	q := Over(meta, m, notation.Start+10, notation.Start+9090)
	for _, third := range []string{"early", "middle", "late"} {
		if got := asked(q, expressionOf(t, "increase(cpu[$"+third+"]) / increase(replies[$"+third+"])")); got != `{host="s"} 1` {
			t.Errorf("%s: one grew %s times as much as the other, want 1", third, got)
		}
	}
	if got := asked(q, expressionOf(t, "increase(cpu[$window])")); got != `{host="s"} 6000` {
		t.Errorf("over the window %s, want the difference of two readings", got)
	}
}

func TestTheMainWindow(t *testing.T) {
	hold := model.Window{Name: model.Hold, Start: 20, End: 30}
	base := model.Window{Name: model.Baseline, Start: 5, End: 10}
	for _, c := range []struct {
		name string
		list []model.Window
		want Span
	}{
		{"hold", []model.Window{base, hold}, Span{20, 30}},
		{"without hold, what follows the baseline", []model.Window{base}, Span{10, 40}},
		{"without both, everything", nil, Span{0, 40}},
		{"a hold still open is none", []model.Window{base, {Name: model.Hold, Start: 20}}, Span{10, 40}},
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
		{`sum(increase(a[$hold])) or on () (max(b) or on () c) or d`, `a of all hosts; b of all hosts behind sum(increase(a[$hold])); c behind max(b) behind sum(increase(a[$hold])); d`},
		{`max_over_time((a or on () b)[$hold:]) or on (host) c`, `a; b; c`},
	} {
		var got []string
		for _, s := range expressionOf(t, c.expr).Selectors() {
			line := strings.TrimSpace(s.Name + " " + strings.Join(s.Labels, " "))
			if s.Global {
				line += " of all hosts"
			}
			if s.Excludes {
				line += " excludes"
			}
			for _, e := range s.Before {
				line += " behind " + e.Text
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
		``:                              "the expression is missing",
		`sum(a`:                         "unclosed left parenthesis",
		`a or vector(0)`:                "vector(): it makes a number out of an absence",
		`absent(a)`:                     "absent(): it makes a number out of an absence",
		`increase(a[1m:])`:              "increase() of a subquery extrapolates; give it a plain series",
		`increase(a[$window] smoothed)`: "a: smoothed changes what a difference is; leave it out",
		`{job="x"}`:                     "name the series outright",
		`a[$window]`:                    "want an instant vector or a number, got a range vector",
		`a > 7777777`:                   "7777777: Plimsoll's own mark for a window; write another number",
		`"x"`:                           "want an instant vector or a number, got a string",
		`rate(a[$nosuch])`:              "$nosuch: no such window; there are window, early, middle, late, run, baseline",
		`a * $window`:                   "$window: want it in brackets, or as $window_seconds",
		`a$run_end`:                     "$run_end: it is part of a word",
		`5$run_seconds`:                 "$run_seconds: it is part of a word",
		`$run_seconds5`:                 "$run_seconds: it is part of a word",
		`x:y:z`:                         "x:y:z: no such record above it in records.yaml",
		`sum(rate(a[$window])) or 0`:    "set operator",
	} {
		_, err := Parse(expr, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", expr, err, want)
		}
	}
}

func TestRecordsStandForExpressions(t *testing.T) {
	known := Records{"a:b:c": {Name: "a:b:c", Expr: `sum(x{l="a:b:c"})`}}
	e, err := Parse(`1 - a:b:c / on () y{l="a:b:c"}`, known)
	if err != nil {
		t.Fatal(err)
	}
	if want := `1 - (sum(x{l="a:b:c"})) / on () y{l="a:b:c"}`; e.Text != want {
		t.Errorf("%s, want %s", e.Text, want)
	}
	for _, bad := range []string{`a:b:c{l="1"}`, `a:b:c offset 1s`, `rate(a:b:c[5s])`} {
		if _, err := Parse(bad, known); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// Names of records are found in a text without parsing it as they are by parsing.
func TestTriedTextsAreExpandedAlike(t *testing.T) {
	known := Records{"a:b:c": {Name: "a:b:c", Expr: "x / y"}, "a:b:cc": {Name: "a:b:cc", Expr: "z"}}
	for _, text := range []string{
		`1 - a:b:c / on () y{l="a:b:c"}`, `a:b:c`, `a:b:cc+a:b:c`, "a:b:cc # a:b:c\n + a:b:c", `x{l="\"a:b:c", m='a:b:c\''} * a:b:c`, "x{l=`a:b:c\\`} + a:b:c",
		`max_over_time(a:b:c[5m:1s])`, `max_over_time(a:b:c[$window:])`, `max_over_time(x[$window:1s])`, `sum by (host) (a:b:c) > 1.5e3`, MachineInfo + " * a:b:c",
		`label_replace(a:b:c, "l", "$1", "m", "a:b:c(.*)")`, "x", `"a:b:c"`,
	} {
		want, err := Terms{Records: known}.Parse(text)
		if err != nil {
			want = &Expression{Text: text} // a string is none, and nothing in it is expanded
		}
		if got, err := (Terms{Records: known, Tried: true}).Parse(text); err != nil || got.Text != want.Text {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want.Text)
		}
	}
	if _, err := (Terms{Records: known, Tried: true}).Parse("a:b:d"); err == nil {
		t.Error("a record that is not there: no error")
	}
}

func TestCountsEvents(t *testing.T) {
	for text, want := range map[string]bool{
		"increase(a_total[$window])": true,
		"sum by (host) (increase(a_total[$window])) or increase(b_total[$window])": true,
		`sum(label_replace(increase(a_total[$window]), "x", "$1", "y", "(.+)"))`:   true,
		"increase(a_total[$run])":                                 false,
		"increase(a_total[$window]) / increase(b_total[$window])": false,
		"rate(a_total[$window])":                                  false,
		"max_over_time(a_size[$window])":                          false,
		"increase(a_total[$window]) * on (host) group_left (pool) max by (host) (a_info)": false,
	} {
		if got := expressionOf(t, text).Counts(); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func FuzzExpression(f *testing.F) {
	f.Add("max_over_time((used_size / limit_size)[$window:])")
	f.Add("increase(a_total[$window]) / on (host) (rate(b_total[$run]) @ $run_end * $window_seconds)")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text, nil)
		if err != nil {
			return
		}
		// What Parse takes can be asked, whatever the run has.
		s, err := e.shape()
		if err == nil {
			_, _, err = s.fits(windows{"window": {1000, 2000}, "run": {0, 3000}}, grainOf(1000))
		}
		if err != nil {
			t.Errorf("%s: %v", e.Text, err)
		}
	})
}

func TestARunWithoutSamplesIsAnError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w, err := writer.Create(dir, model.Run{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	run, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if _, err := Of(run); err == nil || !strings.Contains(err.Error(), "the run holds no sample") {
		t.Error(err)
	}
}

// TestSharedPartsChangeNothing: an expression has the same results, to the last digit and in the
// same order, whether its parts are shared or not.
func TestSharedPartsChangeNothing(t *testing.T) {
	q := runOf(t, `
windows: {baseline: [0s, 2s], hold: [2s, 6s]}
series:
  - c{host="a",groupname="x",mode="user"} 0 0 0.1 0.3 0.7 1.1 1.3
  - c{host="a",groupname="x",mode="system"} 0 0 0.2 0.2 0.3 0.4 0.9
  - c{host="a",groupname="y",mode="user"} 0 0 3 1 2 2 9
  - c{host="b",groupname="x",mode="user"} 0 0 0.1 0.1 0.1 0.1 0.2
  - l{host="a",owner="x"} 1 2 3 4 3 2 1
  - l{host="b",owner="x"} 0 0 0 0 0 0 0
`)
	const perGroup = `sum by (host, groupname) (rate(c[$window]))`
	for _, src := range []string{
		perGroup,
		`topk by (host) (1, ` + perGroup + `)`,
		perGroup + ` / on (host) group_left () sum by (host) (` + perGroup + `)`,
		perGroup + ` and on (host, groupname) label_replace(max by (host, owner) (max_over_time(l[$window])), "groupname", "$1", "owner", "(.*)")`,
		perGroup + ` unless on (host, groupname) ` + perGroup + ` < 0.2`,
		`sum by (host) (last_over_time(l[$run])) * 2 + on (host) count by (host) (increase(c[$run]))`,
		`last_over_time(l[$window]) or avg_over_time(l[$window])`,
		`max_over_time((sum by (host) (rate(c[2s])))[$window:]) - on (host) sum by (host) (rate(c[$window]))`,
		`quantile_over_time(0.5, l[$window]) > bool 2`,
		`rate(c[$window]) / rate(c[$window])`,
		`scalar(sum(rate(c[$window])))`,
		`-rate(c[$window])`,
		`sum(count_over_time(c[$window])) / $window_seconds`,
		`max_over_time(nothing[$window])`,
	} {
		e := expressionOf(t, src)
		own := alone(t, q, e, q.windows, q.at)
		if d := cmp.Diff(own, q.Ask(e)); d != "" || own.Failed != nil || own.Missing != "" {
			t.Errorf("%s: %v %s (-alone +shared)\n%s", src, own.Failed, own.Missing, d)
		}
	}
	if len(q.shared.list) == 0 {
		t.Error("nothing was shared")
	}
}

// TestCoursesAreTheirMoments: what is asked over spans of a run at a time is, for each, what it would be
// if that were the run's main window alone.
func TestCoursesAreTheirMoments(t *testing.T) {
	q := runOf(t, `
windows: {baseline: [0s, 2s], hold: [2s, 6s]}
series:
  - c{host="a",groupname="x",mode="user"} 0 0 0.1 0.3 0.7 1.1 1.3
  - c{host="a",groupname="y",mode="user"} 0 0 3 1 2 2 9
  - c{host="b",groupname="x",mode="user"} 0 0 0.1 0.1 0.1 0.1 0.2
  - late{host="a"} _ _ _ 4 5 6 9
  - early{host="a"} 7 3 _ _ _ _ _
`)
	var list []*Expression
	for _, src := range []string{
		`sum by (host) (rate(c[$window])) / on (host) sum by (host) (increase(c[$baseline]))`,
		`sum by (host) (rate(c[$window])) - on (host) max by (host) (max_over_time(c[$run]))`,
		`sum by (host) (rate(c[$window]))`,
		`sum by (host) (increase(late[$window])) + on (host) count by (host) (late)`,
		`max by (host) (max_over_time(early[$window])) or on (host) count by (host) (c)`,
		`topk by (host) (1, sum by (host, groupname) (rate(c[$window]))) / $window_seconds`,
		`max_over_time((sum by (host) (c))[$window:]) - on (host) max by (host) (max_over_time(c[$run]))`,
		`sum_over_time((sum by (host) (c) <= sum by (host) (avg_over_time(c[$window])))[$window:])`,
		`sum by (host) (rate(c[$window])) > scalar(sum(rate(c{host="a"}[$window]))) / 9`,
		`sum(increase(c[$window])) / ($window_end - $window_start)`,
		`rate(c[$window]) * on (host) group_left () (sum by (host) (last_over_time(late[$calm?])) or sum by (host) (c))`,
	} {
		list = append(list, expressionOf(t, src))
	}
	run, _ := q.Window("run")
	spans := Spans{Span{run.Start, run.Start + 2000}, 1000, 5}
	some := map[string]bool{}
	for i, results := range q.AskOver(list, spans) {
		for k, got := range results {
			w := maps.Clone(q.windows)
			w["window"] = spans.At(k)
			own := alone(t, q, list[i], w, time.UnixMilli(spans.At(k).End))
			if d := cmp.Diff(own, got); d != "" || own.Failed != nil || own.Missing != "" {
				t.Errorf("%s of %v: %v %s (-alone +course)\n%s", list[i].Text, spans.At(k), own.Failed, own.Missing, d)
			}
			some[list[i].Text] = some[list[i].Text] || len(got.Samples) > 0
		}
	}
	for _, e := range list {
		if !some[e.Text] {
			t.Errorf("%s gave nothing in any span", e.Text)
		}
	}
	// what is of the baseline (a sum and an increase), of the run (two maxima) and of a calm phase outlives its course
	if n := len(q.shared.list); n != 5 {
		t.Errorf("%d parts are the run's, want 5", n)
	}
}

// Among equals the same one is chosen each time: the engine hands on what it made of several moments in the order of a map.
func TestAmongEqualsTheChoiceIsTheSame(t *testing.T) {
	text := "windows: {hold: [0s, 6s]}\nseries:\n"
	for g := range 10 {
		text += fmt.Sprintf("  - c{host=\"a\",groupname=\"%c\"} 0+1x6\n  - d{host=\"a\",groupname=\"%c\"} 0x6\n", 'a'+g, 'a'+g)
	}
	q := runOf(t, text)
	e := expressionOf(t, `topk by (host) (1, sum by (host, groupname) (rate(c[$window])) - on (host, groupname) sum by (host, groupname) (d) or c)`)
	run, _ := q.Window("run")
	spans := Spans{Span{run.Start, run.Start + 2000}, 1000, 5}
	for range 20 {
		for k, got := range q.AskOver([]*Expression{e}, spans)[0] {
			if len(got.Samples) != 1 || got.Samples[0].Labels["groupname"] != "a" {
				t.Fatalf("%v at %d, want one of a", got, k)
			}
		}
	}
}

// A share of what the load counted is one of what it counted meanwhile: else a part of the run would be held
// against the whole's total, and a course would lie by as much as the run is longer than its steps.
func TestACourseIsAShareOfItsOwnPart(t *testing.T) {
	q := runOf(t, `
windows: {baseline: [0s, 2s], hold: [2s, 6s]}
series:
  - lost{host="a"} 0 0 0 5 10 15 20
  - plimsoll_load_outcomes_total{host="a",phase="hold",outcome="2xx"} 0 0 0 10 20 30 40
`)
	e := expressionOf(t, `sum(increase(lost[$window])) / sum(last_over_time(plimsoll_load_outcomes_total{phase="hold"}[$run]))`)
	if whole := q.Ask(e); len(whole.Samples) != 1 || whole.Samples[0].Value != 0.5 {
		t.Fatalf("over the whole it is %+v", whole)
	}
	hold, _ := q.Window(model.Hold)
	for i, got := range q.AskOver([]*Expression{e}, Spans{Span{hold.Start, hold.Start + 2000}, 1000, 3})[0] {
		if len(got.Samples) != 1 || got.Samples[0].Value != 0.5 {
			t.Errorf("over part %d it is %+v, want 0.5", i, got)
		}
	}
}

// alone evaluates an expression as it is, with no part of it shared.
func alone(t *testing.T, q *Run, e *Expression, w windows, at time.Time) Result {
	t.Helper()
	a := q.asking(w, at)
	a.alone = true
	return a.evaluate(e)
}
