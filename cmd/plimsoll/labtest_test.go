package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/lab"
	"plimsoll/internal/model"
	"plimsoll/internal/record/writer"
)

// keptTest makes a test's folder with one trial of the healthy case: a run in
// which a table of the kernel was nearly full and nothing came of it.
func keptTest(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	here := filepath.Join(dir, "healthy.1")
	if err := os.Mkdir(here, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := writer.Create(filepath.Join(here, "faulty"), model.Run{Started: 1, Plan: model.Plan{Interval: 1000}, Hosts: []model.Host{{Name: "server"}},
		Windows: []model.Window{{Name: model.Baseline, Start: 1000, End: 4000}, {Name: model.Hold, Start: 4000, End: 9000}}})
	if err != nil {
		t.Fatal(err)
	}
	entries := &model.Signal{Name: "node_nf_conntrack_entries", Kind: model.Gauge}
	limit := &model.Signal{Name: "node_nf_conntrack_entries_limit", Kind: model.Gauge}
	for at := int64(1000); at <= 9000; at += 1000 {
		w.Sample("server", at, entries, float64(at/100))
		w.Sample("server", at, limit, 100)
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	doc := `{"case": "healthy", "number": 1, "faulty": {"dir": "healthy.1/faulty", "truth": {"answer": "cause"}, "answer": "unclear", "verdict_seconds": 0.5}}`
	if err := os.WriteFile(filepath.Join(here, "trial.json"), []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestKeptTrialsAreJudgedAgain(t *testing.T) {
	dir := keptTest(t)
	w, stdout, _ := testWorld()
	w.args = []string{"lab", "test", "--from", dir, "--json"}
	code := run(t.Context(), w)
	var doc labTestDoc
	if err := json.Unmarshal(stdout.Bytes(), &doc); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	fitsSchema(t, "CaseTest", stdout.Bytes())
	shot := doc.Trials[0].Faulty
	if shot.Truth.Answer != "healthy" || shot.Answer == "unclear" && code == exitOK || doc.Tally.VerdictSeconds[0] != 0.5 {
		t.Errorf("code %d, judged %+v", code, shot)
	}
	said := map[string]string{}
	for _, x := range doc.Ways {
		said[x.Name] = x.Said["healthy.1/faulty"].Says
	}
	if said["mixin alerts"] != "NodeHighNumberConntrackEntriesUsed" || !strings.HasPrefix(said["largest z-score"], "node_nf_conntrack_entries (z") {
		t.Errorf("the simple ways say %v", said)
	}
}

func TestTestHasAPage(t *testing.T) {
	dir := keptTest(t)
	file := filepath.Join(t.TempDir(), "test.html")
	w, stdout, stderr := testWorld()
	w.args = []string{"lab", "test", "--from", dir, "--report", file}
	run(t.Context(), w)
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err, stderr)
	}
	sentence := "of 1 trials right."
	for _, want := range []string{sentence, "What was the truth, and what was named", "largest z-score", "healthy 1"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if !strings.Contains(stdout.String(), sentence) {
		t.Errorf("the text lacks %q:\n%s", sentence, stdout)
	}
}

func TestTestIsPrintedForPeople(t *testing.T) {
	w, stdout, _ := testWorld()
	one, third := 1.0, 1.0/3
	doc := labTestDoc{Seconds: 75, Dir: "exam", Seed: 7, Interrupted: true,
		Tally: lab.Tally{Trials: 3, Right: 1, Failed: 1, Compared: 2, Moved: 1, VerdictSeconds: []float64{0.2, 0.25, 0.31},
			Cells: []lab.Cell{{Truth: "net.ports.scarce", Named: "net.ports.scarce", Runs: 1, Right: true}, {Truth: "net.ports.scarce", Named: "unclear", Runs: 2}},
			Rules: []lab.RuleScore{{Rule: "net.ports.scarce", Truth: 3, Named: 1, Both: 1, Precision: &one, Recall: &third}, {Rule: "a.b", Truth: 1}}},
		Ways: []way{{Name: "plimsoll", Score: lab.Score{Causes: 3, Right: 1, Alone: 1, Healthy: 2, Quiet: 2}}}}
	if err := printLabTest(w, doc, false); err != nil {
		t.Fatal(err)
	}
	want := `
TRUTH             NAMED             RUNS
net.ports.scarce  net.ports.scarce  1
                  unclear           2     WRONG

RULE              TRUTH  NAMED  BOTH  PRECISION  RECALL
net.ports.scarce  3      1      1     100 %      33.3 %
a.b               1      0      0     -          -

WAY       CAUSE FOUND  AND NO OTHER  QUIET WHERE HEALTHY
plimsoll  1 of 3       1 of 3        2 of 2

1 of 3 trials right, 1 without a judgement; the fault moved the service in 1 of 2.
From the last reading, a second after the load, to the verdict: median 0.25 s,
at most 0.31 s.
Wall time 75 s, seed 7. Recordings: exam
Interrupted: not all trials were made.
`
	if got := stdout.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestATrialIsOneLineAndItsFaults(t *testing.T) {
	w, stdout, _ := testWorld()
	took := 0.254
	printTrial(w, " 3/12", &lab.Trial{Case: "php-workers", Number: 2,
		Faulty: &lab.Shot{Answer: "cause", Named: []string{"phpfpm.workers.exhausted"}, VerdictSeconds: &took}})
	printTrial(w, " 4/12", &lab.Trial{Case: "slow-app", Number: 1, Failure: "it did not come up"})
	want := ` 3/12  right  php-workers 2            phpfpm.workers.exhausted             0.25 s
 4/12  WRONG  slow-app 1               no verdict
              it did not come up
`
	if got := stdout.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWorse(t *testing.T) {
	for name, c := range map[string]struct {
		d    model.Difference
		want bool
	}{
		"beyond chance and clearly": {model.Difference{HigherIsBetter: true, A: 100, B: 80, Answer: model.Worse}, true},
		"beyond chance, hardly":     {model.Difference{HigherIsBetter: true, A: 100, B: 95, Answer: model.Worse}, false},
		"clearly, by chance":        {model.Difference{HigherIsBetter: true, A: 100, B: 80, Answer: model.NoDifference}, false},
		"nothing at all":            {model.Difference{HigherIsBetter: true, A: 100, B: 0, Answer: model.NotKnown}, true},
		"later, clearly":            {model.Difference{A: 100, B: 150, Answer: model.Worse}, true},
		"later, hardly":             {model.Difference{A: 100, B: 105, Answer: model.Worse}, false},
		"earlier":                   {model.Difference{A: 100, B: 50, Answer: model.Better}, false},
		"some lost":                 {model.Difference{Name: "good_share", HigherIsBetter: true, A: 1, B: 0.97, Answer: model.Worse}, true},
		"hardly any lost":           {model.Difference{Name: "good_share", HigherIsBetter: true, A: 1, B: 0.995, Answer: model.Worse}, false},
	} {
		if got := worse(c.d); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestMovedByTheCasesOwnMeasure(t *testing.T) {
	run := filepath.Join(keptTest(t), "healthy.1", "faulty")
	got, err := movedBy(lab.Twin{Measure: "max(node_nf_conntrack_entries)"}, run, run)
	if err != nil || got.Yes || got.Measures[0].Twin != 90 {
		t.Errorf("against itself: %+v, %v", got, err)
	}
	if _, err := movedBy(lab.Twin{Measure: "nothing_of_the_kind"}, run, run); err == nil || !strings.Contains(err.Error(), "want one number, got 0") {
		t.Errorf("a measure of nothing: %v", err)
	}
	if _, err := moved(&lab.Case{ID: "x"}, run, run); err == nil || !strings.Contains(err.Error(), "twin.measure") {
		t.Errorf("no load of ours: %v", err)
	}
}

func TestByHandWithoutARun(t *testing.T) {
	for text, want := range map[string]string{
		"ss -ltn 'sport = {{.Subject.listen}}'\n": "ss -ltn 'sport = 1.2.3.4:80'", "kill {{.Labels.PID}}": "kill <pid>", "nstat -az": "nstat -az",
	} {
		if got := byHandFor(text, map[string]string{"listen": "1.2.3.4:80"}); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A player who does not know the case is told nothing by which to know it.
func TestAGameWithAnUnknownCaseKeepsItsName(t *testing.T) {
	list, err := theLab().List()
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		command, err := theLab().Command(x, nil)
		if err != nil {
			t.Fatal(err)
		}
		w, stdout, _ := testWorld()
		newGame(x, command, true).print(w)
		text := stdout.String()
		if strings.Contains(text, x.Title) || strings.Contains(text, x.ID+" ") || strings.Contains(text, "{{") {
			t.Errorf("%s: told\n%s", x.ID, text)
		}
		for _, r := range x.Truth.Root {
			if strings.Contains(text, r) {
				t.Errorf("%s: told %s", x.ID, r)
			}
		}
	}
}

func TestInterruptedBeforeAnyTrial(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w, _, _ := testWorld()
	f := labTestFlags{times: 1, dir: t.TempDir()}
	list, err := f.cases(labTest(w), []string{"healthy"})
	if err != nil {
		t.Fatal(err)
	}
	var doc labTestDoc
	if err := f.run(ctx, w, list, &doc, false); !errors.Is(err, context.Canceled) || len(doc.Trials) > 0 {
		// Another lab at work is as good an end here.
		if err == nil || !strings.Contains(err.Error(), "another lab command") {
			t.Errorf("%d trials, %v", len(doc.Trials), err)
		}
	}
}
