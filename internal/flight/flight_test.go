package flight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sys/unix"

	"plimsoll/internal/collect"
	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
)

var busy = &model.Signal{Name: "busy", Kind: model.Gauge}

// bench is a recorder that runs, and what it was asked for.
type bench struct {
	*Recorder
	dir    string
	judged chan Judgement // what it is to find next
	told   chan string    // its notes
	mu     sync.Mutex
	runs   []string
	round  int64
}

// begin starts a recorder; verdicts come from the channel judged, one after the other.
func begin(t *testing.T, change func(*Options)) *bench {
	t.Helper()
	shelf := t.TempDir()
	b := &bench{dir: filepath.Join(t.TempDir(), "last"), judged: make(chan Judgement), told: make(chan string, 100)}
	opt := Options{Dir: b.dir, Keep: 2 * time.Minute, Run: model.Run{Plan: model.Plan{Mode: "watch", Interval: 1000}}, Most: 2, Every: time.Millisecond,
		NewRun: func() string {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.runs = append(b.runs, filepath.Join(shelf, fmt.Sprint("run", len(b.runs))))
			return b.runs[len(b.runs)-1]
		},
		Made:  func() ([]string, error) { return filepath.Glob(filepath.Join(shelf, "*")) },
		Whole: func() ([]string, error) { return filepath.Glob(filepath.Join(shelf, "*")) },
		Judge: func(ctx context.Context, dir string, last time.Duration) (Judgement, error) {
			if last == 0 {
				return Judgement{}, nil
			}
			select {
			case j := <-b.judged:
				return j, nil
			case <-ctx.Done():
				return Judgement{}, ctx.Err()
			}
		},
		Finish: func(_ context.Context, dir string) error { return writer.Finish(dir) },
		Note:   func(sentence string) { b.told <- sentence },
	}
	change(&opt)
	b.Recorder = New(opt)
	if err := b.Open([]collect.Host{{Host: model.Host{Name: "web"}}}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- b.Run(ctx, func(context.Context, time.Duration) error { return errors.New("not in a test") })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	b.record(t, 150)
	return b
}

func noChange(*Options) {}

// record records so many rounds, a second apart.
func (b *bench) record(t *testing.T, rounds int) {
	t.Helper()
	for range rounds {
		b.round++
		b.Sample("web", time.Now().UnixMilli()+1000*b.round, busy, float64(b.round))
		if err := b.Commit(collect.Round{}); err != nil {
			t.Fatal(err)
		}
	}
}

// made waits for the note that tells of a run.
func (b *bench) made(t *testing.T) model.Run {
	t.Helper()
	for note := range b.told {
		if dir, ok := strings.CutPrefix(note, "made a run of the last minutes: "); ok {
			return metaOf(t, dir)
		}
		t.Log(note)
	}
	return model.Run{}
}

func metaOf(t *testing.T, dir string) model.Run {
	t.Helper()
	run, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	return run.Meta()
}

func TestAskedForARun(t *testing.T) {
	heard := make(chan announcement, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var a announcement
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
			t.Error(err)
		}
		heard <- a
	}))
	defer hook.Close()
	b := begin(t, func(opt *Options) { opt.Every, opt.Webhook = time.Hour, hook.URL })
	dir, err := Ask(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	meta := metaOf(t, dir)
	if !meta.Closed || meta.Plan.Snapshot != whyAsked || len(meta.Hosts) != 1 || meta.Windows[0].End-meta.Windows[0].Start < 60_000 {
		t.Errorf("the run is %+v", meta)
	}
	if a := <-heard; a.Dir != dir || a.Why != whyAsked || a.Hosts[0] != "web" {
		t.Errorf("the webhook is told %+v", a)
	}
	if _, err := Ask(b.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := Ask(b.dir); err == nil || !strings.Contains(err.Error(), "at most 2 may be") {
		t.Errorf("a third one: %v, want that there may be two", err)
	}
	if n := testutil.ToFloat64(b.numbers.skipped.WithLabelValues("all")); n != 1 {
		t.Errorf("%v are counted as not made, want 1", n)
	}
	if _, err := Ask(t.TempDir()); err == nil || !strings.Contains(err.Error(), "plimsoll watch --listen") {
		t.Errorf("where no watch is: %v", err)
	}
}

// A run is made when the verdict becomes a cause, not while it is one, and no other within an hour.
func TestRunOfACause(t *testing.T) {
	b := begin(t, noChange)
	cause := func(rule string) Judgement {
		return Judgement{Answer: model.AnswerCause, Sentence: "It is " + rule, Rules: []string{rule}}
	}
	b.judged <- Judgement{Answer: model.AnswerUnclear}
	b.judged <- cause("a")
	meta := b.made(t)
	if w := meta.Windows[0]; meta.Plan.Snapshot != whyCause || w.End-w.Start != (judgedLast+burstTime).Milliseconds() {
		t.Errorf("window %+v of %q, want the last minute and the burst", w, meta.Plan.Snapshot)
	}
	b.judged <- cause("a")
	b.judged <- cause("b")
	b.judged <- Judgement{Answer: model.AnswerCause, Rules: []string{"b", "c"}}
	b.judged <- Judgement{Answer: model.AnswerCause, Rules: []string{"c", "b"}} // the same two
	b.judged <- Judgement{Answer: model.AnswerUnclear}
	b.judged <- Judgement{Answer: model.AnswerUnclear} // so the one before was looked at
	if n := testutil.ToFloat64(b.numbers.skipped.WithLabelValues("hour")); n != 2 || len(b.runs) != 1 {
		t.Errorf("%v skipped, %d runs; want two, and one", n, len(b.runs))
	}
}

// A webhook that never answers holds nobody up.
func TestWebhookThatHangs(t *testing.T) {
	stop, asked := make(chan bool), make(chan bool, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- true
		<-stop
	}))
	defer hook.Close()
	defer close(stop)
	b := begin(t, func(opt *Options) { opt.Every, opt.Most, opt.Webhook = time.Hour, 10, hook.URL })
	for n := range 4 {
		if _, err := Ask(b.dir); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			<-asked
		}
	}
	if n := testutil.ToFloat64(b.numbers.unheard); n != 2 {
		t.Errorf("%v are counted as not told: one is on its way, one waits, want 2 of 4", n)
	}
}

