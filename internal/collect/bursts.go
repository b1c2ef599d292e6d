package collect

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/host"
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
	if err := b.running.Only(t.services()...); err != nil {
		return err
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
