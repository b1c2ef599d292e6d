package rules_test

import (
	"io/fs"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"plimsoll/internal/capture/tally"
	"plimsoll/internal/layout"
	"plimsoll/internal/load"
	"plimsoll/internal/model"
	probes "plimsoll/internal/probe/all"
	"plimsoll/internal/ruleset"
	"plimsoll/internal/rulesuite"
	tracers "plimsoll/internal/trace/all"
	"plimsoll/internal/trace/deepcpu"
	"plimsoll/rules"
)

// builtIn are the built-in rules and their tests. Reading them takes seconds, and nobody changes them.
var builtIn = sync.OnceValue(func() (b struct {
	set   ruleset.Rules
	tests rulesuite.Suite
	err   error
}) {
	debug.SetGCPercent(400) // a fifth of the CPU time else, with thousands of little runs that are gone at once
	if b.set, b.err = ruleset.Load(rules.FS); b.err == nil {
		b.tests, b.err = rulesuite.Read(b.set)
	}
	return b
})

func tested(t *testing.T) (ruleset.Rules, rulesuite.Suite) {
	t.Helper()
	b := builtIn()
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.set, b.tests
}

// TestRules holds the built-in rules to what check asks of any rule set, and
// runs their vectors.
func TestRules(t *testing.T) {
	set, tests := tested(t)
	known := slices.Concat(load.Signals, tally.Signals)
	for _, p := range probes.All() {
		known = append(known, p.Signals...)
	}
	for _, t := range append(tracers.All(), deepcpu.Tracer(nil)) {
		known = append(known, t.Signals...)
	}
	for _, err := range append(ruleset.Check(set, known), tests.Check(known)...) {
		t.Error(err)
	}
	for _, r := range tests.Run() {
		if r.Err != nil {
			t.Errorf("%s: %s: %q: %v", r.Rule, r.Case, r.Name, r.Err)
		}
	}
}

// What is found out of the expressions when it is asked for is what Load finds at once.
func TestTriedRulesAreTheSame(t *testing.T) {
	set, _ := tested(t)
	tried, err := ruleset.LoadTried(rules.FS)
	if err != nil || tried.Hash != set.Hash || len(tried.List) != len(set.List) {
		t.Fatalf("%v, %d rules, want %d", err, len(tried.List), len(set.List))
	}
	for i, r := range set.List {
		want := r.Expressions()
		for j, e := range tried.List[i].Expressions() {
			if e.Text != want[j].Text || e.Err() != nil || len(e.Selectors()) != len(want[j].Selectors()) || e.Counts() != want[j].Counts() {
				t.Errorf("%s: %s: %v", r.ID, e.Text, e.Err())
			}
		}
	}
}

// TestNoMutantSurvives holds that each clue, its comparison and its threshold are
// held in place by a vector.
func TestNoMutantSurvives(t *testing.T) {
	_, tests := tested(t)
	survivors, stale := tests.Survivors()
	for _, m := range survivors {
		t.Errorf("%s: no vector notices", m)
	}
	for _, m := range stale {
		t.Errorf("equivalent.yaml: %s: no such mutant survives; take it out", m)
	}
}

// TestUsersAreWhoeverAsks holds that only the rules about a load of ours read its own
// records: whoever else does is silent where the users are others.
func TestUsersAreWhoeverAsks(t *testing.T) {
	files, err := fs.Glob(rules.FS, "*/*/rule.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d rules, %v", len(files), err)
	}
	ours := regexp.MustCompile(`\bload:[a-z0-9_]+:[a-z]+`)
	for _, file := range files {
		text, err := fs.ReadFile(rules.FS, file)
		if err != nil {
			t.Fatal(err)
		}
		if found := ours.Find(text); found != nil && !strings.HasPrefix(file, "load/") {
			t.Errorf("%s names %s: want the users:* record beside it", file, found)
		}
	}
}

// What a person is to do first fits the end of a screen: one step, whole, with what it costs. A text that
// lists several ways has a first one of its own.
func TestFixesFitAScreen(t *testing.T) {
	set, _ := tested(t)
	for _, r := range set.List {
		for _, f := range r.Fix {
			at := r.ID + ", " + f.Title
			for what, text := range map[string]struct {
				is   string
				most int
			}{"title": {f.Title, 120}, "costs": {f.Costs, 190}, "way back": {f.Back, 138}, "save": {f.Save, 138}} {
				if n := utf8.RuneCountInString(layout.Unmarked(text.is)); n > text.most {
					t.Errorf("%s: the %s has %d letters, want %d at most", at, what, n, text.most)
				}
			}
			typed := f.First != nil && strings.Contains(f.First.Type, ".To") // the same line takes it back
			if (f.Undo == "manual" || f.Undo == "impossible") && f.Back == "" && !typed {
				t.Errorf("%s: want back: how it is taken back, with the exact command", at)
			}
			person := f.Change[0].Kind == model.ChangePerson
			switch {
			case f.First != nil:
				most := 245
				if f.First.Edits != "" { // steps, of which some are short
					most = 300
				}
				if n := utf8.RuneCountInString(layout.Unmarked(f.First.Then)); n > most {
					t.Errorf("%s: what to do first has %d letters, want %d at most", at, n, most)
				}
			case person && utf8.RuneCountInString(f.Change[0].Name) > 150:
				t.Errorf("%s: what a person can do is long, so say what comes first", at)
			}
		}
	}
}

