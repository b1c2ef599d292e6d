package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll/internal/model"
	"plimsoll/internal/record/writer"
)

// keptWith is a run that is kept, and was made by these words.
func keptWith(t *testing.T, dir string, words ...string) {
	t.Helper()
	w, err := writer.Create(dir, model.Run{Started: 1_700_000_000_000, Plan: model.Plan{Mode: words[1], Interval: 1000, CommandLine: words}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// A kept run is made again by its own words, with more flags before a command of its own; what may be anybody's, or lacks what gives
// access, is printed and not done.
func TestAgainDoesWhatARunWasMadeBy(t *testing.T) {
	kept, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "x")
	t.Setenv("PLIMSOLL_RUNS", kept)
	w := theWorld()
	keptWith(t, filepath.Join(kept, "20260101T000000Z-0001"), "plimsoll", "run", "http://127.0.0.1/", "-c", "10")
	keptWith(t, filepath.Join(kept, "20260101T000000Z-0002"), "plimsoll", "watch", "--", "sh", "-c", "true")
	keptWith(t, filepath.Join(kept, "20260101T000000Z-0003"), "plimsoll", "run", "http://a:(masked)@127.0.0.1/")
	keptWith(t, filepath.Join(kept, "20260101T000000Z-0004"), "rm", "-rf", "/")
	keptWith(t, filepath.Join(kept, "20260101T000000Z-0005"), "plimsoll", "watch", "--", "reboot")
	if err := os.Chmod(filepath.Join(kept, "20260101T000000Z-0005"), 0o777); err != nil {
		t.Fatal(err)
	}
	keptWith(t, filepath.Join(kept, "20260101T000000Z-0006"), "plimsoll", "watch", "--", "true")
	if err := os.Chmod(filepath.Join(kept, "20260101T000000Z-0006", "run.json"), 0o660); err != nil { // a group's, too
		t.Fatal(err)
	}
	keptWith(t, filepath.Join(kept, "20260101T000000Z-0007"), "plimsoll", "watch", "--", "./load.sh")
	keptWith(t, filepath.Join(kept, "20260101T000000Z-0008"), "plimsoll", "watch", "--", "/bin/true", "a/b")
	keptWith(t, elsewhere, "plimsoll", "run", "http://127.0.0.1/")
	for _, c := range []struct {
		name, flags, want, fault string
	}{
		{"20260101T000000Z-0001", "", "plimsoll run http://127.0.0.1/ -c 10", ""},
		{"20260101T000000Z-0001", "-c 20", "plimsoll run http://127.0.0.1/ -c 10 -c 20", ""},
		{"20260101T000000Z-0002", "--trace full", "plimsoll watch --trace full -- sh -c true", ""},
		{"20260101T000000Z-0002", "-- reboot", "", "only flags can be added"},
		{"20260101T000000Z-0003", "", "", "fill in what is (masked)"},
		{"20260101T000000Z-0004", "", "", "it does not tell a command"},
		{"20260101T000000Z-0005", "", "", "it may be anybody's"},
		{"20260101T000000Z-0006", "", "", "it may be anybody's"},
		{"20260101T000000Z-0007", "", "", "type it there:\nplimsoll watch -- ./load.sh"},
		{"20260101T000000Z-0008", "", "plimsoll watch -- /bin/true a/b", ""},
		{elsewhere, "", "", "it may be anybody's; read its command, and type it:\nplimsoll run http://127.0.0.1/"},
		{"nowhere", "", "", "nowhere"},
	} {
		words, err := w.wordsOf("plimsoll again", c.name, strings.Fields(c.flags))
		if got := strings.Join(words, " "); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.name, c.flags, got, c.want)
		}
		if (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s %s: %v, want %q", c.name, c.flags, err, c.fault)
		}
	}
}
