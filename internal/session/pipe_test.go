package session

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"

	"plimsoll/internal/collect/pipe"
	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
)

// fakeCollector as the first argument makes the test binary a collector.
const fakeCollector = "fake-collector"

func playCollector() {
	if err := pipe.Serve(os.Stdin, os.Stdout, "test", nil); err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	os.Exit(0)
}

// line is the way to a collector's process, with a hand on it: what comes and what is
// asked can be held up, cut, or spoilt.
type line struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  io.Reader
	once sync.Once
	err  error

	// frame, if set, is told each frame that comes, and returns what is to come in its place.
	frame func(kind byte, payload, whole []byte) ([]byte, error)
	rest  []byte

	mu   sync.Mutex
	held chan struct{} // what is asked waits until it is closed; nil for nothing
}

// holds says whether what is asked is held up.
func (l *line) holds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held != nil
}

// hold holds up what is asked from now on, until release.
func (l *line) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(chan struct{})
	}
}

func (l *line) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.held)
}

func newLine(t *testing.T) *line {
	t.Helper()
	l := &line{cmd: exec.Command(os.Args[0], fakeCollector)}
	l.cmd.Stderr = os.Stderr
	var err error
	l.in, err = l.cmd.StdinPipe()
	check(t, err)
	l.out, err = l.cmd.StdoutPipe()
	check(t, err)
	check(t, l.cmd.Start())
	return l
}

