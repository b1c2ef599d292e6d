package writer

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
)

var (
	gauge   = &model.Signal{Name: "g", Kind: model.Gauge, Labels: []string{"dev"}}
	counted = &model.Signal{Name: "c_total", Kind: model.Counter, Labels: []string{"kind"}, StartsAtZero: true}
)

const start = 1_700_000_000_000

func plan() model.Run {
	return model.Run{Version: "test", Started: start, Plan: model.Plan{Mode: "run", Interval: 1000}}
}

// create begins a run in a new directory.
func create(t *testing.T) (*Writer, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	w, err := Create(dir, plan())
	if err != nil {
		t.Fatal(err)
	}
	return w, dir
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// dump reads all series of a run, each as "name{labels} t:v …", t in
// milliseconds since the run's start.
func dump(t *testing.T, dir string) []string {
	t.Helper()
	run, err := record.Open(dir)
	check(t, err)
	defer run.Close()
	first, last, err := run.Span()
	check(t, err)
	var out []string
	for s, err := range run.Series(first, last, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+")) {
		check(t, err)
		line := s.Labels.String()
		for _, p := range s.Points {
			line += fmt.Sprintf(" %d:%g", p.Time-start, p.Value)
		}
		out = append(out, line)
	}
	return out
}

// threeRounds records three rounds; the second label of c_total comes late.
func threeRounds(t *testing.T, w *Writer) {
	t.Helper()
	for i := range int64(3) {
		at := start + 500 + i*1000
		w.Sample("server", at, gauge, float64(10*i), "eth0")
		w.Sample("server", at, counted, float64(i+1), "early")
		if i == 2 {
			w.Sample("server", at, counted, 7, "late")
		}
		check(t, w.Commit())
	}
}

var threeRoundsDump = []string{
	`{__name__="c_total", host="server", kind="early"} 0:0 500:1 1500:2 2500:3`,
	`{__name__="c_total", host="server", kind="late"} 1500:0 2500:7`,
	`{__name__="g", dev="eth0", host="server"} 500:0 1500:10 2500:20`,
}

func TestARunReadsTheSameFromLogAndBlock(t *testing.T) {
	w, dir := create(t)
	threeRounds(t, w)
	if diff := cmp.Diff(threeRoundsDump, dump(t, dir)); diff != "" {
		t.Errorf("from the write-ahead log (-want +got):\n%s", diff)
	}
	check(t, w.Close())
	if diff := cmp.Diff(threeRoundsDump, dump(t, dir)); diff != "" {
		t.Errorf("from the block (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "series", "wal")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the log is still there: %v", err)
	}
	run, err := record.Open(dir)
	check(t, err)
	defer run.Close()
	if !run.Meta().Closed {
		t.Error("the manifest does not say that the run is whole")
	}
}

func TestALongRunIsCutIntoSeveralBlocks(t *testing.T) {
	for _, most := range []int{1, 2, 3, 8, 9, 10} { // of 9 samples, two are zeros before the first
		w, dir := create(t)
		w.series.pieceSamples = most
		threeRounds(t, w)
		check(t, w.Close())
		if diff := cmp.Diff(threeRoundsDump, dump(t, dir)); diff != "" {
			t.Errorf("%d samples a block (-want +got):\n%s", most, diff)
		}
		found, err := os.ReadDir(filepath.Join(dir, "series"))
		check(t, err)
		if want := (9 + most - 1) / most; len(found) != want {
			t.Errorf("%d samples a block: %v, want %d blocks and nothing else", most, found, want)
		}
	}
}

func TestTheLogCountsAsLongAsItIsThere(t *testing.T) {
	w, dir := create(t)
	threeRounds(t, w)
	wal, kept := filepath.Join(dir, "series", "wal"), filepath.Join(t.TempDir(), "wal")
	check(t, os.CopyFS(kept, os.DirFS(wal)))
	w.series.pieceSamples = 3
	check(t, w.Close())
	// Killed when the first of the blocks had its name.
	check(t, os.CopyFS(wal, os.DirFS(kept)))
	found, err := filepath.Glob(filepath.Join(dir, "series", "*", "index"))
	check(t, err)
	check(t, os.RemoveAll(filepath.Dir(found[1])))
	if diff := cmp.Diff(threeRoundsDump, dump(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARunIsItsOwnersAlone(t *testing.T) {
	w, dir := create(t)
	check(t, w.Close())
	check(t, Verdict(dir, nil))
	for name, want := range map[string]fs.FileMode{".": 0o700, "run.json": 0o600, "events.jsonl": 0o600, "verdict.json": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		check(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s: mode %o, want %o", name, got, want)
		}
	}
}

func TestManyNotesAreCutOff(t *testing.T) {
	w, dir := create(t)
	for i := range 10 * maxNotes {
		w.Note(fmt.Sprint("note ", i))
	}
	check(t, w.Close())
	run, err := record.Open(dir)
	check(t, err)
	defer run.Close()
	notes := run.Meta().Notes
	if len(notes) != maxNotes+1 || notes[0] != "note 0" || notes[maxNotes] != "there was more to note than is kept" {
		t.Errorf("%d notes, from %q to %q", len(notes), notes[0], notes[len(notes)-1])
	}
}

func TestManifestEventsAndLatency(t *testing.T) {
	w, dir := create(t)
	w.Status("server", "g", model.Status{State: model.Read})
	w.Status("server", "h", model.Status{State: model.Denied, Why: "run as root"})
	w.Note("sampled less often")
	w.Note("sampled less often")
	w.Event(model.Event{Time: start, Host: "server", Kind: "kernel.log", Text: "one\nline"})
	w.Sample("server", start+1, gauge, 1, "")
	check(t, w.Commit())
	check(t, w.Update(func(r *model.Run) {
		r.Windows = append(r.Windows, model.Window{Name: model.Hold, Start: start})
	}))
	for i := range int64(2) {
		h := hdr.New(1, 60_000_000, 3)
		check(t, h.RecordValues(1000*(i+1), 10))
		enc, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
		check(t, err)
		w.Interval(start+i*1000, start+i*1000+1000, "response", string(enc))
	}
	check(t, w.Commit())

	run, err := record.Open(dir) // as it is while recording
	check(t, err)
	defer run.Close()
	if diff := cmp.Diff([]model.Window{{Name: model.Hold, Start: start, End: start + 1}}, run.Meta().Windows); diff != "" {
		t.Errorf("an open window ends with the last sample (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]model.Status{"g": {State: model.Read}, "h": {State: model.Denied, Why: "run as root"}}, run.Meta().Status["server"]); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"sampled less often"}, run.Meta().Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	for e, err := range run.Events() {
		check(t, err)
		if e.Text != "one\nline" {
			t.Errorf("event %q", e.Text)
		}
	}
	h, err := run.Histogram("response", start, start+5000)
	check(t, err)
	if h.TotalCount() != 20 || h.Max() < 2000 || h.Max() > 2010 {
		t.Errorf("histogram: %d values, at most %d", h.TotalCount(), h.Max())
	}
	if h, err := run.Histogram("service", start, start+5000); h != nil || err != nil {
		t.Errorf("a tag nobody wrote: %v, %v", h, err)
	}
	f, err := os.Open(filepath.Join(dir, record.LatencyFile))
	check(t, err)
	defer f.Close()
	std := hdr.NewHistogramLogReader(f)
	first, err := std.NextIntervalHistogram()
	check(t, err)
	if first == nil || first.Tag() != "response" || first.StartTimeMs() != start || first.TotalCount() != 10 {
		t.Errorf("the library's own reader reads %+v", first)
	}
	check(t, w.Close())
}

func TestWhatMustNotBeRecordedEndsTheRecording(t *testing.T) {
	for name, c := range map[string]struct {
		record func(w *Writer)
		want   string
	}{
		"a label value too few": {func(w *Writer) { w.Sample("h", start, gauge, 1) }, `g: 0 label values [], want one for each of ["dev"]`},
		"not a number":          {func(w *Writer) { w.Sample("h", start, gauge, nan(), "x") }, "g on h: not a number; what was not read must not be recorded"},
		"time runs back": {func(w *Writer) {
			w.Sample("h", start+10, gauge, 1, "x")
			w.Sample("h", start+5, gauge, 1, "x")
		}, "time runs forward in a series"},
		"no histogram": {func(w *Writer) { w.Interval(start, start+1, "response", "AAAA") }, "latency interval response: want an HdrHistogram"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := create(t)
			c.record(w)
			for _, err := range []error{w.Commit(), w.Update(func(*model.Run) {}), w.Close()} {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q in it", err, c.want)
				}
			}
		})
	}
}

func nan() float64 { z := 0.0; return z / z }

func TestASecondValueInTheSameMillisecondComesOneLater(t *testing.T) {
	w, dir := create(t)
	w.Sample("h", start, gauge, 1, "x")
	w.Sample("h", start, gauge, 2, "x")
	check(t, w.Commit())
	check(t, w.Close())
	if diff := cmp.Diff([]string{`{__name__="g", dev="x", host="h"} 0:1 1:2`}, dump(t, dir)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestZeroOfACounterThatStartsAtZero(t *testing.T) {
	for name, c := range map[string]struct {
		record func(w *Writer)
		want   string
	}{
		"an interval earlier when nothing was read before": {
			func(w *Writer) { w.Sample("h", start+5000, counted, 3, "k") }, "4000:0 5000:3"},
		"not before the run's start": {
			func(w *Writer) { w.Sample("h", start+300, counted, 3, "k") }, "0:0 300:3"},
		"a millisecond earlier where there is no room": {
			func(w *Writer) { w.Sample("h", start, counted, 3, "k") }, "-1:0 0:3"},
		"at the signal's reading before it": {func(w *Writer) {
			w.Sample("h", start+2100, counted, 1, "a")
			w.Sample("h", start+5000, counted, 3, "k")
		}, "2100:0 5000:3"},
	} {
		t.Run(name, func(t *testing.T) {
			w, dir := create(t)
			c.record(w)
			check(t, w.Close())
			lines := dump(t, dir)
			want := `{__name__="c_total", host="h", kind="k"} ` + c.want
			if got := lines[len(lines)-1]; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	w, dir := create(t)
	var wg sync.WaitGroup
	for host := range 4 {
		wg.Go(func() {
			for i := range int64(100) {
				w.Sample(fmt.Sprint(host), start+i, gauge, 1, "x")
				w.Status(fmt.Sprint(host), "g", model.Status{State: model.Read})
				w.Event(model.Event{Time: start})
				w.Note(fmt.Sprint(host))
				if err := w.Commit(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	check(t, w.Close())
	if got := len(dump(t, dir)); got != 4 {
		t.Errorf("%d series, want 4", got)
	}
}

func TestCreateRefusesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "x"), nil, 0o600))
	_, err := Create(dir, plan())
	if want := dir + ": holds something already; name a directory that is new or empty"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	check(t, os.Chmod(dir, 0o755))
	_, err = Create(dir, plan())
	if info, e := os.Stat(dir); err == nil || e != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v: a directory that is in use, maybe / itself, must stay open to others", info.Mode(), err)
	}
	if _, err := Create(filepath.Join(dir, "x", "y"), plan()); err == nil {
		t.Error("a directory below a file: no error")
	}
}

// TestKilled records in a child process, kills it with SIGKILL in the middle
// of a round, and opens what it left.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("PLIMSOLL_TEST_RECORD_IN"); dir != "" {
		recordForever(dir)
		return
	}
	dir := filepath.Join(t.TempDir(), "run")
	child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	child.Env = append(os.Environ(), "PLIMSOLL_TEST_RECORD_IN="+dir)
	out, err := child.StdoutPipe()
	check(t, err)
	check(t, child.Start())
	committed := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, err := fmt.Sscanf(lines.Text(), "committed %d", &committed); err == nil && committed == 40 {
			break
		}
	}
	check(t, child.Process.Signal(syscall.SIGKILL))
	_ = child.Wait()

	run, err := record.Open(dir)
	check(t, err)
	defer run.Close()
	first, last, err := run.Span()
	check(t, err)
	if first != start || last < start+39_000 {
		t.Errorf("samples from %d to %d ms, want from 0 to at least 39000", first-start, last-start)
	}
	w := run.Meta().Windows[0]
	if run.Meta().Closed || w.End != last {
		t.Errorf("closed %v, window %+v: want an open run whose window ends at %d", run.Meta().Closed, w, last)
	}
	if n := len(dump(t, dir)); n != 500 {
		t.Errorf("%d series, want 500", n)
	}
}

// recordForever is the child: it records until it is killed.
func recordForever(dir string) {
	w, err := Create(dir, plan())
	if err != nil {
		fmt.Println(err)
		return
	}
	err = w.Update(func(r *model.Run) { r.Windows = []model.Window{{Name: model.Hold, Start: start}} })
	for i := int64(0); err == nil; i++ {
		for dev := range 500 {
			w.Sample("h", start+i*1000, gauge, float64(i), fmt.Sprint(dev))
		}
		err = w.Commit()
		fmt.Println("committed", i+1)
	}
	fmt.Println(err)
}

// TestDiskFull records on a file system of two megabytes until it is full.
func TestDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system takes root")
	}
	mnt := t.TempDir()
	if err := syscall.Mount("plimsoll-test", mnt, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("no small file system to be had: %v", err)
	}
	defer syscall.Unmount(mnt, syscall.MNT_DETACH) // after an error the log keeps its file open
	dir := filepath.Join(mnt, "run")
	w, err := Create(dir, plan())
	check(t, err)
	rounds := int64(0)
	for ; err == nil && rounds < 10_000; rounds++ {
		for dev := range 500 {
			// Values that do not compress.
			w.Sample("h", start+rounds*1000, gauge, float64(rounds*7919%1000003)*1.1e-7*float64(dev+1), fmt.Sprint(dev))
		}
		err = w.Commit()
	}
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "the disk is full; free some space") {
		t.Fatalf("after %d rounds: %v, want the sentence on a full disk", rounds, err)
	}
	if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Close: %v, want the same", err)
	}
	run, err := record.Open(dir)
	check(t, err)
	_, last, err := run.Span()
	check(t, err)
	if want := start + (rounds-2)*1000; last != want {
		t.Errorf("the last sample is of %d, want %d, the last round committed", last-start, want-start)
	}
	check(t, run.Close())
}

// BenchmarkRound answers: what does a steady round of 5,000 series cost?
// go test -bench Round -benchmem ./internal/record/writer
func BenchmarkRound(b *testing.B) {
	w, err := Create(filepath.Join(b.TempDir(), "run"), plan())
	if err != nil {
		b.Fatal(err)
	}
	devs := make([]string, 5000)
	for i := range devs {
		devs[i] = fmt.Sprintf("device-%04d", i)
	}
	at := int64(start)
	for b.Loop() {
		at += 1000
		for i, dev := range devs {
			w.Sample("server", at, gauge, float64(at%1000+int64(i)), dev)
		}
		if err := w.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/5, "ns/1000samples")
	began := time.Now()
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-to-close")
}
