package main

import (
	"strings"
	"testing"

	"plimsoll/internal/lab"
	"plimsoll/internal/model"
)

func TestLabTuneArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"it needs cases": nil, "leave php-workers out": {"--all", "php-workers"},
		"for one case": {"--kill", "2", "php-workers", "healthy"}, "no case": {"healthy", "nosuch"},
	} {
		w, _, stderr := testWorld()
		w.args = append([]string{"lab", "tune"}, args...)
		if code := run(t.Context(), w); code != exitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%v: exit %d, %q; want %d, %q", args, code, stderr, exitUsage, want)
		}
	}
}

// A case whose load tune cannot drive is no failure, of one case or of several.
func TestLabTuneSkips(t *testing.T) {
	for _, args := range [][]string{{"slow-generator"}, {"slow-generator", "keepalive-idle"}} {
		w, stdout, stderr := testWorld()
		w.args = append([]string{"lab", "tune"}, args...)
		if code := run(t.Context(), w); code != exitOK || strings.Count(stdout.String(), "tune needs a URL") != len(args) {
			t.Errorf("%v: exit %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

func TestTuneRows(t *testing.T) {
	w, stdout, _ := testWorld()
	root := &model.Finding{Rule: "app.slow_upstream"}
	person := &lab.TuneResult{Case: "slow-app", Came: lab.TunePerson, Pass: true}
	person.Tuning.Steps = []model.TuneStep{{Root: root, TuneLoad: model.TuneLoad{GoodRPS: 483}}}
	person.Tuning.End = model.TuneEnd{Answer: model.AnswerCause, TuneLoad: model.TuneLoad{GoodRPS: 483}}
	wrong := *person
	wrong.Case, wrong.Pass, wrong.Different, wrong.Wrong = "worse", false, []string{"x"}, []string{"after undo: x"}
	printTuneRow(w, person)
	printTuneRow(w, &wrong)
	printTuneRow(w, &lab.TuneResult{Case: "broken", Wrong: []string{"no such host"}})
	got := strings.Join(strings.Fields(stdout.String()), " ")
	want := "slow-app a person's 1 app.slow_upstream 483 483 the same " +
		"worse WRONG 1 app.slow_upstream 483 483 NOT THE SAME after undo: x broken WRONG no such host"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
