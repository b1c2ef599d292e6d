package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/layout"
	"plimsoll/internal/ruleset"
	"plimsoll/internal/rulesuite"
)

const rulesLong = `The rules are data: what is measured, what threshold it is held against and why,
what a cause explains and how it is mended. They are written in PromQL, so the
same rule works on a Prometheus that scrapes the fleet.`

func rulesCommand(w *world) *cobra.Command {
	return withExits(group("rules", "the rules as a handbook, and their tests", rulesLong,
		rulesList(w), rulesShow(w), rulesCheck(w), rulesTest(w), rulesExport(w)), exitOK, exitNotPassed, exitUsage, exitRules)
}

func oneFolder(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage(c.CommandPath(), "%q is too much; it takes one folder of rules, or none for the built-in ones", args[1])
	}
	return nil
}

func rulesList(w *world) *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "list all rules", Args: noArguments,
		Long: "Lists every rule: cause, capacity, healthy or symptom, and its title. What a site\nadded, replaced or gave thresholds of its own is marked."}
	var site siteFlags
	site.add(c)
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		set, err := site.set(w)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(w.stdout, ruleList{set.List})
		}
		rows := [][]string{{"RULE", "KIND", "WHAT IT NAMES"}}
		for _, r := range set.List {
			rows = append(rows, []string{r.ID, r.Kind, r.Title + siteMark(set.Site, r.ID)})
		}
		w.table(rows)
		return nil
	}
	return withExits(c, exitOK, exitUsage, exitRules)
}

func completeRule(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	set, err := ruleSet(nil)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var ids []string
	for _, r := range set.List {
		ids = append(ids, r.ID+"\t"+r.Title)
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func rulesShow(w *world) *cobra.Command {
	c := &cobra.Command{Use: "show ID", Short: "a rule's page of the handbook", Args: oneArgument("a rule's id"), ValidArgsFunction: completeRule,
		Long:    "Prints the mechanism, the clues with their thresholds and reasons, what the rule\nexplains, how it is mended, and what it cannot see.",
		Example: "  plimsoll rules show net.conntrack.table_full"}
	var site siteFlags
	site.add(c)
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		set, err := site.set(w)
		if err != nil {
			return err
		}
		r := set.Get(args[0])
		if r == nil {
			var ids []string
			for _, one := range set.List {
				ids = append(ids, one.ID)
			}
			return fail(exitUsage, errors.New(andThen(fmt.Sprintf("no rule %q%s", args[0], maybeRules(args[0], ids)), "plimsoll rules list shows them")))
		}
		if *asJSON {
			return printJSON(w.stdout, r)
		}
		_, err = fmt.Fprint(w.stdout, rulePage(r)+sitePart(set.Site, r.ID))
		return err
	}
	return withExits(c, exitOK, exitUsage, exitRules)
}

// ruleList is what rules list prints with --json.
type ruleList struct {
	Rules []*ruleset.Rule `json:"rules"`
}

// mostRules is how many rules are named where a word is a part of their names.
const mostRules = 6

// maybeRules names the rules of which a word is a part, where it is one of some; else it is as layout.Maybe.
func maybeRules(word string, ids []string) string {
	with := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !strings.Contains(id, strings.ToLower(word)) })
	if len(with) < 2 || len(with) > mostRules {
		return layout.Maybe(word, ids)
	}
	return "; there are " + strings.Join(with, ", ")
}

func rulesCheck(w *world) *cobra.Command {
	c := &cobra.Command{Use: "check [DIR]", Short: "refuse rules that are not sound", Args: oneFolder,
		Long: `Checks the built-in rules, or those of DIR: unknown series, thresholds without a
reason, explanations that go round in a circle, fields that are missing. With
--rules it checks the built-in ones together with those of a site.`}
	var site siteFlags
	site.addRules(c)
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		set, err := site.oneOf(c, args)
		var tests rulesuite.Suite
		if err == nil {
			tests, err = rulesuite.Read(set)
			err = fail(exitRules, err)
		}
		if err == nil {
			known := allSignals(w)
			err = fail(exitRules, errors.Join(append(ruleset.Check(set, known), tests.Check(known)...)...))
		}
		if *asJSON {
			wrong := []string{}
			if err != nil {
				wrong = strings.Split(err.Error(), "\n")
			}
			if e := printJSON(w.stdout, rulesChecked{len(set.List), wrong}); e != nil {
				return e
			}
			return err
		}
		if err == nil {
			fmt.Fprintf(w.stdout, "%d rules are sound\n", len(set.List))
		}
		return err
	}
	return withExits(c, exitOK, exitUsage, exitRules)
}

