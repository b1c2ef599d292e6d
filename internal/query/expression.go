package query

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"plimsoll/internal/lazy"
	"plimsoll/internal/model"
)

// maxText is the most of an expression, with its records, in bytes.
const maxText = 96 << 10

// shortestLookback is how long before a moment a reading still counts as that
// moment's: a few rounds, since some probes are not read in each.
const shortestLookback = 10 * time.Second

// grain is how far apart a run's readings are, and the looks of a subquery that
// says nothing of it.
type grain struct{ interval, lookback, step time.Duration }

// grainOf tells the grain of a run with so many milliseconds between readings.
func grainOf(interval int64) grain {
	d := time.Duration(interval) * time.Millisecond
	return grain{interval: d, lookback: max(shortestLookback, 5*d/2), step: time.Duration(stepOf(interval, nil)) * time.Millisecond}
}

// Parser is Prometheus' own parser, with the "anchored" modifier, which
// takes a range's two ends from readings instead of extrapolating.
var Parser = parser.NewParser(parser.Options{EnableExtendedRangeSelectors: true})

// Expression is a PromQL text of a rule with the shared terms filled in. Its
// window variables are filled in for each run, by query.
type Expression struct {
	Text string
	// src is the text before they were, "" for one that names none; terms are theirs.
	src   string
	terms Terms
	// parsed is its shape, once it was asked of a run.
	parsing sync.Once
	parsed  *shape
	failed  error
	// What its whole tree shows is found when it is first asked for: the shared terms make a text seventeen times
	// as long, and a run is judged by a part of all rules' expressions.
	once      sync.Once
	selectors []Selector
	made      []string
	counts    bool
	err       error
}

// Selectors are the series that it names; none where Err says what is wrong with it.
func (e *Expression) Selectors() []Selector { e.once.Do(e.read); return e.selectors }

// MadeLabels are the labels that it makes with label_replace, label_join or count_values.
func (e *Expression) MadeLabels() []string { e.once.Do(e.read); return e.made }

// Counts says whether it is a number of events in the main window, and nothing else.
func (e *Expression) Counts() bool { e.once.Do(e.read); return e.counts }

// Err says what is wrong with it, with its shared terms filled in; nil where Parse returned it.
func (e *Expression) Err() error { e.once.Do(e.read); return e.err }

// Selector is a series that an expression names.
type Selector struct {
	Name   string
	Labels []string // that its matchers name
	// Global: an aggregation around it drops the host, so that it speaks of all hosts.
	Global bool
	// Excludes: it stands to the right of "unless"; more of it makes less of the result.
	Excludes bool
	// Before are what stands to the left of "or on ()" where it stands to the right; where one
	// of them has a result, it has no part in the whole's.
	Before []*Expression
	// Refines: it only says more exactly what another series says (Record.Refining) to which it is an alternative ("or").
	Refines bool
}

// variable matches a window variable; in brackets it is a range. A question mark says
// that the expression has something else to offer where there is no such window.
var variable = lazy.Regexp(`^\$([a-z]+)(_seconds|_start|_end)?(\??)`)

var windowNames = []string{
	"window", "early", "middle", "late", "run", model.Baseline, model.Calm, model.Ramp, model.Hold, model.Cool,
}

// Terms are what a text may name, and how it is taken.
type Terms struct {
	Records Records
	// Tried: all texts were parsed with these records before, and nothing was wrong with them. Then only Err
	// would tell what is.
	Tried bool

	trees *trees // of the expressions that name these records
	// refining are the names of all their Refining.
	refining map[string]bool
}

// With are terms with other records.
func (t Terms) With(records Records) Terms {
	t.Records, t.trees, t.refining = records, newTrees(), map[string]bool{}
	for _, rec := range records {
		t.refine(rec)
	}
	return t
}

// Add adds a record to terms that With made.
func (t Terms) Add(rec Record) {
	t.Records[rec.Name] = rec
	t.refine(rec)
}

func (t Terms) refine(rec Record) {
	for _, signal := range rec.Refining {
		t.refining[signal] = true
	}
}

