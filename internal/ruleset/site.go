package ruleset

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
)

// Extend adds a site's own rules to a set. A rule of an id that the set has
// replaces it; Site says so. The site's rules may use the set's records, and
// have records of their own under other names. dir is what messages call the folder.
func Extend(base Rules, fsys fs.FS, dir string) (Rules, error) {
	own, err := load(Folder{fsys, dir}, query.Terms{}.With(base.Known()))
	if err != nil {
		return Rules{}, err
	}
	if len(own.List) == 0 {
		return Rules{}, fmt.Errorf("%s: no rule.yaml in it; want <layer>/<id>/rule.yaml", dir)
	}
	set := own
	set.Folders = slices.Concat(base.Folders, own.Folders)
	for _, r := range own.List {
		if base.Get(r.ID) != nil {
			set.Site.Replaced = append(set.Site.Replaced, r.ID)
		} else {
			set.Site.Added = append(set.Site.Added, r.ID)
		}
	}
	for _, r := range base.List {
		if own.Get(r.ID) == nil {
			set.List = append(set.List, r)
		}
	}
	sortRules(set.List)
	set.nameLookalikes()
	set.Hash = hashOf(base.Hash, own.Hash)
	set.Site.RulesHash = set.Hash
	// A built-in rule may say more of a symptom that the site replaced: that is not the site's to mend.
	return set, errors.Join(set.doubled(own.List)...)
}

// Own are the rules of a set's site alone, all where it has none.
func (rs Rules) Own() Rules {
	if ids := slices.Concat(rs.Site.Added, rs.Site.Replaced); len(ids) > 0 {
		rs.List = slices.DeleteFunc(slices.Clone(rs.List), func(r *Rule) bool { return !slices.Contains(ids, r.ID) })
		rs.Folders = rs.Folders[len(rs.Folders)-1:]
	}
	return rs
}

func hashOf(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d\n%s", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// maxThresholds is the most of a thresholds file that is read, in bytes.
const maxThresholds = 1 << 20

// siteThreshold is a threshold as a file states it: the comparison alone, or
// with its reason.
type siteThreshold struct {
	Is  string `yaml:"is"`
	Why string `yaml:"why"`
}

func (t *siteThreshold) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		t.Is = n.Value
		return nil
	}
	type plain siteThreshold // without this method
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; key.Value != "is" && key.Value != "why" {
			return fmt.Errorf("line %d: field %s: want is and why", key.Line, key.Value)
		}
	}
	return n.Decode((*plain)(t))
}

// ParseThresholds reads a site's thresholds: rule → clue → comparison, or rule →
// clue → {is: comparison, why: reason}. An empty file holds none. file is what
// messages call it.
func ParseThresholds(file string, raw []byte) ([]model.Threshold, error) {
	if len(raw) > maxThresholds {
		return nil, fmt.Errorf("%s: %d bytes: want at most %d", file, len(raw), maxThresholds)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, InFile(file, err)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	var rules map[string]map[string]siteThreshold
	if err := doc.Decode(&rules); err != nil {
		return nil, InFile(file, err)
	}
	var list []model.Threshold
	var errs []error
	for _, rule := range slices.Sorted(maps.Keys(rules)) {
		for _, clue := range slices.Sorted(maps.Keys(rules[rule])) {
			t := rules[rule][clue]
			if _, err := ParseComparison(t.Is); err != nil {
				at := file
				if n := child(child(doc.Content[0], rule), clue); n != nil {
					at = fmt.Sprintf("%s:%d", file, n.Line)
				}
				errs = append(errs, fmt.Errorf("%s: %s: %s: %w", at, rule, clue, err))
			}
			list = append(list, model.Threshold{Rule: rule, Clue: clue, Is: strings.TrimSpace(t.Is), Why: strings.TrimSpace(t.Why)})
		}
	}
	return list, errors.Join(errs...)
}

// WithThresholds returns the set with a site's thresholds in the place of its
// rules' own. The set itself is not changed.
func (rs Rules) WithThresholds(list []model.Threshold) (Rules, error) {
	if len(list) == 0 {
		return rs, nil
	}
	set := rs
	set.List = slices.Clone(rs.List)
	set.Site.Thresholds = nil
	sum := []string{rs.Hash}
	var errs []error
	for _, t := range list {
		i := slices.IndexFunc(set.List, func(r *Rule) bool { return r.ID == t.Rule })
		if i < 0 {
			errs = append(errs, fmt.Errorf("threshold %s: %s: no such rule; plimsoll rules list shows them", t.Rule, t.Clue))
			continue
		}
		rule, was, err := set.List[i].withThreshold(t)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		set.List[i], t.Was = rule, was
		set.Site.Thresholds = append(set.Site.Thresholds, t)
		sum = append(sum, t.Rule, t.Clue, t.Is, t.Why)
	}
	slices.SortFunc(set.Site.Thresholds, func(a, b model.Threshold) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Clue, b.Clue))
	})
	set.Hash = hashOf(sum...)
	return set, errors.Join(errs...)
}

// withThreshold returns a copy of the rule with another threshold for one clue,
// and the threshold that the clue had.
func (r *Rule) withThreshold(t model.Threshold) (*Rule, string, error) {
	i := slices.IndexFunc(r.Clues, func(c Clue) bool { return c.ID == t.Clue })
	if i < 0 {
		var have []string
		for _, c := range r.Clues {
			have = append(have, c.ID)
		}
		return nil, "", fmt.Errorf("threshold %s: %s: no such clue; it has %s", t.Rule, t.Clue, strings.Join(have, ", "))
	}
	is, err := ParseComparison(t.Is)
	if err != nil {
		return nil, "", fmt.Errorf("threshold %s: %s: %w", t.Rule, t.Clue, err)
	}
	out := *r
	out.Clues = slices.Clone(r.Clues)
	c := &out.Clues[i]
	if is.Op != c.Threshold.Op {
		return nil, "", fmt.Errorf("threshold %s: %s: %s: the rule's is %s; a site moves the number and keeps the comparison", t.Rule, t.Clue, t.Is, c.Is)
	}
	was := c.Is
	c.Is, c.Threshold = t.Is, is
	c.Why = fmt.Sprintf("set by this site in the place of %s", was)
	if t.Why != "" {
		c.Why = t.Why + "; " + c.Why
	}
	return &out, was, nil
}
