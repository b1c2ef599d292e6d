package collect

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/trace"
)

var counter = &model.Signal{Name: "plimsoll_fake_total", Kind: model.Counter, Labels: []string{"groupname"}, StartsAtZero: true}

// fakeTracer counts 10 a second while it is on.
type fakeTracer struct {
	trace.Running
	now   func() time.Time
	since time.Time
	total float64
	// What the next calls return.
	resumes, reads error
}

func (f *fakeTracer) Only(...int) error { return nil }

func (f *fakeTracer) Resume() error {
	if f.resumes == nil {
		f.since = f.now()
	}
	return f.resumes
}

func (f *fakeTracer) Pause() error {
	if !f.since.IsZero() {
		f.total += 10 * f.now().Sub(f.since).Seconds()
	}
	f.since = time.Time{}
	return nil
}

func (f *fakeTracer) Read(out trace.Out) error {
	if f.reads == nil {
		out.Put(counter, f.total, "nginx")
	}
	return f.reads
}

func (f *fakeTracer) Status() map[string]model.Status {
	return map[string]model.Status{counter.Name: {State: model.Read}}
}

func (*fakeTracer) Close() error { return nil }

// faked is the tracing of one fake tracer, at a time that the test sets.
type faked struct {
	*tracing
	fake *fakeTracer
	out  *writer.Writer
	at   time.Time
	dir  string
}

func newFaked(t *testing.T, level trace.Level) *faked {
	t.Helper()
	f := &faked{at: time.Unix(1_700_000_000, 0), dir: t.TempDir() + "/run"}
	now := func() time.Time { return f.at }
	f.fake = &fakeTracer{now: now}
	out, err := writer.Create(f.dir, model.Run{Windows: []model.Window{{Name: model.Hold, Start: f.at.UnixMilli()}}})
	check(t, err)
	h, err := host.Open("srv", "local")
	check(t, err)
	t.Cleanup(func() { h.Close() })
	host.Join([]*host.Host{h})
	f.out = out
	f.tracing = newTracing(TraceFull, nil, []*host.Host{h}, newRecorder(Into(out)), now)
	f.add(trace.Tracer{Name: "fake", Level: level, Signals: []*model.Signal{counter}}, f.fake)
	f.seen(f.all()[0], f.at)
	return f
}

// closed ends the run and returns it, with what its manifest says of tracing.
func (f *faked) closed(t *testing.T) (*record.Run, *model.Tracing) {
	t.Helper()
	check(t, f.Close())
	check(t, f.out.Close())
	run := opened(t, f.dir)
	return run, run.Meta().Tracing
}

// What a tracer for bursts counts while it is on stands for the whole window; the time of
// a burst that was not one, or was not read, is made up for by the next.
func TestBurstsAreEstimates(t *testing.T) {
	gone := errors.New("the kernel had no memory")
	for _, c := range []struct {
		why            string
		resumes, reads error // in the second burst
		duty           float64
		values         int
	}{
		{"all is well", nil, nil, 1.2 / 7, 5},
		{"it was not switched on", gone, nil, 0.8 / 7, 4},
		{"it was not read", nil, gone, 1.2 / 7, 4},
	} {
		t.Run(c.why, func(t *testing.T) {
			f := newFaked(t, trace.Full)
			b := &bursts{t: f.tracing, stop: make(chan struct{})}
			d := f.bursty[0]
			every := func(*bursty) bool { return true }
			d.began, d.upTo = f.at, f.at
			for n := range 3 {
				if n == 1 {
					f.fake.resumes, f.fake.reads = c.resumes, c.reads
				} else {
					f.fake.resumes, f.fake.reads = nil, nil
				}
				f.at = f.at.Add(1600 * time.Millisecond)
				b.each(every, b.t.resume)
				f.at = f.at.Add(400 * time.Millisecond)
				b.each(every, b.t.pause)
			}
			f.at = f.at.Add(time.Second)
			f.holding = true
			check(t, f.Round(t.Context(), Round{Time: f.at, Edge: true}))
			var got float64
			d.sums.each(func(s *sum) { got = s.all })
			if math.Abs(got-70) > 1e-6 {
				t.Errorf("10/s for 7 s, seen for a part, is estimated as %v", got)
			}
			run, said := f.closed(t)
			if duty := said.Duty["fake"]; math.Abs(duty-c.duty) > 1e-9 {
				t.Errorf("on for %v of the time, want %v", duty, c.duty)
			}
			values := readings(t, run, counter.Name, map[string]string{"host": "srv", "groupname": "nginx"})
			if len(values) != c.values || values[f.at.UnixMilli()] != got {
				t.Errorf("recorded %v, want the zero that it began with, a value after each burst, and %v at the end", values, got)
			}
			if st := run.Meta().Status["srv"][counter.Name]; st.State != model.Read {
				t.Errorf("one burst of three is a blink: %+v", st)
			}
			if notes := run.Meta().Notes; (len(notes) > 0) != (c.values == 4) {
				t.Errorf("notes %q", notes)
			}
		})
	}
}

