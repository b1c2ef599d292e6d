package diagnose

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
	"plimsoll/internal/ruleset"
)

const verdictLine = "----\n"

// TestVerdicts runs testdata/verdict/*.test; its README tells the form.
func TestVerdicts(t *testing.T) {
	files, err := filepath.Glob("testdata/verdict/*.test")
	if err != nil || len(files) == 0 {
		t.Fatal("no tests", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".test"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			given, want, _ := strings.Cut(string(raw), verdictLine)
			rules, findings := parseGiven(t, given)
			v := verdict(rules, findings, asked)
			got := writeVerdict(v)
			if os.Getenv("PLIMSOLL_UPDATE") == "1" {
				if err := os.WriteFile(file, []byte(given+verdictLine+got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			sameInAnyOrder(t, v, rules, findings)
		})
	}
}

// sameInAnyOrder: the order in which findings are made must not matter.
func sameInAnyOrder(t *testing.T, v model.Verdict, rules ruleset.Rules, findings []model.Finding) {
	t.Helper()
	want, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		rand.Shuffle(len(findings), func(i, j int) { findings[i], findings[j] = findings[j], findings[i] })
		got, err := json.Marshal(verdict(rules, findings, asked))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Fatalf("in another order (-want +got):\n%s", diff)
		}
	}
}

func parseGiven(t *testing.T, text string) (rules ruleset.Rules, findings []model.Finding) {
	t.Helper()
	for _, line := range strings.Split(text, "\n") {
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || f[0] == "#":
		case f[0] == "rule":
			r := &ruleset.Rule{ID: f[1], Kind: f[2]}
			for i := 3; i+1 < len(f); i += 2 {
				switch f[i] {
				case "explains":
					r.Explains = parseExplains(f[i+1])
				case "does":
					r.Does = parseKinds(f[i+1])
				case "shows":
					r.Shows, r.Where = parseKinds(f[i+1]), []string{}
				}
			}
			rules.List = append(rules.List, r)
		case f[0] == "finding":
			findings = append(findings, parseFinding(t, f[1:]))
		default:
			t.Fatalf("what is %q?", line)
		}
	}
	// Get looks them up by order.
	for i := range rules.List {
		for j := range i {
			if rules.List[i].ID < rules.List[j].ID {
				rules.List[i], rules.List[j] = rules.List[j], rules.List[i]
			}
		}
	}
	for i := range findings {
		findings[i].Kind = rules.Get(findings[i].Rule).Kind
	}
	return rules, findings
}

// asked answers a condition with the truth that stands in it.
func asked(when *ruleset.Clue, _ map[string]string) model.Clue {
	return model.Clue{Truth: model.Truth(when.Say), Say: when.Say}
}

func parseKinds(s string) map[string]string {
	kinds := map[string]string{}
	for _, kind := range strings.Split(s, ",") {
		kinds[kind] = "how " + kind
	}
	return kinds
}

func parseExplains(s string) []ruleset.Explain {
	var list []ruleset.Explain
	for _, e := range strings.Split(s, ",") {
		e, when, conditional := strings.Cut(e, "?")
		id, where, ok := strings.Cut(e, "/")
		x := ruleset.Explain{Finding: id, How: "how " + id}
		if conditional {
			x.When = &ruleset.Clue{Say: when}
		}
		if ok {
			x.Where = []string{}
		}
		if ok && where != "-" {
			x.Where = strings.Split(where, "+")
		}
		list = append(list, x)
	}
	return list
}

func parseFinding(t *testing.T, f []string) model.Finding {
	t.Helper()
	out := model.Finding{Rule: f[0], Title: strings.ToUpper(f[0]), Subject: map[string]string{}, Answer: model.FindingAnswer(strings.ReplaceAll(f[2], "_", " "))}
	for _, l := range strings.Split(f[1], ",") {
		name, value, _ := strings.Cut(l, "=")
		out.Subject[name] = value
	}
	if len(f) == 5 {
		out.Aside = f[4]
	}
	if len(f) >= 4 {
		share, of, _ := strings.Cut(f[3], "/")
		out.ImpactOf = of
		impact, err := strconv.ParseFloat(share, 64)
		if err != nil {
			t.Fatal(err)
		}
		out.Impact = &impact
	}
	return out
}

