package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"plimsoll/internal/lab"
	"plimsoll/internal/model"
	sheet "plimsoll/internal/page"
)

func TestLabTuneArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"it needs cases": nil, "leave php-workers out": {"--all", "php-workers"},
		"for one case": {"--kill", "2", "php-workers", "healthy"}, "no case": {"healthy", "nosuch"},
		"a load of its own": {"--kill", "2", "keepalive-idle"},
	} {
		w, _, stderr := testWorld()
		w.args = append([]string{"lab", "tune"}, args...)
		if code := run(t.Context(), w); code != exitUsage || !strings.Contains(stderr.String(), want) {
			t.Errorf("%v: exit %d, %q; want %d, %q", args, code, stderr, exitUsage, want)
		}
	}
}

// A case without a load that can be started is no failure, of one case or of several.
func TestLabTuneSkips(t *testing.T) {
	for _, args := range [][]string{{"watch-redis"}, {"watch-redis", "watch-healthy"}} {
		w, stdout, stderr := testWorld()
		w.args = append([]string{"lab", "tune"}, args...)
		if code := run(t.Context(), w); code != exitOK || strings.Count(stdout.String(), "its users come by themselves") != len(args) {
			t.Errorf("%v: exit %d\n%s%s", args, code, stdout, stderr)
		}
		w, stdout, _ = testWorld(append(append([]string{"lab", "tune"}, args...), "--json")...)
		run(t.Context(), w)
		fitsSchema(t, []string{"CaseTuned", "CasesTuned"}[len(args)-1], stdout.Bytes())
	}
}

func TestTunedCasesHaveAPage(t *testing.T) {
	rate := model.TuneLoadOf(&model.Load{GoodRPS: 483})
	r := &lab.TuneResult{Case: "slow-app", Came: lab.TunePerson, Wrong: []string{"it left <x> behind"}}
	r.Tuning.Steps = []model.TuneStep{{Number: 1, Root: &model.Finding{Rule: "app.slow_upstream", Title: "The app is slow"}, TuneLoad: rate}}
	r.Tuning.End = model.TuneEnd{Answer: model.AnswerCause, Sentence: "The app is slow.", TuneLoad: rate}
	var doc bytes.Buffer
	if err := sheet.Write(&doc, tunedPage([]*lab.TuneResult{r})); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0 of 1 cases came to what they should.", "it left &lt;x&gt; behind", "Step by step", "app.slow_upstream"} {
		if !strings.Contains(doc.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestTuneRows(t *testing.T) {
	w, stdout, _ := testWorld()
	root := &model.Finding{Rule: "app.slow_upstream"}
	person := &lab.TuneResult{Case: "slow-app", Came: lab.TunePerson, Pass: true}
	load := model.TuneLoadOf(&model.Load{GoodRPS: 483})
	person.Tuning.Steps = []model.TuneStep{{Root: root, TuneLoad: load}}
	person.Tuning.End = model.TuneEnd{Answer: model.AnswerCause, TuneLoad: load}
	wrong := *person
	wrong.Case, wrong.Pass, wrong.Different, wrong.Wrong = "worse", false, []string{"x"}, []string{"after undo: x"}
	printTuneRow(w, person)
	printTuneRow(w, &wrong)
	watched := &lab.TuneResult{Case: "watched", Came: lab.TuneFixed, Pass: true}
	watched.Tuning.Steps = []model.TuneStep{{Root: root}, {}}
	watched.Tuning.End = model.TuneEnd{Answer: model.AnswerHealthy}
	printTuneRow(w, watched)
	printTuneRow(w, &lab.TuneResult{Case: "broken", Wrong: []string{"no such host"}})
	got := strings.Join(strings.Fields(stdout.String()), " ")
	want := "slow-app a person's 1 app.slow_upstream 483 483 the same " +
		"worse WRONG 1 app.slow_upstream 483 483 NOT THE SAME after undo: x watched fixed 2 healthy - - the same broken WRONG no such host"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTuneRowsFit(t *testing.T) {
	w, stdout, _ := testWorld()
	list, err := theLab().List()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		r := &lab.TuneResult{Case: c.ID, Came: lab.TunePerson, Pass: true, Different: []string{"x"}}
		rate := 54_321.0
		load := model.TuneLoad{GoodRPS: &rate}
		r.Tuning.Steps = []model.TuneStep{{Root: &model.Finding{Rule: "process.descriptors.exhausted"}, TuneLoad: load}}
		r.Tuning.End = model.TuneEnd{Answer: model.AnswerCause, TuneLoad: load}
		printTuneRow(w, r)
	}
	for line := range strings.Lines(stdout.String()) {
		if n := len(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// A ^C among kills leaves the sum of those that were made.
func TestKillsAreSummedUp(t *testing.T) {
	same, other := lab.KillResult{Begun: 2, Wrong: []string{}}, lab.KillResult{Begun: 1, Wrong: []string{"x"}}
	for want, c := range map[string]struct {
		killed
		code int
		err  string
	}{
		"3 tunes were killed, 5 changes begun; after undo the state was the same in 2\n": {killed{Kills: []lab.KillResult{same, other, same}}, exitNotPassed, "did not bring everything back"},
		"2 tunes were killed, 4 changes begun; after undo the state was the same in 2\n": {killed{Kills: []lab.KillResult{same, same}, Interrupted: true}, exitInterrupted, "interrupted: 2 of 9 tunes were killed"},
		"0 tunes were killed, 0 changes begun; after undo the state was the same in 0\n": {killed{Kills: []lab.KillResult{}, Interrupted: true}, exitInterrupted, "interrupted: 0 of 9 tunes were killed"},
		"1 tunes were killed, 1 changes begun; after undo the state was the same in 0\n": {killed{Kills: []lab.KillResult{other}, Interrupted: true}, exitNotPassed, "did not bring everything back"},
	} {
		w, stdout, _ := testWorld()
		err := c.print(w, 9, false)
		if stdout.String() != want || codeOf(err) != c.code || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q, %v (%d); want %q, %s (%d)", stdout, err, codeOf(err), want, c.err, c.code)
		}
	}
	w, stdout, _ := testWorld()
	err := killed{Case: "a", Kills: []lab.KillResult{}, Interrupted: true}.print(w, 9, true)
	if !errors.As(err, new(*exitError)) || !strings.Contains(stdout.String(), `"interrupted": true`) || !strings.Contains(stdout.String(), `"kills": []`) {
		t.Errorf("%v\n%s", err, stdout)
	}
}
