package record_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
)

// series are the readings of a run's series of a name, by labels.
func series(t *testing.T, r *record.Run, name string) map[string][]record.Point {
	t.Helper()
	first, last, err := r.Span()
	check(t, err)
	all := map[string][]record.Point{}
	for s, err := range r.Series(first, last, record.Match(name)...) {
		check(t, err)
		all[s.Labels.String()] = s.Points
	}
	return all
}

func here(read func()) { read() }

// Whenever it is read on, a run that grows is what opening it anew gives, but for the series that nobody asked for. Its log has
// pages that are full and records that go on in the next.
func TestARunThatGrowsIsReadOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w, err := writer.Create(dir, model.Run{Version: "test", Started: start, Plan: model.Plan{Interval: 1000}})
	check(t, err)
	g, err := record.Grow(dir, []string{"wanted"}, here)
	check(t, err)
	wanted, other := &model.Signal{Name: "wanted", Labels: []string{"n"}}, &model.Signal{Name: "other", Labels: []string{"n"}}
	for i := range int64(60) {
		for n := range 40 * (i%17 + 1) {
			w.Sample("a", start+i*1000, wanted, float64(i*n), fmt.Sprint(n))
			w.Sample("a", start+i*1000, other, float64(i), fmt.Sprint(n))
		}
		check(t, w.Commit())
		if i%3 != 0 {
			continue
		}
		grown, err := g.Run()
		check(t, err)
		whole, err := record.Open(dir)
		check(t, err)
		if d := cmp.Diff(series(t, whole, "wanted"), series(t, grown, "wanted")); d != "" {
			t.Fatalf("round %d: -opened anew +read on\n%s", i, d)
		}
		if n := len(series(t, grown, "other")); n > 0 {
			t.Errorf("round %d: %d series that nobody asked for", i, n)
		}
		check(t, whole.Close())
	}
	check(t, g.Close())
	check(t, w.Close())
}

// What follows a torn record never counted, as in a run that is opened: not in the next segment either.
func TestWhatFollowsATornRecordIsNotReadOn(t *testing.T) {
	dir, torn := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "torn")
	w, err := writer.Create(dir, model.Run{Version: "test", Started: start, Plan: model.Plan{Interval: 1000}})
	check(t, err)
	wanted := &model.Signal{Name: "wanted", Labels: []string{"n"}}
	for i := range int64(30) {
		for n := range 100 {
			w.Sample("a", start+i*1000, wanted, float64(i), fmt.Sprint(n))
		}
		check(t, w.Commit())
	}
	check(t, os.CopyFS(torn, os.DirFS(dir)))
	check(t, w.Close())
	log := filepath.Join(torn, record.SeriesDir, record.WALDir)
	segment, err := os.ReadFile(filepath.Join(log, "00000000"))
	check(t, err)
	check(t, os.WriteFile(filepath.Join(log, "00000001"), segment, 0o600))
	segment[len(segment)/2]++
	check(t, os.WriteFile(filepath.Join(log, "00000000"), segment, 0o600))
	whole, err := record.Open(torn)
	check(t, err)
	g, err := record.Grow(torn, []string{"wanted"}, here)
	check(t, err)
	for range 2 {
		grown, err := g.Run()
		check(t, err)
		if d := cmp.Diff(series(t, whole, "wanted"), series(t, grown, "wanted")); d != "" {
			t.Fatalf("-opened anew +read on\n%s", d)
		}
	}
	check(t, errors.Join(g.Close(), whole.Close()))
}

// Writing a record is no single step: wherever it stands when it is read on, what is not there yet is read the next time.
func TestARecordThatIsHalfWrittenIsReadOn(t *testing.T) {
	dir, half := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "half")
	w, err := writer.Create(dir, model.Run{Version: "test", Started: start, Plan: model.Plan{Interval: 1000}})
	check(t, err)
	wanted := &model.Signal{Name: "wanted", Labels: []string{"n"}}
	for i := range int64(4) {
		for n := range 4000 { // records of several pages
			w.Sample("a", start+i*1000, wanted, float64(i*31)/7+float64(n), fmt.Sprint("password=", n%100, " ", n))
		}
		check(t, w.Commit())
	}
	check(t, os.CopyFS(half, os.DirFS(dir)))
	check(t, w.Close())
	log := filepath.Join(half, record.SeriesDir, record.WALDir, "00000000")
	segment, err := os.ReadFile(log)
	check(t, err)
	whole, err := record.Open(half)
	check(t, err)
	want := series(t, whole, "wanted")
	check(t, os.Truncate(log, 0))
	g, err := record.Grow(half, []string{"wanted"}, here)
	check(t, err)
	var grown *record.Run
	for n := 0; n < len(segment); {
		n = min(n+7919, len(segment))
		check(t, os.WriteFile(log, segment[:n], 0o600))
		grown, err = g.Run()
		check(t, err)
	}
	if d := cmp.Diff(want, series(t, grown, "wanted")); d != "" || len(want) == 0 {
		t.Errorf("-opened whole +read on\n%.2000s", d)
	}
	check(t, errors.Join(g.Close(), whole.Close()))
}
