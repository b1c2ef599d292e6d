package collect

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/trace"
)

// diary is what was started and ended, in that order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) add(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { d.lines = nil }()
	return d.lines
}

// kept is a tracer, and a probe, that writes a diary.
type kept struct {
	fakeTracer
	name   string
	diary  *diary
	closes error
}

func (k *kept) Close() error          { k.diary.add("end " + k.name); return k.closes }
func (k *kept) Ignore(...int) error   { return nil }
func (k *kept) Read(trace.Out) error  { k.diary.add("read " + k.name); return nil }
func (k *kept) reader() probe.Reader  { return keptProbe{k} }
func (k *kept) tracer() trace.Running { return k }

type keptProbe struct{ *kept }

func (p keptProbe) Read(*probe.Out) error { p.diary.add("read " + p.name); return nil }

// anew is a collector of two tracers and a probe, whose starts the test decides on.
type anew struct {
	*Local
	diary
	dir    string
	out    *writer.Writer
	fails  error              // of a second start of tracer b
	closes error              // of all
	hang   chan struct{}      // what the probe's next start waits for
	opens  context.CancelFunc // called in it
}

func newAnew(t *testing.T) *anew {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("tracers need root")
	}
	a := &anew{dir: t.TempDir() + "/run"}
	at := time.Unix(1_700_000_000, 0)
	var tracers []trace.Tracer
	for _, name := range []string{"a", "b"} {
		sig := &model.Signal{Name: "plimsoll_" + name + "_total", Kind: model.Counter}
		tracers = append(tracers, trace.Tracer{Name: name, Level: trace.Light, Signals: []*model.Signal{sig}, Start: func() (trace.Running, error) {
			if name == "b" && a.fails != nil {
				return nil, a.fails
			}
			a.add("start " + name)
			return (&kept{name: name, diary: &a.diary, closes: a.closes}).tracer(), nil
		}})
	}
	l, err := Open(Config{Hosts: []HostSpec{{Name: "srv", Spec: "local"}}, Interval: time.Hour, Trace: TraceLight}, tracers, func() time.Time { return at })
	check(t, err)
	a.Local = l
	a.out, err = writer.Create(a.dir, model.Run{})
	check(t, err)
	l.rec = newRecorder(Into(a.out))
	p := probe.Probe{Name: "p", Open: a.open}
	l.tracing = newTracing(TraceLight, tracers, l.hosts, l.rec, l.now)
	l.probes = probes{probe.NewSampler(l.hosts, []probe.Probe{p}, l.rec.Book, time.Hour)}
	check(t, errors.Join(l.Add(t.Context(), l.tracing), l.Add(t.Context(), l.probes)))
	a.edge(t)
	a.take()
	return a
}

func (a *anew) open(*host.Host) (probe.Reader, error) {
	if a.opens != nil {
		a.opens()
		<-a.hang
	}
	a.add("start p")
	return (&kept{name: "p", diary: &a.diary, closes: a.closes}).reader(), nil
}

func (a *anew) edge(t *testing.T) {
	t.Helper()
	_, err := a.Edge(t.Context(), Edge{Time: a.now()})
	check(t, err)
}

func (a *anew) closed(t *testing.T) *record.Run {
	t.Helper()
	a.closes = nil
	_ = a.Close() // the first ones may fail to
	check(t, a.out.Close())
	return opened(t, a.dir)
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// Others watch before those that did are ended, and the run tells since when nobody counted.
func TestAnewBeginsBeforeItEnds(t *testing.T) {
	a := newAnew(t)
	begun, err := a.Anew(t.Context())
	check(t, err)
	if !begun {
		t.Error("nothing was begun")
	}
	a.edge(t)
	wantLines(t, a.take(), "start a", "start b", "start p", "end p", "end a", "end b", "read a", "read b", "read p")
	var told []string
	for e, err := range a.closed(t).Events() {
		check(t, err)
		told = append(told, e.Host+" "+e.Kind+" "+e.Text)
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "srv watch.anew ") || !strings.HasSuffix(told[0], "nothing was counted since 22:13:20") {
		t.Errorf("it is not told: %q", told)
	}
}

// A tracer that does not come up again goes on, and so does the run.
func TestATracerThatCannotBeginAnewGoesOn(t *testing.T) {
	a := newAnew(t)
	a.fails = errors.New("too many open files")
	begun, err := a.Anew(t.Context())
	if !begun || err == nil || err.Error() != "tracer b: too many open files" {
		t.Errorf("begun %v, %v", begun, err)
	}
	a.edge(t)
	wantLines(t, a.take(), "start a", "start p", "end p", "end a", "read b", "read a", "read p")
	if st := a.closed(t).Meta().Status["srv"]["plimsoll_b_total"]; st.State == model.Failed {
		t.Errorf("it is %+v", st)
	}
}

// What cannot be ended is a note.
func TestWhatCannotBeEndedEndsNothing(t *testing.T) {
	a := newAnew(t)
	for _, one := range a.tracing.all() {
		one.running.(*kept).closes = errors.New("no memory")
	}
	begun, err := a.Anew(t.Context())
	check(t, err)
	if !begun {
		t.Error("nothing was begun")
	}
	a.edge(t)
	if notes := a.closed(t).Meta().Notes; len(notes) != 1 || !strings.Contains(notes[0], "no memory") {
		t.Errorf("notes %q", notes)
	}
}

// A host that hangs holds up neither rounds nor the end: what watched goes on.
func TestAnewEndsWithItsContext(t *testing.T) {
	a := newAnew(t)
	ctx, stop := context.WithCancel(t.Context())
	a.hang, a.opens = make(chan struct{}), func() { a.edge(t); stop() }
	begun, err := a.Anew(ctx)
	if begun || !errors.Is(err, context.Canceled) {
		t.Errorf("begun %v, %v", begun, err)
	}
	wantLines(t, a.take(), "start a", "start b", "read a", "read b", "read p", "end a", "end b")
	close(a.hang)
	a.closed(t)
}