// The address of a webhook lets others write there: it stands in no message.
func TestWebhookIsNotSaid(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	b := begin(t, func(opt *Options) { opt.Every, opt.Webhook = time.Hour, gone.URL+"/services/plainword" })
	if _, err := Ask(b.dir); err != nil {
		t.Fatal(err)
	}
	for note := range b.told {
		if strings.Contains(note, "plainword") {
			t.Errorf("it says %q", note)
		}
		if strings.HasPrefix(note, "tell the webhook: ") {
			return
		}
	}
}

// The socket lies in the ring, wherever who owns the directory above has put it meanwhile.
func TestSocketLiesInTheRing(t *testing.T) {
	above, elsewhere := t.TempDir(), t.TempDir()
	dir, moved := filepath.Join(above, "last"), filepath.Join(above, "moved")
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, record.ManifestFile), nil, 0o600) // so it was a ring
	}
	if err != nil {
		t.Fatal(err)
	}
	begin(t, func(opt *Options) {
		newRun := opt.NewRun
		opt.Dir, opt.NewRun = dir, func() string { // it is held by then
			if err := errors.Join(os.Rename(dir, moved), os.Symlink(elsewhere, dir)); err != nil {
				t.Error(err)
			}
			return newRun()
		}
	})
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("%v, %v: it listens where the link leads", left, err)
	}
	if _, err := os.Lstat(filepath.Join(moved, socketName)); err != nil {
		t.Error(err)
	}
}