// Parse fills in the shared terms and parses the result.
func Parse(src string, known Records) (*Expression, error) { return Terms{Records: known}.Parse(src) }

// Parse is the function Parse with these terms.
func (t Terms) Parse(src string) (*Expression, error) {
	if strings.TrimSpace(src) == "" {
		return nil, errors.New("the expression is missing")
	}
	if len(src) > maxText {
		return nil, fmt.Errorf("%d bytes: want at most %d", len(src), maxText)
	}
	if reserved := strconv.Itoa(firstMark / 1000); strings.Contains(src, reserved) {
		return nil, fmt.Errorf("%s: Plimsoll's own mark for a window; write another number", reserved)
	}
	e := &Expression{src: src, terms: t}
	if t.Tried {
		var err error
		e.Text, err = expandTried(src, t.Records)
		return e, err
	}
	root, err := ParseWithVariables(src)
	if err != nil {
		return nil, err
	}
	if e.Text, err = expandRecords(src, root, t.Records); err != nil {
		return nil, err
	}
	if len(e.Text) > maxText {
		return nil, fmt.Errorf("with its records it has %d bytes: want at most %d", len(e.Text), maxText)
	}
	if err := cmp.Or(refuseReplacements(root), e.Err()); err != nil {
		return nil, err
	}
	return e, nil
}

// shape is the expression as it is asked of runs.
func (e *Expression) shape() (*shape, error) {
	e.parsing.Do(func() {
		src := cmp.Or(e.src, e.Text)
		e.parsed, e.failed = e.terms.shapeOf(src, e.Text)
		if errors.Is(e.failed, errNumber) {
			e.parsed, e.failed = Terms{trees: e.terms.trees}.shapeOf(e.Text, e.Text)
		}
	})
	return e.parsed, e.failed
}

// errNumber says that a record is no series.
var errNumber = errors.New("a record that is a number")

// read finds out what the whole tree shows.
func (e *Expression) read() {
	root, err := ParseWithVariables(e.Text)
	if err == nil {
		err = fixedMoments(e.Text, root)
	}
	if err != nil {
		e.err = err
		return
	}
	if t := root.Type(); t != parser.ValueTypeVector && t != parser.ValueTypeScalar {
		e.err = fmt.Errorf("want an instant vector or a number, got a %s", parser.DocumentedType(t))
		return
	}
	list, err := FindSelectors(root)
	if err != nil {
		e.err = err
		return
	}
	noteBefore(e.Text, root, list)
	e.terms.noteRefining(root, list)
	e.selectors, e.made, e.counts = distinct(list), madeLabels(root), countsEvents(e.Text, root)
}

// distinct are the selectors, each once: an expression names the same series in the same way twenty times. Their names are copies, since
// the text that they stand in would be held by them.
func distinct(list []Selector) []Selector {
	var out []Selector
	for _, s := range list {
		if slices.ContainsFunc(out, s.same) {
			continue
		}
		s.Name = strings.Clone(s.Name)
		for i, l := range s.Labels {
			s.Labels[i] = strings.Clone(l)
		}
		out = append(out, s)
	}
	return slices.Clip(out)
}

// same says whether two selectors stand for the same.
func (s Selector) same(o Selector) bool {
	return s.Name == o.Name && s.Global == o.Global && s.Excludes == o.Excludes && s.Refines == o.Refines && slices.Equal(s.Labels, o.Labels) &&
		slices.EqualFunc(s.Before, o.Before, func(a, b *Expression) bool { return a.Text == b.Text })
}

// ParseWithVariables parses a text with window variables, each stood in for by
// digits of the same length, so that positions stay right.
func ParseWithVariables(text string) (parser.Expr, error) {
	var bad error
	plain := ReplaceVariables(text, func(v VariableUse) string {
		if !slices.Contains(windowNames, v.Window) {
			bad = fmt.Errorf("$%s: no such window; there are %s", v.Window, strings.Join(windowNames, ", "))
		}
		if v.IsRange && v.Part == "" {
			return strings.Repeat("1", v.length-1) + "s"
		}
		if v.Optional && v.Part != "_seconds" && v.Part != "" {
			bad = fmt.Errorf("$%s%s?: want the question mark behind _seconds, or in brackets", v.Window, v.Part)
		}
		if v.glued {
			bad = fmt.Errorf("$%s%s: it is part of a word, and becomes a number there: want a space or an operator around it", v.Window, v.Part)
		}
		if v.Part == "" {
			bad = fmt.Errorf("$%s: want it in brackets, or as $%s_seconds, $%s_start or $%s_end", v.Window, v.Window, v.Window, v.Window)
		}
		return strings.Repeat("1", v.length)
	})
	if bad != nil {
		return nil, bad
	}
	return Parser.ParseExpr(plain)
}

