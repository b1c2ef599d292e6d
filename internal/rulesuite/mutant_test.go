package rulesuite

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestSurvivors(t *testing.T) {
	const above = "x.good: full: >= 0.855 for >= 0.95" // no vector of the good rule is at 90 %
	entry := func(change string) string {
		return "- {rule: x.good, clue: full, change: '" + change + "', why: because}"
	}
	for name, c := range map[string]struct {
		changes                      []string
		equivalent, survivors, stale string
	}{
		"one is left":       {survivors: above},
		"a vector kills it": {changes: []string{`s"} 50x9`, `s"} 90x9`}},
		"a clue that no answer needs": {
			changes:   []string{`s"} 50x9']` + "\n  expect: []", `s"} 96x9']` + "\n  read: [refused_total]\n  expect: [{subject: {host: s}, answer: near}]"},
			survivors: above + "\nx.good: full: without it",
		},
		"it is equivalent":  {equivalent: entry(">= 0.855 for >= 0.95")},
		"an entry too many": {equivalent: entry("without it"), survivors: above, stale: "x.good: full: without it"},
	} {
		fsys := set(t, c.changes...)
		if c.equivalent != "" {
			fsys[equivalentFile] = &fstest.MapFile{Data: []byte(c.equivalent)}
		}
		rs, err := loadTested(fsys)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		survivors, stale := rs.Survivors()
		if got := lines(survivors); got != c.survivors {
			t.Errorf("%s: survivors:\n%s\nwant:\n%s", name, got, c.survivors)
		}
		if got := lines(stale); got != c.stale {
			t.Errorf("%s: stale: %s, want %s", name, got, c.stale)
		}
	}
}

func lines(list []Mutant) string {
	var b strings.Builder
	for _, m := range list {
		b.WriteString(m.String() + "\n")
	}
	return strings.TrimSpace(b.String())
}

func TestAnEquivalentNeedsAReason(t *testing.T) {
	fsys := set(t)
	fsys[equivalentFile] = &fstest.MapFile{Data: []byte("- {rule: x.good, clue: full, change: without it}")}
	if _, err := loadTested(fsys); err == nil || !strings.Contains(err.Error(), "x.good: full: without it: want a why") {
		t.Errorf("%v, want a word about the why", err)
	}
}
