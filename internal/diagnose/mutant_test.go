package diagnose

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestSurvivors(t *testing.T) {
	for name, c := range map[string]struct {
		changes          []string
		equivalent       string
		survivors, stale string
	}{
		"x":       {},
	} {
		fsys := set(c.changes...)
		if c.equivalent != "" {
			fsys[equivalentFile] = &fstest.MapFile{Data: []byte(c.equivalent)}
		}
		rs, err := Load(fsys)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		survivors, stale := Survivors(rs)
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
