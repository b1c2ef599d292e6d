// Package alerts writes rules as alerts of Prometheus.
package alerts

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
)

// alertWindow is what $window is in an alerting rule: long enough for four
// scrapes a minute apart.
const (
	alertWindow        = "5m"
	alertWindowSeconds = "300"
)

// alertGroups is a rule file of Prometheus.
type alertGroups struct {
	Groups []alertGroup `yaml:"groups"`
}

type alertGroup struct {
	Name  string  `yaml:"name"`
	Rules []alert `yaml:"rules"`
}

type alert struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// exporting turns rules into alerts.
type exporting struct {
	signals   map[string]*model.Signal
	collected func(string) bool
}

// Prometheus writes the rules as a rule file of Prometheus: an alert for each that
// can be confirmed without a load of ours from what collected accepts, and a
// comment with the reason for each other. Our label host is instance there.
func Prometheus(rules ruleset.Rules, known []*model.Signal, collected func(string) bool) ([]byte, error) {
	e := exporting{signals: map[string]*model.Signal{}, collected: collected}
	for _, s := range known {
		e.signals[s.Name] = s
	}
	var out bytes.Buffer
	group := alertGroup{Name: "plimsoll", Rules: []alert{}}
	var left []string
	for _, r := range rules.List {
		a, err := e.alert(r)
		if err != nil {
			left = append(left, fmt.Sprintf("# - %s: %v\n", r.ID, err))
			continue
		}
		group.Rules = append(group.Rules, a)
	}
	fmt.Fprintf(&out, "# Plimsoll's rules that can run unattended; $window is %s. Rule set %s.\n", alertWindow, rules.Hash)
	if len(left) > 0 {
		fmt.Fprintf(&out, "# Not among them:\n%s", strings.Join(left, ""))
	}
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(alertGroups{Groups: []alertGroup{group}}); err != nil {
		return nil, fmt.Errorf("write the alerts: %w", err)
	}
	return out.Bytes(), enc.Close()
}

// alert makes an alert of a rule; the error is why there can be none.
func (e exporting) alert(r *ruleset.Rule) (alert, error) {
	if r.Kind == ruleset.Capacity || r.Kind == ruleset.Healthy {
		return alert{}, fmt.Errorf("nothing is wrong when it holds (%s)", r.Kind)
	}
	expr, err := e.condition(r)
	if err != nil {
		return alert{}, err
	}
	if _, err := query.Parser.ParseExpr(expr); err != nil {
		return alert{}, fmt.Errorf("its expression cannot be put together: %w", err)
	}
	places := "{{ $labels.instance }}"
	for _, name := range r.Subject {
		if name != "host" {
			places += fmt.Sprintf(", %s {{ $labels.%s }}", name, name)
		}
	}
	var hand []string
	for _, c := range r.Clues {
		if line := alertTemplate(c.ByHand); !slices.Contains(hand, line) {
			hand = append(hand, line)
		}
	}
	return alert{
		Alert: alertName(r.ID), Expr: expr,
		Labels: map[string]string{"severity": "warning", "plimsoll_rule": r.ID, "plimsoll_kind": r.Kind},
		Annotations: map[string]string{
			"summary": r.Title + " (" + places + ")", "description": strings.TrimSpace(r.Story),
			"by_hand": strings.Join(hand, "\n"), "runbook": runbook(r),
		},
	}, nil
}

// condition is what has to hold: applies, every needs, and one decides or proves.
func (e exporting) condition(r *ruleset.Rule) (string, error) {
	applies, _, err := e.part(r.AppliesExpr, r, true)
	if err != nil {
		return "", fmt.Errorf("applies: %w", err)
	}
	text := "(" + applies + ")"
	var proofs []string
	var last error
	for i := range r.Clues {
		c := &r.Clues[i]
		if c.Role == model.Supports || c.From != "" {
			continue
		}
		measure, on, err := e.part(c.MeasureExpr, r, false)
		if err != nil && c.Role == model.Needs {
			return "", fmt.Errorf("clue %s: %w", c.ID, err)
		}
		if err != nil {
			last = fmt.Errorf("clue %s: %w", c.ID, err)
			continue
		}
		holds := fmt.Sprintf("and on (%s) ((%s) %s)", on, measure, c.Is)
		if c.Role == model.Needs {
			text += "\n" + holds
		} else {
			proofs = append(proofs, holds)
		}
	}
	switch {
	case len(proofs) == 0 && last != nil:
		return "", last
	case len(proofs) == 0:
		return "", errors.New("it never proves anything, it only suspects")
	case len(proofs) == 1:
		return text + "\n" + proofs[0], nil
	}
	for i, p := range proofs {
		proofs[i] = "(" + text + "\n" + p + ")"
	}
	return strings.Join(proofs, "\nor\n"), nil
}

