package session

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/collect"
	"plimsoll/internal/load"
	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/trace"
	starts "plimsoll/internal/trace/exec"
)

// token must reach the engine and must not reach the run directory.
const token = "Authorization: Bearer 0123456789"

var plan = model.LoadPlan{URL: "http://127.0.0.1/", Headers: []string{token}, Connections: 1, DurationMS: 1000, TimeoutMS: 1000}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func options(t *testing.T, ending string) Options {
	return Options{
		Interval: 100 * time.Millisecond, Dir: filepath.Join(t.TempDir(), "run"), Version: "test",
		Engine: collect.OneProcess([]string{os.Args[0], fakeEngine, ending}), Holder: []string{os.Args[0], fakeHolder},
	}
}

func opened(t *testing.T, dir string) *record.Run {
	t.Helper()
	run, err := record.Open(dir)
	check(t, err)
	t.Cleanup(func() { check(t, run.Close()) })
	if !run.Meta().Closed {
		t.Error("the run is not closed")
	}
	return run
}

// names lists the windows' names, and checks that each begins where the one before it ends.
func names(t *testing.T, windows []model.Window) []string {
	t.Helper()
	var list []string
	for i, w := range windows {
		list = append(list, w.Name)
		if w.End <= w.Start || i > 0 && w.Start != windows[i-1].End {
			t.Errorf("windows %+v: want each to begin where the one before it ends", windows)
		}
	}
	return list
}

// readings returns the values of the one series that fits, by time.
func readings(t *testing.T, run *record.Run, name string, with map[string]string) map[int64]float64 {
	t.Helper()
	var pairs []string
	for k, v := range with {
		pairs = append(pairs, k, v)
	}
	out := map[int64]float64{}
	for s, err := range run.Series(math.MinInt64, math.MaxInt64, record.Match(name, pairs...)...) {
		check(t, err)
		for _, p := range s.Points {
			out[p.Time] = p.Value
		}
	}
	return out
}

func TestEveryWindowEndsWithAReading(t *testing.T) {
	opt := options(t, "ends well")
	check(t, Run(t.Context(), opt, plan, Phases{Baseline: 150 * time.Millisecond, Cool: 150 * time.Millisecond}))
	run := opened(t, opt.Dir)
	want := []string{model.Baseline, model.Calm, model.Ramp, model.Hold, model.Cool}
	if diff := cmp.Diff(want, names(t, run.Meta().Windows)); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
	cpu := readings(t, run, "node_context_switches_total", nil)
	replies := readings(t, run, "plimsoll_load_outcomes_total", map[string]string{"phase": model.Hold})
	for _, w := range run.Meta().Windows {
		for _, at := range []int64{w.Start, w.End} {
			if _, ok := cpu[at]; !ok {
				t.Errorf("window %s: nothing was read at %d", w.Name, at)
			}
		}
	}
	hold, _ := run.Window(model.Hold)
	if got := replies[hold.End] - replies[hold.Start]; got != 10 {
		t.Errorf("%v replies between the edges of hold, want 10", got)
	}
	l, err := run.Load()
	check(t, err)
	if l.Requests != 20 || l.OtherPhases[model.Calm] != 20 {
		t.Errorf("%d requests in hold, %v before, want 20 and 20 in calm", l.Requests, l.OtherPhases)
	}
	if c := run.Meta().Cost; c.LoadCPUSeconds != 1.5 || c.MaxRSS == 0 || c.CPUSeconds <= 0 {
		t.Errorf("cost %+v", c)
	}
}

// recording describes itself only when what it reads just then is recorded, as one in a round does.
type recording struct {
	collector
	t   *testing.T
	out *writer.Writer
}

func (r recording) About() model.Collector {
	recorded := make(chan struct{})
	go func() {
		r.out.Note("a round is taken")
		close(recorded)
	}()
	select {
	case <-recorded:
		return r.collector.About()
	case <-time.After(time.Minute):
		r.t.Error("the manifest waits for a collector that waits for the manifest")
		return model.Collector{}
	}
}

// A round that began before an edge may still be recorded when the manifest is changed there.
func TestNobodyIsAskedWhileTheManifestIsChanged(t *testing.T) {
	s, err := open(t.Context(), options(t, ""), model.Plan{})
	check(t, err)
	for i := range s.all {
		s.all[i].collector = recording{s.all[i].collector, t, s.out}
	}
	check(t, s.window(t.Context(), model.Hold))
	check(t, s.close(t.Context()))
}

