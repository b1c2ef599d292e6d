package diagnose

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/model"
)

// The kinds of rules.
const (
	kindCause    = "cause"    // something holds the load back and can be mended
	kindCapacity = "capacity" // the machine does useful work and has no more to give
	kindSymptom  = "symptom"  // what users or tools see of a cause
	kindHealthy  = "healthy"  // nothing held the load back
)

// Rules is a rule set. Load makes it; it is not changed afterwards and may be
// used by several goroutines.
type Rules struct {
	// List is sorted by id.
	List []*Rule
	// Records are the shared terms, sorted by name.
	Records []Record
	// Equivalent are the mutants that no vector can kill.
	Equivalent []Equivalent
	// Hash is the SHA-256, in hex, of everything in the set that can change a
	// verdict; test vectors are not part of it.
	Hash string
	// Site is what a site changed about it.
	Site model.Site
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
	Sources  []string   `yaml:"sources" json:"sources,omitempty"`
	Blind    []string   `yaml:"blind" json:"blind,omitempty"`
	Applies  string     `yaml:"applies" json:"applies"`
	Clues    []RuleClue `yaml:"clues" json:"clues"`
	Impact   string     `yaml:"impact" json:"impact,omitempty"`
	Explains []Explain  `yaml:"explains" json:"explains,omitempty"`
	Fix      []RuleFix  `yaml:"fix" json:"fix,omitempty"`
	Lab      Lab        `yaml:"lab" json:"lab"`

	// Path is the rule's folder within the rule set.
	Path string `yaml:"-" json:"-"`
	// Vectors are the rule's tests: nil before ReadTests, and without a tests.yaml.
	Vectors []Vector `yaml:"-" json:"-"`
	tests   []byte   // as they stand in tests.yaml
	// Captured are the lab's cases of which a recorded run is kept, cut down to what
	// the rule reads.
	Captured []string `yaml:"-" json:"captured,omitempty"`
	slices   []*slice // nil before ReadTests
	files    fs.FS    // the rule's folder

	applies, impact *expression
	source          *yaml.Node // the file, to tell lines by
}

// RuleClue is a clue as a rule states it.
type RuleClue struct {
	ID      string     `yaml:"id" json:"id"`
	Role    model.Role `yaml:"role" json:"role"`
	Measure string     `yaml:"measure" json:"measure"`
	Is      string     `yaml:"is" json:"is"`
	Why     string     `yaml:"why" json:"why"`
	Say     string     `yaml:"say" json:"say"`
	ByHand  string     `yaml:"by_hand" json:"by_hand"`

	measure     *expression
	is          comparison
	say, byHand *text
}

// Explain declares that a finding of another rule is a consequence of this one.
type Explain struct {
	Finding string `yaml:"finding" json:"finding"`
	How     string `yaml:"how" json:"how"`
	// Where names the labels in which the two subjects must agree. nil means
	// all that both have; empty means none.
	Where []string `yaml:"where" json:"where,omitempty"`
}

// Unlike is another rule that looks the same at first, and what tells them apart.
type Unlike struct {
	Finding string `yaml:"finding" json:"finding"`
	How     string `yaml:"how" json:"how"`
}

// RuleFix is a fix as a rule states it.
type RuleFix struct {
	Title   string  `yaml:"title" json:"title"`
	Change  Changes `yaml:"change" json:"change"`
	Risk    string  `yaml:"risk" json:"risk"`       // low | medium | high
	Costs   string  `yaml:"costs" json:"costs"`     // what it costs
	Undo    string  `yaml:"undo" json:"undo"`       // automatic | manual | impossible
	Restart string  `yaml:"restart" json:"restart"` // none | reload | service | host
	Accept  string  `yaml:"accept" json:"accept,omitempty"`

	accept *acceptance // nil without one
}

// Lab names the lab's cases that this rule has to find, and those that look
// alike and must not be taken for it.
type Lab struct {
	Causes     []string `yaml:"causes" json:"causes"`
	Lookalikes []string `yaml:"lookalikes" json:"lookalikes"`
	// Uncaused says why no case causes it; empty where one does, or nobody has tried.
	Uncaused string `yaml:"uncaused" json:"uncaused,omitempty"`
}

