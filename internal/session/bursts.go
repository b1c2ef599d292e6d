package session

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/trace"
)

// Dear tracers are on for burst at the end of every burstEvery of the hold window,
// brief ones for the last briefBurst of it.
const (
	burst      = 200 * time.Millisecond
	briefBurst = 100 * time.Millisecond
	burstEvery = 2 * time.Second
)

// dear is a tracer that is on in bursts.
type dear struct {
	tracer
	began   time.Time     // of the hold window
	upTo    time.Time     // the estimate is made up to here
	resumed time.Time     // zero while it is off
	unread  time.Duration // for so long it was on without having been read
	on      time.Duration // in all, and read
}

// duty is the share of the time in which it was on.
func (d *dear) duty() float64 {
	if d.upTo.Equal(d.began) {
		return 0
	}
	return d.on.Seconds() / d.upTo.Sub(d.began).Seconds()
}

// bursts are those of one hold window.
type bursts struct {
	t     *tracing
	stop  chan struct{}
	ended sync.WaitGroup
}

func (t *tracing) startBursts() *bursts {
	b := &bursts{t: t, stop: make(chan struct{})}
	for _, d := range t.dear {
		d.began = t.now()
		d.upTo = d.began
	}
	b.ended.Add(1)
	go b.run()
	return b
}

// run switches the dear tracers on and off until it is stopped.
func (b *bursts) run() {
	defer b.ended.Done()
	long := func(d *dear) bool { return !d.Brief }
	brief := func(d *dear) bool { return d.Brief }
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

func (b *bursts) each(of func(*dear) bool, do func(*dear) error) {
	b.t.mu.Lock()
	defer b.t.mu.Unlock()
	for _, d := range b.t.dear {
		if !of(d) {
			continue
		}
		if err := do(d); err != nil {
			b.t.failed(&d.tracer, b.t.now(), err)
		}
	}
}

// end ends the bursts; the rates of the last one are taken to last until now.
func (b *bursts) end() {
	close(b.stop)
	b.ended.Wait()
	b.each(func(*dear) bool { return true }, func(d *dear) error {
		now := b.t.now()
		d.sums.each(func(s *sum) {
			s.all += s.rate * now.Sub(d.upTo).Seconds()
			b.t.sample(s, now, s.all)
		})
		d.upTo = now
		return nil
	})
}

func (t *tracing) resume(d *dear) error {
	if err := d.running.Only(t.suspects()...); err != nil {
		return err
	}
	at := t.now()
	if err := d.running.Resume(); err != nil {
		return err
	}
	if d.resumed.IsZero() { // else it could not be switched off, and was on ever since
		d.resumed = at
	}
	return nil
}

// pause ends a burst, if it began. What was counted in it stands for all the time
// since the one before that was read.
func (t *tracing) pause(d *dear) error {
	if d.resumed.IsZero() {
		return nil
	}
	now := t.now()
	if err := d.running.Pause(); err != nil {
		return err
	}
	d.unread += now.Sub(d.resumed)
	d.resumed = time.Time{}
	if err := d.read(); err != nil {
		return err
	}
	if d.failing {
		t.seen(&d.tracer, now)
	}
	on := d.unread
	d.unread = 0
	d.on += on
	d.sums.each(func(s *sum) {
		s.rate = (s.value - s.counted) / on.Seconds()
		s.all += s.rate * now.Sub(d.upTo).Seconds()
		s.counted = s.value
		t.sample(s, now, s.all)
	})
	d.upTo = now
	return nil
}

// suspects are the processes that dear tracers look at: the services of all
// hosts, of very many the busiest.
func (t *tracing) suspects() []int {
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
