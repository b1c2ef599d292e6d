package diagnose

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// Limits of a vector, so that a slip of the pen ("0+1x1000000000") is refused.
const (
	maxVectorPoints = 100_000
	maxSetPoints    = 10_000_000 // of all vectors of a set
	maxRawVector    = 4 << 20
)

// Vector is one test of a rule: series, and what the rule must make of them.
type Vector struct {
	Name     string               `yaml:"name"`
	Case     string               `yaml:"case"` // fires | near | quiet | missing | boundary
	Interval vectorTime           `yaml:"interval"`
	Windows  map[string]stretch   `yaml:"windows"`
	Series   []string             `yaml:"series"`
	Read     []string             `yaml:"read"`
	Missing  map[string]yaml.Node `yaml:"missing"`
	Hosts    []string             `yaml:"hosts"`
	Machines map[string]string    `yaml:"machines"` // host → what stands for its machine's boot id
	Expect   []Expectation        `yaml:"expect"`

	meta   model.Run
	store  *record.Memory
	named  []labels.Labels // of the series
	points int64           // of all series
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

// vectorTime is a duration such as "10s" or "500ms".
type vectorTime time.Duration

func (t *vectorTime) UnmarshalYAML(n *yaml.Node) error {
	d, err := time.ParseDuration(n.Value)
	if err != nil || d < 0 || d > 24*time.Hour || d%time.Millisecond != 0 {
		return fmt.Errorf("line %d: %q: want a time such as 10s or 500ms, at most a day", n.Line, n.Value)
	}
	*t = vectorTime(d)
	return nil
}

func (t vectorTime) ms() int64 { return time.Duration(t).Milliseconds() }

// stretch is a window: two moments, counted from the vector's first value.
type stretch [2]vectorTime

// vectorStart is the time of every vector's first value: a round number, far
// from zero, so that looking back never meets the beginning of time.
const vectorStart = 1_000_000_000_000

// parseVectors reads a tests.yaml.
func parseVectors(raw []byte) ([]Vector, error) {
	if len(raw) > maxRawVector {
		return nil, fmt.Errorf("%d bytes: want at most %d", len(raw), maxRawVector)
	}
	var list []Vector
	if err := decodeStrict(raw, &list); err != nil {
		return nil, err
	}
	for i := range list {
		v := &list[i]
		if v.Name == "" {
			return nil, fmt.Errorf("vector %d: want a name", i+1)
		}
		if err := v.compile(); err != nil {
			return nil, fmt.Errorf("%q: %w", v.Name, err)
		}
	}
	return list, nil
}

// compile builds the vector's little run.
func (v *Vector) compile() error {
	if !slices.Contains(vectorCases, v.Case) {
		return fmt.Errorf("case %q: want one of %s", v.Case, strings.Join(vectorCases, ", "))
	}
	if v.Interval == 0 {
		v.Interval = vectorTime(time.Second)
	}
	v.store = new(record.Memory)
	v.meta.Plan.Interval = v.Interval.ms()
	for _, desc := range v.Series {
		if err := v.addSeries(desc); err != nil {
			return fmt.Errorf("series %s: %w", desc, err)
		}
	}
	v.store.Sort()
	_, last, ok := v.store.Span()
	if !ok {
		last = vectorStart + 10*v.Interval.ms()
	}
	if v.Windows == nil {
		v.Windows = map[string]stretch{model.Hold: {0, vectorTime(time.Duration(last-vectorStart) * time.Millisecond)}}
	}
	for _, name := range slices.Sorted(maps.Keys(v.Windows)) {
		w := v.Windows[name]
		if !slices.Contains(windowNames[2:], name) || w[1] <= w[0] {
			return fmt.Errorf("window %s: want baseline, calm, ramp, hold or cool, and an end after its start", name)
		}
		v.meta.Windows = append(v.meta.Windows, model.Window{
			Name: name, Start: vectorStart + w[0].ms(), End: vectorStart + w[1].ms(),
		})
	}
	return v.compileStatus()
}

// manyValues matches a repetition of a million values or more, which the
// parser would make in memory before they could be counted.
var manyValues = regexp.MustCompile(`x[0-9]{7,}[^}]*$`)

// addSeries reads one line of promtool's notation.
func (v *Vector) addSeries(desc string) error {
	if manyValues.MatchString(desc) {
		return fmt.Errorf("want at most %d values", maxVectorPoints)
	}
	lset, values, err := promParser.ParseSeriesDesc(desc)
	if err != nil {
		return err
	}
	if lset.Get("host") == "" {
		return errors.New("want a label host, as the recorder adds it")
	}
	if len(values) == 0 || len(values) > maxVectorPoints {
		return fmt.Errorf("%d values: want 1 to %d", len(values), maxVectorPoints)
	}
	for _, other := range v.named {
		if labels.Equal(other, lset) {
			return errors.New("stands there twice")
		}
	}
	if v.points += int64(len(values)); v.points > maxSetPoints {
		return fmt.Errorf("more than %d values in all", maxSetPoints)
	}
	v.named = append(v.named, lset)
	v.store.Add(lset, vectorPoints(values, v.Interval.ms()))
	return nil
}

func vectorPoints(values []parser.SequenceValue, interval int64) []record.Point {
	var points []record.Point
	for i, value := range values {
		if !value.Omitted && value.Histogram == nil {
			points = append(points, record.Point{Time: vectorStart + int64(i)*interval, Value: value.Value})
		}
	}
	return points
}

// compileStatus fills in what became of each signal on each host.
func (v *Vector) compileStatus() error {
	hosts := map[string]bool{}
	for _, h := range v.Hosts {
		hosts[h] = true
	}
	status := map[string]model.Status{}
	for _, lset := range v.named {
		hosts[lset.Get("host")] = true
		status[lset.Get("__name__")] = model.Status{State: model.Read}
	}
	for _, name := range v.Read {
		status[name] = model.Status{State: model.Read}
	}
	for name, node := range v.Missing {
		state := model.State(node.Value)
		if !slices.Contains([]model.State{model.Absent, model.Denied, model.Failed}, state) {
			return fmt.Errorf("missing: %s: %q: want absent, denied or failed", name, node.Value)
		}
		status[name] = model.Status{State: state, Why: node.Value + " in this vector"}
	}
	for _, h := range slices.Sorted(maps.Keys(v.Machines)) {
		hosts[h] = true
		v.meta.Hosts = append(v.meta.Hosts, model.Host{Name: h, Machine: v.Machines[h]})
	}
	if len(hosts) == 0 {
		hosts["server"] = true
	}
	v.meta.Status = map[string]map[string]model.Status{}
	for h := range hosts {
		v.meta.Status[h] = status
	}
	return nil
}

// CaseCaptured is the case of a test that is a captured slice.
const CaseCaptured = "captured"

// TestResult is what a vector or a slice gave. Err is nil when it passed.
type TestResult struct {
	Rule string
	Name string // of a slice: the lab's case
	Case string
	Err  error
}

// Test runs the vectors and slices of all rules, in the order of the rules' ids.
func Test(rules Rules) []TestResult {
	var out []TestResult
	for _, rule := range rules.List {
		for i := range rule.Vectors {
			v := &rule.Vectors[i]
			out = append(out, TestResult{Rule: rule.ID, Name: v.Name, Case: v.Case, Err: v.test(rule)})
		}
		for _, s := range rule.slices {
			out = append(out, TestResult{Rule: rule.ID, Name: s.name, Case: CaseCaptured, Err: s.test(rule)})
		}
	}
	return out
}

// test evaluates the rule alone and compares.
func (v *Vector) test(rule *Rule) error { return v.compare(v.run(rule), rule) }

// run is the vector's little run, as the rule sees it.
func (v *Vector) run(rule *Rule) *run {
	meta := v.meta
	meta.Status = v.statusFor(rule)
	first, last, _ := v.store.Span()
	return newRun(meta, v.store, first, last)
}

// compare evaluates the rule over the vector's run.
func (v *Vector) compare(run *run, rule *Rule) error {
	findings, err := run.rule(rule)
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
	return errors.Join(errs...)
}

// statusFor adds what the rule names and the vector does not.
func (v *Vector) statusFor(rule *Rule) map[string]map[string]model.Status {
	out := map[string]map[string]model.Status{}
	for host, status := range v.meta.Status {
		out[host] = maps.Clone(status)
		for _, e := range rule.expressions() {
			for _, s := range e.selectors {
				if _, ok := status[s.name]; !ok {
					out[host][s.name] = model.Status{State: model.Absent, Why: "not in this vector"}
				}
			}
		}
	}
	return out
}

// expressions returns the expressions that tell a rule's answer.
func (r *Rule) expressions() []*expression {
	list := []*expression{r.applies}
	for i := range r.Clues {
		list = append(list, r.Clues[i].measure)
	}
	if r.impact != nil {
		list = append(list, r.impact)
	}
	return list
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
	return formatNumber(*v)
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