// Load reads a rule set: records.yaml, equivalent.yaml, and every rule.yaml. It returns all that is wrong at once, each with the
// file it is in; Check finds what only a look at the whole set can.
func Load(fsys fs.FS) (Rules, error) { return load(fsys, "", records{}) }

// load is Load for a set that may use the records known already. dir is what
// messages put before the names of files.
func load(fsys fs.FS, dir string, known records) (Rules, error) {
	paths, err := rulePaths(fsys)
	if err != nil {
		return Rules{}, err
	}
	records, raw, err := loadRecords(fsys, dir, known)
	if err != nil {
		return Rules{}, err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "records.yaml %d\n%s", len(raw), raw)
	set := Rules{Records: records.sorted()}
	var errs []error
	rules, tests := &room{maxRuleFiles, "rules"}, &room{maxTestFiles, "vectors"}
	if set.Equivalent, err = loadEquivalents(fsys, dir); err != nil {
		errs = append(errs, err)
	}
	for _, p := range paths {
		rule, raw, err := loadRule(fsys, dir, p, records)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := errors.Join(rules.take(int64(len(raw))), tests.take(int64(len(rule.tests)))); err != nil {
			return set, fmt.Errorf("%s: %w", path.Join(dir, p), err)
		}
		fmt.Fprintf(sum, "%s %d\n%s", p, len(raw), raw)
		set.List = append(set.List, rule)
	}
	sortRules(set.List)
	for i := 1; i < len(set.List); i++ {
		if set.List[i].ID == set.List[i-1].ID {
			errs = append(errs, fmt.Errorf("%s: id %s is taken by %s", set.List[i].Path, set.List[i].ID, set.List[i-1].Path))
		}
	}
	set.Hash = hex.EncodeToString(sum.Sum(nil))
	return set, errors.Join(errs...)
}

func sortRules(list []*Rule) {
	slices.SortFunc(list, func(a, b *Rule) int { return strings.Compare(a.ID, b.ID) })
}

// rulePaths returns the paths of all rule.yaml files, sorted.
func rulePaths(fsys fs.FS) ([]string, error) {
	var paths []string
	seen := 0
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() == "rule.yaml" {
			paths = append(paths, p)
		}
		if seen++; err == nil && (seen > maxEntries || len(paths) > maxRules) {
			err = fmt.Errorf("more than %d rules, or %d files and folders; is it a folder of rules", maxRules, maxEntries)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the rule set: %w", err)
	}
	return paths, nil
}

func loadRule(fsys fs.FS, dir, p string, known records) (*Rule, []byte, error) {
	raw, err := readFile(fsys, p, maxRuleFile)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", path.Join(dir, p), err)
	}
	rule, err := parseRule(raw, known)
	if err != nil {
		return nil, nil, inFile(path.Join(dir, p), err)
	}
	rule.Path = path.Join(dir, path.Dir(p))
	if rule.files, err = fs.Sub(fsys, path.Dir(p)); err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", rule.Path, err)
	}
	if rule.Captured, err = sliceNames(rule.files); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", rule.Path, err)
	}
	tests := path.Join(path.Dir(p), "tests.yaml")
	vectors, err := readFile(fsys, tests, maxRawVector)
	if errors.Is(err, fs.ErrNotExist) {
		return rule, raw, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", path.Join(dir, tests), err)
	}
	rule.tests = vectors
	return rule, raw, nil
}

// ReadTests reads the rules' vectors and slices, which only Check, Test and Mutants
// have a use for: there is more to them than to the rules.
func (rs Rules) ReadTests() error {
	var errs []error
	unpacked, points := &room{maxSlices, "slices"}, &room{maxSetPoints, "points in vectors"}
	for _, r := range rs.List {
		errs = append(errs, r.readSlices(unpacked))
		if r.tests == nil {
			continue
		}
		vectors, err := parseVectors(r.tests)
		for i := range vectors {
			err = errors.Join(err, points.take(vectors[i].points))
		}
		if err != nil {
			errs = append(errs, inFile(path.Join(r.Path, "tests.yaml"), err))
		}
		if points.left < 0 || unpacked.left < 0 {
			break
		}
		r.Vectors = vectors
	}
	return errors.Join(errs...)
}

