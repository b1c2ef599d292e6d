package alerts

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"plimsoll/internal/ruleset"
)

// consequence is that one alert makes another one quiet, where their subjects fit.
type consequence struct {
	cause, of *ruleset.Rule
	equal     []string
	when      *ruleset.Clue
}

// consequences are those among the alerts, by what rules explain. A rule declared under a
// condition and without one is so without.
func (s Set) consequences() []consequence {
	var list []consequence
	for _, a := range s.rules {
		for _, b := range s.rules {
			if a.rule == b.rule {
				continue
			}
			for _, e := range a.rule.Consequences(b.rule) {
				list = append(list, consequence{a.rule, b.rule, s.equal(e, a.rule, b.rule), e.When})
			}
		}
	}
	return list
}

// Silences lists, by the id of a rule, those whose alerts are quiet while its own rings.
func (s Set) Silences() map[string][]string {
	out := map[string][]string{}
	for _, c := range s.quiet {
		out[c.cause.ID] = append(out[c.cause.ID], c.of.ID)
	}
	return out
}

// equal are the labels in which two alerts agree. Each host is a run by itself, or those that belong together are one: then what one does to
// another may be a consequence, where the rules do not ask for the same host.
func (s Set) equal(e ruleset.Explain, a, b *ruleset.Rule) []string {
	names := []string{s.options.host()}
	if s.options.Together != "" && e.Where != nil && !slices.Contains(e.Where, "host") && e.When == nil {
		names[0] = s.options.Together
	}
	for _, name := range a.Subject {
		if name != "host" && slices.Contains(b.Subject, name) && (e.Where == nil || slices.Contains(e.Where, name)) {
			names = append(names, name)
		}
	}
	return names
}

// explained says whether another alert may make this rule's quiet.
func (s Set) explained(r *ruleset.Rule) bool {
	return slices.ContainsFunc(s.quiet, func(c consequence) bool { return c.of == r })
}

// alertmanager is of a configuration of the Alertmanager what belongs to these alerts.
type alertmanager struct {
	Route     route      `yaml:"route"`
	Inhibit   []inhibit  `yaml:"inhibit_rules"`
	Receivers []receiver `yaml:"receivers"`
}

type route struct {
	Receiver string   `yaml:"receiver"`
	Matchers []string `yaml:"matchers,omitempty"`
	GroupBy  []string `yaml:"group_by,omitempty,flow"`
	Wait     string   `yaml:"group_wait,omitempty"`
	Every    string   `yaml:"group_interval,omitempty"`
	Repeat   string   `yaml:"repeat_interval,omitempty"`
	Routes   []route  `yaml:"routes,omitempty"`
}

type receiver struct {
	Name string `yaml:"name"`
}

type inhibit struct {
	Source []string `yaml:"source_matchers,flow"`
	Target []string `yaml:"target_matchers,flow"`
	Equal  []string `yaml:"equal,flow"`
}

// The receivers that the configuration names.
const (
	toPeople = "people"
	toNobody = "nobody"
)

const alertmanagerHead = `# What explains what among Plimsoll's alerts, for an Alertmanager (0.22 or later): one cause rings once,
# and its consequences do not. Rule set %s.
# Into a configuration of your own take inhibit_rules, and the route that keeps alerts of the kind
# "condition" from everybody: they say under which conditions one explains another. "people" has no address yet.
`

// Alertmanager writes the configuration that belongs to the alerts.
func (s Set) Alertmanager() ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintf(&out, alertmanagerHead, s.hash)
	host := s.options.host()
	return encoded(&out, alertmanager{
		Route: route{
			Receiver: toPeople, GroupBy: []string{host}, Wait: duration(s.options.For), Every: "1m", Repeat: "4h",
			Routes: []route{{Receiver: toNobody, Matchers: []string{`plimsoll_kind = "condition"`}}},
		},
		Inhibit:   s.inhibitions(),
		Receivers: []receiver{{toPeople}, {toNobody}},
	})
}

// inhibitions are the consequences, those of one cause that agree in the same labels together.
func (s Set) inhibitions() []inhibit {
	targets := map[[2]string][]string{}
	for _, c := range s.quiet {
		if c.when == nil {
			key := [2]string{c.cause.ID, strings.Join(c.equal, ",")}
			targets[key] = append(targets[key], c.of.ID)
		}
	}
	var list []inhibit
	keys := slices.SortedFunc(maps.Keys(targets), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, key := range keys {
		list = append(list, inhibit{
			Source: []string{fmt.Sprintf("plimsoll_rule = %q", key[0])},
			Target: []string{ruleMatcher(targets[key])},
			Equal:  strings.Split(key[1], ","),
		})
	}
	for _, c := range s.conditions() {
		list = append(list, inhibit{
			Source: []string{fmt.Sprintf("plimsoll_rule = %q", c.name())},
			Target: []string{ruleMatcher([]string{c.of.ID})},
			Equal:  c.subject,
		})
	}
	return list
}

// ruleMatcher matches the alerts of these rules.
func ruleMatcher(ids []string) string {
	if len(ids) == 1 {
		return fmt.Sprintf("plimsoll_rule = %q", ids[0])
	}
	slices.Sort(ids)
	return fmt.Sprintf("plimsoll_rule =~ %q", strings.ReplaceAll(strings.Join(slices.Compact(ids), "|"), ".", "[.]"))
}

// condition is that a cause rings, and explains another rule's finding under a condition that is true.
// It is an alert that nobody gets: an Alertmanager knows only alerts.
type condition struct {
	consequence
	expr    string
	subject []string
}

func (c condition) name() string { return c.cause.ID + " explains " + c.of.ID }

// conditions are those of the consequences that have one that a Prometheus can be asked for. What
// cannot is no consequence: where nobody can tell, both ring.
func (t *translation) conditions(list []consequence) (map[*ruleset.Clue]condition, error) {
	out := map[*ruleset.Clue]condition{}
	for _, c := range list {
		if c.when == nil {
			continue
		}
		p, exprs, err := t.clue(c.when, c.of)
		var none outsideError
		if errors.As(err, &none) {
			continue
		}
		if err != nil {
			return nil, c.cause.Fault(fmt.Errorf("explains %s: when: %w", c.of.ID, err))
		}
		for _, e := range exprs {
			t.want(e)
		}
		out[c.when] = condition{consequence: c, subject: p.on, expr: fmt.Sprintf("group by (%s) %s\nand on (%s) ALERTS{plimsoll_rule=%q,alertstate=\"firing\"}",
			strings.Join(p.on, ", "), p.text, strings.Join(c.equal, ", "), c.cause.ID)}
	}
	return out, nil
}

// conditions are those that can be asked for, in the order of the rules.
func (s Set) conditions() []condition {
	var list []condition
	for _, c := range s.quiet {
		if cond, ok := s.when[c.when]; ok {
			list = append(list, cond)
		}
	}
	return list
}

func (c condition) alert() alert {
	return alert{
		Alert: alertName(c.cause.ID) + "Explains" + alertName(c.of.ID), Expr: c.expr,
		Labels: map[string]string{"severity": "none", "plimsoll_rule": c.name(), "plimsoll_kind": "condition"},
		Annotations: map[string]string{
			"summary": plain(layoutLine(fmt.Sprintf("%s explains %s here: %s", c.cause.ID, c.of.ID, c.when.Why))),
		},
	}
}