// A command in a sentence that stands between no marks may be broken over two lines, and is another one then.
func TestCommandsInSentencesAreMarked(t *testing.T) {
	set, _ := tested(t)
	command := regexp.MustCompile(`\b(nginx -[tsT]|systemctl (restart|reload|edit|stop|cat) |sysctl -w|nft (-a|replace|delete|insert) |iptables-(save|restore) |ethtool -|redis-cli |docker update|haproxy -c|mysql -e|sudo \w)`)
	for _, r := range set.List {
		for _, f := range r.Fix {
			texts := []string{f.Back, f.Save}
			if f.First != nil {
				texts = append(texts, f.First.Then)
			}
			for _, text := range texts {
				left := text
				for _, marked := range layout.Marked(text) {
					left = strings.Replace(left, "`"+marked+"`", "", 1)
				}
				if found := command.FindString(left); found != "" {
					t.Errorf("%s, %s: want %q… between backquotes, to its last word: %s", r.ID, f.Title, found, text)
				}
			}
		}
	}
}

// A number in a command is as a program reads it: "-c 1,024" is none, and no number is left out where one was meant.
func TestCommandsHavePlainNumbers(t *testing.T) {
	set, _ := tested(t)
	written := regexp.MustCompile(`\d,\d{3}\b`)
	option := regexp.MustCompile(`(\B-[a-z] |=)\d{1,3},\d{3}\b`)
	hole := regexp.MustCompile(`(^|[ =])\?($|[ ,;])`)
	facts := ruleset.Facts{Value: ruleset.Number(1234567), To: "1234567"}
	for _, r := range set.List {
		for _, f := range r.Fix {
			texts := map[string]*ruleset.Text{"back": f.BackText, "save": f.SaveText}
			for i := range f.Change {
				texts["change"+strconv.Itoa(i)] = f.Change[i].NameText
			}
			if f.First != nil {
				texts["check"], texts["then"] = f.First.TypeText, f.First.ThenText
			}
			for what, text := range texts {
				is, _ := text.Fill(facts) // labels are none of this test's
				bad := written.FindString(is) + hole.FindString(is)
				if what != "back" && what != "check" {
					bad = option.FindString(is) // a sentence may have a number for people, and the place of a statement's value
				}
				if bad != "" || strings.Contains(is, "<no value>") {
					t.Errorf("%s, %s: %s: %q in %q", r.ID, f.Title, what, bad, is)
				}
			}
		}
	}
}

// A statement is the text of anybody who may log in to a database. No quoting makes it harmless in a command: the
// database's superuser would run it.
func TestNoCommandHasAStatement(t *testing.T) {
	set, _ := tested(t)
	for _, r := range set.List {
		for _, f := range r.Fix {
			if f.First != nil && strings.Contains(f.First.Type, ".statement") {
				t.Errorf("%s, %s: %s", r.ID, f.Title, f.First.Type)
			}
		}
	}
}

// A word that is filled in is none of SQL's.
func TestCommandsKeepTheirSQL(t *testing.T) {
	set, _ := tested(t)
	sql := regexp.MustCompile(`\bGROUP BY\b`)
	for _, r := range set.List {
		for _, c := range r.Clues {
			if sql.MatchString(c.ByHand) {
				t.Errorf("%s, %s: %s: write group by", r.ID, c.ID, c.ByHand)
			}
		}
		for _, f := range r.Fix {
			if f.First != nil && sql.MatchString(f.First.Type) {
				t.Errorf("%s, %s: %s: write group by", r.ID, f.Title, f.First.Type)
			}
		}
	}
}

// Which threads take turns is asked by a rule, clue by clue, with a reason and a sentence each, and by a record for other rules at once:
// the thresholds are the same.
func TestTakingTurnsIsOneThing(t *testing.T) {
	set, _ := tested(t)
	plain := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	var record string
	for _, r := range set.Records {
		if r.Name == "group:taking_turns:ratio" {
			record = plain(r.Written)
		}
	}
	for _, c := range set.Get("process.one_at_a_time").Clues {
		if slices.Contains([]string{"one", "alternates", "waiting", "locked", "turns"}, c.ID) {
			if part := plain(c.Measure) + " " + c.Is; !strings.Contains(record, part) {
				t.Errorf("clue %s asks for %q, which is not in group:taking_turns:ratio", c.ID, part)
			}
		}
	}
}
