package record_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
)

const start = 1_700_000_000_000

var (
	gauge    = &model.Signal{Name: "g"}
	outcomes = &model.Signal{Name: "plimsoll_load_outcomes_total", Labels: []string{"phase", "outcome"}, StartsAtZero: true}
	targets  = &model.Signal{Name: "plimsoll_load_target_outcomes_total", Labels: []string{"target", "outcome"}, StartsAtZero: true}
	statuses = &model.Signal{Name: "plimsoll_load_replies_total", Labels: []string{"phase", "status"}, StartsAtZero: true}
	times    = &model.Signal{Name: "plimsoll_load_target_latency_seconds", Labels: []string{"target", "quantile"}}
	latency  = &model.Signal{Name: "plimsoll_load_latency_seconds", Labels: []string{"phase", "kind", "quantile"}}
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// written makes a closed run of ten rounds and returns its directory.
func written(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	w, err := writer.Create(dir, model.Run{Version: "test", Started: start})
	check(t, err)
	for i := range int64(10) {
		w.Sample("server", start+i*1000, gauge, float64(i))
		check(t, w.Commit())
	}
	w.Event(model.Event{Time: start, Host: "server", Kind: "note", Text: "hello"})
	check(t, w.Close())
	return dir
}

// block returns the path of the run's block.
func block(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "series", "*", "index"))
	check(t, err)
	if len(found) != 1 {
		t.Fatalf("blocks %q, want one", found)
	}
	return filepath.Dir(found[0])
}

func truncate(t *testing.T, path string, keep int64) {
	t.Helper()
	check(t, os.Truncate(path, keep))
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  string // with DIR for the directory
	}{
		"no directory": {func(t *testing.T, dir string) { check(t, os.RemoveAll(dir)) },
			"DIR: no run here; plimsoll run makes one"},
		"no manifest": {func(t *testing.T, dir string) { check(t, os.Remove(filepath.Join(dir, "run.json"))) },
			"DIR: no run here; plimsoll run makes one"},
		"manifest cut short": {func(t *testing.T, dir string) { truncate(t, filepath.Join(dir, "run.json"), 40) },
			"DIR/run.json: the manifest is cut short or damaged, so the run cannot be read; take a copy of it that is whole, or run again"},
		"manifest empty": {func(t *testing.T, dir string) { truncate(t, filepath.Join(dir, "run.json"), 0) },
			"DIR/run.json: the manifest is cut short or damaged"},
		"manifest of something else": {func(t *testing.T, dir string) { replace(t, dir, `{"name": "x"}`) },
			"DIR/run.json: no layout number; this is no run's manifest"},
		"newer layout": {func(t *testing.T, dir string) { replace(t, dir, `{"format": 2, "version": "9.1", "hosts": 7}`) },
			"DIR/run.json: layout 2, written by Plimsoll 9.1; this Plimsoll reads layouts up to 1, use a newer one"},
		"series gone": {func(t *testing.T, dir string) { check(t, os.RemoveAll(filepath.Join(dir, "series"))) },
			"DIR/series: the run's series are missing"},
		"block gone": {func(t *testing.T, dir string) { check(t, os.RemoveAll(block(t, dir))) },
			"DIR/series: neither a block nor a write-ahead log in it; the run's series are gone"},
		"index cut short": {func(t *testing.T, dir string) { truncate(t, filepath.Join(block(t, dir), "index"), 30) },
			"the block is cut short or damaged, so the run's series cannot be read; take a copy of it that is whole, or run again"},
		"chunks cut short": {func(t *testing.T, dir string) { truncate(t, filepath.Join(block(t, dir), "chunks", "000001"), 20) },
			"the block is cut short or damaged"},
		"block's manifest gone": {func(t *testing.T, dir string) { check(t, os.Remove(filepath.Join(block(t, dir), "meta.json"))) },
			"the block is cut short or damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := written(t)
			c.spoil(t, dir)
			run, err := record.Open(dir)
			if run != nil || err == nil {
				t.Fatalf("%v, %v: want an error alone", run, err)
			}
			if got := strings.ReplaceAll(err.Error(), dir, "DIR"); !strings.Contains(got, c.want) {
				t.Errorf("%s\nwant: %s", got, c.want)
			}
		})
	}
}

