package ruleset

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
)

var goodSignals = []*model.Signal{
	{Name: "limit_size"}, {Name: "used_size"}, {Name: "refused_total", Labels: []string{"cpu"}},
}

func TestLoadRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change []string
		want   string
	}{
		"an unknown field":        {[]string{"story:", "storry:"}, "x/x.good/rule.yaml:5: field storry not found"},
		"an unknown kind":         {[]string{"kind: cause", "kind: casue"}, `kind "casue": want cause, capacity, symptom or healthy`},
		"an unknown role":         {[]string{"role: needs", "role: need"}, `clue full: role "need": want needs, decides, proves or supports`},
		"no threshold":            {[]string{`is: ">= 0.95"`, `is: "0.95"`}, `clue full: is "0.95": want a comparison such as ">= 0.95"`},
		"bad PromQL":              {[]string{"increase(refused_total[$window])", "increase(refused_total[$window)"}, "clue refused: measure: 1:"},
		"a bad template":          {[]string{"{{percent .Value}}", "{{precent .Value}}"}, `clue full: say: template: :1: function "precent" not defined`},
		"a clue twice":            {[]string{"id: refused", "id: full"}, "clue 2: want an id that no other clue of the rule has"},
		"an unknown kind of harm": {[]string{"fix:\n", "does: {delay: x}\nfix:\n"}, "rule.yaml:22: does: no kind delay; there are limits, delays"},
		"harm without how":        {[]string{"fix:\n", "does: {delays: ''}\nfix:\n"}, "does: delays: missing; say how"},
		"a symptom of nothing":    {[]string{"kind: cause", "kind: symptom"}, "shows: missing; a symptom says by which kinds of harm it is seen"},
		"a symptom that does":     {[]string{"kind: cause", "kind: symptom", "fix:\n", "does: {delays: x}\nfix:\n"}, "does: only a cause or a capacity does something"},
		"a cause that shows":      {[]string{"fix:\n", "shows: {delays: x}\nfix:\n"}, "shows: only a symptom shows something"},
		"no subject":              {[]string{"subject: [host]", "subject: []"}, "want at least id, title, subject"},
		"two changes in one":      {[]string{"{sysctl: x.max,", "{sysctl: x.max, nginx: y,"}, `change: want one of sysctl, nginx, phpfpm, backlog, limit, nice, policy, affinity, quota, rps, txqueue, person, got 2`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(set(t, c.change...))
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
	} {
		t.Run(name, func(t *testing.T) {
			rs, err := Load(set(t, c.change...))
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(Check(rs, goodSignals)...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nwant %s", err, c.want)
			}
		})
	}
}

// What the kinds give is not declared again, and what they do not give may be.
func TestDeclaredTwice(t *testing.T) {
	symptom := strings.NewReplacer("id: x.good", "id: x.seen", "kind: cause", "kind: symptom", "fix:\n", "shows: {delays: and waits}\nwhere: []\nfix:\n").Replace(goodRule(t))
	for does, want := range map[string]string{
		"delays": "x.good: explains: x.seen: the kinds give it already (it stands still, and waits); take it out",
		"fails":  "",
	} {
		fsys := set(t, "fix:\n", "does: {"+does+": it stands still}\nexplains: [{finding: x.seen, how: y}]\nfix:\n")
		fsys["x/x.seen/rule.yaml"] = &fstest.MapFile{Data: []byte(symptom)}
		if _, err := Load(fsys); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", does, err, want)
		}
	}
}