func writeVerdict(v model.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", v.Answer, v.Sentence)
	for _, part := range []struct {
		name string
		list []model.Finding
	}{{"root", v.Root}, {"grounds", v.Grounds}, {"findings", v.Findings}, {"ruled out", v.RuledOut}, {"unknown", v.Unknown}} {
		if len(part.list) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s\n", part.name)
		for _, f := range part.list {
			fmt.Fprintf(&b, "  %s (%s) %s", f.Rule, model.SpokenSubject(f.Subject), f.Answer)
			if f.Impact != nil {
				fmt.Fprintf(&b, ", impact %v", *f.Impact)
			}
			if f.ExplainedBy != "" {
				fmt.Fprintf(&b, ", explained by %s", f.ExplainedBy)
			}
			b.WriteString("\n")
			for _, e := range f.Explains {
				fmt.Fprintf(&b, "    explains %s (%s): %s\n", e.Rule, model.SpokenSubject(e.Subject), e.How)
			}
			for _, e := range f.Unexplained {
				fmt.Fprintf(&b, "    not by %s: %s\n", e.Rule, e.When.Truth)
			}
		}
	}
	return b.String()
}

// TestWhoUses: a healthy verdict says who uses what, where its rule knows.
func TestWhoUses(t *testing.T) {
	rules := ruleset.Rules{List: []*ruleset.Rule{{ID: "ok", Kind: ruleset.Healthy, Title: "Nobody waits"}}}
	for _, c := range []struct {
		truth model.Truth
		want  string
	}{
		{model.True, "Nobody waits; python3 used 1 of 2 CPUs."},
		{model.False, "Nobody waits; nothing held it back."},
		{model.Unknown, "Nobody waits; nothing held it back."},
	} {
		v := verdict(rules, []model.Finding{{Rule: "ok", Kind: ruleset.Healthy, Title: "Nobody waits", Answer: model.Confirmed,
			Subject: map[string]string{"host": "s"}, Clues: []model.Clue{{ID: "who", Role: model.Supports, Truth: c.truth, Say: "python3 used 1 of 2 CPUs"}}}}, asked)
		if v.Sentence != c.want {
			t.Errorf("%s: %q, want %q", c.truth, v.Sentence, c.want)
		}
	}
}

// A cause says in which function most of its time goes, where its rule knows, and rather who does it.
func TestACauseSaysInWhichFunction(t *testing.T) {
	rules := ruleset.Rules{List: []*ruleset.Rule{{ID: "slow", Kind: ruleset.Cause, Title: "It computes long"}}}
	who := model.Clue{ID: "who", Role: model.Supports, Truth: model.True, Say: "slapd used 2 CPUs"}
	place := model.Clue{ID: "place", Role: model.Supports, Truth: model.True, Say: "70 % of its CPU time was in list (app/shop.py:12)"}
	seldom := place
	seldom.Truth = model.False
	for want, clues := range map[string][]model.Clue{
		"It computes long (s); 70 % of its CPU time was in list (app/shop.py:12).": {place},
		"It computes long (s); slapd used 2 CPUs.":                                 {who, place},
		"It computes long (s).":                                                    {seldom},
	} {
		v := verdict(rules, []model.Finding{{Rule: "slow", Kind: ruleset.Cause, Title: "It computes long", Answer: model.Confirmed, Subject: map[string]string{"host": "s"}, Clues: clues}}, asked)
		if v.Sentence != want {
			t.Errorf("%q, want %q", v.Sentence, want)
		}
	}
}

// TestWhatFills: a capacity says who fills it, and where its rule knows in which function.
func TestWhatFills(t *testing.T) {
	rules := ruleset.Rules{List: []*ruleset.Rule{{ID: "full", Kind: ruleset.Capacity, Title: "The CPUs are the limit"}}}
	who := model.Clue{ID: "who", Role: model.Supports, Truth: model.True, Say: "slapd used 2 CPUs"}
	function := model.Clue{ID: "function", Role: model.Supports, Truth: model.True, Say: "half of it was in decode"}
	seldom := function
	seldom.Truth = model.False
	for _, c := range []struct {
		clues []model.Clue
		want  string
	}{
		{[]model.Clue{who, function}, "The CPUs are the limit (s); slapd used 2 CPUs, and half of it was in decode."},
		{[]model.Clue{who, seldom}, "The CPUs are the limit (s); slapd used 2 CPUs."},
		{[]model.Clue{function}, "The CPUs are the limit (s); half of it was in decode."},
		{nil, "The CPUs are the limit (s)."},
	} {
		v := verdict(rules, []model.Finding{{Rule: "full", Kind: ruleset.Capacity, Title: "The CPUs are the limit", Answer: model.Confirmed,
			Subject: map[string]string{"host": "s"}, Clues: c.clues}}, asked)
		if v.Sentence != c.want {
			t.Errorf("%q, want %q", v.Sentence, c.want)
		}
	}
}
