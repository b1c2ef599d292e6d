package diagnose

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"plimsoll/internal/model"
	"plimsoll/rules"
)

// goodRule is a rule that Check has nothing to say against, but for its tests.
const goodRule = `
id: x.good
title: The table is full
kind: cause
subject: [host]
story: tables fill
applies: limit_size > 0
clues:
  - id: full
    role: needs
    measure: max_over_time((used_size / limit_size)[$window:])
    is: ">= 0.95"
    why: it says so
    say: "{{percent .Value}} on {{.Subject.host}}"
    by_hand: cat
  - id: refused
    role: decides
    measure: increase(refused_total[$window])
    is: "> 0"
    why: exact
    say: "{{count .Value}} refused by {{.Labels.cpu}}"
    by_hand: cat
fix:
  - title: Raise it
    change: {sysctl: x.max, to: 2 * limit_size}
    risk: low
    costs: memory
    undo: automatic
    restart: none
lab: {causes: [x], lookalikes: []}
`

var goodSignals = []*model.Signal{
	{Name: "limit_size"}, {Name: "used_size"}, {Name: "refused_total", Labels: []string{"cpu"}},
}

const goodVectors = `
- name: full and refused
  case: fires
  series: ['limit_size{host="s"} 100x9', 'used_size{host="s"} 96x9', 'refused_total{host="s",cpu="0"} 0+1x9']
  expect:
    - {subject: {host: s}, answer: confirmed, clues: {full: true, refused: true}, values: {refused: 9}, command: sysctl -w x.max=200,
       say: {full: 96 % on s, refused: 9 refused by 0}}
- name: full, nothing refused
  case: near
  series: ['limit_size{host="s"} 100x9', 'used_size{host="s"} 96x9', 'refused_total{host="s",cpu="0"} 7x9']
  expect: [{subject: {host: s}, answer: near}]
- name: half full
  case: quiet
  series: ['limit_size{host="s"} 100x9', 'used_size{host="s"} 50x9']
  expect: []
- name: the refusals may not be read
  case: missing
  series: ['limit_size{host="s"} 100x9', 'used_size{host="s"} 96x9']
  missing: {refused_total: denied}
  expect: [{subject: {host: s}, answer: unknown, clues: {refused: unknown}, missing: {refused: "refused_total: denied"}}]
- name: just there
  case: boundary
  series: ['limit_size{host="s"} 100x9', 'used_size{host="s"} 95x9']
  read: [refused_total]
  expect: [{subject: {host: s}, answer: near, clues: {refused: false}}]
`

// loadTested loads a set with its vectors.
func loadTested(fsys fs.FS) (Rules, error) {
	rs, err := Load(fsys)
	return rs, errors.Join(err, rs.ReadTests())
}

// set makes a rule set of one rule, "x.good", after changes of the form old → new.
func set(changes ...string) fstest.MapFS {
	edit := strings.NewReplacer(changes...)
	return fstest.MapFS{
		"x/x.good/rule.yaml":  {Data: []byte(edit.Replace(goodRule))},
		"x/x.good/tests.yaml": {Data: []byte(edit.Replace(goodVectors))},
	}
}

