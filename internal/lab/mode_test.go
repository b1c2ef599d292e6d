package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
	cases "plimsoll/lab"
)

func TestHowACaseIsDriven(t *testing.T) {
	url := Load{URL: "http://10.77.0.2/", Connections: 20, Duration: Duration(6 * time.Second), Rate: 400, NoKeepAlive: true}
	tool := Load{Command: []string{"client.py", "{{.n}}"}}
	wrk := "wrk -t1 -c 20 -d 6 --timeout 5s -H Connection: close -s /w/pace.lua http://10.77.0.2/"
	both := "--host client=local --host server=netns:srv --json"
	forever := "/bin/sh -c while :; do \"$@\" || sleep 0.1; done sh "
	for _, tc := range []struct {
		name  string
		load  Load
		mode  Mode
		args  string
		users string
	}{
		{"a URL, own way", url, ModeOwn, "run http://10.77.0.2/ -c 20 -d 6s -R 400 --no-keepalive " + both, ""},
		{"a URL, run", url, ModeRun, "run http://10.77.0.2/ -c 20 -d 6s -R 400 --no-keepalive " + both, ""},
		{"a URL, by another tool", url, ModeWatchCommand, "watch " + both + " -- " + wrk, ""},
		{"a URL, by users", url, ModeWatch, "watch -d 6s --host server=netns:srv --json", forever + wrk},
		{"a tool of its own", tool, ModeWatchCommand, "watch " + both + " -- client.py 7", ""},
		{"a tool of its own, by users", tool, ModeWatch, "watch -d 8s --host server=netns:srv --json", forever + "client.py 7"},
		{"a step of its own", Load{Duration: Duration(9 * time.Second)}, ModeWatch, "watch -d 9s --host server=netns:srv --json", ""},
	} {
		c := &Case{Load: tc.load}
		if why := c.Refuses(tc.mode); why != "" {
			t.Errorf("%s: refused: %s", tc.name, why)
		}
		p, err := c.plan(tc.mode, values{"dir": "/w", "n": "7"}, "netns:srv")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p.args, " "); got != tc.args {
			t.Errorf("%s: Plimsoll gets %q, want %q", tc.name, got, tc.args)
		}
		if got := strings.Join(p.users, " "); got != tc.users || p.outside != (tc.mode == ModeWatch) {
			t.Errorf("%s: users %q (outside: %v), want %q", tc.name, got, p.outside, tc.users)
		}
	}
}

func TestWhatCannotBeDrivenSaysWhy(t *testing.T) {
	command := &Case{Load: Load{Command: []string{"x"}}, Truth: Truth{Subject: map[string]string{"host": "client"}}}
	alone := &Case{Load: Load{Duration: 1}}
	for _, tc := range []struct {
		c    *Case
		mode Mode
		want string
	}{
		{command, ModeRun, "a tool of its own"}, {command, ModeWatchCommand, ""}, {command, ModeWatch, "on the users' side"},
		{alone, ModeRun, "no URL"}, {alone, ModeWatchCommand, "no command"}, {alone, ModeWatch, ""}, {alone, ModeOwn, ""},
	} {
		if why := tc.c.Refuses(tc.mode); (why == "") != (tc.want == "") || !strings.Contains(why, tc.want) {
			t.Errorf("mode %s: %q, want %q in it", tc.mode, why, tc.want)
		}
	}
}

