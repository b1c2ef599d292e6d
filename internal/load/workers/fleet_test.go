package workers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
	"plimsoll/internal/orphans/heldtest"
)

// TestMain has room for the hot threads of several engines in one process, and a server beside them.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(16)
	heldtest.Main(m)
}

// served is a server that counts what it is asked.
type served struct {
	*httptest.Server
	asked atomic.Int64
}

func serve(t *testing.T) *served {
	s := &served{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.asked.Add(1)
		fmt.Fprint(w, "hello")
	}))
	t.Cleanup(s.Close)
	return s
}

// way is a pipe to a worker in this process.
type way struct {
	io.Reader
	io.WriteCloser
	cut func()
}

func (w way) Close() error {
	w.cut()
	return w.WriteCloser.Close()
}

// place is a worker in this process, and what cuts the way to it.
func place(t *testing.T, name string, w Worker) (Place, func()) {
	in, toIn := io.Pipe()
	out, toOut := io.Pipe()
	cut := func() {
		_ = in.CloseWithError(io.ErrClosedPipe)
		_ = toOut.CloseWithError(io.EOF)
	}
	t.Cleanup(cut)
	return Place{Name: name, Spec: "local", Host: name, Dial: func(context.Context) (io.ReadWriteCloser, error) {
		go func() {
			_ = Serve(t.Context(), in, toOut, w) // its end is what the tests cut
			_ = toOut.Close()
		}()
		return way{out, toIn, cut}, nil
	}}, cut
}

func goodWorker() Worker {
	return Worker{Version: "v", PID: 7, Code: func(error) int { return 9 }, Prepare: func(context.Context, *model.LoadPlan, bool, bool) ([]string, error) { return []string{"a note"}, nil }}
}

func fleetOf(t *testing.T, workers ...Worker) (*Fleet, []func()) {
	var places []Place
	var cuts []func()
	for i, w := range workers {
		p, cut := place(t, fmt.Sprintf("g%d", i+1), w)
		places, cuts = append(places, p), append(cuts, cut)
	}
	f := New(places)
	f.Version = "v"
	t.Cleanup(f.Close)
	return f, cuts
}

// play plays a plan, and hands each record to do.
func play(t *testing.T, f *Fleet, plan model.LoadPlan, do func(load.Record)) (load.Record, error) {
	t.Helper()
	if err := f.Ready(t.Context(), plan); err != nil {
		return load.Record{}, err
	}
	p, err := f.Start(t.Context(), plan)
	if err != nil {
		return load.Record{}, err
	}
	var last load.Record
	for r := range p.Records() {
		if err := r.Check(); err != nil {
			t.Errorf("a sum that no load can have counted: %v", err)
		}
		last = r
		do(r)
	}
	return last, p.Err()
}