func (l *line) Read(b []byte) (int, error) {
	for len(l.rest) == 0 {
		head := make([]byte, 4)
		if _, err := io.ReadFull(l.out, head); err != nil {
			return 0, err
		}
		body := make([]byte, binary.BigEndian.Uint32(head))
		if _, err := io.ReadFull(l.out, body); err != nil {
			return 0, err
		}
		l.rest = append(head, body...)
		if l.frame == nil {
			break
		}
		var err error
		if l.rest, err = l.frame(body[0], body[1:], l.rest); err != nil {
			return 0, err
		}
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func (l *line) Write(b []byte) (int, error) {
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	if held != nil {
		<-held
	}
	return l.in.Write(b)
}

func (l *line) Close() error {
	l.once.Do(func() {
		l.in.Close()
		l.err = l.cmd.Wait()
	})
	return l.err
}

// far is a host that is observed at the other end of a line.
func far(t *testing.T, l *line) Options {
	opt := options(t, "ends well")
	opt.Hosts = []HostSpec{{Name: "web", Spec: "local", Via: OwnProcess}}
	opt.Reach = func(context.Context, string) (Way, error) { return Way{ReadWriteCloser: l}, nil }
	return opt
}

// rounds calls do at each round that is recorded, with the number of those so far.
func rounds(do func(n int)) func(*writer.Listener) {
	return func(l *writer.Listener) {
		seen := map[int64]bool{}
		for {
			b, _, err := l.Next(context.Background())
			if err != nil {
				return
			}
			for _, s := range b.Samples {
				if s.Series.Get(labels.MetricName) == clockSignal && !seen[s.Time] {
					seen[s.Time] = true
					do(len(seen))
				}
			}
		}
	}
}

// clockSignal is read in every round, and grows.
const clockSignal = "node_context_switches_total"

// roundAt is the time of a round's frame.
func roundAt(t *testing.T, payload []byte) int64 {
	var r struct {
		Time int64 `json:"t_ms"`
	}
	if err := json.Unmarshal(payload, &r); err != nil {
		t.Error(err)
	}
	return r.Time
}

// lossless checks that all rounds of the far side are in the run, and all edges.
func lossless(t *testing.T, run *record.Run) (times []int64) {
	t.Helper()
	meta := run.Meta()
	got := readings(t, run, clockSignal, nil)
	for at := range got {
		times = append(times, at)
	}
	slices.Sort(times)
	if c := meta.Collectors; len(c) != 1 || c[0].Rounds != len(got) || c[0].DroppedSamples != 0 || c[0].Cut != "" || c[0].Hosts[0] != "web" {
		t.Errorf("%d rounds recorded; collectors %+v", len(got), c)
	}
	for _, w := range meta.Windows {
		if !slices.Contains(times, w.Start) || !slices.Contains(times, w.End) {
			t.Errorf("window %s: nothing was read at its edges", w.Name)
		}
	}
	if st := meta.Status["web"][clockSignal]; st.State != model.Read {
		t.Errorf("status %+v", st)
	}
	if slices.ContainsFunc(meta.Notes, func(n string) bool { return strings.Contains(n, "the pipe") || strings.Contains(n, "late at the edge") }) {
		t.Errorf("notes %q", meta.Notes)
	}
	return times
}

// A process that observes has the same to tell as this one.
func TestACollectorInAProcessOfItsOwn(t *testing.T) {
	all := map[string]map[string]bool{}
	states := map[string]map[string]model.State{}
	for _, via := range []string{"", OwnProcess} {
		opt := far(t, newLine(t))
		opt.Hosts[0].Via = via
		if via == "" { // not needed
			l, _ := opt.Reach(t.Context(), "")
			check(t, l.Close())
		}
		check(t, Run(t.Context(), opt, plan, Phases{Baseline: 300 * time.Millisecond}))
		run := opened(t, opt.Dir)
		if via != "" {
			lossless(t, run)
			if c := run.Meta().Collectors[0]; c.Via != OwnProcess || c.Version != "test" || len(c.Clock) < 2 || c.CPUSeconds <= 0 || c.MaxRSS == 0 {
				t.Errorf("%+v", c)
			}
			if cost := run.Meta().Cost; cost.CPUSeconds <= run.Meta().Collectors[0].CPUSeconds || cost.LoadCPUSeconds != 1.5 {
				t.Errorf("cost %+v", cost)
			}
		}
		if h := run.Meta().Hosts; len(h) != 1 || h[0].Name != "web" || h[0].Spec != "local" || run.Meta().Plan.Generator != "web" {
			t.Errorf("hosts %+v, generator %q", h, run.Meta().Plan.Generator)
		}
		l, err := run.Load()
		check(t, err)
		if l.Requests != 20 {
			t.Errorf("%d requests", l.Requests)
		}
		states[via] = map[string]model.State{}
		for name, st := range run.Meta().Status["web"] {
			if strings.HasPrefix(name, "node_") { // services come and go beside us
				states[via][name] = st.State
			}
		}
		all[via] = seriesNames(t, run)
	}
	if d := cmp.Diff(states[""], states[OwnProcess]); d != "" {
		t.Errorf("statuses (-here +in a process):\n%s", d)
	}
	if d := cmp.Diff(all[""], all[OwnProcess]); d != "" {
		t.Errorf("series (-here +in a process):\n%s", d)
	}
}

// seriesNames are the names of the series of the machine and of the load, which come and go with nothing.
func seriesNames(t *testing.T, run *record.Run) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	steady := labels.MustNewMatcher(labels.MatchRegexp, labels.MetricName, "node_(cpu|context|memory|sockstat|load|vmstat|disk|filefd|pressure).*|plimsoll_load_.*")
	for s, err := range run.Series(0, math.MaxInt64, steady) {
		check(t, err)
		names[s.Labels.Get(labels.MetricName)] = true
	}
	if len(names) < 50 {
		t.Errorf("%d series names, want many", len(names))
	}
	return names
}

// For ten seconds nothing comes: nothing is lost.
func TestAPipeThatStallsForTenSeconds(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	var held []byte
	var from int64
	n := 0
	l.frame = func(kind byte, payload, whole []byte) ([]byte, error) {
		if kind == 'R' {
			n++
		}
		if n < 5 || from < 0 {
			return whole, nil
		}
		held = append(held, whole...)
		if kind != 'R' {
			return nil, nil
		}
		at := roundAt(t, payload)
		if from == 0 {
			from = at
		}
		if at-from < 10_000 {
			return nil, nil
		}
		from = -1
		return held, nil
	}
	opt := far(t, l)
	ctx, cancel := context.WithCancel(t.Context())
	opt.Listen = rounds(func(n int) {
		if n == 60 { // far beyond those before it stalled
			cancel()
		}
	})
	_, err := Watch(ctx, opt, time.Hour, nil, WatchIO{})
	check(t, err)
	times := lossless(t, opened(t, opt.Dir))
	if from != -1 || times[len(times)-1]-times[0] < 10_000 {
		t.Errorf("it never stalled: %v", times)
	}
}

// The answers to the edge of a window come late: it was read in time.
func TestAPipeThatStallsAtTheEdgeOfAWindow(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	var mu sync.Mutex
	stalled, over := false, make(chan struct{})
	l.frame = func(kind byte, payload, whole []byte) ([]byte, error) {
		mu.Lock()
		wait := stalled
		mu.Unlock()
		if wait {
			<-over
		}
		return whole, nil
	}
	opt := far(t, l)
	ctx, cancel := context.WithCancel(t.Context())
	opt.Listen = func(heard *writer.Listener) {
		rounds := 0
		for {
			b, _, err := heard.Next(context.Background())
			if err != nil {
				return
			}
			if rounds++; rounds == 5 {
				mu.Lock()
				stalled = true
				mu.Unlock()
				cancel()
			}
			if n := len(b.Windows); n > 0 && b.Windows[n-1].End != 0 {
				close(over) // the run went on without an answer
			}
		}
	}
	_, err := Watch(ctx, opt, time.Hour, nil, WatchIO{})
	check(t, err)
	lossless(t, opened(t, opt.Dir))
}

// The collector hears of the edge of a window too late: what it reads then has its true time, and that is said.
func TestACollectorThatHearsLateOfAnEdge(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	opt := far(t, l)
	ctx, cancel := context.WithCancel(t.Context())
	opt.Listen = func(heard *writer.Listener) {
		rounds := 0
		for {
			b, _, err := heard.Next(context.Background())
			if err != nil {
				return
			}
			if rounds++; rounds >= 5 && l.holds() {
				cancel()
			}
			if n := len(b.Windows); n > 0 && b.Windows[n-1].End != 0 {
				l.release()
			}
		}
	}
	opt.Progress = func(Progress) { l.hold() }
	_, err := Watch(ctx, opt, time.Hour, nil, WatchIO{})
	check(t, err)
	run := opened(t, opt.Dir)
	hold, _ := run.Window(model.Hold)
	got := readings(t, run, clockSignal, nil)
	if _, there := got[hold.End]; there {
		t.Error("what was read late has the time of the edge")
	}
	if n := run.Meta().Notes; !slices.ContainsFunc(n, func(n string) bool {
		return strings.HasPrefix(n, `hosts ["web"] were read `) && strings.Contains(n, "late at the edge of the end")
	}) {
		t.Errorf("notes %q", n)
	}
}

// However the far side ends, the run is whole, and says what is missing.
func TestAPipeThatIsCut(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*line) ([]byte, error)
		want string
	}{
		"cut":    {func(*line) ([]byte, error) { return nil, io.EOF }, "it ended"},
		"broken": {func(*line) ([]byte, error) { return nil, errors.New("broken pipe") }, "broken pipe"},
		"killed": {func(l *line) ([]byte, error) { return nil, l.cmd.Process.Kill() }, "it ended (signal: killed)"},
		"garbage": {func(*line) ([]byte, error) { return []byte("Broadcast message from root"), nil },
			`want a frame of 1 to 1048576 bytes, got "Broadcast message from root": something else than Plimsoll writes there`},
		"a lie": {func(*line) ([]byte, error) { return []byte("\x00\x00\x00\x04V\x00\xff\x7f"), nil },
			"a frame of kind 'V' and 3 bytes: it ends before its time"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLine(t)
			n := 0
			l.frame = func(kind byte, payload, whole []byte) ([]byte, error) {
				if kind == 'R' {
					n++
				}
				if n == 8 {
					return c.end(l)
				}
				return whole, nil
			}
			opt := far(t, l)
			_, err := Watch(t.Context(), opt, time.Hour, nil, WatchIO{}) // it ends since nothing is observed any more
			check(t, err)
			run := opened(t, opt.Dir)
			meta := run.Meta()
			names(t, meta.Windows)
			if !slices.ContainsFunc(meta.Notes, func(n string) bool {
				return strings.HasPrefix(n, `hosts ["web"]: the pipe to their collector was cut: `+c.want) && strings.Contains(n, "; what came after round 7 (")
			}) {
				t.Errorf("notes %q", meta.Notes)
			}
			if st := meta.Status["web"][clockSignal]; st.State != model.Failed || !strings.Contains(st.Why, "not to the end: the pipe to the collector was cut: "+c.want) {
				t.Errorf("status %+v", st)
			}
			if got := meta.Collectors; len(got) != 1 || got[0].Rounds != 7 || !strings.HasPrefix(got[0].Cut, c.want) {
				t.Errorf("collectors %+v", got)
			}
			if got := readings(t, run, clockSignal, nil); len(got) < 7 {
				t.Errorf("%d rounds are there, want the 7 that came", len(got))
			}
		})
	}
}