// Every case can be tried in one mode at least, and most of them in all.
func TestModesOfAllCases(t *testing.T) {
	list, err := (&Lab{Cases: cases.FS}).List()
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, c := range list {
		driven := 0
		for _, m := range Modes {
			if c.Refuses(m) != "" {
				continue
			}
			driven++
			v, err := c.values("/w", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.plan(m, v, "netns:srv"); err != nil {
				t.Errorf("%s, mode %s: %v", c.ID, m, err)
			}
		}
		if driven == 0 {
			t.Errorf("%s cannot be tried in any mode", c.ID)
		}
		if driven == len(Modes) {
			all++
		}
	}
	if 2*all < len(list) {
		t.Errorf("%d of %d cases can be tried in every mode", all, len(list))
	}
}

func TestOutcome(t *testing.T) {
	truth := Truth{Answer: "cause", Root: []string{"a.b"}, Subject: map[string]string{"host": "server"}, Vague: []string{"a.v"}, Quiet: []string{"q.r"}}
	named := func(rules ...string) model.Verdict {
		v := model.Verdict{Answer: "cause"}
		for _, r := range rules {
			v.Root = append(v.Root, finding(r, "server", model.Confirmed))
		}
		return v
	}
	elsewhere := model.Verdict{Answer: "cause", Root: []model.Finding{finding("a.b", "client", model.Confirmed)}}
	loud := named("a.v")
	loud.Findings = []model.Finding{finding("q.r", "server", model.Confirmed)}
	for _, tc := range []struct {
		name    string
		truth   Truth
		verdict model.Verdict
		want    Outcome
	}{
		{"the root", truth, named("a.b"), Right},
		{"the root, for another subject", truth, elsewhere, Vague},
		{"what is true, too", truth, named("a.v"), Vague},
		{"what is true, and something that is not", truth, named("a.v", "x.y"), Wrong},
		{"what is true, and a rule that has to be quiet", truth, loud, Wrong},
		{"another root", truth, named("x.y"), Wrong},
		{"no answer", truth, model.Verdict{Answer: "unclear"}, Unclear},
		{"false comfort", truth, model.Verdict{Answer: "capacity"}, Wrong},
		{"healthy", Truth{Answer: "healthy"}, model.Verdict{Answer: "healthy"}, Right},
		{"healthy, and not known", Truth{Answer: "healthy"}, model.Verdict{Answer: "unclear"}, Unclear},
		{"healthy, and accused", Truth{Answer: "healthy"}, named("a.b"), Wrong},
		{"no rule names it, and one is named", Truth{Answer: "cause", Cause: "c"}, named("a.b"), Wrong},
	} {
		if got := tc.truth.outcome(tc.verdict, tc.truth.compare(tc.verdict)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

// askCase has a server that answers once asked, so that a tool has users' work to do.
const askCase = `
id: ask
title: t
symptom: s
what: w
steps:
  - file: {path: nginx.conf, content: "daemon off; error_log {{.dir}}/e.log; pid {{.dir}}/p; events {} http { access_log {{.dir}}/asked; server { listen 80; location / { return 200; } } }"}
  - nginx: {host: server, config: nginx.conf, listen: 80}
load: {url: http://10.77.0.2/, connections: 3, duration: 1s, rate: 300}
truth: {answer: healthy}
seen: {with: w, faulty: f}
`

// TestModes drives a real server in each mode; the binary is one that notes what it finds.
func TestModes(t *testing.T) {
	l := testLab(t)
	if _, err := exec.LookPath("wrk"); err != nil {
		t.Fatalf("%v; scripts/install-deps tests installs it", err)
	}
	before := look(t, l)
	l.Cases = fstest.MapFS{"ask/case.yaml": {Data: []byte(askCase)}, "calm/case.yaml": {Data: []byte(strings.Replace(calmCase, "url: http://10.77.0.2/, connections: 3, ", "", 1))}}
	list, err := l.List()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "plimsoll")
	// Where a command is given, it is run to its end; users that nobody told of are waited for.
	script := `#!/bin/sh
asked=/run/plimsoll-labtest/case/asked
case "$*" in
*--host*" -- "*) mode=command; while [ "$1" != -- ]; do shift; done; shift; "$@" >&2 ;;
run*) mode=run ;;
*) mode=alone; until [ -s $asked ] || ! [ -e $asked ]; do :; done ;;
esac
echo "$mode in [$(ip netns identify)] $(ip netns pids plimsoll-labtest-client | xargs -r -n1 -I{} grep -ho 'plimsoll-labtest.users' /proc/{}/cgroup | sort -u) $(test -s $asked && echo asked)" >>` + dir + `/saw
echo '{"verdict": {"answer": "healthy"}}'
`
	if err := os.WriteFile(binary, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	trials, err := l.Test(t.Context(), TestOptions{Options: Options{Binary: binary}, Cases: list, Modes: Modes, Times: 1, Dir: filepath.Join(dir, "exam")})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range trials {
		if one.Failure != "" {
			t.Errorf("%s %s: %s", one.Case, one.Mode, one.Failure)
		}
	}
	saw, err := os.ReadFile(filepath.Join(dir, "saw"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"run in [plimsoll-labtest-client]  \n", "command in [plimsoll-labtest-client]  asked\n", "alone in [] plimsoll-labtest.users asked\n", "alone in []  \n"} {
		if strings.Count(string(saw), want) != 1 {
			t.Errorf("want %q once in\n%s", want, saw)
		}
	}
	scores := CountModes(trials)
	if diff := cmp.Diff([]map[Outcome]int{{Right: 1, NotDriven: 1}, {Right: 1, NotDriven: 1}, {Right: 2}}, []map[Outcome]int{scores[0].Counts, scores[1].Counts, scores[2].Counts}); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if tally := Count(trials); tally.Trials != 4 || tally.Right != 4 {
		t.Errorf("tally: %+v", tally)
	}
	kept, err := Trials(filepath.Join(dir, "exam"))
	if err != nil || len(kept) != len(trials) {
		t.Errorf("%d trials kept of %d, %v", len(kept), len(trials), err)
	}
	if diff := cmp.Diff(before, look(t, l)); diff != "" {
		t.Errorf("not undone (-before +after):\n%s", diff)
	}
}

func TestWords(t *testing.T) {
	for want, counts := range map[string]map[Outcome]int{"": {}, "unclear": {Unclear: 1}, "2 right": {Right: 2}, "2 right, 1 wrong": {Right: 2, Wrong: 1}} {
		if got := Words(counts); got != want {
			t.Errorf("%v: %q, want %q", counts, got, want)
		}
	}
}
