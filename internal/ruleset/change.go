package ruleset

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
)

// changeKinds are the kinds of change that a rule may ask for.
var changeKinds = []string{
	model.ChangeSysctl, model.ChangeNginx, model.ChangePHPFPM, model.ChangeBacklog, model.ChangeLimit,
	model.ChangeNice, model.ChangePolicy, model.ChangeAffinity, model.ChangeQuota, model.ChangeRPS, model.ChangeTxQueue, model.ChangePerson,
}

// Changes is what a fix changes, all together: one change, or a list of those
// that only together mend.
type Changes []Change

// Change is one typed change of a setting, written {KIND: NAME, to: VALUE}, and
// with at: PROMQL where the setting is not the subject's host's.
type Change struct {
	Kind string
	Name string // of a person: what to do
	To   string // the new value, a literal or PromQL; "" for a person
	// At is PromQL whose result has, in its label "at", the host whose setting it
	// is, and may have, in its label "listen", where the service of that host
	// listens; "" for the subject's.
	At string

	// ToExpr and AtExpr are nil when To is a literal, and without At; NameText is what Name says.
	ToExpr, AtExpr *query.Expression
	NameText       *Text
}

// UnmarshalYAML reads one change or a list of them.
func (c *Changes) UnmarshalYAML(n *yaml.Node) error {
	list := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		list = n.Content
	}
	for _, one := range list {
		var fields map[string]string
		if err := one.Decode(&fields); err != nil {
			return err
		}
		var x Change
		set := 0
		for name, value := range fields {
			switch {
			case name == "to":
				x.To = value
			case name == "at":
				x.At = value
			case slices.Contains(changeKinds, name):
				set++
				x.Kind, x.Name = name, value
			default:
				return fmt.Errorf("line %d: change: no kind %s; there are %s", one.Line, name, strings.Join(changeKinds, ", "))
			}
		}
		if set != 1 {
			return fmt.Errorf("line %d: change: want one of %s, got %d", one.Line, strings.Join(changeKinds, ", "), set)
		}
		*c = append(*c, x)
	}
	return nil
}

// MarshalJSON writes the form that a rule has: one change, or a list of them.
func (c Changes) MarshalJSON() ([]byte, error) {
	var list []map[string]string
	for _, x := range c {
		one := map[string]string{x.Kind: x.Name}
		if x.To != "" {
			one["to"] = x.To
		}
		if x.At != "" {
			one["at"] = x.At
		}
		list = append(list, one)
	}
	if len(list) == 1 {
		return json.Marshal(list[0])
	}
	return json.Marshal(list)
}

// compile prepares the fix's texts and expressions.
func (f *Fix) compile(known query.Records) error {
	if len(f.Change) == 0 {
		return errors.New("change: missing; a person's is {person: what to do}")
	}
	for i := range f.Change {
		if err := f.Change[i].compile(known); err != nil {
			return err
		}
	}
	if f.Accept == "" {
		return nil
	}
	var err error
	if f.Acceptance, err = ParseAcceptance(f.Accept, known); err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	return nil
}

func (c *Change) compile(known query.Records) error {
	var err error
	if c.NameText, err = ParseCommand(c.Name); err != nil {
		return err
	}
	if c.NameText.plain == "" {
		return fmt.Errorf("change: %s: want a name", c.Kind)
	}
	if (c.To == "") != (c.Kind == model.ChangePerson) {
		return fmt.Errorf("change: %s: person takes no to, every other kind needs one", c.Kind)
	}
	if c.At != "" {
		if c.AtExpr, err = query.Parse(c.At, known); err != nil {
			return fmt.Errorf("at: %w", err)
		}
	}
	if !isExpression(c.To) {
		return nil
	}
	if c.ToExpr, err = query.Parse(c.To, known); err != nil {
		return fmt.Errorf("to: %w", err)
	}
	return nil
}

// isExpression tells PromQL from a literal such as "4096", "1024 65535" or
// "ondemand": it names a series, and every series has an underscore or colon.
func isExpression(to string) bool {
	if strings.Contains(to, "$") || strings.Contains(to, "(") {
		return true
	}
	root, err := query.Parser.ParseExpr(to)
	if err != nil {
		return false
	}
	for _, vs := range query.VectorSelectors(root) {
		if strings.ContainsAny(vs.Name, "_:") {
			return true
		}
	}
	return false
}

// CommandFor is what a person would type, or write into a file.
func CommandFor(kind, name, to string, subject map[string]string) string {
	var pieces []layout.Piece
	line := func(text string, values ...string) string {
		for i, own := range strings.Split(text, "%") {
			if i > 0 {
				pieces = append(pieces, layout.Piece{Text: values[i-1], Outside: true})
			}
			pieces = append(pieces, layout.Piece{Text: own})
		}
		return layout.CommandLine(pieces)
	}
	switch kind {
	case model.ChangeSysctl:
		return line("sysctl -w %=%", name, to)
	case model.ChangeNginx:
		return layout.Line(name + " " + to + ";")
	case model.ChangePHPFPM:
		return layout.Line(name + " = " + to)
	case model.ChangeBacklog:
		return line("listen on % with a backlog of %", name, to)
	case model.ChangeLimit:
		return line("prlimit --%=% --pid PID of each %", name, to, subject["groupname"])
	case model.ChangeNice:
		return line("renice -n % -p $(pgrep -x %)", to, name)
	case model.ChangePolicy:
		class := "idle"
		if to == "0" {
			class = "other"
		}
		return line("for p in $(pgrep -x %); do chrt --all-tasks --"+class+" --pid 0 $p; done", name)
	case model.ChangeAffinity:
		return line("taskset -acp % PID of each %", to, name)
	case model.ChangeQuota:
		return line("echo % > /sys/fs/cgroup/%/cpu.max", to, strings.TrimPrefix(name, "/"))
	case model.ChangeTxQueue:
		return line("ip link set dev % txqueuelen %", name, to)
	case model.ChangeRPS:
		return line("rps_cpus of every queue of %: CPUs %", name, to)
	}
	return layout.Line(name)
}

// Fix is a fix as a rule states it.
type Fix struct {
	Title   string  `yaml:"title" json:"title"`
	Change  Changes `yaml:"change" json:"change"`
	Risk    string  `yaml:"risk" json:"risk"`       // low | medium | high
	Costs   string  `yaml:"costs" json:"costs"`     // what it costs
	Undo    string  `yaml:"undo" json:"undo"`       // automatic | manual | impossible
	Restart string  `yaml:"restart" json:"restart"` // none | reload | service | host
	Accept  string  `yaml:"accept" json:"accept,omitempty"`

	Acceptance *Acceptance `yaml:"-" json:"-"` // what Accept says; nil without one
}