// The user's command is not ended because nobody watches it any more.
func TestTheCommandOutlivesItsCollector(t *testing.T) {
	l := newLine(t)
	opt := far(t, l)
	gate := filepath.Join(t.TempDir(), "gate")
	check(t, exec.Command("mkfifo", gate).Run())
	opt.Listen = func(heard *writer.Listener) {
		for n := 0; ; n++ {
			b, _, err := heard.Next(context.Background())
			if err != nil {
				return
			}
			if n == 5 {
				_ = l.cmd.Process.Kill()
			}
			if slices.ContainsFunc(b.Notes, func(n string) bool { return strings.Contains(n, "was cut") }) {
				f, err := os.OpenFile(gate, os.O_WRONLY, 0)
				if err == nil {
					f.Close()
				}
			}
		}
	}
	var out bytes.Buffer
	code, err := Watch(t.Context(), opt, 0, []string{"sh", "-c", "cat " + gate + "; echo done; exit 7"}, WatchIO{Stdout: &out})
	check(t, err)
	if code != 7 || out.String() != "done\n" {
		t.Errorf("exit code %d, %q", code, out.String())
	}
	if d := cmp.Diff([]string{model.Baseline, model.Hold}, names(t, opened(t, opt.Dir).Meta().Windows)); d != "" {
		t.Error(d)
	}
}

