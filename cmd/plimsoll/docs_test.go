package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"plimsoll/internal/layout"
	"plimsoll/internal/privilege"
	"plimsoll/internal/ruleset"
	"plimsoll/internal/trace"
)

var update = flag.Bool("update", os.Getenv("PLIMSOLL_UPDATE") == "1", "write golden files and generated pages anew")

const docs = "../../docs"

// fresh compares a generated page with the committed one.
func fresh(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(docs, name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; PLIMSOLL_UPDATE=1 go test ./cmd/plimsoll writes it", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("docs/%s is stale (-is +should be); PLIMSOLL_UPDATE=1 go test ./cmd/plimsoll writes it anew\n%s", name, d)
	}
}

// testWorld is a world that nobody looks at.
func testWorld(args ...string) (*world, *bytes.Buffer, *bytes.Buffer) {
	var out, talk bytes.Buffer
	executable, err := exec.LookPath("plimsoll") // by any other name the tests' binary is the tests
	if err != nil {
		panic(err) // TestMain puts it there
	}
	return &world{args: args, env: func(string) string { return "" }, stdin: strings.NewReader(""), stdout: &out, stderr: &talk,
		executable: executable}, &out, &talk
}

func TestCommandLinePageIsFresh(t *testing.T) {
	w, _, _ := testWorld()
	page, err := cliPage(w)
	if err != nil {
		t.Fatal(err)
	}
	fresh(t, "cli.md", page)
}

func TestSignalsPageIsFresh(t *testing.T) {
	w, _, _ := testWorld()
	fresh(t, "signals.md", signalsPage(w))
}

func TestTracersPageIsFresh(t *testing.T) {
	w, _, _ := testWorld()
	fresh(t, "tracers.md", tracersPage(w))
}

func TestPrivilegesPageIsFresh(t *testing.T) {
	w, _, _ := testWorld()
	for _, tr := range allTracers(w) {
		if privilege.For("tracer", tr.Name) == nil {
			t.Errorf("the table of privileges has no tracer %s", tr.Name)
		}
	}
	fresh(t, "privileges.md", privilegesPage())
}

