// Package ruleset is the rules as a set: read from their folders, compiled, checked,
// and changed by a site (rules/README.md). What they say of a run, package diagnose
// tells; their tests are package rulesuite's.
package ruleset

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
)

// The kinds of rules.
const (
	Cause    = "cause"    // something holds the load back and can be mended
	Capacity = "capacity" // nothing is broken, and the machine has no more to give
	Symptom  = "symptom"  // what users or tools see of a cause
	Healthy  = "healthy"  // nothing held the load back
)

// Rules is a rule set. Load makes it; it is not changed afterwards and may be
// used by several goroutines.
type Rules struct {
	// List is sorted by id.
	List []*Rule
	// Records are the shared terms, sorted by name.
	Records []query.Record
	// Hash is the SHA-256, in hex, of everything in the set that can change a
	// verdict; test vectors are not part of it.
	Hash string
	// Site is what a site changed about it.
	Site model.Site
	// Folders are where the rules were read from, a site's behind the built-in ones.
	Folders []Folder
}

// Folder is a folder of rules. Name is what messages put before its files' names, ""
// of the built-in one.
type Folder struct {
	FS   fs.FS
	Name string
}

// Known maps the shared terms by name, for expressions that may use them.
func (rs Rules) Known() query.Records {
	known := query.Records{}
	for _, rec := range rs.Records {
		known[rec.Name] = rec
	}
	return known
}

// Get returns the rule of that id, or nil.
func (rs Rules) Get(id string) *Rule {
	i, found := slices.BinarySearchFunc(rs.List, id, func(r *Rule, id string) int { return strings.Compare(r.ID, id) })
	if !found {
		return nil
	}
	return rs.List[i]
}

// Rule is one rule as rule.yaml states it; rules/README.md describes each field.
type Rule struct {
	ID      string   `yaml:"id" json:"id"`
	Title   string   `yaml:"title" json:"title"`
	Kind    string   `yaml:"kind" json:"kind"`
	Subject []string `yaml:"subject" json:"subject"`
	Story   string   `yaml:"story" json:"story"`
	// Unlike tells the rule from those it is mistaken for.
	Unlike []Unlike `yaml:"unlike" json:"unlike,omitempty"`
	// Sources are where the mechanism is described: kernel documentation,
	// manual pages, RFCs, papers.
	Sources []string `yaml:"sources" json:"sources,omitempty"`
	Blind   []string `yaml:"blind" json:"blind,omitempty"`
	Applies string   `yaml:"applies" json:"applies"`
	Clues   []Clue   `yaml:"clues" json:"clues"`
	Impact  string   `yaml:"impact" json:"impact,omitempty"`
	// ImpactOf says what the impact is a share of, one of model's ImpactOf…; "" is the time that requests took.
	ImpactOf string `yaml:"impact_of" json:"impact_of,omitempty"`
	// Does says of a cause what it does to users, by kind (Kinds), and how. Shows says
	// of a symptom by which of these it is seen, and what is to be added there; Where
	// names the labels in which the two subjects then agree, as Explain.Where does.
	Does     map[string]string `yaml:"does" json:"does,omitempty"`
	Shows    map[string]string `yaml:"shows" json:"shows,omitempty"`
	Where    []string          `yaml:"where" json:"where,omitempty"`
	Explains []Explain         `yaml:"explains" json:"explains,omitempty"`
	Fix      []Fix             `yaml:"fix" json:"fix,omitempty"`
	Lab      Lab               `yaml:"lab" json:"lab"`

	// Path is the rule's folder within the rule set.
	Path string `yaml:"-" json:"-"`
	// Captured are the lab's cases of which a recorded run is kept, cut down to what
	// the rule reads.
	Captured []string `yaml:"-" json:"captured,omitempty"`

	// AppliesExpr and ImpactExpr (nil without one) are what Applies and Impact say.
	AppliesExpr *query.Expression `yaml:"-" json:"-"`
	ImpactExpr  *query.Expression `yaml:"-" json:"-"`

	files fs.FS  // the rule's folder
	raw   []byte // the file, to tell lines by
}

// Clue is a clue as a rule states it.
type Clue struct {
	ID   string     `yaml:"id" json:"id"`
	Role model.Role `yaml:"role" json:"role"`
	// From is Packets in a clue that answers where the others cannot; "" else.
	From    string `yaml:"from" json:"from,omitempty"`
	Measure string `yaml:"measure" json:"measure"`
	Is      string `yaml:"is" json:"is"`
	Why     string `yaml:"why" json:"why"`
	Say     string `yaml:"say" json:"say"`
	ByHand  string `yaml:"by_hand" json:"by_hand"`
	// Stays marks what tells this cause from others and is the same when it is mended, or is what the fix itself sets: no sign that it helped.
	Stays bool `yaml:"stays" json:"stays,omitempty"`

	// What the fields above say.
	MeasureExpr *query.Expression `yaml:"-" json:"-"`
	Threshold   Comparison        `yaml:"-" json:"-"`
	SayText     *Text             `yaml:"-" json:"-"`
	ByHandText  *Text             `yaml:"-" json:"-"`
}