// VariableUse is one window variable in a text.
type VariableUse struct {
	Window  string
	Part    string // "", "_seconds", "_start", "_end"
	IsRange bool   // it stands in brackets
	// Optional: where there is no such window it is NaN, which no comparison lets pass; as a
	// range there is nothing in it.
	Optional bool
	glued    bool // a word goes on before or behind it
	length   int  // of the variable itself, with its dollar sign
}

// inWord says whether a byte can belong to a name or a number of PromQL.
func inWord(b byte) bool {
	return b == '_' || b == ':' || b == '.' || '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'z' || b >= 0x80
}

// ReplaceVariables calls stand for each variable and puts its answer in its place.
func ReplaceVariables(text string, stand func(VariableUse) string) string {
	var out strings.Builder
	last := 0
	// Looked for by its dollar sign: the program reads some thousand texts before it does anything.
	for next := 0; ; {
		at := strings.IndexByte(text[next:], '$')
		if at < 0 {
			break
		}
		start := next + at
		next = start + 1
		m := variable().FindStringSubmatchIndex(text[start:])
		if m == nil {
			continue
		}
		next = start + m[1]
		use := VariableUse{Window: text[start+m[2] : start+m[3]], Optional: m[6] < m[7], length: m[1]}
		use.IsRange = strings.HasSuffix(strings.TrimRight(text[:start], " \t\n\f\r"), "[")
		if m[4] >= 0 {
			use.Part = text[start+m[4] : start+m[5]]
		}
		use.glued = start > 0 && inWord(text[start-1]) || next < len(text) && inWord(text[next]) && text[next] != ':'
		out.WriteString(text[last:start])
		out.WriteString(stand(use))
		last = next
	}
	out.WriteString(text[last:])
	return out.String()
}

type splice struct {
	start, end int
	text       string
}

// spliceAll puts texts in the place of others that do not overlap.
func spliceAll(s string, cuts []splice) string {
	slices.SortFunc(cuts, func(a, b splice) int { return a.start - b.start })
	size := len(s)
	for _, c := range cuts {
		size += len(c.text) - (c.end - c.start)
	}
	var out strings.Builder
	out.Grow(size) // rules' texts are kept, and so would be room that they do not need
	last := 0
	for _, c := range cuts {
		out.WriteString(s[last:c.start])
		out.WriteString(c.text)
		last = c.end
	}
	out.WriteString(s[last:])
	return out.String()
}

// VectorSelectors returns all selectors below root. Those with a range are
// left out of a parser.Inspect by way of their matrix only, so none comes twice.
func VectorSelectors(root parser.Expr) []*parser.VectorSelector {
	var list []*parser.VectorSelector
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		if vs, ok := n.(*parser.VectorSelector); ok {
			list = append(list, vs)
		}
		return nil
	})
	return list
}

// FindSelectors returns the series that root names, and refuses what would
// make a number of an absence or could not be traced to a signal. What stands before each
// of them Parse alone knows.
func FindSelectors(root parser.Expr) ([]Selector, error) {
	var list []Selector
	var bad error
	parser.Inspect(root, func(n parser.Node, path []parser.Node) error {
		switch n := n.(type) {
		case *parser.Call:
			if err := refuseCall(n); err != nil && bad == nil {
				bad = err
			}
		case *parser.VectorSelector:
			if n.Name == MachineInfo { // the manifest always tells
				return nil
			}
			s := Selector{Name: n.Name}
			if n.Name == "" && bad == nil {
				bad = fmt.Errorf("%s: name the series outright, so that its status can be asked", n)
			}
			if n.Smoothed && bad == nil {
				bad = fmt.Errorf("%s: smoothed changes what a difference is; leave it out, differences are exact here", n.Name)
			}
			for _, m := range n.LabelMatchers {
				if m.Name != "__name__" {
					s.Labels = append(s.Labels, m.Name)
				}
			}
			s.Global, s.Excludes = standing(n, path)
			list = append(list, s)
		}
		return nil
	})
	return list, bad
}

