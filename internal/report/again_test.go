package report

import (
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/model"
)

// A run may be a stranger's: what it says was typed is a command to type only where that is Plimsoll's own.
func TestOnlyOwnCommandsAreTyped(t *testing.T) {
	for _, c := range []struct {
		words []string
		own   bool
	}{
		{[]string{"plimsoll", "run", "http://127.0.0.1/", "-c", "10"}, true},
		{[]string{"plimsoll", "watch", "--", "sh", "-c", "true; false"}, true},
		{[]string{"plimsoll", "run", "http://127.0.0.1/; rm -rf /"}, true}, // is quoted
		{nil, false},
		{[]string{"plimsoll"}, false},
		{[]string{"rm", "-rf", "/"}, false},
		{[]string{"plimsoll", "undo", "--all"}, false},
		{[]string{"plimsoll", "tune", "http://127.0.0.1/", "--apply"}, false},
		{[]string{"plimsoll", "diagnose", "x"}, false},
		{[]string{"/tmp/plimsoll", "run", "http://127.0.0.1/"}, false},
		{[]string{"./plimsoll", "run", "http://127.0.0.1/"}, false},
		{[]string{"plimsoll ", "run", "http://127.0.0.1/"}, false},
		{[]string{"plimsoll run", "http://127.0.0.1/"}, false},
		{[]string{"plimsoll", "run", "http://127.0.0.1/\nrm -rf /"}, false},
		{[]string{"plimsoll", "run", "http://127.0.0.1/\rrm"}, false},
		{[]string{"plimsoll", "run", "\x1b[2Jhttp://127.0.0.1/"}, false},
		{[]string{"plimsoll", "run", "\u202ehttp://127.0.0.1/"}, false},
	} {
		r := base()
		r.Plan.CommandLine = c.words
		if got := CommandAgain(r.Plan, r.Hosts) != nil; got != c.own {
			t.Errorf("%q: %v, want %v", c.words, got, c.own)
		}
		p := newPaper(TextOptions{Width: 100})
		foot(p, r)
		if got := strings.Contains(p.b.String(), "measured"); got != c.own {
			t.Errorf("%q: %s", c.words, p.b.String())
		}
	}
	hidden := model.Plan{Mode: "watch", Command: []string{"sh", "-c", "true\nfalse"}}
	if got := CommandAgain(hidden, nil); got != nil {
		t.Errorf("%q has a line feed", got)
	}
}

// What plimsoll again does not do is written out.
func TestShortAgain(t *testing.T) {
	s := &sheet{kept: "last"}
	for want, words := range map[string][]string{
		"plimsoll again last": {"plimsoll", "watch", "--", "/opt/load.sh", "a/b"},
		"":                    {"plimsoll", "watch", "--", "./load.sh"},
	} {
		if got := s.shortAgain(base(), words, ""); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
	if got := s.shortAgain(base(), []string{"plimsoll", "run", "http://(masked)@h/"}, ""); got != "" {
		t.Errorf("%q lacks what gives access", got)
	}
}

func FuzzOwnCommand(f *testing.F) {
	f.Add("plimsoll", "run", "http://127.0.0.1/\n")
	f.Add("rm", "-rf", "/")
	f.Fuzz(func(t *testing.T, program, command, rest string) {
		words := CommandAgain(model.Plan{Mode: "run", CommandLine: []string{program, command, rest}}, nil)
		if line := typedWords(words); line != "" && (!strings.HasPrefix(line, "plimsoll run ") && !strings.HasPrefix(line, "plimsoll watch ") || strings.ContainsAny(line, "\n\r\x1b")) {
			t.Errorf("%q", line)
		}
	})
}

// A watch's own command comes from whoever made the run, and says so.
func TestCommandOfAWatchIsLabelled(t *testing.T) {
	for _, c := range []struct {
		words    []string
		labelled bool
	}{
		{[]string{"plimsoll", "watch", "--", "wrk", "http://127.0.0.1/"}, true},
		{[]string{"plimsoll", "watch", "-d", "10s"}, false},
		{[]string{"plimsoll", "run", "http://127.0.0.1/"}, false},
	} {
		if got := fromTheRun(c.words); (got != "") != c.labelled {
			t.Errorf("%q", got)
		}
	}
}

// What tells how much more a service bears is a command that is taken.
func TestTwiceTheLoad(t *testing.T) {
	for _, c := range []struct {
		load  model.LoadPlan
		words []string
		want  string // "" for words alone
	}{
		{model.LoadPlan{Connections: 10}, []string{"plimsoll", "run", "u", "-c", "10"}, "-c 20"},
		{model.LoadPlan{Connections: 10, Rate: 0.2}, []string{"plimsoll", "run", "u", "-R", "0.2"}, "-R 0.4"},
		{model.LoadPlan{Connections: 10, Rate: 1.25}, []string{"plimsoll", "run", "u", "-R", "1.25"}, "-R 2.5"},
		{model.LoadPlan{Connections: 10, Rate: 2e6}, []string{"plimsoll", "run", "u", "-R", "2000000"}, "-R 4000000"},
		{model.LoadPlan{Connections: 10, Rate: 5, Stages: []model.Stage{{AtMS: 1, Rate: 7}}}, []string{"plimsoll", "run", "u", "--stage", "0:5"}, ""},
		{model.LoadPlan{Connections: 10, Recorded: &model.Recording{Speed: 2}}, []string{"plimsoll", "run", "u", "--speed", "2"}, ""},
	} {
		r := base()
		c.load.URL = "http://127.0.0.1/"
		r.Plan.Load, r.Plan.CommandLine = &c.load, c.words
		s := &sheet{o: TextOptions{Width: 100}}
		tryMore(s, r)
		typed := slices.IndexFunc(s.steps, func(s Step) bool { return s.Typed })
		switch {
		case c.want == "" && typed >= 0:
			t.Errorf("%q: %q", c.words, s.steps[typed].Text)
		case c.want != "" && (typed < 0 || s.steps[typed].Text != "plimsoll run u "+c.want):
			t.Errorf("%q: %v, want %s", c.words, s.steps, c.want)
		}
	}
	if got := twiceConnections(&model.LoadPlan{Connections: 10, MaxConnections: 50}).String(); got != "--max-connections 100" {
		t.Error(got)
	}
}

func TestMaskedWordsAreFilledIn(t *testing.T) {
	r := base()
	s := &sheet{o: TextOptions{Width: 100}}
	s.again(r, "again", []string{"plimsoll", "run", "http://(masked)@h/"}, "", "")
	if last := s.steps[len(s.steps)-1].Text; last != "fill in what is (masked)" {
		t.Errorf("%q", last)
	}
}
