package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/internal/model"
)

// pairCase has a second fault that cannot show before the first is mended. Its
// only step differs with the mends, so that a fake binary can tell the runs apart.
const pairCase = `
id: pair
title: t
symptom: s
what: w
vars: {limit: "1", other: "1"}
steps:
  - sysctl: {host: server, name: net.core.somaxconn, value: "{{.limit}}{{.other}}"}
load: {url: http://10.77.0.2/, connections: 3, duration: 1s}
truth: {answer: cause, root: [a.b], then: [{root: [c.d], hidden: true}], mended: [healthy]}
mends:
  - {id: limit, title: t, rules: [a.b], set: {limit: "2"}}
  - {id: other, title: t, rules: [c.d], set: {other: "2"}}
seen: {with: w, faulty: f, mended: m}
`

const calmCase = `
id: calm
title: t
symptom: s
what: w
load: {url: http://10.77.0.2/, connections: 3, duration: 1s}
truth: {answer: healthy}
seen: {with: w, faulty: f, mended: m}
`

// byLimit makes the fake binary answer by the limit that it finds.
func byLimit(t *testing.T, reports map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for limit, report := range reports {
		if err := os.WriteFile(filepath.Join(dir, limit+".json"), []byte(report), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, "plimsoll")
	script := "#!/bin/sh\nexec cat $(dirname \"$0\")/$(ip netns exec plimsoll-labtest-server cat /proc/sys/net/core/somaxconn).json\n"
	if err := os.WriteFile(binary, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return binary
}

func verdictOf(answer string, rules ...string) string {
	var root []string
	for _, r := range rules {
		root = append(root, `{"rule": "`+r+`", "answer": "confirmed", "subject": {}}`)
	}
	return `{"verdict": {"answer": "` + answer + `", "root": [` + strings.Join(root, ", ") + `]},
 "windows": [{"name": "hold", "start_ms": 1, "end_ms": 2}], "load": {"good_rps": 5, "good_share": 1, "waited_us": {"p99": 8}}}`
}

func TestTrialsOfAPairAndItsTwin(t *testing.T) {
	l := testLab(t)
	before := look(t, l)
	l.Cases = fstest.MapFS{"pair/case.yaml": {Data: []byte(pairCase)}}
	c, err := l.Case("pair")
	if err != nil {
		t.Fatal(err)
	}
	binary := byLimit(t, map[string]string{"11": verdictOf("cause", "a.b"), "21": verdictOf("cause", "c.d"), "22": verdictOf("healthy")})
	dir := filepath.Join(t.TempDir(), "exam")
	var compared []string
	opt := TestOptions{Options: Options{Binary: binary}, Cases: []*Case{c}, Times: 1, Dir: dir,
		Moved: func(_ *Case, faulty, twin string) (*Moved, error) {
			compared = append(compared, faulty, twin)
			return &Moved{Yes: true}, nil
		}}
	trials, err := l.Test(t.Context(), opt)
	if err != nil || len(trials) != 1 {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	got := trials[0]
	if wrong := got.Wrong(); len(wrong) > 0 || got.Faulty.VerdictSeconds == nil || *got.Faulty.P99 != 8 {
		t.Errorf("wrong: %v; %+v", wrong, got.Faulty)
	}
	var dirs, mends []string
	for _, s := range got.Shots() {
		dirs = append(dirs, s.Dir)
		mends = append(mends, strings.Join(s.Mends, "+"))
	}
	if diff := cmp.Diff([]string{"pair.1/faulty", "pair.1/then-1", "pair.1/twin"}, dirs); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"", "limit", "limit+other"}, mends); diff != "" {
		t.Errorf("mends (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "pair.1/faulty"), filepath.Join(dir, "pair.1/twin")}, compared); diff != "" {
		t.Errorf("compared (-want +got):\n%s", diff)
	}
	kept, err := Trials(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(trials, kept, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("kept (-made +read):\n%s", diff)
	}
	if diff := cmp.Diff(before, look(t, l)); diff != "" {
		t.Errorf("not undone (-before +after):\n%s", diff)
	}
	if again, err := l.Test(t.Context(), opt); err != nil || !strings.Contains(again[0].Failure, "take a new one") {
		t.Errorf("into the same folder: %v", err)
	}
}

func TestATrialThatFailsDoesNotStopTheOthers(t *testing.T) {
	l := testLab(t)
	l.Cases = fstest.MapFS{"calm/case.yaml": {Data: []byte(calmCase)},
		"try/case.yaml": {Data: []byte(strings.Replace(tryCase, "ct state new accept;", "no such thing;", 1))}}
	list, err := l.List()
	if err != nil {
		t.Fatal(err)
	}
	binary, _ := fakeBinary(t, verdictOf("healthy"))
	var told []string
	trials, err := l.Test(t.Context(), TestOptions{Options: Options{Binary: binary}, Cases: list, Times: 2, Seed: 3, Dir: t.TempDir(),
		After: func(t *Trial) { told = append(told, t.Case) }})
	if err != nil || len(trials) != 4 || len(told) != 4 {
		t.Fatalf("%d trials, told of %v, %v", len(trials), told, err)
	}
	tally := Count(trials)
	if tally.Failed != 2 || tally.Right != 2 || tally.Quiet != 2 {
		t.Errorf("tally: %+v", tally)
	}
	for _, one := range trials {
		if failed := strings.Contains(one.Failure, "nft -f"); failed != (one.Case == "try") {
			t.Errorf("%s: failure %q", one.Case, one.Failure)
		}
	}
}

func TestInterruptedTestReturnsWhatThereIs(t *testing.T) {
	l := testLab(t)
	before := look(t, l)
	l.Cases = fstest.MapFS{"calm/case.yaml": {Data: []byte(calmCase)}}
	list, err := l.List()
	if err != nil {
		t.Fatal(err)
	}
	binary, _ := fakeBinary(t, verdictOf("healthy"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	trials, err := l.Test(ctx, TestOptions{Options: Options{Binary: binary}, Cases: list, Times: 3, Dir: t.TempDir(), After: func(*Trial) { cancel() }})
	if !errors.Is(err, context.Canceled) || len(trials) != 1 || !strings.Contains(err.Error(), "1 of 3") {
		t.Errorf("%d trials, %v", len(trials), err)
	}
	if diff := cmp.Diff(before, look(t, l)); diff != "" {
		t.Errorf("not undone (-before +after):\n%s", diff)
	}
}

func TestJudgeAgain(t *testing.T) {
	l := &Lab{Cases: fstest.MapFS{"pair/case.yaml": {Data: []byte(pairCase)}}}
	seconds := 0.5
	trial := &Trial{Case: "pair", Number: 1, Faulty: &Shot{Dir: "f", Answer: "unclear", Wrong: []string{"x"}, VerdictSeconds: &seconds}, Twin: &Shot{Dir: "t", Mends: []string{"limit", "other"}}}
	judge := func(dir string) (model.Report, error) {
		rep := model.Report{Verdict: model.Verdict{Answer: "healthy"}}
		if dir == "x/f" {
			rep.Verdict = model.Verdict{Answer: "cause", Root: []model.Finding{finding("a.b", "server", model.Confirmed),
				finding("a.b", "client", model.Confirmed), finding("g.h", "client", model.Suspected)}}
		}
		return rep, nil
	}
	moved := func(_ *Case, faulty, twin string) (*Moved, error) {
		return &Moved{Yes: faulty == "x/f" && twin == "x/t"}, nil
	}
	if err := l.JudgeAgain("x", trial, judge, moved); err != nil {
		t.Fatal(err)
	}
	if wrong := trial.Wrong(); len(wrong) > 0 || *trial.Faulty.VerdictSeconds != seconds || !trial.Moved.Yes {
		t.Errorf("wrong: %v, %+v", wrong, trial)
	}
	if diff := cmp.Diff([]string{"a.b"}, trial.Faulty.Named); diff != "" {
		t.Errorf("named (-want +got):\n%s", diff)
	}
	trial.Case = "gone"
	if err := l.JudgeAgain("x", trial, judge, moved); err == nil {
		t.Error("a case that is no more was judged")
	}
}

func TestWrongSaysOfWhichRun(t *testing.T) {
	trial := &Trial{Failure: "no room", Faulty: &Shot{Wrong: []string{"a"}}, Then: []*Shot{{Wrong: []string{"b"}}}, Twin: &Shot{Wrong: []string{"c"}}, Moved: &Moved{}}
	want := []string{"no room", "a", "with the limits before it mended: b", "healthy twin: c", "the fault did not move the service: its healthy twin is no better"}
	if diff := cmp.Diff(want, trial.Wrong()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	trial.Moved.Why = "no load"
	if last := trial.Wrong()[4]; last != "whether the fault moved the service cannot be told: no load" {
		t.Error(last)
	}
}

func TestCount(t *testing.T) {
	cause := Truth{Answer: "cause", Root: []string{"a.b", "e.f"}, Then: []Next{{Root: []string{"c.d"}}}}
	trials := []*Trial{
		{Faulty: &Shot{Truth: cause, Answer: "cause", Named: []string{"a.b", "c.d"}}, Twin: &Shot{Truth: Truth{Answer: "capacity"}, Answer: "capacity"}, Moved: &Moved{Yes: true}},
		{Faulty: &Shot{Truth: cause, Answer: "cause", Named: []string{"x.y"}, Wrong: []string{"w"}}},
		{Faulty: &Shot{Truth: cause, Answer: "unclear", Wrong: []string{"w"}}},
		{Faulty: &Shot{Truth: Truth{Answer: "healthy"}, Answer: "cause", Named: []string{"x.y"}, Wrong: []string{"w"}}},
		{Failure: "broken"},
	}
	got := Count(trials)
	third, half := 1.0/3, 0.0
	want := Tally{Trials: 5, Right: 1, Failed: 1, Healthy: 2, Quiet: 1, Compared: 1, Moved: 1, VerdictSeconds: []float64{},
		Cells: []Cell{
			{"a.b", "a.b", 1, true}, {"a.b", "unclear", 1, false}, {"a.b", "x.y", 1, false},
			{"healthy", "x.y", 1, false}, {Mended, "capacity", 1, true},
		},
		Rules: []RuleScore{
			{"a.b", 3, 1, 1, ratio(1, 1), &third}, {"c.d", 3, 1, 1, ratio(1, 1), &third}, {"x.y", 0, 2, 0, &half, nil},
		}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if empty := Count(nil); empty.Trials != 0 || len(empty.Cells) != 0 {
		t.Errorf("of nothing: %+v", empty)
	}
}

func TestScoreOfAnotherWay(t *testing.T) {
	cause := &Shot{Truth: Truth{Answer: "cause", Root: []string{"a.b"}, Then: []Next{{Root: []string{"c.d"}}}}}
	calm := &Shot{Truth: Truth{Answer: "capacity"}}
	var s Score
	s.Add(cause, true, []string{"a.b", "c.d"})
	s.Add(cause, true, []string{"a.b", "x.y"})
	s.Add(cause, true, []string{"c.d"})
	s.Add(cause, false, nil)
	s.Add(calm, true, nil)
	s.Add(calm, false, nil)
	if want := (Score{Causes: 4, Right: 2, Alone: 1, Healthy: 2, Quiet: 1}); s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
}

func TestTrialsSaysWhatIsNone(t *testing.T) {
	dir := t.TempDir()
	if _, err := Trials(dir); err == nil || !strings.Contains(err.Error(), "no trials in it") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := Trials(filepath.Join(dir, "nosuch")); err == nil {
		t.Error("no folder, and no error")
	}
	for text, want := range map[string]string{
		"{": "no trial that lab test kept", `{"case": "../x"}`: "expected the id of a case",
		`{"case": "x", "faulty": {"dir": "/etc"}}`: "inside the test's folder", `{"case": "x", "then": [null]}`: "an empty run",
	} {
		if _, err := parseTrial([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", text, err, want)
		}
	}
}

func FuzzParseTrial(f *testing.F) {
	f.Add([]byte(`{"case": "x", "number": 1, "faulty": {"dir": "x.1/faulty", "truth": {"answer": "healthy"}, "answer": "healthy"}, "then": [{"dir": "a"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		trial, err := parseTrial(data)
		if (trial == nil) == (err == nil) {
			t.Fatalf("trial %v, error %v: expected one of them", trial, err)
		}
		if trial != nil {
			Count([]*Trial{trial})
		}
	})
}
