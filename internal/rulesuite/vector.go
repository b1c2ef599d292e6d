package rulesuite

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/diagnose"
	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/record/notation"
	"plimsoll/internal/ruleset"
)

// maxRawVector is the most of a tests.yaml, in bytes; maxTestFiles that of all.
const (
	maxRawVector = 4 << 20
	maxTestFiles = 32 << 20
)

// Vector is one test of a rule: series, and what the rule must make of them.
type Vector struct {
	Name         string `yaml:"name"`
	Case         string `yaml:"case"` // fires | near | quiet | missing | boundary
	notation.Run `yaml:",inline"`
	Expect       []Expectation `yaml:"expect"`
	// When is what the conditions of the rule's explanations have to be.
	When []ExpectedWhen `yaml:"when"`
}

// ExpectedWhen is what a vector expects of the condition under which the rule explains
// another's finding of that subject.
type ExpectedWhen struct {
	Finding string            `yaml:"finding"`
	Subject map[string]string `yaml:"subject"`
	Truth   model.Truth       `yaml:"truth"`
	Value   *float64          `yaml:"value"` // optional
}

// Expectation is what a vector expects of one subject. Only what is given is compared.
type Expectation struct {
	Subject map[string]string      `yaml:"subject"`
	Answer  model.FindingAnswer    `yaml:"answer"`
	Clues   map[string]model.Truth `yaml:"clues"`
	Values  map[string]float64     `yaml:"values"`
	Say     map[string]string      `yaml:"say"`
	Missing map[string]string      `yaml:"missing"` // clue → a part of the sentence
	Impact  *float64               `yaml:"impact"`
	Command string                 `yaml:"command"` // of the first fix
}

// The cases of which every rule needs at least one vector.
var vectorCases = []string{"fires", "near", "quiet", "missing", "boundary"}

// parseVectors reads a tests.yaml.
func parseVectors(raw []byte) ([]Vector, error) {
	if len(raw) > maxRawVector {
		return nil, fmt.Errorf("%d bytes: want at most %d", len(raw), maxRawVector)
	}
	var list []Vector
	if err := ruleset.DecodeStrict(raw, &list); err != nil {
		return nil, err
	}
	for i := range list {
		v := &list[i]
		if v.Name == "" {
			return nil, fmt.Errorf("vector %d: want a name", i+1)
		}
		if !slices.Contains(vectorCases, v.Case) {
			return nil, fmt.Errorf("%q: case %q: want one of %s", v.Name, v.Case, strings.Join(vectorCases, ", "))
		}
		if err := v.Compile(); err != nil {
			return nil, fmt.Errorf("%q: %w", v.Name, err)
		}
	}
	return list, nil
}

// test evaluates the rule alone and compares.
func (v *Vector) test(rule *ruleset.Rule) error { return v.compare(v.run(rule), rule) }

// run is the vector's little run, as the rule sees it.
func (v *Vector) run(rule *ruleset.Rule) *query.Run {
	meta := v.Meta
	meta.Status = v.statusFor(rule)
	first, last, _ := v.Store.Span()
	return query.Over(meta, v.Store, first, last)
}

// compare evaluates the rule over the vector's run.
func (v *Vector) compare(run *query.Run, rule *ruleset.Rule) error {
	findings, err := diagnose.Findings(run, rule)
	errs := []error{err}
	for _, want := range v.Expect {
		i := slices.IndexFunc(findings, func(f model.Finding) bool { return maps.Equal(f.Subject, want.Subject) })
		if i < 0 {
			errs = append(errs, fmt.Errorf("%v: no finding, want %q; there are %s", want.Subject, want.Answer, subjectsOf(findings)))
			continue
		}
		errs = append(errs, want.compare(findings[i])...)
		findings = slices.Delete(findings, i, i+1)
	}
	for _, f := range findings {
		if f.Answer != model.RuledOut {
			errs = append(errs, fmt.Errorf("%v: %q, and the vector does not expect it; %s", f.Subject, f.Answer, cluesOf(f)))
		}
	}
	for _, want := range v.When {
		errs = append(errs, want.compare(run, rule))
	}
	return errors.Join(errs...)
}

