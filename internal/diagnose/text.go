package diagnose

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// text is a sentence or command of a rule with places to fill in.
type text struct {
	plain string             // without places: the text itself
	tmpl  *template.Template // nil when plain
	// lenient is tmpl, with "" for a label that is not there.
	lenient *template.Template
}

// facts are what a text may name.
type facts struct {
	Value   any // number, or nil when nothing was measured
	Subject map[string]string
	Labels  map[string]string // of the sample that answered
	To      string            // a change's new value
}

// number prints whole values as they are and others with at most three digits
// after the point.
type number float64

func (n number) String() string { return formatNumber(float64(n)) }

var textFuncs = template.FuncMap{
	"percent": measured(formatPercent),
	"count":   measured(formatCount),
	"seconds": measured(formatSeconds),
	"bytes":   measured(formatBytes),
	"number":  measured(formatNumber),
}

// measured makes a template function that says "?" of what was not measured.
func measured(format func(float64) string) func(any) (string, error) {
	return func(v any) (string, error) {
		switch v := v.(type) {
		case nil:
			return "?", nil
		case number:
			return format(float64(v)), nil
		case string: // a label's value, such as an index
			f, err := strconv.ParseFloat(v, 64)
			if err != nil {
				return "", fmt.Errorf("%q: want a number", v)
			}
			return format(f), nil
		}
		return "", fmt.Errorf("%v: want a number", v)
	}
}

func parseText(s string) (*text, error) {
	s = strings.TrimSpace(s)
	if !strings.Contains(s, "{{") {
		return &text{plain: s}, nil
	}
	tmpl, err := template.New("").Option("missingkey=error").Funcs(textFuncs).Parse(s)
	if err != nil {
		return nil, err
	}
	if err := refuseLoops(tmpl.Root); err != nil {
		return nil, err
	}
	lenient, err := tmpl.Clone()
	if err != nil {
		return nil, err
	}
	return &text{plain: s, tmpl: tmpl, lenient: lenient.Option("missingkey=zero")}, nil
}

// refuseLoops allows text and values only: a sentence needs no more, and a
// rule then always ends.
func refuseLoops(list *parse.ListNode) error {
	for _, n := range list.Nodes {
		if t := n.Type(); t != parse.NodeText && t != parse.NodeAction && t != parse.NodeComment {
			return fmt.Errorf("%s: only values may stand in braces", n)
		}
	}
	return nil
}

// names tells whether the text has a place for what.
func (t *text) names(what string) bool {
	return t.tmpl != nil && strings.Contains(t.plain, what)
}

// fill fills the text in. The place of a label that is not there stays empty,
// and the error reports it, so that a vector shows it.
func (t *text) fill(f facts) (string, error) {
	if t.tmpl == nil {
		return t.plain, nil
	}
	var out strings.Builder
	err := t.tmpl.Execute(&out, f)
	if err == nil {
		return out.String(), nil
	}
	out.Reset()
	if t.lenient.Execute(&out, f) != nil {
		return t.plain, err
	}
	return out.String(), err
}

func formatNumber(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	if math.Abs(v) < 0.001 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return trimZeros(strconv.FormatFloat(v, 'f', 3, 64))
}

func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// formatPercent writes a ratio; small ones with more digits, so that no
// failure reads as "0 %".
func formatPercent(v float64) string {
	digits := 1
	if p := math.Abs(v) * 100; p > 0 && p < 0.1 {
		digits = 3
	}
	return trimZeros(strconv.FormatFloat(v*100, 'f', digits, 64)) + " %"
}

// formatCount writes a whole number in groups of three digits.
func formatCount(v float64) string {
	if v != math.Trunc(v) || math.Abs(v) >= 1e15 {
		return formatNumber(v)
	}
	s := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if v < 0 {
		return "-" + s
	}
	return s
}

func formatSeconds(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1 || a == 0:
		return threeDigits(v) + " s"
	case a >= 1e-3:
		return threeDigits(v*1e3) + " ms"
	default:
		return threeDigits(v*1e6) + " µs"
	}
}

func formatBytes(v float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for math.Abs(v) >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return threeDigits(v) + " " + units[i]
}

// threeDigits rounds to three significant digits, whole numbers kept whole.
func threeDigits(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return trimZeros(strconv.FormatFloat(v, 'f', 1, 64))
	default:
		return trimZeros(strconv.FormatFloat(v, 'f', 2, 64))
	}
}
