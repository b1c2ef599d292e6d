package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/model"
)

// aTuning makes a directory as tune leaves it, with two runs, and says in it that it was made elsewhere.
func aTuning(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tuned")
	aRunOf(t, filepath.Join(dir, "1"), "first-host")
	aRunOf(t, filepath.Join(dir, "2"), "last-host")
	before, after := 169.0, 764.0
	step := func(run string, good *float64, title string) model.TuneStep {
		return model.TuneStep{Dir: "/elsewhere/" + run, Sentence: title + ".", Root: &model.Finding{Rule: "x.full", Title: title}, TuneLoad: model.TuneLoad{GoodRPS: good}}
	}
	one, two := step("1", &before, "A listen queue is full"), step("2", &after, "All <b>workers</b> are busy")
	one.Number, two.Number = 1, 2
	one.Fix = &model.TuneFix{Outcome: model.Kept, Sentence: "good requests/s 169 to 764", Changes: []model.TuneChange{{What: "net.core.somaxconn", Host: "server", Old: "10", New: "4096"}}}
	ok(t, keepTuning(dir, model.Tuning{Stopped: "nothing holds it back that could be changed", Steps: []model.TuneStep{one, two},
		End: model.TuneEnd{Dir: "/elsewhere/2", TuneLoad: model.TuneLoad{GoodRPS: &after}}}))
	return dir
}

func TestTheReportOfATuning(t *testing.T) {
	dir := aTuning(t)
	page := filepath.Join(t.TempDir(), "page.html")
	tuned, err := tuningIn(dir)
	ok(t, err)
	ok(t, walkPage(page, *tuned, &siteFlags{}))
	raw, err := os.ReadFile(page)
	ok(t, err)
	text := string(raw)
	for _, want := range []string{"A listen queue is full", "169", "net.core.somaxconn", "kept", "All &lt;b&gt;workers", "764", "nothing holds it back that could be changed"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	steps, before, after := strings.Index(text, "All &lt;b&gt;workers"), strings.Index(text, `id="r1-verdict"`), strings.Index(text, `id="r2-verdict"`)
	if steps < 0 || before < steps || after < before {
		t.Errorf("the steps at %d, the first run at %d, the last at %d; want them one below the other", steps, before, after)
	}
}

func TestATuningOfAnybodys(t *testing.T) {
	for want, spoil := range map[string]func(dir string) error{
		"it is damaged": func(dir string) error { return os.WriteFile(filepath.Join(dir, tuningFile), []byte("{"), 0o644) },
		"0 steps, want": func(dir string) error { return os.WriteFile(filepath.Join(dir, tuningFile), []byte("{}"), 0o644) },
		"no plain file": func(dir string) error {
			ok(t, os.Rename(filepath.Join(dir, tuningFile), filepath.Join(dir, "x")))
			return os.Symlink("x", filepath.Join(dir, tuningFile))
		},
		"a link, or no directory": func(dir string) error {
			ok(t, os.Rename(filepath.Join(dir, "2"), filepath.Join(dir, "x")))
			return os.Symlink("x", filepath.Join(dir, "2"))
		},
	} {
		dir := aTuning(t)
		ok(t, spoil(dir))
		if got, err := tuningIn(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, %v; want an error with %q", got, err, want)
		}
	}
	run := filepath.Join(t.TempDir(), "run")
	aRunOf(t, run, "h")
	if got, err := tuningIn(run); got != nil || err != nil {
		t.Errorf("of a run: %+v, %v; want none", got, err)
	}
}
