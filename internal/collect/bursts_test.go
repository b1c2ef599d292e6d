package collect

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/trace"
)

var gauge = &model.Signal{Name: "plimsoll_fake", Kind: model.Gauge, Labels: []string{"groupname"}}

// called is a tracer that counts 10 a second of what begins while it is on, and whose
// programs are called so often a second.
type called struct {
	fakeTracer
	often, calls float64
	on           time.Time // zero while it is off
	events       chan string
	walks        func() // what else a reading does
	blind        error  // why the gauge cannot be told
}

func (c *called) Status() map[string]model.Status {
	return map[string]model.Status{counter.Name: {State: model.Read}, gauge.Name: host.StatusOf(c.blind)}
}

func (c *called) tell(what string) {
	if c.events != nil {
		c.events <- what
	}
}

func (c *called) sum() float64 {
	if c.since.IsZero() {
		return c.total
	}
	return c.total + 10*c.now().Sub(c.since).Seconds()
}

func (c *called) Resume() error {
	c.since, c.on = c.now(), c.now()
	c.tell("on")
	return nil
}

func (c *called) Finish() error {
	c.total, c.since = c.sum(), time.Time{}
	c.tell("last orders")
	return nil
}

func (c *called) Pause() error {
	calls, err := c.Calls()
	c.calls, c.on = float64(calls[1]), time.Time{}
	c.tell("off")
	return err
}

func (c *called) Read(out trace.Out) error {
	if c.walks != nil {
		c.walks()
	}
	out.Put(counter, c.sum(), "nginx")
	if c.blind != nil {
		return c.reads
	}
	if !c.since.IsZero() {
		out.Put(gauge, 7, "nginx")
	} else if !c.on.IsZero() {
		out.Put(gauge, 0, "nginx") // what is quick has ended, and nothing new was begun
	}
	return c.reads
}

func (c *called) Calls() ([]uint64, error) {
	n := c.calls
	if !c.on.IsZero() {
		n += c.often * c.now().Sub(c.on).Seconds()
	}
	return []uint64{3, uint64(math.Round(n))}, nil
}

// oneSparing is a collector whose one tracer, that counts its calls, is sparing.
func oneSparing(t *testing.T) (*faked, *called, *sparing) {
	t.Helper()
	f := newFaked(t, trace.Light)
	c := &called{fakeTracer: fakeTracer{now: func() time.Time { return f.at }}}
	check(t, c.Resume())
	f.steady = nil
	f.add(trace.Tracer{Name: "fake", Level: trace.Light, Signals: []*model.Signal{counter, gauge}}, c)
	return f, c, f.sparing[0]
}

// Where its programs are called often, what a tracer counts in bursts stands for all the
// time; where they are not, it counts throughout, and to the last one.
func TestSparingTracersAreEstimatesWhereCallsAreMany(t *testing.T) {
	f, c, s := oneSparing(t)
	f.holding = true
	round := func(after time.Duration) { f.at = f.at.Add(after); check(t, f.Round(t.Context(), Round{Time: f.at})) }
	step := func(after time.Duration, do func(*sparing, time.Time) error) {
		f.at = f.at.Add(after)
		check(t, do(s, f.at))
	}
	round(time.Second)
	if s.stop != nil || s.burst != cycle {
		t.Fatal("nobody calls it, and it takes turns")
	}
	c.calls, _ = 0, 0
	c.on, c.often = f.at, 10*mostCalls
	f.at = f.at.Add(time.Second)
	check(t, f.count(s, f.at))
	if want := (cycle - lastOrders) / 10; s.burst != want {
		t.Fatalf("the next burst is to last %v, want %v", s.burst, want)
	}
	s.stop = make(chan struct{}) // its turns are taken by hand
	for n := range 3 {
		step(s.burst, f.finish)
		step(lastOrders, f.pauseSparing)
		round(time.Second)
		if n == 2 {
			c.often = 1
		}
		step(cycle-s.burst-lastOrders-time.Second, f.resumeSparing)
	}
	step(s.burst, f.finish)
	step(lastOrders, f.pauseSparing)
	step(time.Second, f.resumeSparing)
	if s.stop != nil {
		t.Error("it is called seldom, and does not watch throughout again")
	}
	at := f.at
	round(time.Second)
	var got float64
	s.sums.each(func(one *sum) {
		if one.signal == counter {
			got = one.all
		}
	})
	began := time.Unix(1_700_000_000, 0)
	if want := 10 * f.at.Sub(began).Seconds(); math.Abs(got-want) > 1e-6 {
		t.Errorf("10/s until %v is estimated as %v, want %v", at.Sub(began), got, want)
	}
	run, said := f.closed(t)
	if duty := said.Duty["fake"]; duty < 0.3 || duty > 0.6 {
		t.Errorf("on for %v of the time", duty)
	}
	for at, v := range readings(t, run, gauge.Name, map[string]string{"host": "srv", "groupname": "nginx"}) {
		if v != 7 {
			t.Errorf("a gauge of 7 is recorded as %v at %d", v, at)
		}
	}
}

