package diagnose

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v3"

	"plimsoll/internal/layout"
	"plimsoll/internal/query"
	"plimsoll/internal/record/notation"
	"plimsoll/internal/ruleset"
)

// goodSet loads the good rule's set, after changes of the form old → new.
func goodSet(t *testing.T, changes ...string) ruleset.Rules {
	t.Helper()
	raw, err := os.ReadFile("../ruleset/testdata/x/x.good/rule.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := ruleset.Load(fstest.MapFS{"x/x.good/rule.yaml": {Data: []byte(strings.NewReplacer(changes...).Replace(string(raw)))}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// written makes what a vector says of its run.
func written(t *testing.T, text string) *notation.Run {
	t.Helper()
	v := new(notation.Run)
	if err := yaml.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
	if err := v.Compile(); err != nil {
		t.Fatal(err)
	}
	return v
}

func over(v *notation.Run) *query.Run {
	first, last, _ := v.Store.Span()
	return query.Over(v.Meta, v.Store, first, last)
}

func asItIs(pieces []layout.Piece, _, _ map[string]string) string { return layout.CommandLine(pieces) }