func replace(t *testing.T, dir, manifest string) {
	t.Helper()
	check(t, os.WriteFile(filepath.Join(dir, "run.json"), []byte(manifest), 0o600))
}

func TestNoRunIsErrNotExist(t *testing.T) {
	if _, err := record.Open(filepath.Join(t.TempDir(), "nosuch")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, want fs.ErrNotExist", err)
	}
}

func TestARunWithoutASampleOpens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w, err := writer.Create(dir, model.Run{})
	check(t, err)
	check(t, w.Close())
	run, err := record.Open(dir)
	check(t, err)
	defer run.Close()
	if _, _, err := run.Span(); err == nil || !strings.Contains(err.Error(), "the run holds no sample") {
		t.Errorf("%v, want the sentence on a run without samples", err)
	}
}

func TestATornEventIsLeftOut(t *testing.T) {
	dir := written(t)
	f, err := os.OpenFile(filepath.Join(dir, record.EventsFile), os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	_, err = f.WriteString(`{"t":17000`)
	check(t, errors.Join(err, f.Close()))
	run, err := record.Open(dir)
	check(t, err)
	defer run.Close()
	var texts []string
	for e, err := range run.Events() {
		check(t, err)
		texts = append(texts, e.Text)
	}
	if diff := cmp.Diff([]string{"hello"}, texts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// loaded makes a run with two seconds of load.
func loaded(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	w, err := writer.Create(dir, model.Run{Started: start, Plan: model.Plan{
		Generator: "client", Interval: 1000,
		Load: &model.LoadPlan{Connections: 10, Targets: []model.Target{{Name: "z"}, {Name: "unused"}, {Name: "a"}, {Name: "z"}}},
	}})
	check(t, err)
	put := func(at int64, counts map[string]float64) {
		for key, n := range counts {
			phase, outcome, _ := strings.Cut(key, " ")
			w.Sample("client", start+at, outcomes, n, phase, outcome)
		}
		check(t, w.Commit())
	}
	put(1000, map[string]float64{"calm 2xx": 50})
	put(2000, map[string]float64{"calm 2xx": 50, "hold 2xx": 1000, "hold connect:timeout": 3})
	put(3000, map[string]float64{"calm 2xx": 50, "hold 2xx": 2500, "hold connect:timeout": 3, "hold 5xx": 100})
	w.Sample("client", start+2000, statuses, 900, "hold", "200")
	w.Sample("client", start+3000, statuses, 2500, "hold", "200")
	w.Sample("client", start+3000, statuses, 100, "hold", "503")
	w.Sample("client", start+3000, statuses, 50, "calm", "200")
	for quantile, v := range map[string]float64{"0.5": 0.002, "0.9": 0.004, "0.99": 0.008, "0.999": 0.016, "1": 0.032} {
		w.Sample("client", start+2000, latency, v/2, "hold", "response", quantile)
		w.Sample("client", start+3000, latency, v, "hold", "response", quantile)
		w.Sample("client", start+1000, latency, v/10, "calm", "response", quantile)
		w.Sample("client", start+3000, latency, 10*v, "hold", "waited", quantile)
	}
	for outcome, n := range map[string]float64{"2xx": 40, "expected:4xx": 2, "check:body": 3} {
		w.Sample("client", start+3000, targets, n, "z", outcome)
	}
	w.Sample("client", start+3000, targets, 1, "a", "5xx")
	w.Sample("client", start+3000, times, 0.005, "z", "0.99")
	for i := range int64(2) {
		h := hdr.New(1, 60_000_000, 3)
		check(t, h.RecordValues(1000*(i+1), 100))
		enc, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
		check(t, err)
		w.Interval(start+1000+i*1000, start+1990+i*1000, "response", string(enc))
	}
	check(t, w.Update(func(r *model.Run) {
		r.Windows = []model.Window{{Name: model.Calm, Start: start, End: start + 1000}, {Name: model.Hold, Start: start + 1000, End: start + 3000}}
	}))
	check(t, w.Close())
	return dir
}

func TestLoad(t *testing.T) {
	run, err := record.Open(loaded(t))
	check(t, err)
	defer run.Close()
	got, err := run.Load()
	check(t, err)
	want := &model.Load{
		Requests: 2600, FailedAttempts: 3, RPS: 1300, GoodRPS: 1250, GoodShare: 2500.0 / 2603,
		Outcomes:    map[string]int64{"2xx": 2500, "5xx": 100, "connect:timeout": 3},
		Statuses:    map[string]int64{"200": 2500, "503": 100},
		OtherPhases: map[string]int64{"calm": 50},
		Latency:     model.Quantiles{Count: 2600, Mean: 1500, P50: 2000, P90: 4000, P99: 8000, P999: 16000, Max: 32000},
		Waited:      model.Quantiles{Count: 2603, P50: 20000, P90: 40000, P99: 80000, P999: 160000, Max: 320000},
		Service:     model.Quantiles{Count: 2600},
		Calm:        model.Quantiles{Count: 50, P50: 200, P90: 400, P99: 800, P999: 1600, Max: 3200},
		Seconds:     2,
		Targets: []model.TargetLoad{
			{Name: "z", Requests: 45, Outcomes: map[string]int64{"2xx": 40, "expected:4xx": 2, "check:body": 3}, Latency: model.Quantiles{Count: 42, P99: 5000}},
			{Name: "a", Requests: 1, Outcomes: map[string]int64{"5xx": 1}, Latency: model.Quantiles{Count: 1}},
		},
		Course: []model.Second{
			{Time: start + 1000, Phase: "calm", Replies: 50, Good: 50},
			{Time: start + 2000, Phase: "hold", Replies: 1000, Good: 1000, Failed: 3, P50: 1000, P99: 1000},
			{Time: start + 3000, Phase: "hold", Replies: 1600, Good: 1500, P50: 2000, P99: 2000},
		},
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 0.001*math.Max(math.Abs(a), 1) })
	if diff := cmp.Diff(want, got, near, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheCourseShowsSecondsInWhichNothingEnded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w, err := writer.Create(dir, model.Run{Started: start, Plan: model.Plan{Interval: 1000, Load: &model.LoadPlan{Connections: 10}}})
	check(t, err)
	for i, n := range []float64{5, 5, 5, 9} {
		w.Sample("client", start+1000+int64(i)*1000, outcomes, n, "hold", "2xx")
		check(t, w.Commit())
	}
	check(t, w.Close())
	run, err := record.Open(dir)
	check(t, err)
	defer run.Close()
	got, err := run.Load()
	check(t, err)
	want := []model.Second{
		{Time: start + 1000, Replies: 5, Good: 5}, {Time: start + 2000}, {Time: start + 3000},
		{Time: start + 4000, Replies: 4, Good: 4},
	}
	if diff := cmp.Diff(want, got.Course); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARunWithoutOurLoadHasNone(t *testing.T) {
	run, err := record.Open(written(t))
	check(t, err)
	defer run.Close()
	if l, err := run.Load(); l != nil || err != nil {
		t.Errorf("%v, %v: want nothing", l, err)
	}
}

// Who adds latencies up leaves alone what others are shown.
func TestIntervalsAreTheSameForAll(t *testing.T) {
	run, err := record.Open(loaded(t))
	check(t, err)
	defer run.Close()
	all := func() (counts []int64) {
		for i, err := range run.Intervals() {
			check(t, err)
			counts = append(counts, i.Histogram.TotalCount())
		}
		return counts
	}
	first := all()
	sum, err := run.Histogram("response", start, start+5000)
	check(t, err)
	if _, err := run.Load(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int64{100, 100}, first); diff != "" || sum.TotalCount() != 200 {
		t.Errorf("(-want +got):\n%s; %d in all, want 200", diff, sum.TotalCount())
	}
	if diff := cmp.Diff(first, all()); diff != "" {
		t.Errorf("gone through again (-want +got):\n%s", diff)
	}
}
