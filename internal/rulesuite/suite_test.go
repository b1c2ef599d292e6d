package rulesuite

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"plimsoll/internal/model"
	"plimsoll/internal/ruleset"
	"plimsoll/rules"
)

var goodSignals = []*model.Signal{
	{Name: "limit_size"}, {Name: "used_size"}, {Name: "refused_total", Labels: []string{"cpu"}},
}

// loadTested loads a set and its tests.
func loadTested(fsys fs.FS) (Suite, error) {
	set, err := ruleset.Load(fsys)
	if err != nil {
		return Suite{}, err
	}
	return Read(set)
}

// shipped are the rules that are built in, with their tests, which nobody changes: to read all slices takes seconds.
// That they give what stands in them is held where all signals are known, by rules.TestRules.
var shipped = sync.OnceValues(func() (Suite, error) { return loadTested(rules.FS) })

// set makes the good rule's set, after changes of the form old → new.
func set(t *testing.T, changes ...string) fstest.MapFS {
	t.Helper()
	edit := strings.NewReplacer(changes...)
	fsys := fstest.MapFS{}
	for _, name := range []string{"rule.yaml", "tests.yaml"} {
		raw, err := os.ReadFile("../ruleset/testdata/x/x.good/" + name)
		if err != nil {
			t.Fatal(err)
		}
		fsys["x/x.good/"+name] = &fstest.MapFile{Data: []byte(edit.Replace(string(raw)))}
	}
	return fsys
}

func TestReadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change []string
		want   string
	}{
		"a vector without case":  {[]string{"case: near", "case: neer"}, `x/x.good/tests.yaml: "full, nothing refused": case "neer": want one of fires`},
		"a series without host":  {[]string{`used_size{host="s"} 50x9`, `used_size{h="s"} 50x9`}, "want a label host, as the recorder adds it"},
		"a series twice":         {[]string{`used_size{host="s"} 50x9`, `limit_size{host="s"} 50x9`}, "stands there twice"},
		"a million values":       {[]string{`50x9`, `50x1000000`}, "want at most 100000 values"},
		"an unknown state":       {[]string{"refused_total: denied", "refused_total: gone"}, `missing: refused_total: "gone": want absent, denied or failed`},
		"a bad series":           {[]string{`50x9`, `50x`}, "series used_size"},
		"an unknown expectation": {[]string{"command:", "comand:"}, "field comand not found"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadTested(set(t, c.change...))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change []string
		want   string
	}{
		"a case without vector":    {[]string{"case: boundary", "case: quiet"}, "tests.yaml: no vector with case: boundary"},
		"an unknown vector series": {[]string{`used_size{host="s"} 50x9`, `usd_size{host="s"} 50x9`}, `tests.yaml: "half full": usd_size: no probe reads such a series`},
		"an unknown clue expected": {[]string{"clues: {refused: false}", "clues: {refusd: false}"}, `tests.yaml: "just there": the rule has no clue refusd`},
	} {
		t.Run(name, func(t *testing.T) {
			rs, err := loadTested(set(t, c.change...))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(rs.Check(goodSignals)...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

func TestAGoodRule(t *testing.T) {
	rs, err := loadTested(set(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range rs.Check(goodSignals) {
		t.Error(err)
	}
	results := rs.Run()
	if len(results) != 5 {
		t.Fatalf("%d vectors, want 5", len(results))
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
}

func TestVectorsThatFailSayWhy(t *testing.T) {
	for name, c := range map[string]struct {
		change []string
		want   string
	}{
		"another answer":   {[]string{"answer: near}]", "answer: confirmed}]"}, `map[host:s]: "near", want "confirmed"; full true (0.96 >= 0.95); refused false (0 > 0)`},
		"another truth":    {[]string{"refused: false", "refused: true"}, `clue refused is "false", want "true"`},
		"another value":    {[]string{"values: {refused: 9}", "values: {refused: 8}"}, "clue refused, want the value 8; refused true (9 > 0)"},
		"another sentence": {[]string{"9 refused by 0}", "9 refused}"}, `clue refused says "9 refused by 0", want "9 refused"`},
		"another command":  {[]string{"x.max=200", "x.max=300"}, `want the command "sysctl -w x.max=300"`},
		"another subject":  {[]string{"{subject: {host: s}, answer: near}", "{subject: {host: r}, answer: near}"}, "map[host:r]: no finding, want \"near\""},
		"not expected":     {[]string{`used_size{host="s"} 50x9`, `used_size{host="s"} 99x9`}, `and the vector does not expect it`},
	} {
		t.Run(name, func(t *testing.T) {
			rs, err := loadTested(set(t, c.change...))
			if err != nil {
				t.Fatal(err)
			}
			var errs []error
			for _, r := range rs.Run() {
				errs = append(errs, r.Err)
			}
			if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

func FuzzVectors(f *testing.F) {
	raw, err := os.ReadFile("../ruleset/testdata/x/x.good/tests.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, err := parseVectors(raw)
		if err != nil && list != nil {
			t.Error("vectors and an error")
		}
	})
}

// BenchmarkVectors answers: how long do the shipped rules' vectors take?
func BenchmarkVectors(b *testing.B) {
	rs, err := shipped()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		rs.Run()
	}
}

// Another vector is no other rule set: the hash does not change.
func TestVectorsAreNotInTheHash(t *testing.T) {
	hash := func(fsys fs.FS) string {
		rs, err := ruleset.Load(fsys)
		if err != nil {
			t.Fatal(err)
		}
		return rs.Hash
	}
	if hash(set(t)) != hash(set(t, "name: half full", "name: half")) {
		t.Error("another test vector gave another hash")
	}
}
