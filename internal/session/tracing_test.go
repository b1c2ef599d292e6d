package session

import (
	"math"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"plimsoll/internal/model"
	"plimsoll/internal/probe"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/exec"
)

var counter = &model.Signal{Name: "plimsoll_fake_total", Kind: model.Counter, Labels: []string{"groupname"}, StartsAtZero: true}

// fakeTracer counts 10 a second while it is on.
type fakeTracer struct {
	trace.Running
	now   func() time.Time
	since time.Time
	total float64
}

func (f *fakeTracer) Only(...int) error { return nil }

func (f *fakeTracer) Resume() error { f.since = f.now(); return nil }

func (f *fakeTracer) Pause() error { f.total += 10 * f.now().Sub(f.since).Seconds(); return nil }

func (f *fakeTracer) Read(out trace.Out) error { out.Put(counter, f.total, "nginx"); return nil }

// What a dear tracer counts while it is on stands for the whole window.
func TestBurstsAreEstimates(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	now := func() time.Time { return at }
	dir := t.TempDir() + "/run"
	out, err := writer.Create(dir, model.Run{Windows: []model.Window{{Name: model.Hold, Start: at.UnixMilli()}}})
	check(t, err)
	h, err := probe.OpenHost("srv", "local")
	check(t, err)
	defer h.Close()
	probe.Join([]*probe.Host{h})
	tr := &tracing{out: out, now: now, hosts: []*probe.Host{h}}
	d := newDear(trace.Tracer{Name: "fake", Level: trace.Full, Signals: []*model.Signal{counter}}, &fakeTracer{now: now}, tr.hosts)
	tr.dear = []*dear{d}
	b := &bursts{t: tr, stop: make(chan struct{})}
	d.began, d.upTo = at, at
	for range 3 {
		at = at.Add(1600 * time.Millisecond)
		check(t, tr.resume(d))
		at = at.Add(400 * time.Millisecond)
		check(t, tr.pause(d))
	}
	at = at.Add(time.Second)
	b.end()
	var got float64
	d.sums.each(func(s *sum) { got = s.all })
	if math.Abs(got-70) > 1e-6 {
		t.Errorf("10/s for 7 s, seen for 1.2 s, is estimated as %v", got)
	}
	if duty := d.duty(); math.Abs(duty-1.2/7) > 1e-9 {
		t.Errorf("on for %v of the time, want 1.2/7", duty)
	}
	check(t, out.Close())
	values := readings(t, opened(t, dir), counter.Name, map[string]string{"host": "srv", "groupname": "nginx"})
	if len(values) != 5 || values[at.UnixMilli()] != got {
		t.Errorf("recorded %v, want the zero that it began with, a value after each burst, and %v at the end", values, got)
	}
}

// said is a dear tracer that tells when it is switched on and off.
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
	h, err := probe.OpenHost("srv", "local")
	check(t, err)
	defer h.Close()
	probe.Join([]*probe.Host{h})
	tr := &tracing{out: out, now: time.Now, hosts: []*probe.Host{h}}
	events := make(chan string, 8)
	for _, name := range []string{"brief", "long"} {
		one := trace.Tracer{Name: name, Level: trace.Full, Brief: name == "brief", Signals: []*model.Signal{counter}}
		tr.dear = append(tr.dear, newDear(one, &said{fakeTracer{now: time.Now}, name, events}, tr.hosts))
	}
	tr.hold()
	var got []string
	for range 4 {
		got = append(got, <-events)
	}
	tr.endBursts()
	check(t, out.Close())
	if d := cmp.Diff([]string{"long on", "brief on", "brief off", "long off"}, got); d != "" {
		t.Errorf("how the tracers were switched (-want +got):\n%s", d)
	}
}

// What happens in a namespace of no host's belongs to the machine; two of them
// are one series.
func TestNamespacesBecomeHosts(t *testing.T) {
	h, err := probe.OpenHost("here", "local")
	check(t, err)
	defer h.Close()
	info, err := h.Info()
	check(t, err)
	probe.Join([]*probe.Host{h})
	s := newSums([]*probe.Host{h})
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

// Traced or not, a run is whole; at level off no tracer is tried.
func TestLevels(t *testing.T) {
	for _, level := range []TraceLevel{TraceOff, TraceLight} {
		if level == TraceLight && os.Geteuid() != 0 {
			continue // what is left without privileges is the command line's to show
		}
		opt := options(t, "well")
		opt.Trace, opt.Tracers = level, []trace.Tracer{exec.Tracer()}
		_, err := Watch(t.Context(), opt, 300*time.Millisecond, nil, WatchIO{})
		check(t, err)
		run := opened(t, opt.Dir)
		_, tried := run.Meta().Status["local"]["plimsoll_exec_starts_total"]
		if tried != (level == TraceLight) || (run.Meta().Tracing != nil) != tried {
			t.Errorf("level %s: tried %v, manifest %+v", level, tried, run.Meta().Tracing)
		}
	}
}