// decodeStrict decodes exactly one YAML document and refuses unknown fields.
func decodeStrict(raw []byte, into any) error {
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("the file is empty")
		}
		return err
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("want one YAML document, found more")
	}
	return nil
}

// parseRule reads a rule.yaml and compiles what is in it.
func parseRule(raw []byte, known records) (*Rule, error) {
	r := &Rule{source: new(yaml.Node)}
	if err := decodeStrict(raw, r); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(raw, r.source); err != nil {
		return nil, err
	}
	var errs []error
	fail := func(format string, args ...any) {
		err := fmt.Errorf(format, args...)
		if line := lineOf(r.source, err.Error()); line > 0 {
			err = fmt.Errorf("line %d: %w", line, err)
		}
		errs = append(errs, err)
	}
	if r.ID == "" || r.Title == "" || len(r.Subject) == 0 || len(r.Clues) == 0 {
		fail("want at least id, title, subject, applies and one clue")
	}
	if !slices.Contains([]string{kindCause, kindCapacity, kindSymptom, kindHealthy}, r.Kind) {
		fail("kind %q: want cause, capacity, symptom or healthy", r.Kind)
	}
	var err error
	if r.applies, err = parseExpression(r.Applies, known); err != nil {
		fail("applies: %w", err)
	}
	if r.Impact != "" {
		if r.impact, err = parseExpression(r.Impact, known); err != nil {
			fail("impact: %w", err)
		}
	}
	ids := map[string]bool{}
	for i := range r.Clues {
		c := &r.Clues[i]
		if c.ID == "" || ids[c.ID] {
			fail("clue %d: want an id that no other clue of the rule has, got %q", i+1, c.ID)
		}
		ids[c.ID] = true
		if err := c.compile(known); err != nil {
			fail("clue %s: %w", c.ID, err)
		}
	}
	for i := range r.Fix {
		if err := r.Fix[i].compile(known); err != nil {
			fail("fix %q: %w", r.Fix[i].Title, err)
		}
	}
	return r, errors.Join(errs...)
}

func (c *RuleClue) compile(known records) error {
	if !slices.Contains([]model.Role{model.Needs, model.Decides, model.Proves, model.Supports}, c.Role) {
		return fmt.Errorf("role %q: want needs, decides, proves or supports", c.Role)
	}
	var err error
	if c.measure, err = parseExpression(c.Measure, known); err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	if c.is, err = parseComparison(c.Is); err != nil {
		return err
	}
	if c.say, err = parseText(c.Say); err != nil {
		return fmt.Errorf("say: %w", err)
	}
	if c.byHand, err = parseCommand(c.ByHand); err != nil {
		return fmt.Errorf("by_hand: %w", err)
	}
	return nil
}

// comparison is one threshold: an operator and a number.
type comparison struct {
	op    string
	bound float64
}

var comparisonForm = regexp.MustCompile(`^(>=|<=|==|!=|>|<)\s*(\S+)$`)

func parseComparison(s string) (comparison, error) {
	m := comparisonForm.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return comparison{}, fmt.Errorf(`is %q: want a comparison such as ">= 0.95"`, s)
	}
	bound, err := strconv.ParseFloat(m[2], 64)
	if err != nil || bound != bound {
		return comparison{}, fmt.Errorf("is %q: want a number after the operator", s)
	}
	return comparison{op: m[1], bound: bound}, nil
}

func (c comparison) holds(v float64) bool {
	switch c.op {
	case ">":
		return v > c.bound
	case ">=":
		return v >= c.bound
	case "<":
		return v < c.bound
	case "<=":
		return v <= c.bound
	case "==":
		return v == c.bound
	}
	return v != c.bound
}

// Signals returns the names of all series that the rules look at, sorted.
func (rs Rules) Signals() []string {
	var names []string
	for _, r := range rs.List {
		list := r.expressions()
		for i := range r.Fix {
			for _, c := range r.Fix[i].Change {
				for _, e := range []*expression{c.to, c.at} {
					if e != nil {
						list = append(list, e)
					}
				}
			}
		}
		for _, e := range list {
			for _, s := range e.selectors {
				names = append(names, s.name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