func TestNoSecretIsRecorded(t *testing.T) {
	opt := options(t, "ends well")
	check(t, Run(t.Context(), opt, plan, Phases{}))
	raw, err := os.ReadFile(filepath.Join(opt.Dir, record.ManifestFile))
	check(t, err)
	if bytes.Contains(raw, []byte("Bearer")) || !bytes.Contains(raw, []byte("Authorization: (masked)")) {
		t.Errorf("run.json tells the header:\n%.500s", raw)
	}
}

// Records that waited while a round was read come all at once.
func TestManyRecordsAtOnceKeepTheirOrder(t *testing.T) {
	opt := options(t, "says much at once")
	check(t, Run(t.Context(), opt, plan, Phases{}))
	l, err := opened(t, opt.Dir).Load()
	check(t, err)
	if l.Requests != 520 {
		t.Errorf("%d requests, want 520", l.Requests)
	}
}

func TestWhenTheEngineDiesTheRunSaysSo(t *testing.T) {
	for ending, want := range map[string]string{
		"gives up":       "no such host",
		"is killed":      "the load engine's process died; dmesg tells whether memory ran out: signal: killed",
		"talks nonsense": "read what the load engine says: record 4: unexpected end of JSON input",
	} {
		t.Run(ending, func(t *testing.T) {
			opt := options(t, ending)
			err := Run(t.Context(), opt, plan, Phases{})
			if err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
			var said load.EngineError
			if errors.As(err, &said) != (ending == "gives up") || said.Code != 0 && said.Code != 4 {
				t.Errorf("%+v", said)
			}
			meta := opened(t, opt.Dir).Meta()
			names(t, meta.Windows)
			if !slices.Contains(meta.Notes, "the load ended before its time: "+want) {
				t.Errorf("notes %q", meta.Notes)
			}
		})
	}
}

// cancelIn cancels as soon as a round or record was taken in that window.
func cancelIn(t *testing.T, opt *Options, window string) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	opt.Progress = func(p Progress) {
		if p.Window == window {
			cancel()
		}
	}
	return ctx
}

func TestInterruptedBeforeHoldThereIsNothingToJudge(t *testing.T) {
	for window, phases := range map[string]Phases{model.Baseline: {Baseline: time.Hour}, model.Calm: {}} {
		opt := options(t, "waits in calm")
		err := Run(cancelIn(t, &opt, window), opt, plan, phases)
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing to judge") {
			t.Errorf("in %s: %v, want the sentence on an early end", window, err)
		}
		names(t, opened(t, opt.Dir).Meta().Windows)
	}
}

func TestALoadAloneIsInterrupted(t *testing.T) {
	for window, whole := range map[string]bool{model.Calm: false, model.Hold: true} {
		opt := options(t, "waits in "+window)
		ctx := cancelIn(t, &opt, window)
		last, err := Load(ctx, opt.Engine, plan, opt.Progress, nil)
		if errors.Is(err, context.Canceled) == whole || !last.Final || !last.Totals.Cancelled {
			t.Errorf("in %s: %v, last record %+v", window, err, last)
		}
	}
}

func TestInterruptedInHoldTheRunIsWhole(t *testing.T) {
	opt := options(t, "waits in hold")
	check(t, Run(cancelIn(t, &opt, model.Hold), opt, plan, Phases{Cool: time.Hour}))
	meta := opened(t, opt.Dir).Meta()
	if diff := cmp.Diff([]string{model.Calm, model.Ramp, model.Hold, model.Cool}, names(t, meta.Windows)); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
	if !slices.Contains(meta.Notes, "interrupted: the load was stopped before its plan was done") {
		t.Errorf("notes %q", meta.Notes)
	}
}

func TestWatchPassesTheExitCodeOn(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -KILL $$": 137} {
		opt := options(t, "")
		code, err := Watch(t.Context(), opt, 0, []string{"sh", "-c", script}, WatchIO{})
		check(t, err)
		if code != want {
			t.Errorf("%s: %d, want %d", script, code, want)
		}
		meta := opened(t, opt.Dir).Meta()
		if diff := cmp.Diff([]string{model.Baseline, model.Hold}, names(t, meta.Windows)); diff != "" {
			t.Errorf("windows (-want +got):\n%s", diff)
		}
	}
}

func TestWatchInterrupted(t *testing.T) {
	opt := options(t, "")
	code, err := Watch(cancelIn(t, &opt, model.Hold), opt, 0, []string{"sleep", "600"}, WatchIO{})
	check(t, err)
	if code != 128+int(syscall.SIGTERM) {
		t.Errorf("%d, want that of SIGTERM", code)
	}
	opt = options(t, "")
	_, err = Watch(cancelIn(t, &opt, model.Baseline), opt, 0, []string{"sleep", "600"}, WatchIO{})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "before sleep was started") {
		t.Errorf("%v, want the sentence on an early end", err)
	}
}