// Packets marks clues that a capture of packets gives: by them alone a rule is judged
// where its others leave it unknown. Where those tell, such a clue adds its sentence if it is true.
const Packets = "packets"

// AsksPackets says whether packets can answer where the rule's other clues cannot.
func (r *Rule) AsksPackets() bool {
	return slices.ContainsFunc(r.Clues, func(c Clue) bool { return c.From == Packets })
}

// Explain declares that a finding of another rule is a consequence of this one.
type Explain struct {
	Finding string `yaml:"finding" json:"finding"`
	How     string `yaml:"how" json:"how"`
	// Where names the labels in which the two subjects must agree. nil means
	// all that both have; empty means none.
	Where []string `yaml:"where" json:"where,omitempty"`
	// When is a condition, asked for the subject of the other finding: only where it is
	// true that one is a consequence. It has the fields of a clue but for id and role. nil: always.
	When *Clue `yaml:"when" json:"when,omitempty"`
}

// Unlike is another rule that looks the same at first, and what tells them apart.
type Unlike struct {
	Finding string `yaml:"finding" json:"finding"`
	How     string `yaml:"how" json:"how"`

	Title string `yaml:"-" json:"-"` // that rule's, "" where the set has none of that name
}

// Lab names the lab's cases that this rule has to find, and those that look
// alike and must not be taken for it.
type Lab struct {
	Causes     []string `yaml:"causes" json:"causes"`
	Lookalikes []string `yaml:"lookalikes" json:"lookalikes"`
	// Uncaused says why no case causes it; empty where one does, or nobody has tried.
	Uncaused string `yaml:"uncaused" json:"uncaused,omitempty"`
}

// Parse reads a rule.yaml and compiles what is in it.
func Parse(raw []byte, terms query.Terms) (*Rule, error) {
	r := &Rule{raw: raw}
	if err := DecodeStrict(raw, r); err != nil {
		return nil, err
	}
	var errs []error
	fail := func(format string, args ...any) {
		err := fmt.Errorf(format, args...)
		if line := lineOf(r.raw, err.Error()); line > 0 {
			err = fmt.Errorf("line %d: %w", line, err)
		}
		errs = append(errs, err)
	}
	if r.ID == "" || r.Title == "" || len(r.Subject) == 0 || len(r.Clues) == 0 {
		fail("want at least id, title, subject, applies and one clue")
	}
	if !slices.Contains([]string{Cause, Capacity, Symptom, Healthy}, r.Kind) {
		fail("kind %q: want cause, capacity, symptom or healthy", r.Kind)
	}
	for _, problem := range r.kindFaults() {
		fail("%s", problem)
	}
	var err error
	if r.AppliesExpr, err = terms.Parse(r.Applies); err != nil {
		fail("applies: %w", err)
	}
	if r.Impact != "" {
		if r.ImpactExpr, err = terms.Parse(r.Impact); err != nil {
			fail("impact: %w", err)
		}
	}
	if r.ImpactOf != "" && (r.Impact == "" || !slices.Contains(model.ImpactKinds, r.ImpactOf)) {
		fail("impact_of %q: want one of %s beside an impact, or nothing", r.ImpactOf, strings.Join(model.ImpactKinds, ", "))
	}
	ids := map[string]bool{}
	for i := range r.Clues {
		c := &r.Clues[i]
		if c.ID == "" || ids[c.ID] {
			fail("clue %d: want an id that no other clue of the rule has, got %q", i+1, c.ID)
		}
		ids[c.ID] = true
		if err := c.compile(terms); err != nil {
			fail("clue %s: %w", c.ID, err)
		}
	}
	for _, e := range r.Explains {
		if err := e.compile(terms); err != nil {
			fail("explains: %s: when: %w", e.Finding, err)
		}
	}
	for i := range r.Fix {
		if err := r.Fix[i].compile(terms); err != nil {
			fail("fix %q: %w", r.Fix[i].Title, err)
		}
	}
	return r, errors.Join(errs...)
}

// compile reads the condition, if there is one.
func (e Explain) compile(terms query.Terms) error {
	if e.When == nil {
		return nil
	}
	if e.When.ID != "" || e.When.Role != "" || e.When.From != "" {
		return errors.New("want measure, is, why, say and by_hand alone; a condition has no id, role or from")
	}
	e.When.ID, e.When.Role = "when", model.Needs
	return e.When.compile(terms)
}

