package ruleset

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"plimsoll/internal/query"
)

// The folder of a rule's slices, which are what was recorded of real runs, and how
// their names end behind the case's.
const (
	SliceDir = "captured"
	SliceEnd = ".json.gz"
)

// ReadFile reads a plain file of the rule's folder, of at most so many bytes.
func (r *Rule) ReadFile(name string, most int64) ([]byte, error) {
	return ReadFile(r.files, name, most)
}

// Load reads a rule set: records.yaml, and every rule.yaml. It returns all that is wrong at once, each with the
// file it is in; Check finds what only a look at the whole set can.
func Load(fsys fs.FS) (Rules, error) {
	return load(Folder{FS: fsys}, query.Terms{Records: query.Records{}})
}

// LoadTried is Load for a set that it took before, as the tests' of the program's own: reading the expressions with the
// shared terms in them, three quarters of the time, is left to where one is used.
func LoadTried(fsys fs.FS) (Rules, error) {
	return load(Folder{FS: fsys}, query.Terms{Records: query.Records{}, Tried: true})
}

// load is Load for a set that may use the records known already.
func load(from Folder, terms query.Terms) (Rules, error) {
	paths, err := rulePaths(from.FS)
	if err != nil {
		return Rules{}, err
	}
	terms, raw, err := loadRecords(from.FS, from.Name, terms)
	if err != nil {
		return Rules{}, err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "records.yaml %d\n%s", len(raw), raw)
	set := Rules{Records: sortedRecords(terms.Records), Folders: []Folder{from}}
	var errs []error
	var files []ruleFile
	left := maxRuleFiles
	for _, p := range paths {
		raw, err := ReadFile(from.FS, p, maxRuleFile)
		if err != nil {
			errs = append(errs, fmt.Errorf("read %s: %w", path.Join(from.Name, p), err))
			continue
		}
		if left -= len(raw); left < 0 {
			return set, fmt.Errorf("%s: more than the set may have of rules", path.Join(from.Name, p))
		}
		fmt.Fprintf(sum, "%s %d\n%s", p, len(raw), raw)
		files = append(files, ruleFile{path: p, raw: raw})
	}
	parseAll(from, files, terms)
	for _, f := range files {
		if f.err != nil {
			errs = append(errs, f.err)
		} else {
			set.List = append(set.List, f.rule)
		}
	}
	sortRules(set.List)
	set.nameLookalikes()
	for i := 1; i < len(set.List); i++ {
		if set.List[i].ID == set.List[i-1].ID {
			errs = append(errs, fmt.Errorf("%s: id %s is taken by %s", set.List[i].Path, set.List[i].ID, set.List[i-1].Path))
		}
	}
	set.Hash = hex.EncodeToString(sum.Sum(nil))
	return set, errors.Join(append(errs, set.doubled(set.List)...)...)
}

// ruleFile is a rule.yaml, and what became of it.
type ruleFile struct {
	path string
	raw  []byte
	rule *Rule
	err  error
}

// parseAll parses on all CPUs: every command waits for it.
func parseAll(from Folder, files []ruleFile, terms query.Terms) {
	var all sync.WaitGroup
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(files); i = int(next.Add(1)) - 1 {
				f := &files[i]
				f.rule, f.err = parseRule(from, f.path, f.raw, terms)
			}
		})
	}
	all.Wait()
}

// nameLookalikes puts the titles to the rules that others are mistaken for.
func (rs Rules) nameLookalikes() {
	for _, r := range rs.List {
		for i, u := range r.Unlike {
			if other := rs.Get(u.Finding); other != nil {
				r.Unlike[i].Title = other.Title
			}
		}
	}
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

func parseRule(from Folder, p string, raw []byte, terms query.Terms) (*Rule, error) {
	rule, err := Parse(raw, terms)
	if err != nil {
		return nil, InFile(path.Join(from.Name, p), err)
	}
	rule.Path = path.Join(from.Name, path.Dir(p))
	if rule.files, err = fs.Sub(from.FS, path.Dir(p)); err != nil {
		return nil, fmt.Errorf("open %s: %w", rule.Path, err)
	}
	if rule.Captured, err = sliceNames(rule.files); err != nil {
		return nil, fmt.Errorf("%s: %w", rule.Path, err)
	}
	return rule, nil
}

// sliceNames returns the cases of which a rule's folder has a slice, sorted.
func sliceNames(folder fs.FS) ([]string, error) {
	files, err := fs.ReadDir(folder, SliceDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read its slices: %w", err)
	}
	var names []string
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), SliceEnd)
		if !ok {
			return nil, fmt.Errorf("%s: want slices alone, <case>%s", path.Join(SliceDir, f.Name()), SliceEnd)
		}
		names = append(names, name)
	}
	return names, nil
}
