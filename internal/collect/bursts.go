package collect

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

// Tracers for bursts are on for burst at the end of every burstEvery of the hold
// window, brief ones for the last briefBurst of it.
const (
	burst      = 200 * time.Millisecond
	briefBurst = 100 * time.Millisecond
	burstEvery = 2 * time.Second
)

// bursty is a tracer that is on in bursts.
type bursty struct {
	tracer
	began   time.Time     // of the hold window
	upTo    time.Time     // the estimate is made up to here
	resumed time.Time     // zero while it is off
	unread  time.Duration // for so long it was on without having been read
	on      time.Duration // in all, and read
}

// duty is the share of the time in which it was on.
func (b *bursty) duty() float64 {
	if b.upTo.Equal(b.began) {
		return 0
	}
	return b.on.Seconds() / b.upTo.Sub(b.began).Seconds()
}

// bursts are those of one hold window.
type bursts struct {
	t     *tracing
	stop  chan struct{}
	ended sync.WaitGroup
}

func (t *tracing) startBursts() *bursts {
	b := &bursts{t: t, stop: make(chan struct{})}
	for _, one := range t.bursty {
		one.began = t.now()
		one.upTo = one.began
	}
	b.ended.Go(b.run)
	return b
}

// run switches the tracers on and off until it is stopped.
func (b *bursts) run() {
	long := func(one *bursty) bool { return !one.Brief }
	brief := func(one *bursty) bool { return one.Brief }
	for !b.stopped(burstEvery - burst) {
		b.each(long, b.t.resume)
		over := b.stopped(burst - briefBurst)
		if !over {
			b.each(brief, b.t.resume)
			over = b.stopped(briefBurst)
			b.each(brief, b.t.pause)
		}
		b.each(long, b.t.pause)
		if over {
			return
		}
	}
}

func (b *bursts) stopped(after time.Duration) bool {
	select {
	case <-b.stop:
		return true
	case <-time.After(after):
		return false
	}
}

func (b *bursts) each(of func(*bursty) bool, do func(*bursty) error) {
	b.t.mu.Lock()
	defer b.t.mu.Unlock()
	for _, one := range b.t.bursty {
		if !of(one) {
			continue
		}
		if err := do(one); err != nil {
			b.t.failed(&one.tracer, b.t.now(), err)
		}
	}
}

// end ends the bursts, the last one in its midst.
func (b *bursts) end() {
	close(b.stop)
	b.ended.Wait()
}

func (t *tracing) resume(b *bursty) error {
	if !b.InBursts { // what is light then needs nobody singled out
		if err := b.running.Only(t.services()...); err != nil {
			return err
		}
	}
	at := t.now()
	if err := b.running.Resume(); err != nil {
		return err
	}
	if b.resumed.IsZero() { // else it could not be switched off, and was on ever since
		b.resumed = at
	}
	return nil
}

// pause ends a burst, if it began. What was counted in it stands for all the time
// since the one before that was read.
func (t *tracing) pause(b *bursty) error {
	if b.resumed.IsZero() {
		return nil
	}
	now := t.now()
	if err := b.running.Pause(); err != nil {
		return err
	}
	b.unread += now.Sub(b.resumed)
	b.resumed = time.Time{}
	if err := b.read(); err != nil {
		return err
	}
	if b.failing {
		t.seen(&b.tracer, now)
	}
	on := b.unread
	if on <= 0 { // no tick of the clock: there is no rate, and what it counted is the next burst's
		return nil
	}
	b.unread = 0
	b.on += on
	b.sums.each(func(s *sum) {
		s.rate = (s.value - s.counted) / on.Seconds()
		s.counted = s.value
	})
	t.estimate(b, now)
	return nil
}

// estimate records what a tracer is taken to have counted until now: the rates of its
// last burst last until then.
func (t *tracing) estimate(b *bursty, now time.Time) {
	b.sums.each(func(s *sum) {
		s.all += s.rate * now.Sub(b.upTo).Seconds()
		t.sample(s, now, s.all)
	})
	b.upTo = now
}

