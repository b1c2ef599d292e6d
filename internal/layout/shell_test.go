package layout

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// hostile is what somebody may call a process, a file or an interface.
var hostile = []string{
	"nginx", "", "a b", "$(touch p)", "`touch p`", "'; touch p; '", `"; touch p; "`, `\`, `a\`, "a'b", `a"b`, "$HOME", "${x}", "~", "=ls", "-rf", "a;b", "a|b", "a&b",
	"a>b", "*", "?", "[a]", "{a,b}", "#x", "!x", "a #x", "x)", "(x", "$", "$'x'", "é", "中文", "%s", "a=b",
}

// unprintable are those that only $'…' can write.
var unprintable = []string{"a\nb", "a\tb", "\x1b]0;x\x07", "\x1b[8m'", "\u202egnp", "\u009b2J", "\xff\xfe", "\\\x1b'"}

// words runs a command line in a shell whose PATH has nothing, and returns the
// arguments of each call of "show".
func words(t *testing.T, shell, line string) []string {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Fatalf("%s: the test needs it: %v", shell, err)
	}
	cmd := exec.Command(path, "-c", `show() { for a; do printf '%s\000' "$a"; done; }`+"\n"+line)
	cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=/nonexistent"}
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil || said.Len() > 0 {
		t.Fatalf("%s: %s: %v: %s", shell, line, err, said.String())
	}
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

func TestQuoteIsOneWordToEveryShell(t *testing.T) {
	for _, shell := range []string{"sh", "bash"} {
		list := hostile
		if shell == "bash" {
			list = append(list[:len(list):len(list)], unprintable...)
		}
		var line strings.Builder
		for _, s := range list {
			fmt.Fprintf(&line, "show %s\n", Quote(s))
		}
		got := words(t, shell, line.String())
		if len(got) != len(list) {
			t.Fatalf("%s: %d words of %d: %q", shell, len(got), len(list), got)
		}
		for i, s := range list {
			if got[i] != s {
				t.Errorf("%s: %s gave %q, want %q", shell, Quote(s), got[i], s)
			}
		}
	}
}

func TestQuoteLeavesBareWhatNeedsNone(t *testing.T) {
	for _, s := range []string{"nginx", "/sys/fs/cgroup/a.slice", "10.0.0.2:80", "a=b", "user@host", "--x=1,2"} {
		if got := Quote(s); got != s {
			t.Errorf("%s became %s", s, got)
		}
	}
}

// Wherever it stands, a word from outside arrives as it is.
func TestCommandQuotesByPosition(t *testing.T) {
	for _, c := range []struct{ before, after string }{
		{"show ", ""}, {"show /a", "/b"}, {"show 'x :", " y'"}, {`show "x `, ` y"`}, {"x=$(printf %s ", `); show "$x"`},
		{`show "$(printf %s `, `)"`}, {"show x # ", ""}, {"# it's\nshow ", ""}, {`show \' `, ""}, {`show "it's `, `"`}, {"show 'a'", "'b'"},
	} {
		for _, value := range append(hostile[:len(hostile):len(hostile)], unprintable...) {
			var line Command
			line.Ours(c.before)
			if !line.Fit() {
				t.Fatalf("%q: not fit for a value", c.before)
			}
			line.Outside(value)
			line.Ours(c.after)
			if !line.Closed() {
				t.Fatalf("%q: something is open", line.String())
			}
			if s := line.String(); Clean(s) != s || !utf8.ValidString(s) {
				t.Fatalf("%q steers a terminal", s)
			}
			if strings.Contains(c.before, "%s") && value == "" {
				continue // printf without an argument
			}
			got := strings.Join(words(t, "bash", line.String()), " ")
			want := value
			if strings.Contains(c.before, "# ") && !strings.Contains(c.before, "\n") {
				want = "x"
			}
			if !strings.Contains(got, want) {
				t.Errorf("%s: the shell got %q, and %q is not in it", line.String(), got, want)
			}
		}
	}
}

func TestCommandKnowsWhereNothingFits(t *testing.T) {
	for _, before := range []string{`show \`, "show $", "show `ls ", "show ${x:-", "show $((1+", "show $'x"} {
		var line Command
		line.Ours(before)
		if line.Fit() {
			t.Errorf("%q takes a value, and none can be quoted there", before)
		}
	}
	for _, open := range []string{"a 'b", `a "b`, "a $(b"} {
		var line Command
		line.Ours(open)
		if line.Closed() {
			t.Errorf("%q is not closed", open)
		}
	}
}

func TestBreaksStandOutsideQuotes(t *testing.T) {
	for line, want := range map[string]string{
		`a b`:            "1",
		`a 'b c' d`:      "1 7",
		`a 'b'\''c d' e`: "1 12",
		`a\ b c`:         "4",
		`a "b c" $'d e'`: "1 7",
		`a # b c`:        "1",
		`a $(b c) d`:     "1 5 8",
	} {
		if got := strings.Trim(fmt.Sprint(Breaks(line)), "[]"); got != want {
			t.Errorf("%s breaks at %s, want %s", line, got, want)
		}
	}
}

func FuzzQuote(f *testing.F) {
	for _, s := range append(hostile, unprintable...) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q := Quote(s)
		if Line(q) != q || !utf8.ValidString(q) {
			t.Fatalf("%q steers a terminal", q)
		}
		var again Command
		again.Ours("x " + q)
		if !again.Closed() || !again.Fit() {
			t.Fatalf("%q leaves something open", q)
		}
		if n := len(Breaks("x " + q + " y")); n != 2 {
			t.Fatalf("%q is %d words, want 1", q, n-1)
		}
	})
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
