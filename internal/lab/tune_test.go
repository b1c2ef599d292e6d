package lab

import (
	"os/exec"
	"strings"
	"testing"

	"plimsoll/internal/model"
)

func TestWhatTuneCameTo(t *testing.T) {
	cause := Truth{Answer: model.AnswerCause, Root: []string{"a.full"}, Then: []Next{{Root: []string{"b.slow"}}}, Mended: []model.Answer{model.AnswerHealthy}}
	persons := cause
	persons.Person = cause.Root
	busy := cause
	busy.Person = []string{"c.other"}
	root := func(rule, undo string) []model.Finding {
		return []model.Finding{{Rule: rule, Answer: model.Confirmed, Fix: []model.Fix{{Undo: undo}}}}
	}
	changed := []model.TuneStep{{Number: 1, Fix: &model.TuneFix{Title: "Raise it"}}}
	said := []string{"b.slow: mend it (a person's to do)"}
	for name, c := range map[string]struct {
		truth  Truth
		answer model.Answer
		roots  []model.Finding
		steps  []model.TuneStep
		person []string
		came   TuneCame
		wrong  string // "" passes
	}{
		"all limits are lifted":                     {cause, model.AnswerCapacity, nil, changed, nil, TuneFixed, ""},
		"nothing can be told at the end":            {cause, model.AnswerUnclear, nil, changed, nil, TuneFixed, "verdict at the end is unclear"},
		"what is left has no automatic fix":         {cause, model.AnswerCause, root("b.slow", "manual"), nil, said, TunePerson, ""},
		"what is left has one":                      {cause, model.AnswerCause, root("a.full", "automatic"), nil, said, TunePerson, "has a fix that tune can make"},
		"which cannot be made in this case":         {persons, model.AnswerCause, root("a.full", "automatic"), nil, said, TunePerson, ""},
		"or is enough this time":                    {persons, model.AnswerHealthy, nil, changed, nil, TuneFixed, ""},
		"nothing was changed, and nothing is named": {cause, model.AnswerHealthy, nil, []model.TuneStep{{Number: 1}}, nil, TuneFixed, "nothing was changed"},
		"what else the machine does is named":       {busy, model.AnswerCause, root("c.other", "manual"), nil, said, TunePerson, ""},
		"something else is named at the end":        {cause, model.AnswerCause, root("c.other", "manual"), nil, said, TunePerson, "not the truth"},
		"it stops without a word":                   {cause, model.AnswerCause, root("b.slow", "manual"), nil, nil, TunePerson, "says nothing"},
		"a healthy service is left alone":           {Truth{Answer: model.AnswerHealthy}, model.AnswerHealthy, nil, []model.TuneStep{{Number: 1}}, nil, TuneFixed, ""},
		"a healthy service is changed in vain":      {Truth{Answer: model.AnswerHealthy}, model.AnswerHealthy, nil, changed, nil, TuneFixed, "nothing is wrong"},
	} {
		r := TuneResult{Pass: true, Tuning: model.Tuning{Steps: c.steps, Person: c.person, End: model.TuneEnd{Answer: c.answer}}}
		r.judge(c.truth, c.roots)
		wrong := strings.Join(r.Wrong, "; ")
		if r.Came != c.came || r.Pass != (c.wrong == "") || !strings.Contains(wrong, c.wrong) {
			t.Errorf("%s: it came to %s, %q; want %s, %q", name, r.Came, wrong, c.came, c.wrong)
		}
	}
}

func TestTuneDrivesEveryKindOfLoad(t *testing.T) {
	v := values{"dir": "/d"}
	for name, c := range map[string]struct {
		load Load
		want string
	}{
		"ours":     {Load{URL: "http://h/", Connections: 7, Duration: Duration(6e9), Rate: 50}, "tune --host client=local --host server=netns:srv --apply http://h/ -c 7 -d 6s -R 50"},
		"a tool's": {Load{Command: []string{"{{.dir}}/client", "--json"}}, "tune --host client=local --host server=netns:srv --apply -- /d/client --json"},
	} {
		args, err := c.load.tuneArgs(v, "netns:srv", "--apply")
		if got := strings.Join(args, " "); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// A case in which nothing succeeds is judged like others.
func TestATuneOfWhichNothingSucceededIsNoError(t *testing.T) {
	none, some := 0.0, 1.0
	of := func(good *float64) model.Tuning {
		return model.Tuning{End: model.TuneEnd{TuneLoad: model.TuneLoad{GoodRPS: good}}}
	}
	for script, c := range map[string]struct {
		good *float64
		ok   bool
	}{"exit 1": {&none, true}, "exit 0": {&some, true}, "exit 3": {&none, false}, "exit 1 # not undone": {&some, false}, "exit 1 # a command's": {nil, false}, "kill -9 $$": {&none, false}} {
		if err := ended(exec.Command("sh", "-c", script).Run(), of(c.good)); (err == nil) != c.ok {
			t.Errorf("%s: %v", script, err)
		}
	}
}

// A bench that is killed at moments tunes often: what is read is of the tune that ended.
func TestEachTuneOfABenchIsReadFromItsOwnDirectory(t *testing.T) {
	dir := t.TempDir()
	b := &tuneBench{dir: dir, args: []string{"tune", "--dir", dir}}
	b.setDir(dir + "/second")
	if b.tuneDir() != dir+"/second" {
		t.Error(b.tuneDir())
	}
}

// What a tune that fails says is the reason, also where nobody watches it.
func TestAFailedTuneSaysWhy(t *testing.T) {
	l := testLab(t)
	binary, _ := fakeBinary(t, "{}")
	if _, err := l.Tune(t.Context(), "try", Options{Binary: binary}, false, nil); err == nil || !strings.Contains(err.Error(), "it said: talk") {
		t.Error(err)
	}
}