// machine is the way to a collector that says it is on another machine.
func machine(t *testing.T, name string) io.ReadWriteCloser {
	l := newLine(t)
	l.frame = func(kind byte, payload, whole []byte) ([]byte, error) {
		if kind != 'A' {
			return whole, nil
		}
		var a map[string]any
		if err := json.Unmarshal(payload, &a); err != nil {
			return nil, err
		}
		hosts, _ := a["hosts"].([]any)
		for _, h := range hosts {
			h.(map[string]any)["machine"] = name
		}
		if len(hosts) == 0 {
			return whole, nil
		}
		raw, err := json.Marshal(a)
		body := append([]byte{'A'}, raw...)
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...), err
	}
	return l
}

// The windows of a run are walked through over several collectors at once.
func TestSeveralCollectors(t *testing.T) {
	opt := options(t, "")
	opt.Hosts = []HostSpec{{Name: "b", Spec: "local", Via: "two"}, {Name: "c", Spec: "local"}, {Name: "a", Spec: "local", Via: "one"}}
	opt.Reach = func(_ context.Context, via string) (Way, error) { return Way{ReadWriteCloser: machine(t, via)}, nil }
	ctx, cancel := context.WithCancel(t.Context())
	opt.Listen = rounds(func(n int) {
		if n == 12 {
			cancel()
		}
	})
	_, err := Watch(ctx, opt, time.Hour, nil, WatchIO{})
	check(t, err)
	run := opened(t, opt.Dir)
	var hosts []string
	for _, h := range run.Meta().Hosts {
		hosts = append(hosts, h.Name)
	}
	if d := cmp.Diff([]string{"b", "c", "a"}, hosts); d != "" {
		t.Error(d)
	}
	hold, _ := run.Window(model.Hold)
	for _, host := range hosts {
		got := readings(t, run, clockSignal, map[string]string{"host": host})
		if got[hold.Start] == 0 || got[hold.End] <= got[hold.Start] {
			t.Errorf("%s at the edges: %v and %v", host, got[hold.Start], got[hold.End])
		}
	}
	if c := run.Meta().Collectors; len(c) != 3 || c[0].Via != "two" || c[1].Via != "one" || c[2].Via != "" {
		t.Errorf("%+v", c)
	}
}

// What is on one machine is one collector's: each process there belongs to one host.
func TestOneMachineInTwoWays(t *testing.T) {
	opt := options(t, "")
	opt.Hosts = []HostSpec{{Name: "a", Spec: "local"}, {Name: "b", Spec: "local", Via: OwnProcess}}
	opt.Reach = func(context.Context, string) (Way, error) { return Way{ReadWriteCloser: newLine(t)}, nil }
	_, err := Watch(t.Context(), opt, time.Hour, nil, WatchIO{})
	if err == nil || !strings.Contains(err.Error(), "on one machine, but named in two ways") {
		t.Errorf("%v", err)
	}
	opt = options(t, "")
	opt.Hosts = []HostSpec{{Name: "a", Spec: "netns:nonesuch", Via: OwnProcess}}
	opt.Reach = func(context.Context, string) (Way, error) { return Way{ReadWriteCloser: newLine(t)}, nil }
	_, err = Watch(t.Context(), opt, time.Hour, nil, WatchIO{})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), `host a: no network namespace "nonesuch"`) {
		t.Errorf("%v", err)
	}
}
