package change

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// full checks that a change is refused for want of room, with what to do, and that nothing is changed.
func full(t *testing.T, j *Journal, step Step, why string) {
	t.Helper()
	e, err := j.Apply(t.Context(), step)
	if !errors.Is(err, ErrFull) || e.ID != 0 || !strings.Contains(err.Error(), "nothing was changed") || !strings.Contains(err.Error(), why) ||
		!strings.Contains(err.Error(), "plimsoll undo --all") {
		t.Errorf("%+v, %v", e, err)
	}
	if now, err := step.parts[0].Target.get(); err != nil || now != step.Old {
		t.Errorf("it is %s, %v", now, err)
	}
}

// A journal never gets so long that it is not read any more: what stands in it could
// not be taken back.
func TestAJournalStaysWithinWhatIsRead(t *testing.T) {
	s := sleeper(t)
	j := open(t)
	step := func(name string) Step {
		step, err := Prepare(s.Host, Change{Kind: Sysctl, Name: name, To: "1234"})
		if err != nil {
			t.Fatal(err)
		}
		return step
	}
	file := func(name string, i int) string { return filepath.Join(j.dir.path, fmt.Sprint(name, i)+".json") }
	write := func(i int, size int64) {
		t.Helper()
		if err := errors.Join(os.WriteFile(file("9000000", i), nil, 0o600), os.Truncate(file("9000000", i), size)); err != nil {
			t.Fatal(err)
		}
	}
	write(0, 0)
	for i := range maxNames - 4 { // with the lock, room for one entry while it is written
		if err := os.Link(file("9000000", 0), file("x", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := j.Apply(t.Context(), step("net.core.somaxconn")); err != nil {
		t.Fatal(err)
	}
	full(t, j, step("net.ipv4.tcp_fin_timeout"), fmt.Sprintf("%d files", maxNames-1))
	if list, _, err := ReadEntries(j.dir.path); err != nil || len(list) != 1 {
		t.Errorf("%d entries, %v", len(list), err)
	}
	for i := range maxNames - 4 {
		if err := os.Remove(file("x", i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		write(i, maxEntry)
	}
	full(t, j, step("net.ipv4.tcp_fin_timeout"), "bytes")
	write(0, maxEntry/2)
	if _, err := j.Apply(t.Context(), step("net.ipv4.tcp_fin_timeout")); err != nil {
		t.Error(err)
	}
	undoAll(t, j)
}

// What is noted of a change while it stands always has room.
func TestAChangeThatIsLongerThanOneMayBe(t *testing.T) {
	j := open(t)
	e := Entry{ID: 1, State: Pending, Parts: []part{{Old: make([]byte, maxEntry*3/4-growth/2)}}} // in base64 it is longer
	if err := j.write(e); !errors.Is(err, ErrNotPossible) || len(j.Entries()) > 0 {
		t.Error(err)
	}
	e.Parts[0].Old = e.Parts[0].Old[growth:]
	if err := j.write(e); err != nil {
		t.Error(err)
	}
	e.Parts[0].Between = []string{strings.Repeat("x", growth)}
	if err := j.write(e); err != nil {
		t.Error(err)
	}
}