func TestCheckFindsLongCircles(t *testing.T) {
	fsys := fstest.MapFS{}
	for _, pair := range []string{"a b", "b c", "c a"} {
		from, to, _ := strings.Cut(pair, " ")
		fsys["x/"+from+"/rule.yaml"] = &fstest.MapFile{Data: []byte(strings.NewReplacer(
			"id: x.good", "id: x."+from, "fix:\n", "explains: [{finding: x."+to+", how: y}]\nfix:\n").Replace(goodRule(t)))}
	}
	rs, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	want := "x.a: explains: a circle: x.a explains x.b explains x.c explains x.a"
	if err := errors.Join(Check(rs, goodSignals)...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// What a record says of signals that refine others is what these declare, and expressions that name the record know it.
func TestRefining(t *testing.T) {
	exact := &model.Signal{Name: "exact_size", Refines: "used_size"}
	for refining, want := range map[string]string{
		"refining: [exact_size], ":             "",
		"":                                     "exact_size says more exactly what used_size says: name it under refining",
		"refining: [exact_size, limit_size], ": "limit_size is none of its signals that say more exactly",
		"refining: [exact_size, other_size], ": "other_size is none of its signals that say more exactly",
	} {
		fsys := set(t, "max_over_time((used_size / limit_size)[$window:])", "x:used:ratio")
		fsys["records.yaml"] = &fstest.MapFile{Data: []byte("- {record: 'x:size:best', help: h, " + refining + "expr: 'exact_size or used_size'}\n- {record: 'x:used:ratio', help: h, " + refining + "expr: 'x:size:best / limit_size'}")}
		rs, err := Load(fsys)
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(Check(rs, append(slices.Clone(goodSignals), exact))...)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", refining, err, want)
		}
		for _, sel := range rs.List[0].Clues[0].MeasureExpr.Selectors() {
			if sel.Name == "exact_size" && sel.Refines != strings.Contains(refining, sel.Name) {
				t.Errorf("%q: %s refines: %t", refining, sel.Name, sel.Refines)
			}
		}
	}
}

// What refines is missed where nothing else stands beside it in an "or".
func TestRefiningIsMissedAlone(t *testing.T) {
	for measure, refines := range map[string]bool{
		"max_over_time((exact_size or used_size)[$window:])": true,
		"max(used_size or exact_size / limit_size)":          true,
		"exact_size":                                    false,
		"exact_size / on (host) limit_size":             false,
		"max(exact_size) or max by (host) (exact_size)": false,
		"limit_size and on (host) (exact_size or on (host) exact_size{host='a'})": false,
		"exact_size / limit_size or on (host) exact_size / used_size":             false,
		"limit_size unless on (host) used_size or on (host) exact_size":           true,
	} {
		fsys := set(t, "max_over_time((used_size / limit_size)[$window:])", "x:used:ratio")
		fsys["records.yaml"] = &fstest.MapFile{Data: []byte("- {record: 'x:used:ratio', help: h, refining: [exact_size], expr: \"" + measure + "\"}")}
		rs, err := Load(fsys)
		if err != nil {
			t.Fatal(err)
		}
		for _, sel := range rs.List[0].Clues[0].MeasureExpr.Selectors() {
			if want := refines && sel.Name == "exact_size"; sel.Refines != want {
				t.Errorf("%s: %s refines: %t", measure, sel.Name, sel.Refines)
			}
		}
	}
}

func TestRecordsFile(t *testing.T) {
	fsys := set(t, "max_over_time((used_size / limit_size)[$window:])", "x:used:ratio")
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
		_, err := Load(fsys)
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v\nwant %s", name, err, c.want)
		}
	}
}

func TestHashCoversWhatCountsAndNothingElse(t *testing.T) {
	hash := func(fsys fstest.MapFS) string {
		rs, err := Load(fsys)
		if err != nil {
			t.Fatal(err)
		}
		return rs.Hash
	}
	if hash(set(t)) == hash(set(t, "0.95", "0.96")) {
		t.Error("another threshold gave the same hash")
	}
}

// goodRule is a rule that Check has nothing to say against.
func goodRule(t testing.TB) string {
	t.Helper()
	raw, err := os.ReadFile("testdata/x/x.good/rule.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// set makes the good rule's set, after changes of the form old → new.
func set(t *testing.T, changes ...string) fstest.MapFS {
	t.Helper()
	edit := strings.NewReplacer(changes...)
	fsys := fstest.MapFS{}
	for _, name := range []string{"rule.yaml", "tests.yaml"} {
		raw, err := os.ReadFile("testdata/x/x.good/" + name)
		if err != nil {
			t.Fatal(err)
		}
		fsys["x/x.good/"+name] = &fstest.MapFile{Data: []byte(edit.Replace(string(raw)))}
	}
	return fsys
}

func FuzzRule(f *testing.F) {
	f.Add([]byte(goodRule(f)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		rule, err := Parse(raw, query.Terms{})
		if err != nil {
			return
		}
		if rule.AppliesExpr == nil || len(rule.Clues) == 0 || rule.Clues[0].MeasureExpr == nil {
			t.Errorf("a rule that was taken is not whole: %+v", rule)
		}
	})
}

func TestComparisons(t *testing.T) {
	for _, c := range []struct {
		is       string
		less, eq bool
		more     bool
	}{
		{"> 5", false, false, true}, {">= 5", false, true, true}, {"< 5", true, false, false},
		{"<=5", true, true, false}, {"== 5", false, true, false}, {"!= 5.0", true, false, true},
	} {
		is, err := ParseComparison(c.is)
		if err != nil {
			t.Fatal(err)
		}
		if is.Holds(4) != c.less || is.Holds(5) != c.eq || is.Holds(6) != c.more {
			t.Errorf("%s: 4 %v, 5 %v, 6 %v", c.is, is.Holds(4), is.Holds(5), is.Holds(6))
		}
	}
	for _, bad := range []string{"", "5", "> ", "> x", "=> 5", "> 5 6", "> NaN"} {
		if _, err := ParseComparison(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