// alertMachines is query.MachineInfo for a Prometheus, which knows no boot ids: each
// instance is a machine by itself.
const alertMachines = `label_replace(count by (host) (node_boot_time_seconds) > bool 0, "machine", "$1", "instance", "(.+)")`

// part is an expression as a plain Prometheus takes it, and the labels by which
// it belongs to the rule's subject.
func (e exporting) part(x *query.Expression, r *ruleset.Rule, applies bool) (text, on string, err error) {
	plain := query.ReplaceVariables(x.Text, func(v query.VariableUse) string {
		switch {
		case v.Window != "window" || v.Part == "_start" || v.Part == "_end":
			err = fmt.Errorf("it looks at the %s of a run", v.Window)
		case v.IsRange:
			return alertWindow
		}
		return alertWindowSeconds
	})
	if err != nil {
		return "", "", err
	}
	root, err := query.Parser.ParseExpr(strings.ReplaceAll(plain, query.MachineInfo, alertMachines))
	if err != nil {
		return "", "", err
	}
	if root, err = e.prune(root, applies); err != nil {
		return "", "", err
	}
	if on, err = e.belongs(root, r); err != nil {
		return "", "", err
	}
	hostIsInstance(root)
	return root.String(), on, nil
}

// prune leaves out the alternatives that nobody collects. Without one that is
// collected there is nothing, and the error says what is missing. exclusions
// may fall away in applies; in a clue they would make a true of what is unknown.
func (e exporting) prune(n parser.Expr, exclusions bool) (parser.Expr, error) {
	down := func(child *parser.Expr) (err error) {
		*child, err = e.prune(*child, exclusions)
		return err
	}
	switch n := n.(type) {
	case *parser.VectorSelector:
		if !e.collected(n.Name) {
			return nil, fmt.Errorf("no exporter gives %s", n.Name)
		}
	case *parser.MatrixSelector:
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
		case n.Op == parser.LOR && left == nil, n.Op == parser.LUNLESS && left == nil && exclusions:
			return n.LHS, nil
		case n.Op == parser.LOR && right == nil:
			return n.RHS, nil
		case left != nil:
			return nil, left
		default:
			return nil, right
		}
	}
	return n, nil
}

// belongs returns the labels by which a result finds its subject: none where it
// speaks of all hosts, else those of the subject, which it must have.
func (e exporting) belongs(root parser.Expr, r *ruleset.Rule) (string, error) {
	selectors, err := query.FindSelectors(root)
	if err != nil {
		return "", err
	}
	has := map[string]bool{"host": true}
	global := len(selectors) > 0
	exporter := ""
	for _, s := range selectors {
		global = global && s.Global
		prefix, _, _ := strings.Cut(s.Name, "_")
		if exporter != "" && prefix != exporter {
			return "", fmt.Errorf("its series come from two exporters (%s, %s), whose instance labels differ", exporter, prefix)
		}
		exporter = prefix
		if sig := e.signals[s.Name]; sig != nil {
			for _, name := range sig.Labels {
				has[name] = true
			}
		}
	}
	if global {
		return "", nil
	}
	for _, name := range query.MadeLabels(root.String()) {
		has[name] = true
	}
	var on []string
	for _, name := range r.Subject {
		if !has[name] {
			return "", fmt.Errorf("what is collected has no label %s", name)
		}
		on = append(on, strings.ReplaceAll(name, "host", "instance"))
	}
	return strings.Join(on, ", "), nil
}

// hostIsInstance renames our label host to Prometheus' own.
func hostIsInstance(root parser.Expr) {
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
		}
		return nil
	})
}

// alertName is a rule's id in the form of alerts: NetConntrackTableFull.
func alertName(id string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(id, func(r rune) bool { return r == '.' || r == '_' || r == '-' }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// labelPlace is a place for a label in our templates.
var labelPlace = regexp.MustCompile(`\{\{\s*\.(?:Subject|Labels)\.([a-zA-Z_]+)\s*\}\}`)

// alertTemplate writes the places of our template as words that stand for them:
// Prometheus' templates cannot quote, and these are commands that are copied. The
// summary tells what the labels are.
func alertTemplate(s string) string {
	return labelPlace.ReplaceAllStringFunc(strings.TrimSpace(s), func(place string) string {
		return strings.ToUpper(labelPlace.FindStringSubmatch(place)[1])
	})
}

// runbook tells how to mend it.
func runbook(r *ruleset.Rule) string {
	var lines []string
	for _, f := range r.Fix {
		line := f.Title
		for _, c := range f.Change {
			if c.Kind == model.ChangePerson {
				line += ": " + alertTemplate(c.Name)
			}
		}
		if f.Costs != "" {
			line += ". It costs " + f.Costs
		}
		lines = append(lines, line+". Risk "+f.Risk+", restart "+f.Restart+".")
	}
	for _, b := range r.Blind {
		lines = append(lines, "Not seen: "+b)
	}
	return strings.Join(lines, "\n")
}
