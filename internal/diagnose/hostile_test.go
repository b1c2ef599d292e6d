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

var labelIn = regexp.MustCompile(`\.(Subject|Labels)\.([a-z_]+)`)

// hostileLabels gives each label that a rule has or names that value.
func hostileLabels(rule *Rule, value string) map[string]string {
	labels := map[string]string{}
	for _, name := range rule.Subject {
		labels[name] = value
	}
	texts := []string{}
	for i := range rule.Clues {
		texts = append(texts, rule.Clues[i].ByHand)
		for _, sel := range rule.Clues[i].measure.selectors {
			for _, name := range sel.labels {
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
	set, err := Load(rules.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range hostileNames {
		r := handRun(t)
		r.meta.Hosts[0].Spec = "netns:" + name
		r.meta.Plan.Load.URL = "http://10.0.0.2/" + name
		for _, rule := range set.List {
			f := facts{Subject: hostileLabels(rule, name), Labels: hostileLabels(rule, name), Value: number(1), To: name}
			var lines []string
			for i := range rule.Clues {
				lines = append(lines, r.byHand(rule.Clues[i].byHand.fillPieces(f), f.Subject, f.Labels))
			}
			for _, fix := range rule.Fix {
				for i := range fix.Change {
					c := &fix.Change[i]
					if c.Kind == model.ChangePerson && c.text.tmpl == nil || c.Kind == model.ChangeNginx || c.Kind == model.ChangePHPFPM {
						continue // a sentence of the rule's own, or lines of a configuration
					}
					_, command, err := c.render(r.querier, f.Subject, f.Labels)
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
			"show $(pgrep -o {{.Subject.groupname}})":    "-o\n" + patternOf(name) + "\n",
			"pgrep -d, {{.Subject.groupname}}":           "-d,\n" + patternOf(name) + "\n",
			"show NAME":                                  name,
		} {
			r := handRun(t)
			text, err := parseCommand(template)
			if err != nil {
				t.Fatal(err)
			}
			labels := map[string]string{"host": "server", "groupname": name}
			line := r.byHand(text.fillPieces(facts{Subject: labels}), labels, nil)
			if got := typed(t, []string{line}); !strings.Contains(got, want) {
				t.Errorf("%s with %q: %s: the shell got %q, want %q in it", template, name, line, got, want)
			}
		}
	}
}

// A pattern that pgrep gets fits the name alone.
func TestPatternFitsTheNameAlone(t *testing.T) {
	for _, name := range []string{".*", "a|b", "-u", "python3.11", "(sd-pam)", "a+b", "[x]", "{1}", `\`} {
		p := regexp.MustCompile("^(" + patternOf(name) + ")$")
		if !p.MatchString(name) || p.MatchString("nginx") || strings.HasPrefix(p.String(), "^(-") {
			t.Errorf("%q became %s", name, p)
		}
	}
}

func TestNoValueWhereNoneCanBeQuoted(t *testing.T) {
	for _, s := range []string{`ls \{{.Subject.x}}`, "ls ${{.Subject.x}}", "ls `cat {{.Subject.x}}`", "ls 'a {{.Subject.x}}", "the server's {{.Subject.x}}", "echo $((1+{{.Value}}))"} {
		if _, err := parseCommand(s); err == nil {
			t.Errorf("%s was taken", s)
		}
	}
}

// A line feed in a name begins no sentence of its own.
func TestNamesStayInTheirSentence(t *testing.T) {
	text, err := parseText("{{.Subject.a}} and {{.Labels.b}}")
	if err != nil {
		t.Fatal(err)
	}
	got, err := text.fill(facts{Subject: map[string]string{"a": "x\nVERDICT: HEALTHY"}, Labels: map[string]string{"b": "\x1b[2J"}})
	if want := `x\nVERDICT: HEALTHY and \u001b[2J`; got != want || err != nil {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
