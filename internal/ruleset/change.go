package ruleset

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
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
// with at: PROMQL where the setting is not the subject's host's, and from: PROMQL
// where a series tells what is set now.
type Change struct {
	Kind string
	Name string // of a person: what to do
	To   string // the new value, a literal or PromQL; "" for a person
	// At is PromQL whose result has, in its label "at", the host whose setting it
	// is, and may have, in its label "listen", where the service of that host
	// listens; "" for the subject's.
	At string
	// From is PromQL for what is set now; "" where no series tells. A sysctl's is node_sysctl_NAME by itself.
	From string

	// The expressions are nil when To is a literal, and without At and From; NameText is what Name says.
	ToExpr, AtExpr, FromExpr *query.Expression
	NameText                 *Text
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
			case name == "from":
				x.From = value
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
		if x.From != "" {
			one["from"] = x.From
		}
		list = append(list, one)
	}
	if len(list) == 1 {
		return json.Marshal(list[0])
	}
	return json.Marshal(list)
}

// compile prepares the fix's texts and expressions.
func (f *Fix) compile(terms query.Terms) error {
	if len(f.Change) == 0 {
		return errors.New("change: missing; a person's is {person: what to do}")
	}
	for i := range f.Change {
		if err := f.Change[i].compile(terms); err != nil {
			return err
		}
	}
	if err := f.spell(); err != nil {
		return fmt.Errorf("first: %w", err)
	}
	var err error
	if f.BackText, err = ParseText(f.Back); err != nil {
		return fmt.Errorf("back: %w", err)
	}
	if f.SaveText, err = ParseText(f.Save); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	if f.Memory != "" {
		if f.MemoryExpr, err = terms.Parse(f.Memory); err != nil {
			return fmt.Errorf("memory: %w", err)
		}
	}
	if f.First != nil {
		if err = f.First.compile(terms); err != nil {
			return fmt.Errorf("first: %w", err)
		}
	}
	if f.Accept == "" {
		return nil
	}
	if f.Acceptance, err = ParseAcceptance(f.Accept, terms); err != nil {
		return fmt.Errorf("accept: %w", err)
	}
	return nil
}

// spell writes out what a step of a fix says in a word: that it edits a service's file.
func (f *Fix) spell() error {
	if f.First == nil || f.First.Edits == "" {
		return nil
	}
	e, known := layout.EditOf(f.First.Edits)
	if !known {
		return fmt.Errorf("edits %q: no such service; layout/edits.go lists them", f.First.Edits)
	}
	if f.Back != "" {
		return fmt.Errorf("edits %q says itself how it is taken back: want no back", f.First.Edits)
	}
	f.First.Then, f.Back = e.Steps(f.First.Then), e.Back()
	return nil
}

