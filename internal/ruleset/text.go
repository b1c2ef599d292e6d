package ruleset

import (
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
)

// Text is a sentence or command of a rule with places to fill in.
type Text struct {
	plain string             // without places: the text itself
	tmpl  *template.Template // nil when plain
	// lenient is tmpl, with "" for a label that is not there.
	lenient *template.Template
	pieces  []textPiece
}

// textPiece is a part of a text: the rule's own words, or a place to fill in.
type textPiece struct {
	own   string
	value *template.Template // nil of the rule's own words
}

// Facts are what a text may name.
type Facts struct {
	Value   any // a Number, or nil when nothing was measured
	Subject map[string]string
	Labels  map[string]string // of the sample that answered
	Every   map[string]string // of all samples that belong to the subject, what each label says, the largest sample's first
	To      string            // a change's new value
}

// scriptFunction is a PHP function as the tracer of functions writes it: of one of PHP's own with who calls it, and where that stands.
var scriptFunction = lazy.Regexp(`^php:(?:(\S+) in )?(\S+) (?:/\S*?)?([^/\s]*/?[^/\s]+:\d+)$`)

// inWords writes the function among a sentence's labels as a sentence tells it.
func inWords(labels map[string]string) map[string]string {
	m := scriptFunction().FindStringSubmatch(labels["function"])
	switch {
	case m == nil:
	case m[1] == "":
		labels["function"] = m[2] + " (" + m[3] + ")"
	default:
		labels["function"] = m[1] + ", called by " + m[2] + " (" + m[3] + ")"
	}
	return labels
}

// Number prints whole values as they are and others with three digits.
type Number float64

func (n Number) String() string { return spoken(float64(n)) }

var textFuncs = template.FuncMap{
	"percent": measured(formatShare),
	"ratio":   measured(formatPercent),
	"hundred": measured(formatHundred),
	"count":   measured(markOne(formatCount)),
	"seconds": measured(formatSeconds),
	"millis":  measured(formatMillis),
	"bytes":   measured(formatBytes),
	"number":  measured(markOne(spoken)),
	"atonce":  layout.AtOnce,
}

// The texts of a set share their functions: a copy for each of some thousand texts, and for each place in them, was a fifth of what the rules take in memory.
var (
	strict  = template.New("").Option("missingkey=error").Funcs(textFuncs)
	lenient = template.New("").Option("missingkey=zero").Funcs(textFuncs)
)

// measured makes a template function that says "?" of what was not measured.
func measured(format func(float64) string) func(any) (string, error) {
	return func(v any) (string, error) {
		switch v := v.(type) {
		case nil:
			return "?", nil
		case Number:
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

// ParseText reads a sentence with places to fill in.
func ParseText(s string) (*Text, error) {
	s = strings.TrimSpace(s)
	if !strings.Contains(s, "{{") {
		return &Text{plain: s}, nil
	}
	tmpl, err := strict.New("").Parse(s)
	if err != nil {
		return nil, err
	}
	if err := refuseLoops(tmpl.Root); err != nil {
		return nil, err
	}
	t := &Text{plain: s, tmpl: tmpl}
	if t.lenient, err = lenient.New("").AddParseTree("", tmpl.Tree); err != nil {
		return nil, err
	}
	for _, n := range tmpl.Root.Nodes {
		if words, ok := n.(*parse.TextNode); ok {
			t.pieces = append(t.pieces, textPiece{own: string(words.Text)})
			continue
		}
		value, err := lenient.New("").AddParseTree("", &parse.Tree{Root: &parse.ListNode{NodeType: parse.NodeList, Nodes: []parse.Node{n}}})
		if err != nil {
			return nil, err
		}
		t.pieces = append(t.pieces, textPiece{value: value})
	}
	return t, nil
}

// Form is the name of the function by which the text writes its value, "" where it does not.
func (t *Text) Form() string {
	if t.tmpl == nil {
		return ""
	}
	for _, n := range t.tmpl.Root.Nodes {
		place, ok := n.(*parse.ActionNode)
		if !ok {
			continue
		}
		for _, c := range place.Pipe.Cmds {
			if len(c.Args) == 2 && c.Args[1].String() == ".Value" {
				return c.Args[0].String()
			}
		}
	}
	return ""
}

// Labels are the labels of its sample that the text tells.
func (t *Text) Labels() (list []string) {
	if t.tmpl == nil {
		return nil
	}
	for _, n := range t.tmpl.Root.Nodes {
		place, ok := n.(*parse.ActionNode)
		if !ok {
			continue
		}
		for _, c := range place.Pipe.Cmds {
			for _, arg := range c.Args {
				if field, ok := arg.(*parse.FieldNode); ok && len(field.Ident) == 2 && field.Ident[0] == "Labels" {
					list = append(list, field.Ident[1])
				}
			}
		}
	}
	return list
}

// ParseCommand is ParseText for a command: each place has to be one where a value
// can be quoted, so that no rule's author has to think of it.
func ParseCommand(s string) (*Text, error) {
	t, err := ParseText(s)
	if err != nil {
		return nil, err
	}
	var line layout.Command
	for _, p := range t.pieces {
		if p.value == nil {
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

// Pieces is Fill, with what comes from outside told from the rule's own words.
func (t *Text) Pieces(f Facts) (list []layout.Piece) {
	if t.tmpl == nil {
		return []layout.Piece{{Text: t.plain}}
	}
	for _, p := range t.pieces {
		if p.value == nil {
			list = append(list, layout.Piece{Text: p.own})
			continue
		}
		var value boundedText
		if p.value.Execute(&value, f) != nil {
			value.text = []byte("?") // Fill says what is wrong with it
		}
		list = append(list, layout.Piece{Text: unmarked(value.String()), Outside: true})
	}
	return list
}

// Command fills a command in, quoted for a shell.
func (t *Text) Command(f Facts) string { return layout.CommandLine(t.Pieces(f)) }

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

// Names tells whether the text has a place for what.
func (t *Text) Names(what string) bool {
	return t.tmpl != nil && strings.Contains(t.plain, what)
}

// Fill fills the text in. The place of a label that is not there stays empty,
// and the error reports it, so that a vector shows it.
func (t *Text) Fill(f Facts) (string, error) {
	if t.tmpl == nil {
		return t.plain, nil
	}
	f.Subject, f.Labels, f.Every = inOneLine(f.Subject), inWords(inOneLine(f.Labels)), inOneLine(f.Every)
	text, err := t.filled(f)
	return unmarked(inSingular(text)), err
}

// FillAsIs is Fill for a program, that has to get a label's value to the byte.
func (t *Text) FillAsIs(f Facts) (string, error) {
	text, err := t.filled(f)
	return unmarked(text), err
}

// filled is the text with its places filled, and marks behind numbers that are one.
func (t *Text) filled(f Facts) (string, error) {
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
