package diagnose

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"plimsoll/internal/layout"
)

// text is a sentence or command of a rule with places to fill in.
type text struct {
	plain string             // without places: the text itself
	tmpl  *template.Template // nil when plain
	// lenient is tmpl, with "" for a label that is not there.
	lenient *template.Template
	pieces  []textPiece
}

// textPiece is a part of a text: the rule's own words, or a place to fill in.
type textPiece struct {
	own   string
	place *template.Template // nil of the rule's own words
}

// filled is a piece of a text that was filled in.
type filled struct {
	text    string
	outside bool // it came from outside, and is not the rule's own
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
	t := &text{plain: s, tmpl: tmpl, lenient: lenient.Option("missingkey=zero")}
	for _, n := range tmpl.Root.Nodes {
		if words, ok := n.(*parse.TextNode); ok {
			t.pieces = append(t.pieces, textPiece{own: string(words.Text)})
			continue
		}
		place, err := template.New("").Option("missingkey=zero").Funcs(textFuncs).
			AddParseTree("", &parse.Tree{Root: &parse.ListNode{NodeType: parse.NodeList, Nodes: []parse.Node{n}}})
		if err != nil {
			return nil, err
		}
		t.pieces = append(t.pieces, textPiece{place: place})
	}
	return t, nil
}

// parseCommand is parseText for a command: each place has to be one where a value
// can be quoted, so that no rule's author has to think of it.
func parseCommand(s string) (*text, error) {
	t, err := parseText(s)
	if err != nil {
		return nil, err
	}
	var line layout.Command
	for _, p := range t.pieces {
		if p.place == nil {
			line.Ours(p.own)
		} else if !line.Fit() {
			return nil, fmt.Errorf("%q: a value behind this cannot be quoted for a shell; no backslash or dollar right before it, and no backticks, ${ } or $(( ))", line.String())
		} else {
			line.Outside("x")
		}
	}
	if len(t.pieces) > 0 && !line.Closed() {
		return nil, fmt.Errorf("%q: a quote or a parenthesis is not closed, so that no value can be quoted in it", t.plain)
	}
	return t, nil
}

// fillPieces is fill, with what comes from outside told from the rule's own words.
func (t *text) fillPieces(f facts) (list []filled) {
	if t.tmpl == nil {
		return []filled{{text: t.plain}}
	}
	for _, p := range t.pieces {
		if p.place == nil {
			list = append(list, filled{text: p.own})
			continue
		}
		var value boundedText
		if p.place.Execute(&value, f) != nil {
			value.text = []byte("?") // fill says what is wrong with it
		}
		list = append(list, filled{value.String(), true})
	}
	return list
}

// command fills a command in, quoted for a shell.
func (t *text) command(f facts) string { return quoted(t.fillPieces(f)) }

// afterPgrep is a command line that ends where pgrep takes its pattern.
var afterPgrep = regexp.MustCompile(`\bpgrep( -[a-z,-]+)* $`)

// unknownValue stands in the place of a value that is not known.
const unknownValue = "…"

// quoted puts a command line together. Where pgrep takes a name, that is a
// pattern: it is written so that it fits itself alone.
func quoted(pieces []filled) string {
	var line layout.Command
	for _, p := range pieces {
		switch {
		case !p.outside, p.text == unknownValue:
			line.Ours(p.text)
		case afterPgrep.MatchString(line.String()):
			line.Outside(patternOf(p.text))
		default:
			line.Outside(p.text)
		}
	}
	return line.String()
}

// patternOf is the regular expression of a name, which also is no option.
func patternOf(name string) string {
	pattern := regexp.QuoteMeta(name)
	if strings.HasPrefix(pattern, "-") {
		pattern = "[-]" + pattern[1:]
	}
	return pattern
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
	f.Subject, f.Labels = inOneLine(f.Subject), inOneLine(f.Labels)
	return t.fillAsIs(f)
}

// fillAsIs is fill for a program, that has to get a label's value to the byte.
func (t *text) fillAsIs(f facts) (string, error) {
	if t.tmpl == nil {
		return t.plain, nil
	}
	var out boundedText
	err := t.tmpl.Execute(&out, f)
	if err == nil {
		return out.String(), nil
	}
	out = boundedText{}
	if t.lenient.Execute(&out, f) != nil {
		return t.plain, err
	}
	return out.String(), err
}

// inOneLine cleans labels for a sentence, where a line feed would begin a new one.
func inOneLine(labels map[string]string) map[string]string {
	out := make(map[string]string, len(labels))
	for name, value := range labels {
		out[name] = layout.Line(value)
	}
	return out
}

// boundedText has an end, whatever a template puts in it.
type boundedText struct{ text []byte }

func (s *boundedText) Write(p []byte) (int, error) {
	if len(s.text)+len(p) > maxText {
		return 0, fmt.Errorf("more than %d bytes", maxText)
	}
	s.text = append(s.text, p...)
	return len(p), nil
}

func (s *boundedText) String() string { return string(s.text) }

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
