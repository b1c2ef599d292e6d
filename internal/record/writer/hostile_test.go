package writer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

// asRoot is for what takes another user's directory.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

const somebody = 65534

// theirs makes a directory that belongs to somebody else, below one of root's.
func theirs(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "theirs")
	check(t, os.Mkdir(dir, 0o777))
	check(t, os.Chown(dir, somebody, somebody))
	return dir
}

// victim is a file that only we may write.
func victim(t *testing.T) (path string, untouched func()) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "shadow")
	check(t, os.WriteFile(path, []byte("precious"), 0o600))
	return path, func() {
		t.Helper()
		if raw, err := os.ReadFile(path); err != nil || string(raw) != "precious" {
			t.Errorf("it is overwritten: %q %v", raw, err)
		}
	}
}

func link(t *testing.T, to, at string) {
	t.Helper()
	check(t, os.Symlink(to, at))
	check(t, os.Lchown(at, somebody, somebody))
}

// A run directory of somebody else's is refused, with links in it or empty.
func TestSomebodyElsesDirectoryIsRefused(t *testing.T) {
	asRoot(t)
	dir := theirs(t)
	if _, err := Create(dir, plan()); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("an empty one: %v", err)
	}
	file, untouched := victim(t)
	for _, name := range []string{record.ManifestFile, record.EventsFile, record.LatencyFile, record.SeriesDir, record.VerdictFile, "cpu" + record.ProfileEnd} {
		link(t, file, filepath.Join(dir, name))
	}
	if _, err := Create(dir, plan()); err == nil {
		t.Error("one with links is taken")
	}
	if err := Verdict(dir, []byte("{}")); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
		t.Errorf("the verdict: %v", err)
	}
	untouched()
}

// Below a directory of somebody else's a new one is ours, and he can at most give it
// another name.
func TestARunBelowSomebodyElsesDirectory(t *testing.T) {
	asRoot(t)
	dir := filepath.Join(theirs(t), "a", "run")
	w, err := Create(dir, plan())
	check(t, err)
	threeRounds(t, w)
	// He puts a directory of his, full of links, in the place of ours.
	above := filepath.Dir(filepath.Dir(dir))
	check(t, os.Rename(filepath.Join(above, "a"), filepath.Join(above, "b")))
	check(t, os.MkdirAll(dir, 0o777))
	file, untouched := victim(t)
	for _, name := range []string{record.ManifestFile, record.VerdictFile, record.SeriesDir, record.LatencyFile} {
		link(t, file, filepath.Join(dir, name))
	}
	check(t, os.Chown(dir, somebody, somebody))
	check(t, w.Profile("cpu", []byte("x")))
	check(t, w.Close())
	untouched()
	if err := Verdict(dir, []byte("{}")); err == nil {
		t.Error("the verdict went into his directory")
	}
	if got := len(dump(t, filepath.Join(above, "b", "run"))); got != len(threeRoundsDump) {
		t.Errorf("%d series where ours went", got)
	}
}

// A link of somebody else's on the way to the directory is not followed; one of
// root's is.
func TestALinkOnTheWay(t *testing.T) {
	asRoot(t)
	dir, target := theirs(t), t.TempDir()
	link(t, target, filepath.Join(dir, "way"))
	if _, err := Create(filepath.Join(dir, "way", "run"), plan()); err == nil || !strings.Contains(err.Error(), "is a link that belongs to user 65534") {
		t.Errorf("his: %v", err)
	}
	if left, _ := os.ReadDir(target); len(left) > 0 {
		t.Errorf("it was followed: %v", left)
	}
	check(t, os.Symlink(target, filepath.Join(dir, "ours")))
	w, err := Create(filepath.Join(dir, "ours", "..", filepath.Base(target), "run"), plan())
	check(t, err)
	check(t, w.Close())
	check(t, os.Symlink("round", filepath.Join(dir, "round")))
	if _, err := Create(filepath.Join(dir, "round", "run"), plan()); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a circle: %v", err)
	}
}

// A directory that was there before is closed to others first.
func TestADirectoryThatWasThereIsClosed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	check(t, os.Mkdir(dir, 0o777))
	check(t, os.Chmod(dir, 0o777))
	w, err := Create(dir, plan())
	check(t, err)
	threeRounds(t, w)
	check(t, w.Profile("cpu", []byte("x")))
	check(t, w.Close())
	check(t, Verdict(dir, []byte("{}")))
	check(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if path == dir && info.Mode().Perm() != 0o700 || filepath.Dir(path) == dir && !info.IsDir() && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", path, info.Mode())
		}
		return err
	}))
}