// A burst that ends within a tick of the clock has no rate; what it counted is the next one's.
func TestABurstOfNoTime(t *testing.T) {
	f := newFaked(t, trace.Full)
	b := &bursts{t: f.tracing, stop: make(chan struct{})}
	d := f.bursty[0]
	every := func(*bursty) bool { return true }
	d.began, d.upTo = f.at, f.at
	for _, lasts := range []time.Duration{0, 400 * time.Millisecond} {
		f.at = f.at.Add(time.Second)
		b.each(every, b.t.resume)
		f.fake.total += 4
		f.at = f.at.Add(lasts)
		b.each(every, b.t.pause)
	}
	f.holding = true
	check(t, f.Round(t.Context(), Round{Time: f.at, Edge: true}))
	run, _ := f.closed(t)
	for at, v := range readings(t, run, counter.Name, map[string]string{"host": "srv", "groupname": "nginx"}) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("at %d it is %v", at, v)
		}
	}
	if notes := run.Meta().Notes; len(notes) > 0 {
		t.Errorf("notes %q", notes)
	}
}

// A failed read is a blink; what could not be read for longer than a few seconds stays failed.
func TestAFailedReadIsABlink(t *testing.T) {
	full := errors.New("too many open files")
	for _, c := range []struct {
		why    string
		failed int // seconds
		ends   bool
		state  model.State
		text   string
	}{
		{"for a moment", 2, true, model.Read, ""},
		{"for long", 5, true, model.Failed, "it could not be read for 5s until 22:13:28: too many open files"},
		{"to the end", 2, false, model.Failed, "it was read before, but not to the end: too many open files"},
	} {
		t.Run(c.why, func(t *testing.T) {
			f := newFaked(t, trace.Light)
			second := func() { f.at = f.at.Add(time.Second); check(t, f.Round(t.Context(), Round{Time: f.at})) }
			f.fake.total = 7
			second()
			second()
			f.fake.reads = full
			for range c.failed {
				second()
			}
			if c.ends {
				f.fake.reads = nil
				second()
			}
			run, _ := f.closed(t)
			if st := run.Meta().Status["srv"][counter.Name]; st.State != c.state || st.Why != c.text {
				t.Errorf("%+v, want %s %q", st, c.state, c.text)
			}
			if d := cmp.Diff([]string{"tracer fake failed at 22:13:23: too many open files"}, run.Meta().Notes); d != "" {
				t.Errorf("notes (-want +got):\n%s", d)
			}
		})
	}
}

// said is a tracer for bursts that tells when it is switched on and off.
type said struct {
	fakeTracer
	name   string
	events chan<- string
}

func (s *said) Resume() error { s.events <- s.name + " on"; return s.fakeTracer.Resume() }

func (s *said) Pause() error { s.events <- s.name + " off"; return s.fakeTracer.Pause() }

func (*said) Read(trace.Out) error { return nil }