func TestWatchForATimeEndsBeforeTheCommand(t *testing.T) {
	opt := options(t, "")
	var out bytes.Buffer
	// The command ends when the manifest tells the ends of baseline and hold.
	script := `until [ "$(grep -c '"end_ms": [1-9]' ` + opt.Dir + `/run.json)" = 2 ]; do sleep 0.05; done; echo said; exit 3`
	code, err := Watch(t.Context(), opt, 200*time.Millisecond, []string{"sh", "-c", script}, WatchIO{Stdout: &out})
	check(t, err)
	if code != 3 || out.String() != "said\n" {
		t.Errorf("exit code %d, output %q: want 3 and said", code, out.String())
	}
	names(t, opened(t, opt.Dir).Meta().Windows)
}

// A recorder that fails must not leave the user's command running unwatched.
func TestWhenRecordingFailsTheCommandIsEnded(t *testing.T) {
	opt := options(t, "")
	var s *session
	opt.Progress = func(p Progress) {
		if p.Window == model.Hold {
			s.out.Sample("local", 0, &model.Signal{Name: "g"}, math.NaN())
		}
	}
	s, err := open(t.Context(), opt, model.Plan{Mode: "watch", Command: []string{"sh"}, Interval: 100})
	check(t, err)
	var out bytes.Buffer
	_, err = s.watchCommand(t.Context(), t.Context(), 0, "/bin/sh", []string{"sh", "-c", "echo $$; exec sleep 600"}, WatchIO{Stdout: &out})
	if err == nil || !strings.Contains(err.Error(), "not a number") {
		t.Errorf("%v, want the recorder's error", err)
	}
	if err := s.close(t.Context()); err == nil {
		t.Error("closing lost the error")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(out.String()))
	check(t, err)
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the command runs on: %v", err)
	}
}

func TestAHostThatGoesAwayIsNoted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a network namespace takes root")
	}
	host := exec.Command("unshare", "-n", "sh", "-c", "echo ready; exec sleep 600")
	ready, err := host.StdoutPipe()
	check(t, err)
	check(t, host.Start())
	defer host.Process.Kill()
	_, err = ready.Read(make([]byte, 1))
	check(t, err)
	go host.Wait()
	pid := strconv.Itoa(host.Process.Pid)
	opt := options(t, "")
	opt.Hosts = []HostSpec{{Name: "here", Spec: "local"}, {Name: "app", Spec: "pid:" + pid}}
	_, err = Watch(t.Context(), opt, 0, []string{"sh", "-c", "kill -9 " + pid + "; while test -d /proc/" + pid + "; do :; done"}, WatchIO{})
	check(t, err)
	notes := opened(t, opt.Dir).Meta().Notes
	if !slices.ContainsFunc(notes, func(n string) bool {
		return strings.HasPrefix(n, "host app: no process "+pid) && strings.Contains(n, "empty shell")
	}) {
		t.Errorf("notes %q", notes)
	}
}

func TestTwoHostsOfOneName(t *testing.T) {
	opt := options(t, "")
	opt.Hosts = []HostSpec{{Name: "a", Spec: "local"}, {Name: "a", Spec: "local"}}
	if _, err := Watch(t.Context(), opt, time.Second, nil, WatchIO{}); err == nil || !strings.Contains(err.Error(), "named twice") {
		t.Errorf("%v, want the sentence on a name that is taken", err)
	}
	if _, err := os.Stat(opt.Dir); err == nil {
		t.Error("there is a run directory")
	}
}

// Traced or not, a run is whole; at level off no tracer is tried.
func TestLevels(t *testing.T) {
	for _, level := range []collect.TraceLevel{collect.TraceOff, collect.TraceLight} {
		if level == collect.TraceLight && os.Geteuid() != 0 {
			continue // what is left without privileges is the command line's to show
		}
		opt := options(t, "well")
		opt.Trace, opt.Tracers = level, []trace.Tracer{starts.Tracer()}
		_, err := Watch(t.Context(), opt, 300*time.Millisecond, nil, WatchIO{})
		check(t, err)
		run := opened(t, opt.Dir)
		_, tried := run.Meta().Status["local"]["plimsoll_exec_starts_total"]
		if tried != (level == collect.TraceLight) || (run.Meta().Tracing != nil) != tried {
			t.Errorf("level %s: tried %v, manifest %+v", level, tried, run.Meta().Tracing)
		}
	}
}
