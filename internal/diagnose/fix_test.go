package diagnose

import (
	"testing"

	"plimsoll/internal/model"
	"plimsoll/internal/query"
	"plimsoll/internal/ruleset"
)

// A way back with a hole for a number is none.
func TestNoWayBackWithoutItsNumber(t *testing.T) {
	for _, c := range []struct {
		text  string
		facts ruleset.Facts
		want  bool
	}{
		{"-c {{.Value}} again", ruleset.Facts{}, false},
		{"-c {{.Value}} again", ruleset.Facts{To: "…"}, false},
		{"-c {{.Value}} again", ruleset.Facts{Value: ruleset.Number(0)}, true},
		{"-c {{.To}} again", ruleset.Facts{Value: ruleset.Number(1)}, false},
		{"-c {{.To}} again", ruleset.Facts{Value: ruleset.Number(1), To: "…"}, false},
		{"-c {{.To}} again", ruleset.Facts{To: "2"}, true},
		{"nginx -s reload", ruleset.Facts{}, true},
	} {
		text, err := ruleset.ParseText(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := tellsAll(text, c.facts); got != c.want {
			t.Errorf("%q of %+v: %v", c.text, c.facts, got)
		}
	}
}

// Of a run that does not tell what is set now, a fix types nothing that names it.
func TestFixOfANumberThatIsNotKnown(t *testing.T) {
	set := goodSet(t)
	rule := set.List[0]
	back, err := ruleset.ParseText("-c {{.Value}} again")
	if err != nil {
		t.Fatal(err)
	}
	then, err := ruleset.ParseText("-c {{.Value}} at that line")
	if err != nil {
		t.Fatal(err)
	}
	look, err := ruleset.ParseText("grep -n '^-c' FILE")
	if err != nil {
		t.Fatal(err)
	}
	f := rule.Fix[0]
	f.Change, f.BackText = nil, back
	f.First = &ruleset.FirstStep{TypeText: look, ThenText: then}
	got, err := newRun(over(written(t, "hosts: [a]\n")), asItIs).fix(&f, nil, nil)
	if err != nil || got.Back != "" || got.First != nil {
		t.Errorf("%v, back %q, first %+v", err, got.Back, got.First)
	}
}

// A fix that is for other subjects is not listed; the next one keeps its place in the rule, by which its "accept" is found.
func TestAFixKeepsItsPlaceInTheRule(t *testing.T) {
	set := goodSet(t)
	rule := set.List[0]
	nobody, err := query.Parse("limit_size > 1000", nil)
	if err != nil {
		t.Fatal(err)
	}
	then, err := ruleset.ParseText("set it")
	if err != nil {
		t.Fatal(err)
	}
	first := rule.Fix[0]
	first.Title, first.Acceptance, first.First = "For large ones", nil, &ruleset.FirstStep{ThenText: then, ToExpr: nobody}
	own := rule.Fix[0]
	if own.Acceptance, err = ruleset.ParseAcceptance("limit_size < 50", query.Terms{}); err != nil {
		t.Fatal(err)
	}
	rule.Fix = []ruleset.Fix{first, own}
	q := over(written(t, "  series: ['limit_size{host=\"s\"} 100x9', 'used_size{host=\"s\"} 100x9']\n  read: [refused_total]\n"))
	findings, err := Findings(q, rule)
	if err != nil {
		t.Fatal(err)
	}
	listed := findings[0].Fix
	if len(listed) != 1 || listed[0].Title != own.Title || listed[0].Index != 1 {
		t.Fatalf("%+v; want the second fix alone, with its place", listed)
	}
	if got, err := Accepted(q, set, rule.ID, listed[0].Index, findings[0].Subject); err != nil || got != model.False {
		t.Errorf("accepted %s, %v; want false: its own accept asks for less than 50", got, err)
	}
}
