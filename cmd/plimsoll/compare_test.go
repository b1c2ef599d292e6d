package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A folder of repeats may be anybody's: a link in it could lead to a run that he may not read, or to a file system that holds us up.
func TestAFolderOfRepeatsLeadsNowhereElse(t *testing.T) {
	top := t.TempDir()
	repeats, elsewhere := filepath.Join(top, "repeats"), filepath.Join(top, "elsewhere")
	aRunOf(t, filepath.Join(repeats, "1"), "served")
	aRunOf(t, elsewhere, "treasure")
	ok(t, os.Mkdir(filepath.Join(repeats, "no run"), 0o700))
	runs, err := runsIn(repeats)
	ok(t, err)
	if len(runs) != 1 || runs[0].Dir() != filepath.Join(repeats, "1") {
		t.Errorf("%d runs are in it, want the one", len(runs))
	}
	ok(t, os.Symlink(elsewhere, filepath.Join(repeats, "2")))
	if _, err := runsIn(repeats); err == nil || !strings.Contains(err.Error(), "repeats/2: a link; in a folder") {
		t.Errorf("%v, want an error about the link", err)
	}
	ok(t, os.Remove(filepath.Join(repeats, "2")))
	ok(t, os.Mkdir(filepath.Join(repeats, "2"), 0o700))
	ok(t, os.WriteFile(filepath.Join(repeats, "2", "run.json"), []byte("{"), 0o600))
	if _, err := runsIn(repeats); err == nil || !strings.Contains(err.Error(), "cut short or damaged") {
		t.Errorf("%v, want an error about the damaged run", err)
	}
	// A run itself is what was named, whatever the name leads over.
	link := filepath.Join(top, "link")
	ok(t, os.Symlink(elsewhere, link))
	if runs, err = runsIn(link); err != nil || len(runs) != 1 {
		t.Errorf("a run named by a link: %v", err)
	}
}
