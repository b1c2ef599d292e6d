package writer_test

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
)

var (
	ringGauge   = &model.Signal{Name: "ring_round", Kind: model.Gauge, Labels: []string{"cpu"}}
	ringCounter = &model.Signal{Name: "ring_lost_total", Kind: model.Counter, StartsAtZero: true}
)

func noRescue(dir string) error { return fmt.Errorf("%s: there is something to rescue", dir) }

func openRing(t *testing.T, keep time.Duration, most int64) (*writer.Ring, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ring")
	r, err := writer.OpenRing(dir, model.Run{Started: 1_000_000, Plan: model.Plan{Mode: "watch", Interval: 1000}}, keep, most, noRescue)
	if err != nil {
		t.Fatal(err)
	}
	return r, dir
}

// ringRound records round n, counted from 1, a second each.
func ringRound(t *testing.T, r *writer.Ring, n int) {
	t.Helper()
	at := int64(1_000_000 + 1000*n)
	for cpu := range 8 {
		r.Sample("web", at, ringGauge, float64(n), strconv.Itoa(cpu))
	}
	if n > 2 { // it was met after others were read
		r.Sample("web", at, ringCounter, float64(n))
	}
	r.Event(model.Event{Time: at, Kind: "log", Text: fmt.Sprintf("round %d", n)})
	if n%50 == 0 {
		r.Note(fmt.Sprintf("note %d", n))
	}
	if err := r.Commit(); err != nil {
		t.Fatal(err)
	}
}