// What a burst could not tell has no value, and not the last one; and why is told, as soon as it is so.
func TestSparingTracersRepeatNothing(t *testing.T) {
	f, c, s := oneSparing(t)
	round := func() int64 {
		f.at = f.at.Add(time.Second)
		check(t, f.Round(t.Context(), Round{Time: f.at}))
		return f.at.UnixMilli()
	}
	seen := []int64{round()}
	s.stop = make(chan struct{}) // its turns are taken by hand
	check(t, f.finish(s, f.at))
	seen = append(seen, round())
	check(t, c.Resume())
	c.blind = errors.New("too many")
	check(t, f.finish(s, f.at))
	check(t, f.pauseSparing(s, f.at))
	round()
	run, _ := f.closed(t)
	got := readings(t, run, gauge.Name, map[string]string{"host": "srv", "groupname": "nginx"})
	if d := cmp.Diff(slices.Sorted(slices.Values(seen)), slices.Sorted(maps.Keys(got))); d != "" {
		t.Errorf("when the gauge has a value (-want +got):\n%s", d)
	}
	if st := run.Meta().Status["srv"][gauge.Name]; st.State != model.Failed || !strings.Contains(st.Why, "too many") {
		t.Errorf("%+v, want failed with why", st)
	}
}

// While a burst is read, the programs are on: that is part of the burst. It ends, too, where it cannot be read.
func TestAReadingIsPartOfTheBurst(t *testing.T) {
	f, c, s := oneSparing(t)
	s.burst = 200 * time.Millisecond
	if got := s.beforeWalk(); got != s.burst {
		t.Errorf("before anything was read a burst is read after %v, want %v", got, s.burst)
	}
	const walk = 30 * time.Millisecond
	c.walks = func() { f.at = f.at.Add(walk) }
	f.at = f.at.Add(s.burst)
	check(t, f.finish(s, f.at))
	if want := s.burst + walk; s.last != want {
		t.Errorf("the burst lasted %v, want %v", s.last, want)
	}
	if got, want := s.beforeWalk(), s.burst-walk; got != want {
		t.Errorf("the next one is read after %v, want %v", got, want)
	}
	s.walk = 2 * s.burst
	if got := s.beforeWalk(); got != 0 {
		t.Errorf("a reading that takes longer than the burst begins after %v, want at once", got)
	}
	check(t, c.Resume())
	c.reads = errors.New("no more")
	if err := f.finish(s, f.at); !errors.Is(err, c.reads) || !c.since.IsZero() {
		t.Errorf("%v, and it begins what is new: %v", err, !c.since.IsZero())
	}
	c.walks, c.reads = nil, nil
	_, _ = f.closed(t)
}

// It takes turns by itself, and is switched off in the end.
func TestSparingTracersTakeTurns(t *testing.T) {
	out, err := writer.Create(t.TempDir()+"/run", model.Run{})
	check(t, err)
	h, err := host.Open("srv", "local")
	check(t, err)
	defer h.Close()
	host.Join([]*host.Host{h})
	tr := newTracing(TraceLight, nil, []*host.Host{h}, newRecorder(Into(out)), time.Now)
	c := &called{fakeTracer: fakeTracer{now: time.Now}, often: 1000 * mostCalls}
	check(t, c.Resume())
	c.events = make(chan string, 100)
	tr.add(trace.Tracer{Name: "fake", Level: trace.Light, Signals: []*model.Signal{counter, gauge}}, c)
	check(t, tr.Round(t.Context(), Round{Time: time.Now()}))
	var got []string
	for range 4 {
		got = append(got, <-c.events)
	}
	check(t, tr.Close())
	check(t, out.Close())
	if d := cmp.Diff([]string{"last orders", "off", "on", "last orders"}, got); d != "" {
		t.Errorf("how the tracer was switched (-want +got):\n%s", d)
	}
}