// privilegesPage is docs/privileges.md.
func privilegesPage() string {
	var b strings.Builder
	b.WriteString(`# Privileges

What each part needs, if it is not to run as root: the least set of capabilities with which a test
runs it as an ordinary user, and without any one of which it does not do all that it does for root. Everything
else needs none: the load engine, ` + "`load`, `diagnose`, `compare`" + `, and all other probes. ` + "`plimsoll doctor`" + ` says
which are missing here. Generated from internal/privilege; ` + "`PLIMSOLL_UPDATE=1 go test ./cmd/plimsoll`" + ` writes it anew.

    setpriv --reuid USER --regid GROUP --init-groups --inh-caps +bpf,+perfmon --ambient-caps +bpf,+perfmon plimsoll trace tcp

` + "`tune --apply`, `undo` and `lab`" + ` change a host, and want root with all its capabilities: there is no
smaller set that was tested.

`)
	for _, n := range privilege.Table {
		fmt.Fprintf(&b, "## %s %s\n\n%s: %s.\n", n.Kind, strings.Join(n.Parts, ", "), privilege.Join(n.Caps), n.Why)
		if n.Without != "" {
			fmt.Fprintf(&b, "%s.\n", strings.ToUpper(n.Without[:1])+n.Without[1:])
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// tracersPage is docs/tracers.md.
func tracersPage(w *world) string {
	var b strings.Builder
	b.WriteString("# Tracers\n\nHow the kernel itself is watched. Each page has the fields, what it costs, what it cannot see, and how to see the\n" +
		"same by hand. Generated from the declarations; `PLIMSOLL_UPDATE=1 go test ./cmd/plimsoll` writes it anew.\n")
	for _, t := range allTracers(w) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n- command: `plimsoll trace %s`\n- level: %s\n- since: Linux %s\n- tracepoints: %s\n- cost: %s\n%s- by hand: %s\n- page: [%s](../internal/trace/%[1]s/README.md)\n",
			t.Name, layout.Wrap(t.About, 100), t.Name, t.Level, t.FirstKernel, hooks(t), t.Cost, underLoad(t.Paired), t.ByHand, t.Name)
		fmt.Fprintf(&b, "- blind:\n")
		for _, blind := range t.Blind {
			fmt.Fprintf(&b, "  - %s\n", blind)
		}
	}
	return b.String()
}

// hooks is what a tracer cannot do without.
func hooks(t trace.Tracer) string {
	text := strings.Join(t.Tracepoints, ", ")
	if t.Functions != nil {
		text += "; where the kernel lacks one, its functions " + strings.Join(t.Functions, ", ")
	}
	return text
}

// underLoad is a tracer's line of what was measured in pairs; deepcpu goes on with its
// work while it is paused, and has none.
func underLoad(p trace.Paired) string {
	if p.Pairs == 0 {
		return ""
	}
	return fmt.Sprintf("- under load, while it is on (bench/README.md): %s\n", p)
}

// unseenRules is the part of the index that lists the rules of which no recorded
// run is kept in which they are found.
func unseenRules(set ruleset.Rules) string {
	var b strings.Builder
	for _, r := range set.List {
		if found, _ := r.Seen(); len(found) == 0 {
			fmt.Fprintf(&b, "- [%s](%[1]s.md)\n", r.ID)
		}
	}
	return "\n## " + notYetSeen + "\n\nOf each other rule a slice of a recorded run is kept in which it is found, and the tests hold it to that. Of these\n" +
		"there are vectors alone, written by hand, and recorded runs in which they are quiet:\n\n" + b.String()
}

func TestHandbookIsFresh(t *testing.T) {
	set, err := ruleSet(nil)
	if err != nil {
		t.Fatal(err)
	}
	var index strings.Builder
	index.WriteString("# The rules\n\nGenerated from the rules; `PLIMSOLL_UPDATE=1 go test ./cmd/plimsoll` writes these pages anew.\n\n")
	pages := []string{"README.md"}
	for _, r := range set.List {
		fmt.Fprintf(&index, "- [%s](%s.md) (%s): %s\n", r.ID, r.ID, r.Kind, r.Title)
		fresh(t, "rules/"+r.ID+".md", rulePage(r))
		pages = append(pages, r.ID+".md")
	}
	index.WriteString(unseenRules(set))
	fresh(t, "rules/README.md", index.String())
	there, err := os.ReadDir(filepath.Join(docs, "rules"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range there {
		if !slices.Contains(pages, f.Name()) {
			t.Errorf("docs/rules/%s is the page of no rule; delete it", f.Name())
		}
	}
}

// Every command says what it does, in lines that fit, and how it ends.
func TestHelpIsWhole(t *testing.T) {
	w, _, _ := testWorld()
	err := eachCommand(newRoot(w), func(c *cobra.Command) error {
		var out bytes.Buffer
		c.SetOut(&out)
		if err := c.Help(); err != nil {
			return err
		}
		text := out.String()
		if c.Short == "" || c.Long == "" {
			t.Errorf("%s: no description", c.CommandPath())
		}
		if !strings.Contains(text, "EXIT CODES\n") {
			t.Errorf("%s: its help does not say how it ends", c.CommandPath())
		}
		for _, l := range strings.Split(text, "\n") {
			if utf8.RuneCountInString(l) > 82 {
				t.Errorf("%s: a line of its help has %d columns: %q", c.CommandPath(), utf8.RuneCountInString(l), l)
			}
		}
		if f := c.Flags().Lookup("json"); c.Runnable() && !c.HasSubCommands() && f == nil && c.Name() != "completion" && c.Name() != "report" && c.Name() != "export" {
			t.Errorf("%s has no --json", c.CommandPath())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// signalsPage is docs/signals.md.
func signalsPage(w *world) string {
	var b strings.Builder
	b.WriteString("# Signals\n\nEverything that Plimsoll reads, by name. Every series carries the label `host` besides.\n" +
		"Generated from the declarations; `PLIMSOLL_UPDATE=1 go test ./cmd/plimsoll` writes it anew.\n")
	for _, s := range allSignals(w) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n- kind: %s, in %s\n", s.Name, layout.Wrap(s.Help, 100), s.Kind, s.Unit)
		if len(s.Labels) > 0 {
			fmt.Fprintf(&b, "- labels: %s\n", strings.Join(s.Labels, ", "))
		}
		fmt.Fprintf(&b, "- source: %s\n- by hand: `%s`\n", s.Source, s.ByHand)
	}
	return b.String()
}

// cliPage is docs/cli.md: what every command prints for --help.
func cliPage(w *world) (string, error) {
	var b strings.Builder
	b.WriteString("# The command line\n\nWhat every command prints for `--help`; `PLIMSOLL_UPDATE=1 go test ./cmd/plimsoll` writes it anew.\n")
	root := newRoot(w)
	err := eachCommand(root, func(c *cobra.Command) error {
		var out bytes.Buffer
		c.SetOut(&out)
		if err := c.Help(); err != nil {
			return fmt.Errorf("help of %s: %w", c.CommandPath(), err)
		}
		fmt.Fprintf(&b, "\n## %s\n\n```text\n%s```\n", c.CommandPath(), out.String())
		return nil
	})
	return b.String(), err
}

// eachCommand calls fn for c and all visible commands beneath it.
func eachCommand(c *cobra.Command, fn func(*cobra.Command) error) error {
	if err := fn(c); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if sub.Hidden {
			continue
		}
		if err := eachCommand(sub, fn); err != nil {
			return err
		}
	}
	return nil
}