// What several workers sent is what the server counts and what one would have sent, and every latency is in
// the sum; one load after the other.
func TestSeveralPlayOneLoad(t *testing.T) {
	s := serve(t)
	f, _ := fleetOf(t, goodWorker(), goodWorker(), goodWorker())
	var notes []string
	f.Say = func(text string) { notes = append(notes, text) }
	for _, plan := range []model.LoadPlan{
		{URL: s.URL, Connections: 7, Threads: 2, Rate: 500, RampMS: 100, DurationMS: 1200, KeepAlive: true, Stages: []model.Stage{{AtMS: 600, Rate: 250}}},
		{URL: s.URL, Connections: 7, Threads: 2, Requests: 401, CalmMS: 100, KeepAlive: true, Targets: []model.Target{{Name: "a", Method: "GET", Path: "/a", Weight: 1}}},
		{URL: s.URL, Connections: 3, Rate: 700, Requests: 500, KeepAlive: true, Arrivals: model.Poisson, ArrivalsSeed: 5},
	} {
		plan.TimeoutMS = 60_000 // a machine that is busy is no failure
		before := s.asked.Load()
		var marks []string
		intervals := int64(0)
		last, err := play(t, f, plan, func(r load.Record) {
			if r.PhaseStarted != "" || r.PhaseEnded != "" {
				marks = append(marks, r.PhaseEnded+">"+r.PhaseStarted)
			}
			for _, i := range r.Intervals {
				if i.Kind == "response" && i.Phase == model.Hold {
					intervals += countOf(t, i.Histogram)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		hold := last.Phases[len(last.Phases)-1]
		want := max(plan.Requests, 401)
		if len(plan.Stages) > 0 {
			want = 450 // 500/s and 250/s, 0.6 s of each
		}
		if hold.Phase != model.Hold || hold.Requests != want || hold.Outcomes["2xx"] != want {
			t.Errorf("hold: %d requests, %v, want %d", hold.Requests, hold.Outcomes, want)
		}
		if hold.Response.Count != want || hold.Service.Count != want || intervals != want {
			t.Errorf("latencies of %d, %d and, second by second, %d requests, want %d", hold.Response.Count, hold.Service.Count, intervals, want)
		}
		if got := s.asked.Load() - before; got != last.Totals.Requests {
			t.Errorf("the server was asked %d times, and %d requests were counted", got, last.Totals.Requests)
		}
		if len(last.Stages) > 0 && last.Stages[0].Outcomes["2xx"] != 300 || len(last.Targets) > 0 && last.Targets[0].Response.Count != want {
			t.Errorf("stages %v, targets %v", last.Stages, last.Targets)
		}
		if marks[0] != ">"+last.Phases[0].Phase || marks[len(marks)-1] != "drain>" || len(marks) != len(last.Phases)+2 {
			t.Errorf("phases %q", marks)
		}
		sum := int64(0)
		for _, w := range last.Workers {
			sum += w.Requests
		}
		if sum != want || len(last.Workers) != 3 || last.Workers[2].Gone != "" {
			t.Errorf("workers %+v, want %d requests", last.Workers, want)
		}
	}
	if len(notes) != 9 || notes[2] != "worker g3: a note" {
		t.Errorf("notes %q", notes)
	}
}

func countOf(t *testing.T, histogram string) int64 {
	t.Helper()
	n, err := load.CountOf(histogram)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Of a worker that is gone what it told counts, and its share is missing from then on; the others send no more than
// their own.
func TestOneIsGone(t *testing.T) {
	s := serve(t)
	f, cuts := fleetOf(t, goodWorker(), goodWorker())
	told := int64(-1)
	last, err := play(t, f, model.LoadPlan{URL: s.URL, Connections: 2, Rate: 200, DurationMS: 3000, KeepAlive: true, TimeoutMS: 60_000}, func(r load.Record) {
		if w := r.Workers[1]; told < 0 && w.Requests > 0 {
			told = w.Requests
			cuts[1]()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	one, two := last.Workers[0], last.Workers[1]
	if one.Requests != 300 || one.Gone != "" || two.Gone == "" || two.GoneMS == 0 || two.Requests < told || two.Requests >= 300 {
		t.Errorf("%+v, %+v; it had told of %d", one.Worker, two.Worker, told)
	}
	if hold := last.Phases[0]; hold.Requests != one.Requests+two.Requests || !last.Final {
		t.Errorf("%d requests, of %d and %d", hold.Requests, one.Requests, two.Requests)
	}
	if text := two.WithoutIt(2); !strings.Contains(text, "worker g2 (local) is gone since ") || !strings.Contains(text, " of the load; from then on") || !strings.Contains(text, "short by its share, 1 of 2") {
		t.Error(text)
	}
	if err := f.Ready(t.Context(), model.LoadPlan{URL: s.URL, Connections: 2, Requests: 2}); err == nil || !strings.HasPrefix(err.Error(), "worker g2 (local) is not ready: ") {
		t.Errorf("it is ready again: %v", err)
	}
}

// Without any worker there is no load, and that is an error.
func TestAllAreGone(t *testing.T) {
	s := serve(t)
	f, cuts := fleetOf(t, goodWorker(), goodWorker())
	_, err := play(t, f, model.LoadPlan{URL: s.URL, Connections: 2, Rate: 100, DurationMS: 60_000, KeepAlive: true}, func(load.Record) {
		cuts[0]()
		cuts[1]()
	})
	if err == nil || !strings.Contains(err.Error(), "worker g1 (local): its process ended, or the way to it did, in second ") || !strings.Contains(err.Error(), "; worker g2 (local): its process ended") {
		t.Errorf("%v", err)
	}
}

// Nothing begins before all are ready, and who is not is named, with the code of why.
func TestNotAllAreReady(t *testing.T) {
	s := serve(t)
	lame := goodWorker()
	lame.Prepare = func(context.Context, *model.LoadPlan, bool, bool) ([]string, error) {
		return nil, errors.New("no way there")
	}
	old := goodWorker()
	old.Version = "u"
	for want, w := range map[string]Worker{
		"worker g2 (local) is not ready: no way there":                                                           lame,
		"worker g2 (local) is not ready: it is of version u, and this Plimsoll of v; have the same at both ends": old,
	} {
		f, _ := fleetOf(t, goodWorker(), w)
		_, err := play(t, f, model.LoadPlan{URL: s.URL, Connections: 2, Requests: 2}, func(load.Record) { t.Error("it began") })
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		var engine load.EngineError
		if errors.As(err, &engine) != (w.Version == "v") || engine.Code != 0 && engine.Code != 9 {
			t.Errorf("%+v", engine)
		}
	}
	if s.asked.Load() != 0 {
		t.Errorf("%d requests", s.asked.Load())
	}
}

// Who says that an answer took it an hour has no clock that can be known, and has nobody wait for that hour.
func TestAClockThatLies(t *testing.T) {
	in, toIn := io.Pipe()
	out, toOut := io.Pipe()
	f := New([]Place{{Name: "g1", Spec: "local", Dial: func(context.Context) (io.ReadWriteCloser, error) {
		said := newLines(toOut)
		go func() {
			_ = hear(in, func(o order) error { // it ends with the pipe
				if o.Plan != nil {
					return said.say(word{Ready: &readyWord{Version: "v"}})
				}
				return said.say(word{Clock: &clockWord{ID: o.Clock, Said: 3600e9}})
			})
		}()
		return way{out, toIn, func() { _ = toOut.Close() }}, nil
	}}})
	f.Version = "v"
	t.Cleanup(f.Close)
	_, err := play(t, f, model.LoadPlan{Connections: 1}, func(load.Record) { t.Error("it began") })
	if err == nil || !strings.Contains(err.Error(), "worker g1 (local) is not ready: its clock cannot be known") {
		t.Errorf("%v", err)
	}
}

// A load that is stopped ends as one of a single engine does.
func TestStopped(t *testing.T) {
	s := serve(t)
	f, _ := fleetOf(t, goodWorker(), goodWorker())
	plan := model.LoadPlan{URL: s.URL, Connections: 2, Rate: 100, DurationMS: 600_000, KeepAlive: true, TimeoutMS: 1000}
	if err := f.Ready(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, err := f.Start(ctx, plan)
	if err != nil {
		t.Fatal(err)
	}
	var last load.Record
	for last = range p.Records() {
		cancel()
	}
	if p.Err() != nil || !last.Final || !last.Totals.Cancelled || last.Totals.Outcomes["2xx"] != s.asked.Load() {
		t.Errorf("%v, %+v; the server counted %d", p.Err(), last.Totals, s.asked.Load())
	}
}

// What another process says may be anything.
func FuzzWords(f *testing.F) {
	f.Add([]byte(`{"record":{"phase":"hold","phases":[{"phase":"hold","requests":1,"outcomes":{"2xx":1}}],"shares":[{"of":"hold","kind":"response","histogram":"HISTFAAA"}]}}`))
	f.Add([]byte(`{"clock":{"id":1,"heard_ns":5,"said_ns":6}}` + "\n" + `{"failed":{"code":4,"text":"x"}}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		sum := load.NewSum(model.LoadPlan{}, []string{"a"})
		_ = hear(bytes.NewReader(data), func(w word) error { // what is wrong with it is its end
			if w.Record == nil || w.Record.Check() != nil || sum.Take(0, *w.Record, 3) != nil {
				return nil
			}
			r, err := sum.Record(load.Record{Phase: model.Hold}, []bool{true})
			if err != nil {
				return err
			}
			_, err = json.Marshal(r)
			return err
		})
	})
}

// coded is the end of a process that a shell tells.
type coded int

func (c coded) Error() string { return "exit code " + strconv.Itoa(int(c)) }
func (c coded) ExitCode() int { return int(c) }

// What ended a worker is told in words, whoever tells of it.
func TestHowAWorkerEnded(t *testing.T) {
	for want, end := range map[string]error{
		"it was killed there (SIGKILL)":              exec.Command("sh", "-c", "kill -9 $$").Run(),
		"for want of memory":                         fmt.Errorf("close it: %w", coded(137)),
		"it was ended there by a signal (SIGTERM)":   coded(143),
		"the way to it did: exit code 255":           coded(255),
		"the way to it did: exit status 3":           exec.Command("sh", "-c", "exit 3").Run(),
		"its process ended, or the way to it did":    io.EOF,
		"the way to it did: read |0: file already c": errors.New("read |0: file already closed"),
	} {
		if got := (&worker{end: end}).ended().Error(); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", end, got, want)
		}
	}
}