func (c *Clue) compile(terms query.Terms) error {
	if !slices.Contains([]model.Role{model.Needs, model.Decides, model.Proves, model.Supports}, c.Role) {
		return fmt.Errorf("role %q: want needs, decides, proves or supports", c.Role)
	}
	if c.From != "" && c.From != Packets {
		return fmt.Errorf("from %q: want packets, or nothing", c.From)
	}
	var err error
	if c.MeasureExpr, err = terms.Parse(c.Measure); err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	if c.Threshold, err = ParseComparison(c.Is); err != nil {
		return err
	}
	if c.SayText, err = ParseText(c.Say); err != nil {
		return fmt.Errorf("say: %w", err)
	}
	if c.ByHandText, err = ParseCommand(c.ByHand); err != nil {
		return fmt.Errorf("by_hand: %w", err)
	}
	return nil
}

// Signals returns the names of all series that the rules look at, sorted.
func (rs Rules) Signals() []string {
	var names []string
	for _, r := range rs.List {
		list := r.Expressions()
		for i := range r.Fix {
			for _, c := range r.Fix[i].Change {
				for _, e := range []*query.Expression{c.ToExpr, c.AtExpr} {
					if e != nil {
						list = append(list, e)
					}
				}
			}
		}
		names = append(names, namesIn(list)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func namesIn(list []*query.Expression) []string {
	var names []string
	for _, e := range list {
		for _, s := range e.Selectors() {
			names = append(names, s.Name)
		}
	}
	return names
}

// Signals names the series that the rule's clues of these roles measure, sorted.
func (r *Rule) Signals(roles ...model.Role) []string {
	var list []*query.Expression
	for _, c := range r.Clues {
		if slices.Contains(roles, c.Role) {
			list = append(list, c.MeasureExpr)
		}
	}
	names := namesIn(list)
	slices.Sort(names)
	return slices.Compact(names)
}

// Expressions returns the expressions that tell a rule's answer, and what it explains.
func (r *Rule) Expressions() []*query.Expression {
	list := []*query.Expression{r.AppliesExpr}
	for i := range r.Clues {
		list = append(list, r.Clues[i].MeasureExpr)
	}
	if r.ImpactExpr != nil {
		list = append(list, r.ImpactExpr)
	}
	for _, e := range r.Explains {
		if e.When != nil {
			list = append(list, e.When.MeasureExpr)
		}
	}
	return list
}

// Seen returns the lab's cases of whose recorded runs slices are kept: those in
// which the rule holds, and those in which it is quiet.
func (r *Rule) Seen() (holds, quiet []string) {
	for _, name := range r.Captured {
		if slices.Contains(r.Lab.Causes, name) {
			holds = append(holds, name)
		} else {
			quiet = append(quiet, name)
		}
	}
	return holds, quiet
}

// Kinds are what a cause may do to users, or to what tools see, in the order in which
// a symptom looks for them; rules/README.md describes each.
var Kinds = []string{
	"limits", "delays", "delays_alone", "loses_connects", "refuses_connects", "breaks_off",
	"fails", "cuts_off", "turns_away", "drops_packets", "takes_cpu", "lacks_ports",
}

// kindFaults says what is wrong with the kinds that a rule names.
func (r *Rule) kindFaults() []string {
	var list []string
	if r.Kind == Symptom && len(r.Shows) == 0 {
		list = append(list, "shows: missing; a symptom says by which kinds of harm it is seen")
	}
	if r.Kind != Symptom && (len(r.Shows) > 0 || r.Where != nil) {
		list = append(list, "shows: only a symptom shows something; a cause does something")
	}
	if len(r.Does) > 0 && r.Kind != Cause && r.Kind != Capacity {
		list = append(list, "does: only a cause or a capacity does something; a symptom shows something")
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Does)) {
		if strings.TrimSpace(r.Does[kind]) == "" {
			list = append(list, fmt.Sprintf("does: %s: missing; say how", kind))
		}
	}
	for _, field := range []struct {
		name  string
		kinds map[string]string
	}{{"does", r.Does}, {"shows", r.Shows}} {
		for _, kind := range slices.Sorted(maps.Keys(field.kinds)) {
			if !slices.Contains(Kinds, kind) {
				list = append(list, fmt.Sprintf("%s: no kind %s; there are %s", field.name, kind, strings.Join(Kinds, ", ")))
			}
		}
	}
	return list
}

// Fault puts before an error where the rule stands that it is about: file, line
// where that can be told, and id.
func (r *Rule) Fault(err error) error {
	file := path.Join(r.Path, "rule.yaml")
	if line := lineOf(r.raw, err.Error()); line > 0 {
		file += ":" + strconv.Itoa(line)
	}
	return fmt.Errorf("%s: %s: %w", file, r.ID, err)
}