func rulesTest(w *world) *cobra.Command {
	c := &cobra.Command{Use: "test [DIR]", Short: "run the rules' vectors and slices", Args: oneFolder,
		Long: `Runs every rule against its vectors: series that make it fire, come near, stay
quiet, miss a signal, and stand on the boundary; and against its slices, which are
what it read of recorded runs, faulty ones and look-alikes. It needs no root.

With --mutants it also breaks the rules, one clue at a time: without the clue, the
comparison turned round or its strictness changed, the threshold a tenth off. What
no vector notices is listed, unless equivalent.yaml says why none can.

With --rules it runs those of a site alone: no other answer depends on them.`}
	asJSON := jsonFlag(c)
	mutants := c.Flags().Bool("mutants", false, "also list the ways to break a rule that no vector notices")
	var site siteFlags
	site.addRules(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		set, err := site.oneOf(c, args)
		var suite rulesuite.Suite
		if err == nil {
			set = set.Own()
			suite, err = rulesuite.Read(set)
			err = fail(exitRules, err)
		}
		if err != nil {
			return err
		}
		tests := testedRules(suite)
		failed := failures(tests)
		summary := testSummary(tests, len(set.List), failed)
		if *mutants && failed == 0 { // a vector that fails anyway notices nothing
			tests = append(tests, survivingMutants(suite)...)
			failed = failures(tests)
			summary += fmt.Sprintf("; %d mutants survived", failed)
		}
		if *asJSON {
			if err := printJSON(w.stdout, rulesTested{tests}); err != nil {
				return err
			}
		} else {
			printFailures(w.stdout, tests)
			fmt.Fprintln(w.stdout, summary)
		}
		if failed > 0 {
			return fail(exitNotPassed, errors.New(summary+"; the rules did not pass"))
		}
		return nil
	}
	return withExits(c, exitOK, exitNotPassed, exitUsage, exitRules)
}

// rulesChecked is what check prints with --json, rulesTested what test does.
type (
	rulesChecked struct {
		Rules int      `json:"rules"`
		Wrong []string `json:"wrong"`
	}
	rulesTested struct {
		Results []ruleTest `json:"results"`
	}
)

// ruleTest is a vector, a slice (case "captured"), or a mutant (case "mutant") that
// no vector notices.
type ruleTest struct {
	Rule  string `json:"rule"`
	Name  string `json:"name"`
	Case  string `json:"case"`
	Pass  bool   `json:"pass"`
	Wrong string `json:"wrong,omitempty"`
}

// testSummary is a line on vectors and slices.
func testSummary(tests []ruleTest, rules, failed int) string {
	captured := 0
	for _, t := range tests {
		if t.Case == rulesuite.CaseCaptured {
			captured++
		}
	}
	and := ""
	if captured > 0 {
		and = fmt.Sprintf(" and %d slices", captured)
	}
	return fmt.Sprintf("%d vectors%s of %d rules, %d failed", len(tests)-captured, and, rules, failed)
}

func testedRules(suite rulesuite.Suite) []ruleTest {
	tests := []ruleTest{}
	for _, r := range suite.Run() {
		t := ruleTest{Rule: r.Rule, Name: r.Name, Case: r.Case, Pass: r.Err == nil}
		if r.Err != nil {
			t.Wrong = r.Err.Error()
		}
		tests = append(tests, t)
	}
	return tests
}

func survivingMutants(suite rulesuite.Suite) []ruleTest {
	var tests []ruleTest
	add := func(list []rulesuite.Mutant, wrong string) {
		for _, m := range list {
			tests = append(tests, ruleTest{Rule: m.Rule, Name: m.Clue + ": " + m.Change, Case: "mutant", Wrong: wrong})
		}
	}
	survivors, stale := suite.Survivors()
	add(survivors, "no vector notices; add one, or give equivalent.yaml the reason that none can")
	add(stale, "is in equivalent.yaml, but no such mutant survives; take it out there")
	return tests
}

func failures(tests []ruleTest) int {
	n := 0
	for _, t := range tests {
		if !t.Pass {
			n++
		}
	}
	return n
}

func printFailures(out io.Writer, tests []ruleTest) {
	for _, t := range tests {
		if !t.Pass {
			fmt.Fprintf(out, "FAIL  %s, %s: %s\n      %s\n", t.Rule, t.Case, t.Name, layout.Indent(t.Wrong, "      "))
		}
	}
}