// points of a series in a run directory.
func pointsIn(t *testing.T, dir, name string) (points []record.Point) {
	t.Helper()
	run, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	first, last, err := run.Span()
	if err != nil {
		t.Fatal(err)
	}
	q, err := run.Queryable().Querier(first, last)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	set := q.Select(t.Context(), false, nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", name))
	for n := 0; set.Next(); n++ {
		points = points[:0]
		it := set.At().Iterator(nil)
		for it.Next() != chunkenc.ValNone {
			at, v := it.At()
			points = append(points, record.Point{Time: at, Value: v})
		}
		if n >= 8 {
			t.Errorf("%s: more series than were recorded: a part declared one anew", name)
		}
	}
	if set.Err() != nil {
		t.Fatal(set.Err())
	}
	return points
}

// A ring holds the newest minutes and no more, each series in one piece, a counter without a zero that never was.
func TestRingKeepsTheNewest(t *testing.T) {
	r, dir := openRing(t, 80*time.Second, 1<<30)
	for n := 1; n <= 500; n++ {
		ringRound(t, r, n)
		if n == 60 {
			if p := pointsIn(t, dir, ringCounter.Name); p[0].Value != 0 || p[0].Time != 1_002_000 {
				t.Errorf("the first is %v, want the zero before it", p[0])
			}
		}
	}
	for _, name := range []string{ringGauge.Name, ringCounter.Name} {
		p := pointsIn(t, dir, name)
		if len(p) < 80 || len(p) > 101 || p[len(p)-1].Value != 500 {
			t.Fatalf("%s: %d readings, from %v to %v; want the last 80 to 100", name, len(p), p[0], p[len(p)-1])
		}
		for i := 1; i < len(p); i++ {
			if p[i].Value != p[i-1].Value+1 {
				t.Fatalf("%s: %v after %v", name, p[i], p[i-1])
			}
		}
	}
	run, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	var events []model.Event
	for e, err := range run.Events() {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	if len(events) < 80 || len(events) > 101 || events[len(events)-1].Text != "round 500" {
		t.Errorf("%d events; want those of the last 80 to 100 rounds", len(events))
	}
	if notes := run.Meta().Notes; len(notes) != 2 || notes[1] != "note 500" {
		t.Errorf("notes %q, want those of the kept time", notes)
	}
	if back, _ := r.Kept(); back < 80*time.Second || back > 100*time.Second {
		t.Errorf("it says that it goes back %v", back)
	}
	if err := r.Discard(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v is left of what was discarded", left, err)
	}
}

// Names that come and go leave nothing behind, and bytes are bounded as time is.
func TestRingIsBounded(t *testing.T) {
	const most = 1 << 20
	r, dir := openRing(t, 24*time.Hour, most)
	for n := range 3000 {
		at := int64(1_000_000 + 1000*n)
		for i := range 100 {
			r.Sample("web", at, ringGauge, float64(n), fmt.Sprintf("%x-%d-%d", sha256.Sum256([]byte{byte(n), byte(n >> 8), byte(i)}), n, i))
		}
		if err := r.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	var bytes int64
	files, err := filepath.Glob(filepath.Join(dir, "series/wal/*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
	}
	if back, said := r.Kept(); bytes > most*5/4 || said < bytes/2 || said > bytes*2 || back == 0 {
		t.Errorf("%d bytes in %d files, it says %d, back to %v; want at most %d", bytes, len(files), said, back, most)
	}
	run, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if st := run.Meta().Status["web"][ringGauge.Name]; st.State == model.Failed {
		t.Errorf("after 300,000 names that are gone: %+v", st)
	}
	if err := errors.Join(run.Close(), r.Discard()); err != nil {
		t.Fatal(err)
	}
}

// A copy is a run like any other, and recording goes on.
func TestRingIsCopied(t *testing.T) {
	r, dir := openRing(t, 80*time.Second, 1<<30)
	copied := filepath.Join(t.TempDir(), "run")
	if err := r.CopyTo(copied, func(*model.Run) {}, writer.Finish); err == nil {
		t.Error("there is a copy of nothing")
	}
	for n := 1; n <= 200; n++ {
		ringRound(t, r, n)
	}
	if err := r.Profile("cpu", []byte("stacks")); err != nil {
		t.Fatal(err)
	}
	r.Traced(model.Tracing{Level: "full", Profiles: []string{"cpu"}})
	if err := r.CopyTo(copied, func(run *model.Run) { run.Notes = append(run.Notes, "copied") }, writer.Finish); err != nil {
		t.Fatal(err)
	}
	ringRound(t, r, 201)
	run, err := record.Open(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	meta := run.Meta()
	p := pointsIn(t, copied, ringGauge.Name)
	if !meta.Closed || len(meta.Windows) != 1 || meta.Windows[0].End != 1_200_000 || len(p) < 80 || p[len(p)-1].Value != 200 || meta.Notes[len(meta.Notes)-1] != "copied" {
		t.Errorf("closed %v, windows %+v, notes %q, %d readings", meta.Closed, meta.Windows, meta.Notes, len(p))
	}
	if raw, err := record.Stacks(copied, "cpu"); err == nil && len(raw) == 0 {
		t.Error("the stacks are not in the copy")
	}
	if _, err := os.Stat(filepath.Join(copied, "cpu.pb.gz")); err != nil {
		t.Error(err)
	}
	if p := pointsIn(t, dir, ringGauge.Name); p[len(p)-1].Value != 201 {
		t.Error("recording did not go on")
	}
	if err := r.Discard(); err != nil {
		t.Fatal(err)
	}
}

func TestRingIsOneProcessAlone(t *testing.T) {
	r, dir := openRing(t, time.Minute, 1<<30)
	if _, err := writer.OpenRing(dir, model.Run{}, time.Minute, 1<<30, noRescue); !errors.Is(err, writer.ErrTaken) {
		t.Errorf("a second one is opened in it: %v", err)
	}
	if err := r.Discard(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "letter.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.OpenRing(dir, model.Run{}, time.Minute, 1<<30, noRescue); err == nil || !strings.Contains(err.Error(), "is no ring") {
		t.Errorf("somebody's directory is taken for a ring: %v", err)
	}
}

// ringChild is set in a process that records in a ring until it is killed.
const ringChild = "PLIMSOLL_TEST_RING"

// TestRingChild is that process.
func TestRingChild(t *testing.T) {
	dir := os.Getenv(ringChild)
	if dir == "" {
		return
	}
	rescued := func(ring string) error {
		return writer.Rescue(ring, dir+"-rescued", func(*model.Run) bool { return true }, writer.Finish)
	}
	r, err := writer.OpenRing(dir, model.Run{Started: 1_000_000, Plan: model.Plan{Mode: "watch", Interval: 1000}}, 10*time.Second, 1<<30, rescued)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; ; n++ {
		ringRound(t, r, n)
		fmt.Println("round", n)
	}
}

// Killed at any moment, a hundred times, a ring opens up to its last round; the next process makes a run of it.
func TestKilledRingOpens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ring")
	for kill := range 100 {
		last := killRing(t, dir, 1+rand.N(60))
		p := pointsIn(t, dir, ringGauge.Name)
		if got := int(p[len(p)-1].Value); got < last || got > last+20000 || len(p) < min(last, 10) {
			t.Fatalf("kill %d: after round %d there are %d readings up to %d", kill, last, len(p), got)
		}
		if kill > 0 { // what the one before left
			if run, err := record.Open(dir + "-rescued"); err != nil || !run.Meta().Closed {
				t.Fatalf("kill %d: rescued: %v", kill, err)
			} else if err := errors.Join(run.Close(), os.RemoveAll(dir+"-rescued")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// killRing lets a process record so many rounds and more, kills it, and returns the last one of which it told.
func killRing(t *testing.T, dir string, rounds int) (last int) {
	t.Helper()
	c := exec.Command("/proc/self/exe", "-test.run=^TestRingChild$", "-test.v")
	c.Env = append(os.Environ(), ringChild+"="+dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		said = append(said, lines.Text())
		if n, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "round ")); err == nil {
			last = n
		}
		if last == rounds {
			_ = c.Process.Kill()
		}
	}
	_ = c.Wait()
	if last < rounds {
		t.Fatalf("it ended by itself:\n%s", strings.Join(said, "\n"))
	}
	return last
}

// Events are of what a ring takes on disk, and those that were too many leave room for later ones.
func TestRingIsBoundedWithItsEvents(t *testing.T) {
	const most = 1 << 20
	r, dir := openRing(t, 24*time.Hour, most)
	long, tooLong := strings.Repeat("a line of a log ", 1<<10), strings.Repeat("a b ", 1<<18)
	for n := 1; n <= 200; n++ {
		r.Event(model.Event{Time: int64(1_000_000 + 1000*n), Kind: "log", Text: long})
		if n%50 == 0 {
			r.Event(model.Event{Time: int64(1_000_000 + 1000*n), Kind: "log", Text: tooLong})
		}
		ringRound(t, r, n)
	}
	info, err := os.Stat(filepath.Join(dir, record.EventsFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, bytes := r.Kept(); info.Size() > most || bytes < info.Size() || bytes > 2*most {
		t.Errorf("events of %d bytes, and it says that it takes %d; want %d at most", info.Size(), bytes, most)
	}
	run, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	var last string
	for e, err := range run.Events() {
		if err != nil {
			t.Fatal(err)
		}
		last = e.Text
	}
	if last != "round 200" {
		t.Errorf("the last event is %.40q, want that of the last round", last)
	}
}

// A copy that cannot be made leaves no directory.
func TestRingCopyThatFailsLeavesNothing(t *testing.T) {
	r, dir := openRing(t, time.Hour, 1<<30)
	ringRound(t, r, 1)
	ringRound(t, r, 2)
	if err := os.Remove(filepath.Join(dir, record.EventsFile)); err != nil {
		t.Fatal(err)
	}
	shelf := t.TempDir()
	if err := r.CopyTo(filepath.Join(shelf, "run"), func(*model.Run) {}, writer.Finish); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%v, want that a file is missing", err)
	}
	if left, err := os.ReadDir(shelf); err != nil || len(left) > 0 {
		t.Errorf("%v, %v is left of it", left, err)
	}
}

// smallDisk is a directory on a disk of its own, with room for so many bytes.
func smallDisk(t *testing.T, bytes int64) string {
	t.Helper()
	small := t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); errors.Is(err, unix.EPERM) {
		t.Skip("a disk of its own needs root")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	return small
}

// Where there is no room for a copy none is begun, and what there is and would have to be is said.
func TestRingCopyLooksForRoomFirst(t *testing.T) {
	small := smallDisk(t, 8<<10)
	r, _ := openRing(t, time.Minute, 1<<20)
	for n := range 500 {
		ringRound(t, r, n)
	}
	err := r.CopyTo(filepath.Join(small, "run"), func(*model.Run) {}, writer.Finish)
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "about") || !strings.Contains(err.Error(), "MB are needed") {
		t.Errorf("%v, want what is needed", err)
	}
	if left, err := os.ReadDir(small); err != nil || len(left) > 0 {
		t.Errorf("%v %v is left", left, err)
	}
}

// What is rescued is tried, whatever room is thought to be needed: it is dropped otherwise. Of what fails nothing is left.
func TestRescueTriesWithLittleRoom(t *testing.T) {
	r, dir := openRing(t, time.Hour, 1<<30)
	for n := range 2000 {
		ringRound(t, r, n)
	}
	bytes := bytesUnder(t, dir)
	any := func(*model.Run) bool { return true }
	enough, little := smallDisk(t, bytes*3/2), smallDisk(t, bytes/2)
	run := filepath.Join(enough, "run")
	if err := writer.Rescue(dir, run, any, writer.Finish); err != nil && !(errors.Is(err, unix.ENOSPC) && errors.As(err, new(writer.CutOff))) {
		t.Fatal(err)
	}
	if p := pointsIn(t, run, ringGauge.Name); p[len(p)-1].Value != 1999 {
		t.Errorf("it ends with %v", p[len(p)-1])
	}
	if err := writer.Rescue(dir, filepath.Join(little, "run"), any, writer.Finish); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v, want that the disk is full", err)
	}
	if left, err := os.ReadDir(little); err != nil || len(left) > 0 {
		t.Errorf("%v %v is left", left, err)
	}
}

// What closes a copy fails just when a machine suffers: the copy stays, without what was half made. On a full disk it stays only where
// it cannot be made again, and one that was closed before is closed.
func TestCopyThatCannotBeClosed(t *testing.T) {
	r, ring := openRing(t, time.Hour, 1<<30)
	for n := 1; n <= 100; n++ {
		ringRound(t, r, n)
	}
	killed := errors.New("signal: killed")
	fails := func(err error) func(string) error {
		return func(dir string) error {
			return errors.Join(os.MkdirAll(filepath.Join(dir, record.SeriesDir, "cut.tmp", "head"), 0o700), err)
		}
	}
	closedFirst := func(dir string) error { return errors.Join(writer.Finish(dir), killed) }
	copied := func(dir string, finish func(string) error) error { return r.CopyTo(dir, func(*model.Run) {}, finish) }
	rescued := func(dir string, finish func(string) error) error {
		return writer.Rescue(ring, dir, func(*model.Run) bool { return true }, finish)
	}
	for name, c := range map[string]struct {
		make                  func(dir string, finish func(string) error) error
		finish                func(string) error
		stays, cutOff, closed bool
	}{
		"copied, killed":                  {copied, fails(killed), true, true, false},
		"rescued, killed":                 {rescued, fails(killed), true, true, false},
		"copied, the disk is full":        {copied, fails(unix.ENOSPC), false, false, false},
		"rescued, the disk is full":       {rescued, fails(unix.ENOSPC), true, true, false},
		"copied, killed when it had done": {copied, closedFirst, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			err := c.make(dir, c.finish)
			if errors.As(err, new(writer.CutOff)) != c.cutOff || (err == nil) != c.closed {
				t.Fatalf("it says %v", err)
			}
			if _, err := os.Stat(dir); (err == nil) != c.stays {
				t.Fatalf("is it there? %v", err)
			} else if !c.stays {
				return
			}
			run, err := record.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			notes := strings.Join(run.Meta().Notes, "\n")
			if run.Meta().Closed != c.closed || strings.Contains(notes, "could not be closed") != c.cutOff {
				t.Errorf("closed %v, notes %s", run.Meta().Closed, notes)
			}
			if _, err := os.Stat(filepath.Join(dir, record.SeriesDir, "cut.tmp")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("is cut.tmp gone? %v", err)
			}
			if p := pointsIn(t, dir, ringGauge.Name); len(p) != 100 || p[99].Value != 100 {
				t.Errorf("%d readings of 100", len(p))
			}
		})
	}
	if err := r.Discard(); err != nil {
		t.Fatal(err)
	}
}

// bytesUnder is how many bytes the files in a directory have together.
func bytesUnder(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// What could not be emptied whole is a ring the next time.
func TestRingEmptiedInPart(t *testing.T) {
	r, dir := openRing(t, time.Hour, 1<<30)
	ringRound(t, r, 1)
	busy := filepath.Join(dir, "series")
	if err := unix.Mount("tmpfs", busy, "tmpfs", 0, ""); errors.Is(err, unix.EPERM) {
		t.Skip("it takes root to make a directory that cannot be removed")
	} else if err != nil {
		t.Fatal(err)
	}
	err := r.Discard()
	if unmounted := unix.Unmount(busy, unix.MNT_DETACH); unmounted != nil || err == nil {
		t.Fatalf("%v, and discarding says %v", unmounted, err)
	}
	again, err := writer.OpenRing(dir, model.Run{Plan: model.Plan{Interval: 1000}}, time.Hour, 1<<30, func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Discard(); err != nil {
		t.Fatal(err)
	}
}

// In a ring, a series whose labels are those of one that is gone is recorded from then on; a copy of both is closed.
func TestRingForgetsWhoseLabelsTheyWere(t *testing.T) {
	r, dir := openRing(t, 80*time.Second, 1<<30)
	for n := 1; n <= 300; n++ {
		at := int64(1_000_000 + 1000*n)
		if n <= 100 {
			r.Sample("web", at, ringGauge, 1, "password=a")
		}
		r.Sample("web", at, ringGauge, 2, "password=b")
		if err := r.Commit(); err != nil {
			t.Fatal(err)
		}
		if n != 120 && n != 300 {
			continue
		}
		want := map[int]float64{120: 1, 300: 2}[n]
		copied := filepath.Join(t.TempDir(), "copy")
		if err := r.CopyTo(copied, func(*model.Run) {}, writer.Finish); err != nil {
			t.Fatal(err)
		}
		for _, d := range []string{dir, copied} {
			if p := pointsIn(t, d, ringGauge.Name); len(p) == 0 || p[0].Value != want || p[len(p)-1].Value != want {
				t.Errorf("after %d rounds in %s: %v, want %g", n, d, p, want)
			}
		}
	}
	if err := r.Discard(); err != nil {
		t.Fatal(err)
	}
}