// A brief tracer's burst is the end of the others'.
func TestBriefBursts(t *testing.T) {
	out, err := writer.Create(t.TempDir()+"/run", model.Run{})
	check(t, err)
	h, err := host.Open("srv", "local")
	check(t, err)
	defer h.Close()
	host.Join([]*host.Host{h})
	tr := newTracing(TraceFull, nil, []*host.Host{h}, newRecorder(Into(out)), time.Now)
	events := make(chan string, 8)
	for _, name := range []string{"brief", "long"} {
		one := trace.Tracer{Name: name, Level: trace.Full, Brief: name == "brief", Signals: []*model.Signal{counter}}
		tr.add(one, &said{fakeTracer{now: time.Now}, name, events})
	}
	tr.Phase(model.Hold)
	var got []string
	for range 4 {
		got = append(got, <-events)
	}
	tr.Settle()
	check(t, out.Close())
	if d := cmp.Diff([]string{"long on", "brief on", "brief off", "long off"}, got); d != "" {
		t.Errorf("how the tracers were switched (-want +got):\n%s", d)
	}
}

// Each level has those below it; what is of level auto is started for the hosts there, and for all at the full one.
func TestLevels(t *testing.T) {
	h, err := host.Open("srv", "local")
	check(t, err)
	defer h.Close()
	for level, want := range map[TraceLevel]string{TraceOff: "", TraceLight: "light", TraceAuto: "light auto for srv, more true", TraceFull: "light auto full"} {
		out, err := writer.Create(t.TempDir()+"/run", model.Run{})
		check(t, err)
		var started []string
		known := []trace.Tracer{}
		for _, of := range []trace.Level{trace.Light, trace.Auto, trace.Full} {
			begin := func(how string) (trace.Running, error) {
				started = append(started, of.String()+how)
				return &fakeTracer{now: time.Now}, nil
			}
			known = append(known, trace.Tracer{Name: "cpu", Level: of, Signals: []*model.Signal{counter}, Start: func() (trace.Running, error) { return begin("") },
				StartFor: func(hosts []*host.Host, more bool) (trace.Running, error) {
					return begin(fmt.Sprintf(" for %s, more %t", hosts[0].Name, more))
				}})
		}
		tr := newTracing(level, known, []*host.Host{h}, newRecorder(Into(out)), time.Now)
		tr.more = true
		check(t, tr.Start(t.Context()))
		if got := strings.Join(started, " "); got != want && os.Geteuid() == 0 {
			t.Errorf("%s: %q, want %q", level, got, want)
		}
		check(t, errors.Join(tr.Close(), out.Close()))
	}
}

// What happens in a namespace of no host's belongs to the machine; two of them
// are one series.
func TestNamespacesBecomeHosts(t *testing.T) {
	h, err := host.Open("here", "local")
	check(t, err)
	defer h.Close()
	info, err := h.Info()
	check(t, err)
	host.Join([]*host.Host{h})
	s := newSums([]*host.Host{h})
	for range 2 { // each reading by itself
		s.begin()
		s.Put(counter, 1, "machine")
		s.In(uint32(info.NetNS)).Put(counter, 2, "own")
		s.In(1).Put(counter, 4, "stray")
		s.In(2).Put(counter, 8, "stray")
		s.Net(3).Put(counter, 16, "stray")
		got := map[string]float64{}
		s.each(func(s *sum) { got[s.host+" "+s.labels[0]] = s.value })
		if d := cmp.Diff(map[string]float64{"here machine": 1, "here own": 2, "here stray": 28}, got); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
	}
	s.begin()
	s.each(func(s *sum) { t.Errorf("%v was not put, and is there", s.labels) })
}

func stacks(nanos int64, counts map[string]int64) *profile.Profile {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}}, DurationNanos: nanos,
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 1}
	for name, n := range counts {
		fn := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
		loc := &profile.Location{ID: fn.ID, Line: []profile.Line{{Function: fn}}}
		p.Function, p.Location = append(p.Function, fn), append(p.Location, loc)
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{loc}, Value: []int64{n}})
	}
	return p
}

// Of the stacks only those of the hold window are kept.
func TestStacksSinceTheLoad(t *testing.T) {
	p := since(stacks(30, map[string]int64{"before": 5, "both": 9, "after": 2}), stacks(10, map[string]int64{"before": 5, "both": 4}))
	got := map[string]int64{}
	for _, s := range p.Sample {
		got[s.Location[0].Line[0].Function.Name] += s.Value[0]
	}
	if d := cmp.Diff(map[string]int64{"both": 5, "after": 2}, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if p.DurationNanos != 20 {
		t.Errorf("they span %d ns, want 20", p.DurationNanos)
	}
	check(t, p.CheckValid())
}