// services are the processes that tracers for bursts look at: the services of all
// hosts, of very many the busiest.
func (t *tracing) services() []int {
	var list []host.Proc
	for _, h := range t.hosts {
		services, err := h.Services()
		if err != nil {
			continue // its probes say so
		}
		for _, p := range services {
			if !p.Kernel {
				list = append(list, p)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b host.Proc) int { return cmp.Compare(t.busy[b.Comm], t.busy[a.Comm]) })
	var pids []int
	for _, p := range list[:min(len(list), trace.MaxOnly)] {
		pids = append(pids, p.PID)
	}
	return pids
}

const (
	// mostCalls is how many calls of its programs in a second a CPU is to bear from a light
	// tracer. Each takes some 0.15 µs, so these are 0.3 % of it.
	mostCalls = 20_000
	// Where there are more, it begins what is new only in a burst of every cycle, and has
	// lastOrders to see the end of what it began.
	cycle      = 2 * time.Second
	leastBurst = 100 * time.Millisecond
	lastOrders = 100 * time.Millisecond
)

// sparing is a light tracer that would not be light where its programs are called very
// often. There it watches in bursts, and what it counted in one stands for the time since
// the one before; else it watches throughout, and is exact.
type sparing struct {
	tracer
	watch trace.Sparing
	calls []uint64      // of each CPU, when they were looked at last
	began time.Time     // when it was switched on, or looked at last since then
	upTo  time.Time     // it is counted, or estimated, up to here
	burst time.Duration // how long the next one is to last, or the whole cycle
	last  time.Duration // how long the last one lasted; 0 where something failed
	walk  time.Duration // how long the reading took that ended it
	kept  uint64        // the reading whose gauges hold

	on, held time.Duration // of the hold window: in bursts, and all of it

	stop  chan struct{} // nil while it watches throughout
	ended sync.WaitGroup
}

// addSparing takes one that watches.
func (t *tracing) addSparing(s *sparing) {
	now := t.now()
	s.began, s.upTo = now, now
	t.sparing = append(t.sparing, s)
	if err := s.look(now); err != nil {
		t.failed(&s.tracer, now, err)
	}
}

// duty is the share of the hold window in which it watched.
func (s *sparing) duty() float64 {
	if s.held == 0 {
		return 1
	}
	return s.on.Seconds() / s.held.Seconds()
}

// readSparing records what a tracer counted until now, or is taken to have.
func (t *tracing) readSparing(s *sparing, now time.Time) {
	if s.stop != nil {
		t.estimateSparing(s, now)
		s.sums.all(func(one *sum) {
			if one.signal.Kind != model.Gauge || one.kept == s.kept { // what a burst did not see has no value
				t.sample(one, now, one.all)
			}
		})
		return
	}
	if err := t.count(s, now); err != nil {
		t.failed(&s.tracer, now, err)
		return
	}
	t.seen(&s.tracer, now) // what it can tell depends on what there is
	s.sums.each(func(one *sum) { t.sample(one, now, one.all) })
	if s.burst < cycle {
		s.stop = make(chan struct{})
		s.ended.Go(func() { t.takeTurns(s, s.stop) })
	}
}

// count adds what a tracer counted throughout since it was last read.
func (t *tracing) count(s *sparing, now time.Time) error {
	if err := s.read(); err != nil {
		return err
	}
	s.sums.each(func(one *sum) {
		one.all += one.value - one.counted
		one.counted = one.value
	})
	s.keepGauges()
	if t.holding {
		s.on += now.Sub(s.upTo)
		s.held += now.Sub(s.upTo)
	}
	s.upTo = now
	return s.look(now)
}

// keepGauges keeps what does not add up as it was read last.
func (s *sparing) keepGauges() {
	s.kept = s.sums.round
	s.sums.each(func(one *sum) {
		if one.signal.Kind == model.Gauge {
			one.all, one.rate, one.kept = one.value, 0, s.kept
		}
	})
}

// estimateSparing takes the rates of the last burst to have lasted until now.
func (t *tracing) estimateSparing(s *sparing, now time.Time) {
	since := max(now.Sub(s.upTo), 0)
	s.sums.all(func(one *sum) { one.all += one.rate * since.Seconds() })
	if t.holding {
		s.held += since
	}
	s.upTo = s.upTo.Add(since)
}

// look asks how often the programs were called since the tracer was switched on or last
// looked at, and says from that how long the next burst is to last.
func (s *sparing) look(now time.Time) error {
	calls, err := s.watch.Calls()
	if err != nil {
		return err
	}
	var most uint64
	for cpu, n := range calls {
		if cpu < len(s.calls) {
			most = max(most, n-s.calls[cpu])
		}
	}
	s.calls, s.burst = calls, cycle
	if rate := float64(most) / now.Sub(s.began).Seconds(); rate > mostCalls {
		s.burst = max(leastBurst, time.Duration(mostCalls/rate*float64(cycle-lastOrders)))
	}
	s.began = now
	return nil
}

// takeTurns has a tracer that is on take turns at watching and pausing, until it is stopped
// or may watch throughout.
func (t *tracing) takeTurns(s *sparing, stop <-chan struct{}) {
	for s.burst < cycle {
		if !t.after(s.beforeWalk(), stop, s, t.finish) || !t.after(lastOrders, stop, s, t.pauseSparing) ||
			!t.after(max(cycle-s.burst-lastOrders, 0), stop, s, t.resumeSparing) {
			return
		}
	}
}

// beforeWalk is how long a burst lasts until it is read, which takes about as long as the last
// time, and the programs are on meanwhile.
func (s *sparing) beforeWalk() time.Duration { return max(s.burst-s.walk, 0) }

// after does something with a tracer when so long has passed, and says whether it was not
// stopped before.
func (t *tracing) after(wait time.Duration, stop <-chan struct{}, s *sparing, do func(*sparing, time.Time) error) bool {
	select {
	case <-stop:
		return false
	case <-time.After(wait):
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := do(s, t.now()); err != nil {
		s.last = 0
		t.failed(&s.tracer, t.now(), err)
	}
	return true
}

// finish ends a burst: nothing new is begun. What is under way is looked at before, for a
// moment later what is quick has ended, and no other has taken its place. It ends, too, where
// that fails.
func (t *tracing) finish(s *sparing, at time.Time) error {
	err := s.read()
	if err == nil {
		s.keepGauges()
	}
	now := t.now()
	s.walk = now.Sub(at)
	if err := errors.Join(err, s.watch.Finish()); err != nil {
		return err
	}
	s.last = now.Sub(s.began)
	return nil
}

// pauseSparing takes what was counted since the tracer was switched on for the last burst's.
func (t *tracing) pauseSparing(s *sparing, now time.Time) error {
	if err := s.running.Pause(); err != nil {
		return err
	}
	if err := s.read(); err != nil {
		return err
	}
	s.sums.each(func(one *sum) {
		if s.last > 0 && one.signal.Kind != model.Gauge {
			one.rate = (one.value - one.counted) / s.last.Seconds()
		}
		one.counted = one.value
	})
	if t.holding {
		s.on += s.last
	}
	t.estimateSparing(s, now)
	t.seen(&s.tracer, now)
	return s.look(now)
}

// resumeSparing switches it on again; where it may watch throughout, for good.
func (t *tracing) resumeSparing(s *sparing, now time.Time) error {
	t.estimateSparing(s, now)
	s.began = now
	if err := s.running.Resume(); err != nil {
		return err
	}
	if s.burst == cycle {
		s.stop = nil
	}
	return nil
}

// endTurns ends its turns, if it takes any.
func (t *tracing) endTurns(s *sparing) {
	t.mu.Lock()
	stop := s.stop
	t.mu.Unlock()
	if stop != nil {
		close(stop)
	}
	s.ended.Wait()
}
