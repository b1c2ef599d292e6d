package alerts

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
)

// plainParser reads what every Prometheus reads.
var plainParser = parser.NewParser(parser.Options{})

// translation turns expressions of rules into plain PromQL. Shared terms become recording
// rules, each evaluated once; those that stand in an alert are kept.
type translation struct {
	options Options
	known   query.Records
	signals map[string]*model.Signal
	records map[string]*term // translated so far
	order   []string         // of terms, each behind those that it names
	wanted  map[string]bool  // terms that stand in an alert, or in another such term
}

// term is a shared term in plain PromQL, or why there is none.
type term struct {
	expr   parser.Expr
	labels labelSets
	names  []string // the terms in it
	err    error
}

func newTranslation(rules ruleset.Rules, opt Options) *translation {
	t := &translation{options: opt, known: rules.Known(), signals: map[string]*model.Signal{}, records: map[string]*term{}, wanted: map[string]bool{}}
	for _, s := range opt.Signals {
		t.signals[s.Name] = s
	}
	return t
}

// used are the terms that alerts name, in the order in which they are to be evaluated.
func (t *translation) used() []recorded {
	var list []recorded
	for _, name := range t.order {
		if t.wanted[name] {
			list = append(list, recorded{name, t.text(t.records[name].expr)})
		}
	}
	return list
}

// want notes that these terms stand in an alert.
func (t *translation) want(n parser.Expr) {
	for _, name := range termNames(n) {
		if !t.wanted[name] {
			t.wanted[name] = true
			t.want(t.records[name].expr)
		}
	}
}

func termNames(n parser.Expr) []string {
	var names []string
	for _, vs := range query.VectorSelectors(n) {
		if strings.Contains(vs.Name, ":") {
			names = append(names, vs.Name)
		}
	}
	return names
}

// never is how long a range is that no run without a load of ours has anything in.
const never = 999 * 7 * 24 * time.Hour

// expression is an expression of a rule in plain PromQL, of each host by itself. The error is an
// outsideError where a Prometheus cannot tell it. loose says that what excludes and is not given may be left
// out: what is not given never is there.
func (t *translation) expression(text string, loose bool) (parser.Expr, error) {
	var err error
	plain := query.ReplaceVariables(text, func(v query.VariableUse) string {
		var out string
		if out, err = t.variable(v, err); err != nil {
			return strings.Repeat("1", 1) + "s"
		}
		return out
	})
	if err != nil {
		return nil, err
	}
	root, err := plainParser.ParseExpr(plain)
	if err != nil {
		return nil, err
	}
	if root, err = t.prune(root, loose); err != nil {
		return nil, err
	}
	if err = t.within(root); err != nil {
		return nil, err
	}
	return ofOneHost(root)
}

// variable is what stands for a window's variable, unless something failed already.
func (t *translation) variable(v query.VariableUse, failed error) (string, error) {
	main := slices.Contains([]string{"window", "hold", "run"}, v.Window)
	switch {
	case failed != nil:
		return "", failed
	case main && v.Part == "":
		return duration(t.options.Window), nil
	case main && v.Part == "_seconds":
		return strconv.FormatFloat(t.options.Window.Seconds(), 'f', -1, 64), nil
	case !main && v.Optional && v.Part == "":
		return duration(never), nil
	case !main && v.Optional:
		return "NaN", nil
	case slices.Contains([]string{"early", "middle", "late"}, v.Window):
		return "", outside("it compares the parts of a window with each other")
	case v.Window == model.Baseline:
		return "", outside("it compares with the time before a load")
	}
	return "", outside("it asks for the %s phase of a load of ours", v.Window)
}

// prune leaves out the alternatives that are not given. Without one that is given
// there is nothing, and the error says what is missing.
func (t *translation) prune(n parser.Expr, loose bool) (parser.Expr, error) {
	down := func(child *parser.Expr) (err error) {
		*child, err = t.prune(*child, loose)
		return err
	}
	switch n := n.(type) {
	case *parser.VectorSelector:
		return t.series(n)
	case *parser.MatrixSelector:
		if n.Range == never {
			return nil, outside("it compares with a phase of a load of ours")
		}
		if n.Range < 2*t.options.Interval {
			return nil, outside("it looks at %s, and the readings are %s apart", duration(n.Range), duration(t.options.Interval))
		}
		return n, down(&n.VectorSelector)
	case *parser.SubqueryExpr:
		return n, down(&n.Expr)
	case *parser.ParenExpr:
		return n, down(&n.Expr)
	case *parser.UnaryExpr:
		return n, down(&n.Expr)
	case *parser.AggregateExpr:
		return n, down(&n.Expr)
	case *parser.Call:
		for i := range n.Args {
			if err := down(&n.Args[i]); err != nil {
				return nil, err
			}
		}
	case *parser.BinaryExpr:
		left, right := down(&n.LHS), down(&n.RHS)
		switch {
		case left == nil && right == nil:
		case n.Op == parser.LOR && left == nil, n.Op == parser.LUNLESS && left == nil && loose:
			return n.LHS, onlyOutside(right)
		case n.Op == parser.LOR && right == nil:
			return n.RHS, onlyOutside(left)
		case left != nil:
			return nil, left
		default:
			return nil, right
		}
	}
	return n, nil
}