func (c *Change) compile(terms query.Terms) error {
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
		if c.AtExpr, err = terms.Parse(c.At); err != nil {
			return fmt.Errorf("at: %w", err)
		}
	}
	from := c.From
	if from == "" && c.Kind == model.ChangeSysctl && plainSetting().MatchString(c.Name) {
		from = "last_over_time(node_sysctl_" + strings.NewReplacer(".", "_", "-", "_").Replace(c.Name) + "[$run])"
	}
	if from != "" {
		if c.FromExpr, err = terms.Parse(from); err != nil {
			return fmt.Errorf("from: %w", err)
		}
	}
	if !isExpression(c.To) {
		return nil
	}
	if c.ToExpr, err = terms.Parse(c.To); err != nil {
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

var plainSetting = lazy.Regexp(`^[a-z][a-z0-9_.]*$`)

// CommandFor is what a person would type, or write into a file.
func CommandFor(kind, name, to string, subject map[string]string) []layout.Piece {
	line := func(text string, values ...string) (pieces []layout.Piece) {
		for i, own := range strings.Split(text, "@") {
			if i > 0 {
				pieces = append(pieces, layout.Piece{Text: values[i-1], Outside: true})
			}
			pieces = append(pieces, layout.Piece{Text: own})
		}
		return pieces
	}
	each := func(name, do string, values ...string) []layout.Piece {
		return line("for p in $(pgrep -x @); do "+do+" $p; done", append([]string{name}, values...)...)
	}
	switch kind {
	case model.ChangeSysctl:
		if plainSetting().MatchString(name) { // known to whoever finds out where it is to be typed
			return []layout.Piece{{Text: "sysctl -w " + name + "="}, {Text: to, Outside: true}}
		}
		return line("sysctl -w @=@", name, to)
	case model.ChangeBacklog:
		return line("listen on @ with a backlog of @", name, to)
	case model.ChangeLimit:
		// the soft limit alone: who lowers the hard one cannot raise it again; both where that one is lower
		return each(subject["groupname"], "prlimit --@=@: --pid $p 2>/dev/null || prlimit --@=@ --pid", name, to, name, to)
	case model.ChangeNice:
		// of a process's id renice changes the first thread alone
		return line("for p in $(pgrep -x @); do renice -n @ -p $(ls /proc/$p/task); done", name, to)
	case model.ChangePolicy:
		class := "idle"
		if to == "0" {
			class = "other"
		}
		return each(name, "chrt --all-tasks --"+class+" --pid 0")
	case model.ChangeAffinity:
		if to == "all" {
			return each(name, "taskset -acp 0-$(($(nproc --all)-1))")
		}
		return each(name, "taskset -acp @", to)
	case model.ChangeQuota:
		file := strings.TrimPrefix(name, "/")
		return line("echo @ > /sys/fs/cgroup/@/cpu.max", to, file)
	case model.ChangeTxQueue:
		return line("ip link set dev @ txqueuelen @", name, to)
	case model.ChangeRPS:
		if to == "all" { // as many bits as there are CPUs, a comma after each 32 as the kernel wants it
			return line(`sh -c 'n=$(nproc --all); m=$(printf %x $(((1<<(n-1)%32+1)-1))); while [ $n -gt 32 ]; do m=$m,ffffffff; n=$((n-32)); done; `+
				`for q in /sys/class/net/"$0"/queues/rx-*; do echo $m > $q/rps_cpus; done' @`, name)
		}
		return line("rps_cpus of every queue of @: CPUs @", name, to)
	}
	return nil
}

// Fix is a fix as a rule states it.
type Fix struct {
	Title  string  `yaml:"title" json:"title"`
	Change Changes `yaml:"change" json:"change"`
	Risk   string  `yaml:"risk" json:"risk"`   // low | medium | high
	Costs  string  `yaml:"costs" json:"costs"` // what it costs
	// Before is what has to be looked at before anything is changed; "" of nothing. Save is what has to be noted or saved then, with the exact
	// command: the way back uses it.
	Before  string `yaml:"before" json:"before,omitempty"`
	Save    string `yaml:"save" json:"save,omitempty"`
	Undo    string `yaml:"undo" json:"undo"`       // automatic | manual | impossible | none (it only looks)
	Restart string `yaml:"restart" json:"restart"` // none | reload | service | host
	// Back says how a person takes it back, with the exact command; "" of what tune can take back.
	Back   string `yaml:"back" json:"back,omitempty"`
	Accept string `yaml:"accept" json:"accept,omitempty"`

	// First is the one step to begin with, where the change's text has several.
	First *FirstStep `yaml:"first" json:"first,omitempty"`
	// Memory is PromQL for the bytes that it is likely to take.
	Memory string `yaml:"memory" json:"memory,omitempty"`

	BackText   *Text             `yaml:"-" json:"-"` // what Back says
	SaveText   *Text             `yaml:"-" json:"-"` // what Save says
	Acceptance *Acceptance       `yaml:"-" json:"-"` // what Accept says; nil without one
	MemoryExpr *query.Expression `yaml:"-" json:"-"` // nil without Memory
}

// FirstStep is one step: what to type, and what to do then.
type FirstStep struct {
	Type string `yaml:"type" json:"type,omitempty"`
	Then string `yaml:"then" json:"then,omitempty"`
	// Edits is the service whose file Then says what to change in; the steps around that are added. "" for none.
	Edits string `yaml:"edits" json:"-"`
	// From and To are PromQL for what is set now, {{.Value}} in the texts, and what to set, {{.To}}.
	From string `yaml:"from" json:"from,omitempty"`
	To   string `yaml:"to" json:"to,omitempty"`

	TypeText, ThenText *Text             `yaml:"-" json:"-"`
	FromExpr, ToExpr   *query.Expression `yaml:"-" json:"-"` // nil without From and To
}

func (s *FirstStep) compile(terms query.Terms) (err error) {
	if s.Type == "" && s.Then == "" {
		return errors.New("want what to type, or what to do then")
	}
	if s.From != "" {
		if s.FromExpr, err = terms.Parse(s.From); err != nil {
			return fmt.Errorf("from: %w", err)
		}
	}
	if s.To != "" {
		if s.ToExpr, err = terms.Parse(s.To); err != nil {
			return fmt.Errorf("to: %w", err)
		}
	}
	if s.TypeText, err = ParseCommand(s.Type); err != nil {
		return err
	}
	s.ThenText, err = ParseText(s.Then)
	return err
}
