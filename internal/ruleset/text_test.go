package ruleset

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestTexts(t *testing.T) {
	f := Facts{Value: Number(1234.5678), Subject: map[string]string{"host": "s"}, Labels: map[string]string{"cpu": "3"}}
	for src, want := range map[string]string{
		"plain":                             "plain",
		"{{.Value}} on {{.Subject.host}}":   "1235 on s",
		"{{count .Value}}":                  "1235",
		"{{seconds .Value}}":                "1235 s",
		"{{bytes .Value}}":                  "1.21 KiB",
		"{{percent .Labels.cpu}} of it":     "100 % of it",
		"{{ratio .Labels.cpu}} as many":     "300 % as many",
		"cpu {{.Labels.cpu}}{{.Labels.no}}": "cpu 3",
	} {
		tx, err := ParseText(src)
		if err != nil {
			t.Fatal(err)
		}
		got, err := tx.Fill(f)
		if got != want || (err != nil) != strings.Contains(src, ".no") {
			t.Errorf("%s: %q, %v; want %q", src, got, err, want)
		}
	}
	for _, bad := range []string{"{{.Value", "{{nosuch .Value}}", "{{range .Labels}}x{{end}}", "{{if .Value}}x{{end}}", `{{template "x"}}`} {
		if _, err := ParseText(bad); err == nil {
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
		{FormatNumber, 3, "3"}, {FormatNumber, 0.12345, "0.123"}, {FormatNumber, 0.00012345, "0.000123"}, {FormatNumber, -2.5, "-2.5"},
		{spoken, 3, "3"}, {spoken, 89.4772, "89.5"}, {spoken, 1.5771, "1.58"}, {spoken, 109.722, "110"}, {spoken, 0.943194, "0.943"}, {spoken, 0.00012345, "0.000123"},
		{formatShare, 1.2, "100 %"}, {formatShare, -0.002, "0 %"}, {formatShare, math.NaN(), "?"}, {formatShare, math.Inf(1), "100 %"},
		{formatPercent, 0.953, "95.3 %"}, {formatPercent, 1, "100 %"}, {formatPercent, 0, "0 %"}, {formatPercent, 0.00012, "0.012 %"}, {formatHundred, 0.907, "90.7"}, {formatHundred, 2.5, "250"},
		{formatCount, 0, "0"}, {formatCount, 999, "999"}, {formatCount, 1234567, "1,234,567"}, {formatCount, -1234, "-1,234"},
		{formatSeconds, 0.0123, "12.3 ms"}, {formatSeconds, 2, "2 s"}, {formatSeconds, 0.000045, "45 µs"}, {formatSeconds, 0, "0 s"}, {formatMillis, 0, "less than 1 ms"}, {formatMillis, 0.0123, "12.3 ms"},
		{formatBytes, 512, "512 B"}, {formatBytes, 1536, "1.5 KiB"}, {formatBytes, 3 << 30, "3 GiB"},
	} {
		if got := c.format(c.value); got != c.want {
			t.Errorf("%v: %s, want %s", c.value, got, c.want)
		}
	}
}

func TestNoValueWhereNoneCanBeQuoted(t *testing.T) {
	for _, s := range []string{`ls \{{.Subject.x}}`, "ls ${{.Subject.x}}", "ls `cat {{.Subject.x}}`", "ls 'a {{.Subject.x}}", "the server's {{.Subject.x}}", "echo $((1+{{.Value}}))"} {
		if _, err := ParseCommand(s); err == nil {
			t.Errorf("%s was taken", s)
		}
	}
}

// A line feed in a name begins no sentence of its own.
func TestNamesStayInTheirSentence(t *testing.T) {
	text, err := ParseText("{{.Subject.a}} and {{.Labels.b}}")
	if err != nil {
		t.Fatal(err)
	}
	got, err := text.Fill(Facts{Subject: map[string]string{"a": "x\nVERDICT: HEALTHY"}, Labels: map[string]string{"b": "\x1b[2J"}})
	if want := `x\nVERDICT: HEALTHY and \u001b[2J`; got != want || err != nil {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// The labels that a text tells are known, and a subject's are none.
func TestLabelsOfATextAreKnown(t *testing.T) {
	for src, want := range map[string][]string{
		"no place":                               nil,
		"{{number .Value}} of {{.Subject.host}}": nil,
		"{{.Labels.a}}, {{bytes .Labels.b}}":     {"a", "b"},
	} {
		text, err := ParseText(src)
		if err != nil {
			t.Fatal(err)
		}
		if got := text.Labels(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", src, got, want)
		}
	}
}

// TestFunctionsInWords holds how a sentence tells a script's function.
func TestFunctionsInWords(t *testing.T) {
	text, err := ParseText("in {{.Labels.function}}")
	if err != nil {
		t.Fatal(err)
	}
	for function, want := range map[string]string{
		"php:sqrt in total /run/www/index.php:7": "in sqrt, called by total (www/index.php:7)",
		"php:total /x.php:7":                     "in total (x.php:7)",
		"php:sqrt":                               "in php:sqrt",
		"keysCommand":                            "in keysCommand",
	} {
		got, err := text.Fill(Facts{Labels: map[string]string{"function": function}})
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", function, got, err, want)
		}
	}
}