func TestAGoodRule(t *testing.T) {
	rs, err := loadTested(set())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range Check(rs, goodSignals) {
		t.Error(err)
	}
	results := Test(rs)
	if len(results) != 5 {
		t.Fatalf("%d vectors, want 5", len(results))
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change []string
		want   string
	}{
		"an unknown field":       {[]string{"story:", "storry:"}, "x/x.good/rule.yaml:6: field storry not found"},
		"an unknown kind":        {[]string{"kind: cause", "kind: casue"}, `kind "casue": want cause, capacity, symptom or healthy`},
		"an unknown role":        {[]string{"role: needs", "role: need"}, `clue full: role "need": want needs, decides, proves or supports`},
		"no threshold":           {[]string{`is: ">= 0.95"`, `is: "0.95"`}, `clue full: is "0.95": want a comparison such as ">= 0.95"`},
		"bad PromQL":             {[]string{"increase(refused_total[$window])", "increase(refused_total[$window)"}, "clue refused: measure: 1:"},
		"a bad template":         {[]string{"{{percent .Value}}", "{{precent .Value}}"}, `clue full: say: template: :1: function "precent" not defined`},
		"a clue twice":           {[]string{"id: refused", "id: full"}, "clue 2: want an id that no other clue of the rule has"},
		"no subject":             {[]string{"subject: [host]", "subject: []"}, "want at least id, title, subject"},
		"two changes in one":     {[]string{"{sysctl: x.max,", "{sysctl: x.max, nginx: y,"}, `change: want one of sysctl, nginx, phpfpm, backlog, limit, nice, policy, affinity, quota, rps, txqueue, person, got 2`},
		"a vector without case":  {[]string{"case: near", "case: neer"}, `x/x.good/tests.yaml: "full, nothing refused": case "neer": want one of fires`},
		"a series without host":  {[]string{`used_size{host="s"} 50x9`, `used_size{h="s"} 50x9`}, "want a label host, as the recorder adds it"},
		"a series twice":         {[]string{`used_size{host="s"} 50x9`, `limit_size{host="s"} 50x9`}, "stands there twice"},
		"a million values":       {[]string{`50x9`, `50x1000000`}, "want at most 100000 values"},
		"an unknown state":       {[]string{"refused_total: denied", "refused_total: gone"}, `missing: refused_total: "gone": want absent, denied or failed`},
		"a bad series":           {[]string{`50x9`, `50x`}, "series used_size"},
		"an unknown expectation": {[]string{"command:", "comand:"}, "field comand not found"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadTested(set(c.change...))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	explains := func(s string) []string { return []string{"fix:\n", "explains: [" + s + "]\nfix:\n"} }
	for name, c := range map[string]struct {
		change []string
		want   string
	}{
		"an unknown series":         {[]string{"increase(refused_total", "increase(refused"}, "x.good: clue refused: refused: no probe reads such a series"},
		"an unknown label":          {[]string{"refused_total[", `refused_total{dev="x"}[`}, "refused_total has no label dev; it has host cpu"},
		"an unknown subject":        {[]string{"subject: [host]", "subject: [host, dev]"}, "subject: no series of applies has a label dev"},
		"no reason":                 {[]string{"why: exact", `why: " "`}, "clue refused: why: missing"},
		"no command":                {[]string{"by_hand: cat", "by_hand: ''"}, "clue full: by_hand: missing"},
		"a label that no one has":   {[]string{".Labels.cpu", ".Labels.cup"}, `map has no entry for key "cup"`},
		"another folder":            {[]string{"id: x.good", "id: x.better"}, "x.better: stands in x/x.good: want the id as the folder's name"},
		"a risk of its own":         {[]string{"risk: low", "risk: none"}, `risk "none": want one of low, medium, high`},
		"a consequence that is not": {explains("{finding: x.nosuch, how: y}"), "explains: x.nosuch: no such rule"},
		"itself":                    {explains("{finding: x.good, how: y}"), "explains: a circle: x.good explains x.good"},
		"how":                       {explains("{finding: x.good}"), "explains: x.good: how: missing"},
		"where":                     {explains("{finding: x.good, how: y, where: [dev]}"), "where: label dev is not in both subjects"},
		"a case without vector":     {[]string{"case: boundary", "case: quiet"}, "tests.yaml: no vector with case: boundary"},
		"an unknown vector series":  {[]string{`used_size{host="s"} 50x9`, `usd_size{host="s"} 50x9`}, `tests.yaml: "half full": usd_size: no probe reads such a series`},
		"an unknown clue expected":  {[]string{"clues: {refused: false}", "clues: {refusd: false}"}, `tests.yaml: "just there": the rule has no clue refusd`},
	} {
		t.Run(name, func(t *testing.T) {
			rs, err := loadTested(set(c.change...))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(Check(rs, goodSignals)...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

func TestCheckFindsLongCircles(t *testing.T) {
	fsys := fstest.MapFS{}
	for _, pair := range []string{"a b", "b c", "c a"} {
		from, to, _ := strings.Cut(pair, " ")
		fsys["x/"+from+"/rule.yaml"] = &fstest.MapFile{Data: []byte(strings.NewReplacer(
			"id: x.good", "id: x."+from, "fix:\n", "explains: [{finding: x."+to+", how: y}]\nfix:\n").Replace(goodRule))}
	}
	rs, err := loadTested(fsys)
	if err != nil {
		t.Fatal(err)
	}
	want := "x.a: explains: a circle: x.a explains x.b explains x.c explains x.a"
	if err := errors.Join(Check(rs, goodSignals)...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
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
			rs, err := loadTested(set(c.change...))
			if err != nil {
				t.Fatal(err)
			}
			var errs []error
			for _, r := range Test(rs) {
				errs = append(errs, r.Err)
			}
			if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

func TestRecordsFile(t *testing.T) {
	fsys := set("max_over_time((used_size / limit_size)[$window:])", "x:used:ratio")
	for name, c := range map[string]struct{ file, want string }{
		"good":           {"- {record: 'x:one:y', help: h, expr: used_size}\n- {record: 'x:used:ratio', help: h, expr: 'x:one:y / limit_size'}", ""},
		"from below":     {"- {record: 'x:used:ratio', help: h, expr: 'x:one:y / limit_size'}\n- {record: 'x:one:y', help: h, expr: used_size}", "records.yaml: x:used:ratio: x:one:y: no such record above it"},
		"a name":         {"- {record: used, help: h, expr: used_size}", `records.yaml: "used": want a record named level:metric:operation`},
		"no help":        {"- {record: 'x:used:ratio', expr: used_size}", "and a help"},
		"twice":          {"- {record: 'x:used:ratio', help: h, expr: a}\n- {record: 'x:used:ratio', help: h, expr: a}", "records.yaml: x:used:ratio is there already"},
		"not there":      {"- {record: 'x:other:ratio', help: h, expr: a}", "x:used:ratio: no such record"},
		"an empty file":  {"", "records.yaml: the file is empty"},
		"two documents":  {"- {record: 'x:used:ratio', help: h, expr: a}\n---\n- 1\n", "want one YAML document, found more"},
		"an extra field": {"- {record: 'x:used:ratio', help: h, expr: a, labels: {}}", "field labels not found"},
	} {
		fsys["records.yaml"] = &fstest.MapFile{Data: []byte(c.file)}
		_, err := loadTested(fsys)
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

func TestHashCoversWhatCountsAndNothingElse(t *testing.T) {
	hash := func(fsys fstest.MapFS) string {
		rs, err := loadTested(fsys)
		if err != nil {
			t.Fatal(err)
		}
		return rs.Hash
	}
	if hash(set()) != hash(set("name: half full", "name: half")) {
		t.Error("another test vector gave another hash")
	}
	if hash(set()) == hash(set("0.95", "0.96")) {
		t.Error("another threshold gave the same hash")
	}
}

// TestShippedRules loads the rules that are built in, and runs their vectors.
// That they name real signals is checked where all signals are known.
func TestShippedRules(t *testing.T) {
	rs, err := loadTested(rules.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Test(rs) {
		if r.Err != nil {
			t.Errorf("%s: %s (%s): %v", r.Rule, r.Name, r.Case, r.Err)
		}
	}
}

func FuzzRule(f *testing.F) {
	f.Add([]byte(goodRule))
	f.Fuzz(func(t *testing.T, raw []byte) {
		rule, err := parseRule(raw, records{})
		if err != nil {
			return
		}
		for _, e := range rule.expressions() {
			// What Load takes can be asked, whatever the run has.
			if _, _, err := e.query(windows{"window": {1000, 2000}, "run": {0, 3000}}, grainOf(1000)); err != nil {
				t.Errorf("%s: %v", e.text, err)
			}
		}
	})
}

func FuzzVectors(f *testing.F) {
	f.Add([]byte(goodVectors))
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, err := parseVectors(raw)
		if err != nil && list != nil {
			t.Error("vectors and an error")
		}
	})
}