// whatWasLeft is a copy of a ring.
func whatWasLeft(t *testing.T) string {
	t.Helper()
	first := begin(t, noChange)
	left := filepath.Join(t.TempDir(), "left")
	for _, dir := range []string{"", "series"} { // but for the socket
		err := os.MkdirAll(filepath.Join(left, dir), 0o700)
		if err == nil && dir != "" {
			err = os.CopyFS(filepath.Join(left, dir), os.DirFS(filepath.Join(first.dir, dir)))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{record.ManifestFile, record.EventsFile} {
		data, err := os.ReadFile(filepath.Join(first.dir, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(left, file), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return left
}

// What a killed process left becomes a run.
func TestRunOfWhatWasLeft(t *testing.T) {
	left := whatWasLeft(t)
	b := begin(t, func(opt *Options) { opt.Dir = left })
	if meta := b.made(t); meta.Plan.Snapshot != whyKilled || !meta.Closed {
		t.Errorf("it is %+v", meta)
	}
}

// A run that cannot be closed is told so before it is told as made, and says so itself: one of what was left, and one that was asked for.
func TestRunThatCannotBeClosed(t *testing.T) {
	left := whatWasLeft(t)
	b := begin(t, func(opt *Options) {
		opt.Dir, opt.Every = left, time.Hour
		opt.Finish = func(context.Context, string) error { return errors.New("signal: killed") }
	})
	told := func(dir string) {
		t.Helper()
		if note := <-b.told; !strings.HasPrefix(note, dir+": ") || !strings.Contains(note, "signal: killed") {
			t.Errorf("first it says %q, want why %s was not closed", note, dir)
		}
		if note := <-b.told; note != "made a run of the last minutes: "+dir {
			t.Errorf("then it says %q", note)
		}
		meta := metaOf(t, dir)
		if meta.Closed || len(meta.Notes) == 0 || !strings.Contains(meta.Notes[len(meta.Notes)-1], "signal: killed") {
			t.Errorf("closed %v, notes %q", meta.Closed, meta.Notes)
		}
	}
	told(b.runs[0])
	dir, err := Ask(left)
	if err != nil {
		t.Fatal(err)
	}
	told(dir)
	if n := testutil.ToFloat64(b.numbers.skipped.WithLabelValues("failed")); n != 0 {
		t.Errorf("%v are counted as failed", n)
	}
}

// On a full disk the watch goes on; what cannot be recorded is said.
func TestFullDisk(t *testing.T) {
	small := t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=256k"); errors.Is(err, unix.EPERM) {
		t.Skip("it takes root to make a small disk")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	b := begin(t, func(opt *Options) { opt.Dir, opt.Every = filepath.Join(small, "last"), time.Hour })
	if err := os.WriteFile(filepath.Join(small, "ballast"), make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	for len(b.told) == 0 {
		b.record(t, 1)
	}
	if note := <-b.told; !strings.Contains(note, "the disk is full") {
		t.Errorf("it says %q", note)
	}
	if n := b.kept(false); n != 0 {
		t.Errorf("it says that %v s are kept", n)
	}
}

// What cannot be uploaded stays and is tried again; what was uploaded is not asked about again.
func TestUploads(t *testing.T) {
	asked, answers := make(chan string, 10), make(chan error, 10)
	b := begin(t, func(opt *Options) {
		opt.Every = time.Hour
		opt.Upload = func(_ context.Context, dir string) (string, error) {
			asked <- dir
			return "s3://runs/" + filepath.Base(dir), <-answers
		}
	})
	first, err := Ask(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	if dir := <-asked; dir != first {
		t.Errorf("%s is uploaded, want %s", dir, first)
	}
	if n := b.waiting.Load(); n != 1 {
		t.Errorf("%d wait while the first is uploaded, want 1", n)
	}
	second, err := Ask(b.dir) // while the upload lasts
	if err != nil {
		t.Fatal(err)
	}
	answers <- errors.New("the server is full")
	for range 2 {
		dir := <-asked
		if dir != first && dir != second {
			t.Errorf("%s is uploaded", dir)
		}
		answers <- nil
	}
	for _, want := range []string{"the server is full", "s3://runs/"} {
		for note := range b.told {
			if strings.Contains(note, want) {
				break
			}
		}
	}
	if n := testutil.ToFloat64(b.numbers.notUploaded); n != 1 {
		t.Errorf("%v failures are counted, want 1", n)
	}
}

// How many wait is known from the first one on, and one that was removed meanwhile is no failure.
func TestUploadsOfWhatWasThere(t *testing.T) {
	shelf := t.TempDir()
	list := []string{filepath.Join(shelf, "a"), filepath.Join(shelf, "b"), filepath.Join(shelf, "c")}
	for _, dir := range list {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var waiting []int64
	var f *Recorder
	f = New(Options{Note: func(string) {}, Whole: func() ([]string, error) { return list, nil },
		Upload: func(_ context.Context, dir string) (string, error) {
			waiting = append(waiting, f.waiting.Load())
			if filepath.Base(dir) == "b" {
				return "", errors.Join(os.Remove(dir), errors.New("it cannot be read"))
			}
			return "", nil
		}})
	if err := f.uploadAll(t.Context(), map[string]bool{}); err != nil {
		t.Errorf("the error is %v", err)
	}
	if got := fmt.Sprint(append(waiting, f.waiting.Load())); got != "[3 2 1 0]" {
		t.Errorf("so many waited: %s", got)
	}
	if n := testutil.ToFloat64(f.numbers.notUploaded); n != 0 {
		t.Errorf("%v failures are counted, want none", n)
	}
}
