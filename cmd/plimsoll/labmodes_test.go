package main

import (
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/lab"
)

func TestParseModes(t *testing.T) {
	got, err := parseModes("x", []string{"watch", "run", "watch"})
	if err != nil || !slices.Equal(got, []lab.Mode{lab.ModeWatch, lab.ModeRun}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parseModes("x", []string{"look"}); err == nil || !strings.Contains(err.Error(), "want run, watch-command or watch") {
		t.Errorf("an unknown mode: %v", err)
	}
}

func TestModesArePrinted(t *testing.T) {
	w, stdout, _ := testWorld()
	shot := func(o lab.Outcome) *lab.Shot { return &lab.Shot{Outcome: o} }
	printModes(w, lab.CountModes([]*lab.Trial{
		{Case: "b", Mode: lab.ModeRun, Faulty: shot(lab.Right)}, {Case: "a", Mode: lab.ModeRun, Refused: "no URL"},
		{Case: "a", Mode: lab.ModeWatch, Faulty: shot(lab.Unclear)}, {Case: "a", Mode: lab.ModeWatch, Faulty: shot(lab.Wrong)}, {Case: "b", Mode: lab.ModeWatch},
		{Case: "c", Faulty: shot(lab.Right)},
	}))
	want := `CASE  RUN         WATCH
a     not driven  1 unclear, 1 wrong
b     right       failed

MODE   RIGHT  VAGUE  UNCLEAR  WRONG  FAILED  NOT DRIVEN
run    1      0      0        0      0       1
watch  0      0      1        1      1       0

`
	if got := stdout.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestATrialInAModeTellsUnclearFromWrong(t *testing.T) {
	w, stdout, _ := testWorld()
	unclear := &lab.Shot{Answer: "unclear", Outcome: lab.Unclear, Sentence: "Nobody knows.", Wrong: []string{"not the truth"}}
	printTrial(w, "1/3", &lab.Trial{Case: "nagle", Number: 1, Mode: lab.ModeWatch, Faulty: unclear})
	printTrial(w, "2/3", &lab.Trial{Case: "nagle", Number: 1, Mode: lab.ModeRun, Refused: "no URL"})
	printTrial(w, "3/3", &lab.Trial{Case: "nagle", Number: 1, Mode: lab.ModeWatch, Faulty: &lab.Shot{Answer: "cause", Named: []string{"a.v"}, Outcome: lab.Vague, Wrong: []string{"more"}}})
	want := `1/3  ?      nagle watch 1            unclear
            it says: Nobody knows.
            not the truth
2/3  -      nagle run 1              not driven
            no URL
3/3  vague  nagle watch 1            a.v
            more
`
	if got := stdout.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
