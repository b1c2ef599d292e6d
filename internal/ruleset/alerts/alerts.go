// Package alerts writes rules as alerts: a rule file of Prometheus, and what its
// Alertmanager has to know, so that one cause rings once.
//
// An alert rings for a subject where "plimsoll diagnose --prometheus" of its host alone, over the
// same series and the same window, says "confirmed". What stands for that in plain
// PromQL is exact, or the rule is left out, with the reason (docs/alerts.md).
package alerts

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/model"
	"plimsoll/internal/ruleset"
)

// Options say for whom alerts are written.
type Options struct {
	// Signals are all that there are; Given tells which of them the exporter has.
	Signals []*model.Signal
	Given   func(signal string) bool
	// Foreign: the series are other exporters', whose hosts are told by the label instance, and of
	// which nobody says what could not be read.
	Foreign bool
	// Window is $window; Interval the time between two scrapes, and between two evaluations.
	Window, Interval time.Duration
	// For is how long a condition holds before its alert rings; what others explain waits twice
	// as long, and symptoms three times or for a window, so that their causes come first.
	For time.Duration
	// Keep is how long a ringing alert that others explain goes on when its condition holds no more;
	// those that nothing explains twice as long, so that they outlast what they explain.
	Keep time.Duration
	// Least is the volume: of events that harm one user each, so many in the window. 0: any.
	Least float64
	// Only are the rules that are written, by id; nil for all.
	Only []string
	// Handbook is the address before a rule's page.
	Handbook string
	// Together is a label of the server's targets: hosts that agree in it explain one another's alerts. "": each host by itself.
	Together string
}

// Set is a rule set as alerts.
type Set struct {
	options Options
	hash    string
	rules   []written
	quiet   []consequence
	records []recorded
	when    map[*ruleset.Clue]condition
	why     map[string][]whyNot
	order   []string
}

// written is a rule that became an alert.
type written struct {
	rule *ruleset.Rule
	expr string
}

// whyNot is why a rule, or one of its clues (Clue not empty), is not among the alerts.
type whyNot struct{ Clue, Why string }

// Of turns rules into alerts.
func Of(rules ruleset.Rules, opt Options) (Set, error) {
	t := newTranslation(rules, opt)
	s := Set{options: opt, hash: rules.Hash, why: map[string][]whyNot{}}
	for _, r := range rules.List {
		if !opt.wants(r.ID) {
			continue
		}
		expr, left, err := t.condition(r)
		var out outsideError
		switch {
		case errors.As(err, &out):
			left = []whyNot{{Why: out.why}}
		case err != nil:
			return Set{}, r.Fault(err)
		default:
			s.rules = append(s.rules, written{r, expr})
		}
		if len(left) > 0 {
			s.order, s.why[r.ID] = append(s.order, r.ID), left
		}
	}
	var err error
	s.quiet = s.consequences()
	s.when, err = t.conditions(s.quiet)
	s.records = t.used()
	return s, err
}

func (o Options) wants(id string) bool {
	if o.Only == nil {
		return true
	}
	for _, other := range o.Only {
		if other == id {
			return true
		}
	}
	return false
}

// outsideError says what of a rule cannot be asked of a Prometheus for ever.
type outsideError struct{ why string }

func (e outsideError) Error() string { return e.why }

func outside(format string, args ...any) error { return outsideError{fmt.Sprintf(format, args...)} }

// LeftOut says of each rule that is no alert why.
func (s Set) LeftOut() map[string]string {
	out := map[string]string{}
	for id, list := range s.why {
		if list[0].Clue == "" {
			out[id] = list[0].Why
		}
	}
	return out
}

// Alerts lists the ids of the rules that are alerts.
func (s Set) Alerts() []string {
	var ids []string
	for _, w := range s.rules {
		ids = append(ids, w.rule.ID)
	}
	return ids
}

// ruleFile is a rule file of Prometheus.
type ruleFile struct {
	Groups []group `yaml:"groups"`
}

type group struct {
	Name     string `yaml:"name"`
	Interval string `yaml:"interval,omitempty"`
	Rules    []any  `yaml:"rules"`
}

// recorded is a shared term as a recording rule.
type recorded struct {
	Record string `yaml:"record"`
	Expr   string `yaml:"expr"`
}