// What -o names is never written through something that is there.
func TestAFileIsNotWrittenThroughALink(t *testing.T) {
	file, untouched := victim(t)
	dir := t.TempDir()
	out := filepath.Join(dir, "graph.svg")
	check(t, os.Symlink(file, out))
	for _, path := range []string{out, "/dev/null", dir} {
		if err := File(path, []byte("x")); err == nil || !strings.Contains(err.Error(), "no plain file") {
			t.Errorf("%s: %v", path, err)
		}
	}
	untouched()
	check(t, os.Remove(out))
	for _, text := range []string{"one", "two"} {
		check(t, File(out, []byte(text)))
		raw, err := os.ReadFile(out)
		check(t, err)
		if info, _ := os.Stat(out); string(raw) != text || info.Mode().Perm() != 0o600 {
			t.Errorf("%q, %v", raw, info.Mode())
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// Names that come and go have a bound, and it is said that it was reached.
func TestChurnHasABound(t *testing.T) {
	w, dir := create(t)
	for i := range maxOfSignal + 100 {
		w.Sample("server", start+int64(i), gauge, 1, fmt.Sprint("veth", i))
		if i%1000 == 0 {
			check(t, w.Commit())
		}
	}
	w.Sample("server", start+maxOfSignal+200, counted, 1, "other")
	w.Status("server", gauge.Name, model.Status{State: model.Read})
	w.Status("server", counted.Name, model.Status{State: model.Read})
	check(t, w.Close())
	if got := len(dump(t, dir)); got != maxOfSignal+1 {
		t.Errorf("%d series, want %d", got, maxOfSignal+1)
	}
	run, err := record.Open(dir)
	check(t, err)
	defer run.Close()
	status := run.Meta().Status["server"]
	if st := status[gauge.Name]; st.State != model.Failed || !strings.Contains(st.Why, "ever new names") {
		t.Errorf("status %+v", st)
	}
	if st := status[counted.Name]; st.State != model.Read {
		t.Errorf("the other's %+v", st)
	}
	if notes := run.Meta().Notes; len(notes) == 0 || !strings.HasPrefix(notes[0], "g on server: more than") {
		t.Errorf("notes %q", notes)
	}
}

// What a log says without end is not kept without end.
func TestEventsHaveABound(t *testing.T) {
	w, dir := create(t)
	w.Event(model.Event{Time: start, Kind: "long", Text: strings.Repeat("x", maxEvent)})
	w.told = maxEvents - 100
	for range 10 {
		w.Event(model.Event{Time: start, Kind: "note", Text: "y"})
		check(t, w.Commit())
	}
	check(t, w.Close())
	raw, err := os.ReadFile(filepath.Join(dir, record.EventsFile))
	check(t, err)
	if len(raw) == 0 || len(raw) > 100 || len(w.run.Notes) != 1 {
		t.Errorf("%d bytes, notes %q", len(raw), w.run.Notes)
	}
}

// BenchmarkChurn is a day on a host with a thousand containers, each of which lives
// for an hour: 24,000 names, and of each ten series, one of which starts at zero.
// It says what a day takes, on disk and in memory.
func BenchmarkChurn(b *testing.B) {
	const containers, lives, rounds = 1000, 24, 60
	for range b.N {
		dir := filepath.Join(b.TempDir(), "run")
		w, err := Create(dir, plan())
		if err != nil {
			b.Fatal(err)
		}
		var signals []*model.Signal
		for i := range 10 {
			signals = append(signals, &model.Signal{Name: fmt.Sprintf("container_signal_%d", i), Labels: []string{"path"}, StartsAtZero: i == 0})
		}
		for r := range lives * rounds {
			for c := range containers {
				name := fmt.Sprintf("/system.slice/docker-%064x.scope", c+containers*(r/rounds))
				for i, sig := range signals {
					w.Sample("local", start+int64(r)*60_000, sig, float64(r*i), name)
				}
			}
			if err := w.Commit(); err != nil {
				b.Fatal(err)
			}
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MB-memory")
		b.ReportMetric(float64(sizeOf(b, dir))/(1<<20), "MB-log")
		b.ReportMetric(float64(len(w.series.refs)), "series")
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(sizeOf(b, dir))/(1<<20), "MB-closed")
	}
}

func sizeOf(b *testing.B, dir string) (n int64) {
	b.Helper()
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			n += info.Size()
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return n
}
