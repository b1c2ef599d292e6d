// Package bill says what a request costs in CPU time, and what for: by mechanism
// (opening connections, compressing, waking …), told by where in the sampled
// stacks the entry to one stands. It is a pure function of a recorded run.
//
// Which functions are the entries, why, and what can be spared is data
// (mechanisms.yaml). Each sample belongs to one mechanism, so that the bill adds
// up to all of the CPU time.
package bill

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
)

//go:embed mechanisms.yaml
var mechanismsYAML []byte

// table is what mechanisms.yaml says.
type table struct {
	Interrupts []string    `yaml:"interrupts"`
	Services   string      `yaml:"services"`
	Requests   []counted   `yaml:"requests"`
	Mechanisms []mechanism `yaml:"mechanisms"`

	interrupts names
}

// counted is a way to count the good replies.
type counted struct {
	From    string `yaml:"from"`
	Measure string `yaml:"measure"`
}

// mechanism is one thing that CPU time goes into.
type mechanism struct {
	ID      string   `yaml:"id"`
	Text    string   `yaml:"text"`
	Why     string   `yaml:"why"`
	ByHand  string   `yaml:"by_hand"`
	Kernel  []string `yaml:"kernel"`
	User    []string `yaml:"user"`
	Modules []string `yaml:"modules"`
	Threads []string `yaml:"threads"`
	// InnermostUser and InnermostModules are User and Modules of which only the innermost function counts.
	InnermostUser    []string `yaml:"innermost_user"`
	InnermostModules []string `yaml:"innermost_modules"`
	// Outermost are functions further out than which nothing counts.
	Outermost []string `yaml:"outermost"`
	// PartOf is the mechanism of whose nameless code it gets its part, "" for none.
	PartOf    string   `yaml:"part_of"`
	Whole     bool     `yaml:"whole"`
	Innermost bool     `yaml:"innermost"`
	Savings   []saving `yaml:"savings"`
	// Rest is whether it is what remains, which does not say what for.
	Rest bool `yaml:"rest"`

	kernel, user, innermostUser, outermost names
	hasParts                               bool // others are part of it
}

// saving is what of a mechanism can be spared, and how.
type saving struct {
	ID           string   `yaml:"id"`
	Title        string   `yaml:"title"`
	Shows        []string `yaml:"shows"`
	Measure      string   `yaml:"measure"`
	OverRequests bool     `yaml:"over_requests"`
	Needs        bool     `yaml:"needs"`
	Is           string   `yaml:"is"`
	Why          string   `yaml:"why"`
	Say          string   `yaml:"say"`
	Saves        string   `yaml:"saves"`
	Least        float64  `yaml:"least"`
	Drags        []string `yaml:"drags"`
	Remedy       string   `yaml:"remedy"`
	Costs        string   `yaml:"costs"`
	Check        string   `yaml:"check"`
	Then         string   `yaml:"then"`
	Back         string   `yaml:"back"`
	InCode       bool     `yaml:"in_code"`

	shows names
	is    ruleset.Comparison
	say   *ruleset.Text
}

// names are functions by their names, or by how these begin or end.
type names struct {
	whole        map[string]bool
	begins, ends []string
}

func namesOf(list []string) names {
	n := names{whole: map[string]bool{}}
	for _, s := range list {
		if begin, open := strings.CutSuffix(s, "*"); open {
			n.begins = append(n.begins, begin)
		} else if end, open := strings.CutPrefix(s, "*"); open {
			n.ends = append(n.ends, end)
		} else {
			n.whole[s] = true
		}
	}
	return n
}

func (n *names) has(name string) bool {
	return n.whole[name] || beginsAny(name, n.begins) || slices.ContainsFunc(n.ends, func(e string) bool { return strings.HasSuffix(name, e) })
}

func beginsAny(name string, begins []string) bool {
	return slices.ContainsFunc(begins, func(b string) bool { return strings.HasPrefix(name, b) })
}

// theTable is the table, read once.
var theTable = sync.OnceValues(func() (*table, error) { return parseTable(mechanismsYAML) })

func parseTable(raw []byte) (*table, error) {
	t := &table{}
	if err := ruleset.DecodeStrict(raw, t); err != nil {
		return nil, fmt.Errorf("read the mechanisms: %w", err)
	}
	if n := len(t.Mechanisms); n == 0 || n > 64 {
		return nil, fmt.Errorf("read the mechanisms: there are %d; want 1 to 64, since each has a bit", n)
	}
	t.interrupts = namesOf(t.Interrupts)
	for i := range t.Mechanisms {
		m := &t.Mechanisms[i]
		m.kernel, m.user, m.innermostUser, m.outermost = namesOf(m.Kernel), namesOf(m.User), namesOf(m.InnermostUser), namesOf(m.Outermost)
		if m.PartOf != "" {
			whole := t.byID(m.PartOf)
			if whole == nil {
				return nil, fmt.Errorf("mechanisms: %s is part of %q, which there is not", m.ID, m.PartOf)
			}
			whole.hasParts = true
		}
		for j := range m.Savings {
			if err := m.Savings[j].compile(); err != nil {
				return nil, fmt.Errorf("mechanisms: %s: %w", m.ID, err)
			}
		}
	}
	return t, nil
}

func (s *saving) compile() (err error) {
	s.shows = namesOf(s.Shows)
	if s.Measure == "" {
		return nil
	}
	var bad error
	s.is, err = ruleset.ParseComparison(s.Is)
	s.say, bad = ruleset.ParseText(s.Say)
	if err = errors.Join(err, bad); err != nil {
		return fmt.Errorf("%s: %w", s.ID, err)
	}
	return nil
}

// asked is an expression's largest value; false where it has none.
func asked(q *query.Run, text string, known query.Records) (float64, bool, error) {
	s, found, err := witness(q, text, known)
	return s.Value, found, err
}

// witness is the result that has an expression's largest value; false where there is none.
func witness(q *query.Run, text string, known query.Records) (query.Sample, bool, error) {
	e, err := query.Parse(text, known)
	if err != nil {
		return query.Sample{}, false, fmt.Errorf("mechanisms: %w", err)
	}
	s, found := query.Largest(q.Ask(e).Samples, nil)
	return s, found, nil
}