func refuseCall(c *parser.Call) error {
	switch c.Func.Name {
	case "vector", "absent", "absent_over_time":
		return fmt.Errorf("%s(): it makes a number out of an absence; leave it out, the engine knows the third answer", c.Func.Name)
	}
	if _, ok := promql.AnchoredSafeFunctions[c.Func.Name]; ok {
		if _, ok := c.Args[0].(*parser.SubqueryExpr); ok {
			return fmt.Errorf("%s() of a subquery extrapolates; give it a plain series", c.Func.Name)
		}
	}
	return nil
}

// refuseReplacements refuses what label_replace and label_join cannot do, also where a run has nothing to do it to.
func refuseReplacements(root parser.Expr) error {
	var bad error
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		c, ok := n.(*parser.Call)
		if !ok || !strings.HasPrefix(c.Func.Name, "label_") || bad != nil {
			return nil
		}
		text := func(i int) string {
			s, _ := c.Args[i].(*parser.StringLiteral)
			if s == nil {
				return ""
			}
			return s.Val
		}
		if text(1) == "" {
			bad = fmt.Errorf("%s(): want a label's name as its second argument", c.Func.Name)
		} else if c.Func.Name == "label_replace" {
			if _, err := regexp.Compile("^(?s:" + text(4) + ")$"); err != nil {
				bad = fmt.Errorf("%s(): %w", c.Func.Name, err)
			}
		}
		return nil
	})
	return bad
}

// standing tells where in the expression a selector stands; path leads from
// the root to its parent.
func standing(n parser.Node, path []parser.Node) (global, excludes bool) {
	child := n
	for _, up := range slices.Backward(path) {
		switch up := up.(type) {
		case *parser.AggregateExpr:
			if slices.Contains(up.Grouping, "host") == up.Without {
				global = true
			}
		case *parser.BinaryExpr:
			if up.Op == parser.LUNLESS && up.RHS == child {
				excludes = true
			}
		}
		child = up
	}
	return global, excludes
}

// noteBefore fills in what stands before each of the selectors that FindSelectors found in root,
// which was parsed from text.
func noteBefore(text string, root parser.Expr, found []Selector) {
	parser.Inspect(root, func(n parser.Node, path []parser.Node) error {
		if vs, ok := n.(*parser.VectorSelector); ok && vs.Name != MachineInfo {
			found[0].Before = before(text, n, path)
			found = found[1:]
		}
		return nil
	})
}

// noteRefining says of the selectors that FindSelectors found in root which of them refine: where nobody read them
// another series of the same "or" tells, less exactly. One that is asked alone is missed like any other.
func (t Terms) noteRefining(root parser.Expr, found []Selector) {
	parser.Inspect(root, func(n parser.Node, path []parser.Node) error {
		if vs, ok := n.(*parser.VectorSelector); ok && vs.Name != MachineInfo {
			found[0].Refines = t.refining[vs.Name] && t.toldBeside(n, path)
			found = found[1:]
		}
		return nil
	})
}

// toldBeside says whether on the way to n there is an "or" of which the other side tells without what refines.
func (t Terms) toldBeside(n parser.Node, path []parser.Node) bool {
	for _, up := range slices.Backward(path) {
		if b, ok := up.(*parser.BinaryExpr); ok && b.Op == parser.LOR {
			if n == b.LHS && t.tellsWithout(b.RHS) || n == b.RHS && t.tellsWithout(b.LHS) {
				return true
			}
		}
		n = up
	}
	return false
}