// onlyOutside passes on an error that is the rule's own.
func onlyOutside(err error) error {
	var out outsideError
	if errors.As(err, &out) {
		return nil
	}
	return err
}

// series is a selector of what is given: a signal, a shared term, or which hosts share a machine.
func (t *translation) series(n *parser.VectorSelector) (parser.Expr, error) {
	switch {
	case n.Name == query.MachineInfo && t.options.Foreign:
		return plainParser.ParseExpr(`label_replace(count by (host) (node_boot_time_seconds) > bool 0, "machine", "$1", "host", "(.+)")`)
	case n.Name == query.MachineInfo:
		return plainParser.ParseExpr(`max by (host, machine) (plimsoll_host_info)`)
	case strings.Contains(n.Name, ":"):
		if rec := t.term(n.Name); rec.err != nil {
			return nil, rec.err
		}
	case !t.options.Given(n.Name):
		return nil, outside("%s is not among the exporter's series", n.Name)
	}
	return n, nil
}

// term translates a shared term, once.
func (t *translation) term(name string) *term {
	if rec := t.records[name]; rec != nil {
		return rec
	}
	rec := new(term)
	t.records[name] = rec
	if rec.expr, rec.err = t.expression(t.known[name].Written, !t.options.Foreign); rec.err == nil {
		rec.names = termNames(rec.expr)
		rec.labels, rec.err = t.labels(rec.expr)
	}
	t.order = append(t.order, name)
	return rec
}

// within gives subqueries their step, twice an interval, so that no reading is missed; and in them what
// reads the whole window reads it at the end, as the rules have it.
func (t *translation) within(root parser.Expr) error {
	parser.Inspect(root, func(n parser.Node, path []parser.Node) error {
		in := slices.ContainsFunc(path, func(up parser.Node) bool { _, ok := up.(*parser.SubqueryExpr); return ok })
		switch n := n.(type) {
		case *parser.SubqueryExpr:
			if n.Step == 0 {
				n.Step = max(t.options.Interval/2, time.Millisecond)
			}
		case *parser.MatrixSelector:
			if in && n.Range == t.options.Window {
				n.VectorSelector.(*parser.VectorSelector).StartOrEnd = parser.END
			}
		case *parser.VectorSelector:
			if in && strings.Contains(n.Name, ":") {
				n.StartOrEnd = parser.END
			}
		}
		return nil
	})
	return nil
}

// asked translates an expression that was compiled. The windows of all that it names count, those in
// alternatives included: so the engine has it.
func (t *translation) asked(e *query.Expression, written string, loose bool) (parser.Expr, error) {
	var err error
	query.ReplaceVariables(e.Text, func(v query.VariableUse) string {
		_, err = t.variable(v, err)
		return ""
	})
	if err != nil {
		return nil, err
	}
	return t.expression(written, loose)
}

// text writes an expression, with the label by which hosts are told there.
func (t *translation) text(n parser.Expr) string {
	if !t.options.Foreign {
		return n.String()
	}
	copied, err := plainParser.ParseExpr(n.String())
	if err != nil {
		return n.String() // promtool tells why
	}
	instanceForHost(copied)
	return copied.String()
}

// host is the label by which hosts are told.
func (o Options) host() string {
	if o.Foreign {
		return "instance"
	}
	return "host"
}

// instanceForHost renames our label host to Prometheus' own.
func instanceForHost(root parser.Expr) {
	rename := func(list []string) {
		for i := range list {
			if list[i] == "host" {
				list[i] = "instance"
			}
		}
	}
	parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
		switch n := n.(type) {
		case *parser.AggregateExpr:
			rename(n.Grouping)
		case *parser.BinaryExpr:
			if n.VectorMatching != nil {
				rename(n.VectorMatching.MatchingLabels)
				rename(n.VectorMatching.Include)
			}
		case *parser.VectorSelector:
			for _, m := range n.LabelMatchers {
				if m.Name == "host" {
					m.Name = "instance"
				}
			}
		case *parser.Call:
			for _, arg := range n.Args {
				if lit, ok := arg.(*parser.StringLiteral); ok && lit.Val == "host" {
					lit.Val = "instance"
				}
			}
		}
		return nil
	})
}

func quoted(names []string) string { return fmt.Sprintf("%q", strings.Join(names, "|")) }
