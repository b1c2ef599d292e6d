package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run is named by the end of its ID, which is the same run's however many follow; where two end so each is named by all of it, and what is
// meant by the end alone is asked. A file of that name is a path.
func TestRunsAreNamedByTheirEnds(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(t.TempDir())
	w := &world{env: func(name string) string { return map[string]string{"PLIMSOLL_RUNS": dir}[name] }}
	for _, id := range []string{"20251009T084000Z-4f1c", "20251010T084000Z-beef", "20251011T084000Z-beef", "mine-abcd"} {
		if err := os.Mkdir(filepath.Join(dir, id), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string]string{"20251009T084000Z-4f1c": "4f1c", "20251010T084000Z-beef": "20251010T084000Z-beef", "mine-abcd": "mine-abcd", "nosuch": ""} {
		got := w.nameOf(filepath.Join(dir, id))
		if got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
		if got == "" {
			continue
		}
		if back, err := w.runNamed(got); err != nil || back != filepath.Join(dir, id) {
			t.Errorf("%s names %s: %v", got, back, err)
		}
	}
	if _, err := w.runNamed("beef"); err == nil || !strings.Contains(err.Error(), "20251010T084000Z-beef, 20251011T084000Z-beef") {
		t.Errorf("two runs end so: %v", err)
	}
	if got, err := w.runNamed("abcd"); err != nil || got != "abcd" {
		t.Errorf("mine-abcd is no ID that a run is given: %s, %v", got, err)
	}
	if err := os.WriteFile("4f1c", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := w.nameOf(filepath.Join(dir, "20251009T084000Z-4f1c")); got != "20251009T084000Z-4f1c" {
		t.Errorf("a file here is called 4f1c: %q", got)
	}
}