// compare asks the condition of the rule's explanation of that finding.
func (want ExpectedWhen) compare(run *query.Run, rule *ruleset.Rule) error {
	i := slices.IndexFunc(rule.Explains, func(e ruleset.Explain) bool { return e.Finding == want.Finding && e.When != nil })
	if i < 0 {
		return fmt.Errorf("when: %s: the rule explains no such finding under a condition", want.Finding)
	}
	got, err := diagnose.When(run, rule.Explains[i], want.Subject)
	if got.Truth != want.Truth || want.Value != nil && (got.Value == nil || math.Abs(*got.Value-*want.Value) > 1e-9) {
		err = errors.Join(err, fmt.Errorf("when: %s %v: want %q; %s", want.Finding, want.Subject, want.Truth, clueLine(got)))
	}
	return err
}

// packetSignals is what the names of all signals begin with that a capture gives: it reads
// all of them, and nobody looks for any without one.
const packetSignals = "plimsoll_capture_"

// statusFor adds what the rule names and the vector does not.
func (v *Vector) statusFor(rule *ruleset.Rule) map[string]map[string]model.Status {
	out := map[string]map[string]model.Status{}
	for host, status := range v.Meta.Status {
		out[host] = maps.Clone(status)
		captured := false
		for name := range status {
			captured = captured || strings.HasPrefix(name, packetSignals)
		}
		for _, e := range rule.Expressions() {
			for _, s := range e.Selectors() {
				_, ok := status[s.Name]
				switch packets := strings.HasPrefix(s.Name, packetSignals); {
				case ok || packets && !captured:
				case packets:
					out[host][s.Name] = model.Status{State: model.Read}
				default:
					out[host][s.Name] = model.Status{State: model.Absent, Why: "not in this vector"}
				}
			}
		}
	}
	return out
}

// clueIDs returns the clues that the expectation names, sorted.
func (want Expectation) clueIDs() []string {
	ids := slices.Concat(
		slices.Collect(maps.Keys(want.Clues)), slices.Collect(maps.Keys(want.Values)),
		slices.Collect(maps.Keys(want.Say)), slices.Collect(maps.Keys(want.Missing)))
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (want Expectation) compare(got model.Finding) []error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%v: "+format, append([]any{got.Subject}, args...)...))
	}
	if want.Answer != got.Answer {
		fail("%q, want %q; %s", got.Answer, want.Answer, cluesOf(got))
	}
	clues := map[string]model.Clue{}
	for _, c := range got.Clues {
		clues[c.ID] = c
	}
	for _, id := range slices.Sorted(maps.Keys(want.Clues)) {
		if got := clues[id]; got.Truth != want.Clues[id] {
			fail("clue %s is %q, want %q; %s", id, got.Truth, want.Clues[id], clueLine(got))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(want.Values)) {
		if got := clues[id].Value; got == nil || math.Abs(*got-want.Values[id]) > 1e-9 {
			fail("clue %s, want the value %v; %s", id, want.Values[id], clueLine(clues[id]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(want.Say)) {
		if got := clues[id].Say; got != want.Say[id] {
			fail("clue %s says %q, want %q", id, got, want.Say[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(want.Missing)) {
		if got := clues[id].Missing; !strings.Contains(got, want.Missing[id]) || got == "" {
			fail("clue %s misses %q, want %q in it", id, got, want.Missing[id])
		}
	}
	if want.Impact != nil && (got.Impact == nil || math.Abs(*got.Impact-*want.Impact) > 1e-9) {
		fail("impact %s, want %v", formatImpact(got.Impact), *want.Impact)
	}
	if want.Command != "" && (len(got.Fix) == 0 || got.Fix[0].Command != want.Command) {
		fail("first fix %+v, want the command %q", got.Fix, want.Command)
	}
	return errs
}

func formatImpact(v *float64) string {
	if v == nil {
		return "unknown"
	}
	return ruleset.FormatNumber(*v)
}

func subjectsOf(findings []model.Finding) string {
	if len(findings) == 0 {
		return "none"
	}
	var list []string
	for _, f := range findings {
		list = append(list, fmt.Sprintf("%v %s", f.Subject, f.Answer))
	}
	return strings.Join(list, "; ")
}

func cluesOf(f model.Finding) string {
	var list []string
	for _, c := range f.Clues {
		list = append(list, clueLine(c))
	}
	return strings.Join(list, "; ")
}

func clueLine(c model.Clue) string {
	s := fmt.Sprintf("%s %s", c.ID, c.Truth)
	if c.Value != nil {
		s += fmt.Sprintf(" (%v %s)", *c.Value, c.Is)
	}
	if c.Missing != "" {
		s += " (" + c.Missing + ")"
	}
	return s
}
