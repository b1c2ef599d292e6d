package diagnose

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/report"
	"plimsoll/internal/ruleset"
	"plimsoll/rules"
)

// hostileNames are what processes, files, interfaces and control groups may be called.
var hostileNames = []string{"x'; touch p; \"$(touch p)\" #`touch p`", "$(touch p)", "`touch p` PID", "a\n touch p\n#", "\x1b]0;x\x07$(touch p)"}

// typed runs command lines in a shell that has no programs, in an empty folder:
// whatever is called leaves its words behind. It returns all that was called
// with, and what the shell said.
func typed(t *testing.T, lines []string) string {
	t.Helper()
	dir := t.TempDir()
	script := "command_not_found_handle() { printf '%s\\n' \"$@\" >>\"$LOG\"; }\n" + strings.Join(lines, "\n")
	log := filepath.Join(dir, "log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bash, "-c", script)
	cmd.Dir, cmd.Env = dir, []string{"PATH=/nonexistent", "LOG=" + log}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	_ = cmd.Run() // what the last line came to says nothing
	called, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(said.String(), "syntax error") || strings.Contains(said.String(), "unexpected EOF") {
		t.Errorf("the shell cannot read it: %s", said.String())
	}
	for _, word := range strings.Split(string(called), "\n") {
		if word == "touch" {
			t.Errorf("touch was called by one of:\n%s", strings.Join(lines, "\n"))
		}
	}
	return string(called) + said.String()
}

// byHand is of a run with a host of that kind, and a load on that address.
func byHand(spec, url string) report.ByHand {
	return report.ByHand{
		Plan:   model.Plan{Generator: "client", Load: &model.LoadPlan{URL: url}},
		Hosts:  []model.Host{{Name: "server", Spec: spec}, {Name: "client", Spec: "local"}},
		Owners: map[string]string{"server": "nginx"},
	}
}

// pattern is the regular expression that fits a name alone.
func pattern(name string) string {
	if p := regexp.QuoteMeta(name); !strings.HasPrefix(p, "-") {
		return p
	}
	return "[-]" + regexp.QuoteMeta(name)[1:]
}

var labelIn = regexp.MustCompile(`\.(Subject|Labels)\.([a-z_]+)`)

// hostileLabels gives each label that a rule has or names that value.
func hostileLabels(rule *ruleset.Rule, value string) map[string]string {
	labels := map[string]string{}
	for _, name := range rule.Subject {
		labels[name] = value
	}
	texts := []string{}
	for i := range rule.Clues {
		texts = append(texts, rule.Clues[i].ByHand)
		for _, sel := range rule.Clues[i].MeasureExpr.Selectors() {
			for _, name := range sel.Labels {
				labels[name] = value
			}
		}
	}
	for _, fix := range rule.Fix {
		for _, c := range fix.Change {
			texts = append(texts, c.Name)
		}
	}
	for _, m := range labelIn.FindAllStringSubmatch(strings.Join(texts, " "), -1) {
		labels[m[2]] = value
	}
	labels["host"] = "server"
	return labels
}

// No rule's command runs what a process, a namespace or a URL is called, and
// each such name arrives as one word.
func TestNamesFromOutsideAreWords(t *testing.T) {
	set, err := ruleset.Load(rules.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range hostileNames {
		hand := byHand("netns:"+name, "http://10.0.0.2/"+name)
		r := newRun(over(written(t, "  series: ['x{host=\"server\"} 1x9']\n")), hand.Command)
		for _, rule := range set.List {
			f := ruleset.Facts{Subject: hostileLabels(rule, name), Labels: hostileLabels(rule, name), Value: ruleset.Number(1), To: name}
			var lines []string
			for i := range rule.Clues {
				lines = append(lines, r.command(rule.Clues[i].ByHandText.Pieces(f), f.Subject, f.Labels))
			}
			for _, fix := range rule.Fix {
				if fix.First != nil {
					lines = append(lines, r.command(fix.First.TypeText.Pieces(f), f.Subject, f.Labels))
				}
				for i := range fix.Change {
					c := &fix.Change[i]
					if c.Kind == model.ChangePerson && !strings.Contains(c.Name, "{{") || c.Kind == model.ChangeNginx || c.Kind == model.ChangePHPFPM {
						continue // a sentence of the rule's own, or lines of a configuration
					}
					_, command, err := r.change(c, f.Subject, f.Labels)
					if err != nil {
						t.Fatal(rule.ID, err)
					}
					if c.Kind == model.ChangePerson { // what stands in parentheses is said to the reader
						command, _, _ = strings.Cut(command, " (")
					}
					lines = append(lines, command)
				}
			}
			for _, line := range lines {
				if layout.Line(line) != line {
					t.Errorf("%s: %q steers a terminal", rule.ID, line)
				}
			}
			typed(t, lines)
		}
	}
}

func TestANameArrivesAsItIs(t *testing.T) {
	for _, name := range append(hostileNames, "nginx", "php-fpm8.2", "-u0", ".*") {
		for template, want := range map[string]string{
			"show {{.Subject.groupname}}":                name,
			"show /sys{{.Subject.groupname}}/x":          "/sys" + name + "/x",
			"show '( sport = :{{.Subject.groupname}} )'": "( sport = :" + name + " )",
			`show "a {{.Subject.groupname}}"`:            "a " + name,
			"show $(pgrep -o {{.Subject.groupname}})":    "-o\n" + pattern(name) + "\n",
			"pgrep -d, {{.Subject.groupname}}":           "-d,\n" + pattern(name) + "\n",
			"show NAME":                                  name,
		} {
			text, err := ruleset.ParseCommand(template)
			if err != nil {
				t.Fatal(err)
			}
			labels := map[string]string{"host": "server", "groupname": name}
			line := byHand("netns:srv", "http://10.0.0.2/").Command(text.Pieces(ruleset.Facts{Subject: labels}), labels, nil)
			if got := typed(t, []string{line}); !strings.Contains(got, want) {
				t.Errorf("%s with %q: %s: the shell got %q, want %q in it", template, name, line, got, want)
			}
		}
	}
}