type alert struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Keep        string            `yaml:"keep_firing_for,omitempty"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

// Prometheus writes the alerts as a rule file. Terms and alerts are one group, since a group
// is evaluated in order, at one moment.
func (s Set) Prometheus() ([]byte, error) {
	g := group{Name: "plimsoll", Interval: duration(s.options.Interval), Rules: []any{}}
	for _, rec := range s.records {
		g.Rules = append(g.Rules, rec)
	}
	for _, w := range s.rules {
		g.Rules = append(g.Rules, s.alert(w))
	}
	for _, c := range s.conditions() {
		g.Rules = append(g.Rules, c.alert())
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Plimsoll's rules as alerts, over a window of %s; a scrape each %s. Rule set %s.\n",
		duration(s.options.Window), duration(s.options.Interval), s.hash)
	out.WriteString(s.comments())
	return encoded(&out, ruleFile{Groups: []group{g}})
}

// comments say what is not there, and why.
func (s Set) comments() string {
	var rules, clues strings.Builder
	for _, id := range s.order {
		for _, l := range s.why[id] {
			if l.Clue == "" {
				fmt.Fprintf(&rules, "# - %s: %s\n", id, layoutLine(l.Why))
			} else {
				fmt.Fprintf(&clues, "# - %s, %s: %s\n", id, l.Clue, layoutLine(l.Why))
			}
		}
	}
	var out string
	if rules.Len() > 0 {
		out += "# Rules that are not among them:\n" + rules.String()
	}
	if clues.Len() > 0 {
		out += "# Proofs that are not among theirs:\n" + clues.String()
	}
	return out
}

func layoutLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func encoded(out *bytes.Buffer, doc any) ([]byte, error) {
	enc := yaml.NewEncoder(out)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("write the alerts: %w", err)
	}
	return out.Bytes(), enc.Close()
}

// alert is a rule as an alert.
func (s Set) alert(w written) alert {
	wait, keep := s.patience(w.rule)
	return alert{
		Alert: alertName(w.rule.ID), Expr: s.options.joined(w.expr), For: duration(wait), Keep: duration(keep),
		Labels: map[string]string{
			"severity": severity(w.rule), "plimsoll_rule": w.rule.ID, "plimsoll_kind": w.rule.Kind,
		},
		Annotations: annotations(w.rule, s.options),
	}
}

// joined gives an alert's subjects the label by which hosts belong together; a host that has none is one by itself.
func (o Options) joined(expr string) string {
	if o.Together == "" {
		return expr
	}
	known := fmt.Sprintf("group by (host, %[1]s) (plimsoll_host_info{%[1]s!=\"\"})\nor on (host) label_replace(group by (host) (plimsoll_host_info), %[1]q, \"host %%s\", \"host\", \"(.+)\")", o.Together)
	return fmt.Sprintf("(%s)\n* on (host) group_left (%s) topk by (host) (1, %s)", expr, o.Together, strings.ReplaceAll(known, "%s", "$1"))
}

// ofNobody are what a symptom may show without telling whose it was: a monitor that asks a machine that is gone loses packets as a
// user does.
var ofNobody = []string{"loses_connects", "drops_packets", "takes_cpu"}

// unserved is where nobody is served: only programs are there, which users may not know of.
const unserved = "host:programs:info"

// severity of a capacity is info: nothing is broken, and the machine has no more to give. So is that of a symptom of which nobody knows
// whether users have it; who has it tells another one, and a cause that explains it rings by itself. And that of a rule about a program
// where nobody is served: one that looks for open ports stands in connect() all day, and is meant to.
func severity(r *ruleset.Rule) string {
	ofProgram := strings.Contains(r.Applies, unserved) // as it is written: the expression has the record's own series instead
	unowned := r.Kind == ruleset.Symptom
	for kind := range r.Shows {
		unowned = unowned && slices.Contains(ofNobody, kind)
	}
	if r.Kind == ruleset.Capacity || unowned || ofProgram {
		return "info"
	}
	return "warning"
}

// patience is how long a rule's condition has to hold, and how long its alert goes on after.
func (s Set) patience(r *ruleset.Rule) (wait, keep time.Duration) {
	switch {
	case r.Kind == ruleset.Symptom && s.options.For == 0: // nothing waits
		return 0, 0
	case r.Kind == ruleset.Symptom:
		// It shows in a few seconds of the window, and its cause may need most of it.
		return max(3*s.options.For, s.options.Window), 0
	case s.explained(r):
		return 2 * s.options.For, s.options.Keep
	}
	return s.options.For, 2 * s.options.Keep
}

// duration writes a duration as Prometheus does; none is "".
func duration(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return fmt.Sprintf("%dms", d/time.Millisecond)
}
