package collect

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

// What a process used at last is read of one that is still there.
func TestAnEngineStaysUntilItsLastRecordIsTaken(t *testing.T) {
	ended := filepath.Join(t.TempDir(), "ended")
	argv := []string{"/bin/sh", "-c", `read plan; echo "$1"; echo "$2"; cat >/dev/null; echo >"$0"`, ended}
	for _, r := range []load.Record{{Phase: load.Drain, PhaseStarted: load.Drain}, {Phase: load.Drain, Final: true}} {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		argv = append(argv, string(text))
	}
	begin, err := OneProcess(argv)(t.Context(), model.LoadPlan{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var got []load.Record
	for r := range e.Records() {
		if _, err := os.Stat(ended); err == nil {
			t.Errorf("it ended before record %d was taken", len(got)+1)
		}
		got = append(got, r)
	}
	if len(got) != 2 || !got[1].Final || e.Err() != nil {
		t.Errorf("got %+v, %v", got, e.Err())
	}
	if _, err := os.Stat(ended); err != nil {
		t.Errorf("it was not told that it may end: %v", err)
	}
}