// tellsWithout says whether an expression may have a result where nothing that only refines was read.
func (t Terms) tellsWithout(n parser.Node) bool {
	switch n := n.(type) {
	case *parser.VectorSelector:
		return !t.refining[n.Name]
	case *parser.BinaryExpr:
		if n.Op == parser.LOR {
			return t.tellsWithout(n.LHS) || t.tellsWithout(n.RHS)
		}
		if n.Op == parser.LUNLESS {
			return t.tellsWithout(n.LHS)
		}
	}
	for child := range parser.ChildrenIter(n) {
		if !t.tellsWithout(child) {
			return false
		}
	}
	return true
}

// before returns the operands that have to be without a result for a selector to matter. Within a
// subquery they are asked at many moments, so that nobody knows.
func before(text string, n parser.Node, path []parser.Node) []*Expression {
	var list []*Expression
	child := n
	for _, up := range slices.Backward(path) {
		switch up := up.(type) {
		case *parser.SubqueryExpr:
			list = nil
		case *parser.BinaryExpr:
			m := up.VectorMatching
			if up.Op == parser.LOR && up.RHS == child && m.On && len(m.MatchingLabels) == 0 {
				pos := up.LHS.PositionRange()
				list = append(list, &Expression{Text: text[pos.Start:pos.End]})
			}
		}
		child = up
	}
	return list
}

// moment writes Unix milliseconds as PromQL's seconds.
func moment(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64) }

// beforeAll is a moment, in Unix milliseconds, at which nobody recorded anything.
const beforeAll = -1e9

// rangeMark encloses a window within brackets until pinRanges has moved its
// end behind them. It cannot stand in a PromQL text.
const rangeMark = "\x00"

var markedRange = lazy.Regexp("\x00(-?[0-9]+)\x00(-?[0-9.]+)\x00([^\\]]*\\])")

// pinRanges turns each marked window into a range with an "@" behind its
// bracket.
func pinRanges(text string) string {
	return markedRange().ReplaceAllString(text, "${1}ms$3 @ $2")
}

// MustParse parses an expression that stands in the program, without records.
func MustParse(text string) *Expression {
	e, err := Parse(text, nil)
	if err != nil {
		panic(err) // a constant
	}
	return e
}

// Fixed is MustParse when it is first asked for: not at every start of the program.
func Fixed(text string) func() *Expression {
	return sync.OnceValue(func() *Expression { return MustParse(text) })
}

// madeLabels returns the labels that an expression makes with label_replace, label_join or count_values, each once. They are
// copies, since the text that they stand in would be held by them.
func madeLabels(root parser.Expr) []string {
	var names []string
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		var name parser.Expr
		switch e := n.(type) {
		case *parser.Call:
			if strings.HasPrefix(e.Func.Name, "label_") && len(e.Args) > 1 {
				name = e.Args[1]
			}
		case *parser.AggregateExpr:
			if e.Op == parser.COUNT_VALUES {
				name = e.Param
			}
		}
		if s, ok := name.(*parser.StringLiteral); ok && !slices.Contains(names, s.Val) {
			names = append(names, strings.Clone(s.Val))
		}
		return nil
	})
	return names
}

// otherWindow matches a window variable that is not the main one's.
var otherWindow = lazy.Regexp(`\$(run|baseline|calm|ramp|hold|cool)\b`)

// countsEvents says whether an expression is nothing but a number of events in
// the main window: increases of counters, added up or chosen from, and not
// divided by anything.
func countsEvents(text string, root parser.Expr) bool {
	if otherWindow().MatchString(text) {
		return false
	}
	counts, plain := 0, true
	parser.Inspect(root, func(n parser.Node, path []parser.Node) error {
		switch n := n.(type) {
		case *parser.VectorSelector:
			counts++
			plain = plain && withinIncrease(path)
		case *parser.BinaryExpr:
			plain = plain && (n.Op == parser.ADD || n.Op.IsSetOperator())
		}
		return nil
	})
	return plain && counts > 0
}

func withinIncrease(path []parser.Node) bool {
	for _, n := range path {
		if c, ok := n.(*parser.Call); ok && c.Func.Name == "increase" {
			return true
		}
	}
	return false
}
