package ruleset

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
)

const siteRule = `id: mine
title: t
kind: cause
subject: [host]
story: s
applies: a_b
clues:
  - {id: full, role: needs, measure: a_b, is: ">= 0.95", why: w, say: s, by_hand: h}
`

func TestExtendReplacesAndAdds(t *testing.T) {
	base, err := Load(fstest.MapFS{
		"l/mine/rule.yaml": {Data: []byte(siteRule)},
		"records.yaml":     {Data: []byte("- {record: 'a:b:c', help: h, expr: a_b}")},
	})
	if err != nil {
		t.Fatal(err)
	}
	own := fstest.MapFS{
		"l/mine/rule.yaml":  {Data: []byte(strings.Replace(siteRule, "title: t", "title: other", 1))},
		"l/ours/rule.yaml":  {Data: []byte(strings.NewReplacer("id: mine", "id: ours", "applies: a_b", `applies: "a:b:c"`).Replace(siteRule))},
		"l/ours/tests.yaml": {Data: []byte("[]")},
	}
	set, err := Extend(base, own, "site")
	if err != nil {
		t.Fatal(err)
	}
	want := model.Site{Added: []string{"ours"}, Replaced: []string{"mine"}, RulesHash: set.Hash}
	if d := cmp.Diff(want, set.Site); d != "" {
		t.Error(d)
	}
	if got := set.Get("mine").Title; got != "other" {
		t.Errorf("the rule in force is %q, want the site's", got)
	}
	if set.Hash == base.Hash || base.Get("mine").Title != "t" {
		t.Error("want another hash, and the set that was extended unchanged")
	}
	if _, err := Extend(base, fstest.MapFS{}, "site"); err == nil || !strings.Contains(err.Error(), "site: no rule.yaml") {
		t.Errorf("an empty folder: %v", err)
	}
	own["records.yaml"] = &fstest.MapFile{Data: []byte("- {record: 'a:b:c', help: h, expr: x_y}")}
	if _, err := Extend(base, own, "site"); err == nil || !strings.Contains(err.Error(), "site/records.yaml: a:b:c is there already") {
		t.Errorf("a record that would change built-in rules: %v", err)
	}
}

func TestThresholds(t *testing.T) {
	base, err := Load(fstest.MapFS{"l/mine/rule.yaml": {Data: []byte(siteRule)}})
	if err != nil {
		t.Fatal(err)
	}
	list, err := ParseThresholds("f", []byte("mine: {full: {is: '>= 0.9', why: small tables}}"))
	if err != nil {
		t.Fatal(err)
	}
	set, err := base.WithThresholds(list)
	if err != nil {
		t.Fatal(err)
	}
	c := set.Get("mine").Clues[0]
	if !c.Threshold.Holds(0.92) || c.Why != "small tables; set by this site in the place of >= 0.95" {
		t.Errorf("clue %+v", c)
	}
	if base.Get("mine").Clues[0].Threshold.Holds(0.92) || set.Hash == base.Hash {
		t.Error("want the first set unchanged, and another hash")
	}
	want := []model.Threshold{{Rule: "mine", Clue: "full", Is: ">= 0.9", Was: ">= 0.95", Why: "small tables"}}
	if d := cmp.Diff(want, set.Site.Thresholds); d != "" {
		t.Error(d)
	}
	// What was recorded gives the same set again.
	again, err := base.WithThresholds(set.Site.Thresholds)
	if err != nil || again.Hash != set.Hash {
		t.Errorf("again: %v, hash %s, want %s", err, again.Hash, set.Hash)
	}
}

func FuzzThresholds(f *testing.F) {
	f.Add([]byte("net.conntrack.table_full:\n  full: {is: '>= 0.9', why: x}\n  refused: '> 1'\n"))
	f.Add([]byte("a: &x {b: '> 1'}\nc: *x\nd: {<<: *x}\n"))
	f.Add([]byte("a: [1]"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, err := ParseThresholds("f", raw)
		for _, th := range list {
			if _, bad := ParseComparison(th.Is); err == nil && bad != nil {
				t.Errorf("%+v: %v", th, bad)
			}
		}
	})
}
