package workers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

// Process is a worker's, on the machine to which via leads.
type Process struct {
	Via string
	PID int
}

// Play is a load that a fleet plays.
type Play struct {
	fleet   *Fleet
	plan    model.LoadPlan
	sum     *load.Sum
	workers []state
	records chan load.Record
	err     error
	phase   int   // of the whole load, in the order of phases; -1 before the first
	began   int64 // when all begin, by our clock, Unix milliseconds
	stop    func()
	stopped bool // it was asked to
}

// state is how a worker stands in a play.
type state struct {
	model.Worker
	*worker
	ahead int64 // its clock before ours, in whole milliseconds
	final bool
	phase int
}

var phases = []string{model.Calm, model.Ramp, model.Hold, load.Drain}

// news is what one worker said; ok is false when it has ended.
type news struct {
	k int
	word
	ok bool
}

// Start has all workers, which are ready, begin at one moment. Cancelling ctx has them send nothing more.
func (f *Fleet) Start(ctx context.Context, plan model.LoadPlan) (*Play, error) {
	p := &Play{fleet: f, plan: plan, workers: make([]state, len(f.workers)), records: make(chan load.Record, 16), phase: -1}
	var names []string
	var all sync.WaitGroup
	errs := make([]error, len(f.workers))
	for k, w := range f.workers {
		names = append(names, w.Name)
		all.Go(func() {
			var c model.Clock
			if c, errs[k] = w.measure(ctx); errs[k] != nil {
				errs[k] = fmt.Errorf("worker %s (%s) is not ready: %w", w.Name, w.Spec, errs[k])
			}
			p.workers[k] = state{Worker: model.Worker{Name: w.Name, Spec: w.Spec, Host: w.Host, Clock: c}, worker: w, ahead: int64(math.Round(c.OffsetMS)), phase: -1}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		f.Close()
		return nil, oneLine{err}
	}
	p.sum = load.NewSum(plan, names)
	p.begin()
	ctx, p.stop = context.WithCancel(ctx)
	go p.run(ctx)
	return p, nil
}

// begin names the moment, by each worker's clock.
func (p *Play) begin() {
	slowest := 0.0
	for k := range p.workers {
		slowest = max(slowest, p.workers[k].Clock.UncertaintyMS)
	}
	for k := range p.workers {
		s := &p.workers[k]
		at := s.now().Add(lead + time.Duration(2*slowest*float64(time.Millisecond)))
		p.began = at.UnixMilli()
		_ = s.out.say(order{Start: at.UnixNano() + int64(s.Clock.OffsetMS*1e6)}) // one that does not hear it does not begin, and is gone
	}
}

// Records are closed after the last one; Err then says why the load ended before its time, nil if it did not.
func (p *Play) Records() <-chan load.Record { return p.records }

// Err is nil when the load was played to its end, by those that are left.
func (p *Play) Err() error { return p.err }

// Processes are the workers'.
func (p *Play) Processes() (list []Process) {
	for k := range p.workers {
		list = append(list, Process{p.workers[k].Via, p.workers[k].ready.PID})
	}
	return list
}

// Kill ends the load, and the workers.
func (p *Play) Kill() {
	p.stop()
	p.fleet.Close()
	for range p.records {
	}
}

// farOff is further from now than the time of a record can be.
const farOff = 24 * time.Hour

// patience is how long the others' sum waits for a worker of which nothing is heard.
const patience = 2500 * time.Millisecond

// run adds up what the workers say, until all have ended.
func (p *Play) run(ctx context.Context) {
	defer close(p.records)
	defer p.stop()
	all, over := p.listen()
	defer close(over)
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	stop := ctx.Done()
	var late <-chan time.Time // one that was told to stop should have by then
	for !p.over() {
		select {
		case n := <-all:
			p.take(n)
		case <-tick.C:
			p.giveUp(func(s *state) bool { return s.quiet() > silence }, fmt.Sprintf("nothing was heard for %v", silence))
		case <-late:
			p.giveUp(func(s *state) bool { return !s.final }, "it did not end when it was asked to")
		case <-stop:
			stop, p.stopped = nil, true
			for k := range p.workers {
				_ = p.workers[k].out.say(order{Stop: true})
			}
			late = time.After(time.Duration(p.plan.TimeoutMS)*time.Millisecond + farewell)
		}
		if p.err == nil {
			p.err = p.tell()
		}
		if p.err != nil {
			p.giveUp(func(s *state) bool { return !s.final }, "the load was ended")
			return
		}
	}
}

// listen brings what all workers say together, until over is closed.
func (p *Play) listen() (chan news, chan struct{}) {
	all, over := make(chan news), make(chan struct{})
	for k := range p.workers {
		w := p.workers[k].worker
		go func() {
			for {
				var n news
				select {
				case said, ok := <-w.heard:
					n = news{k, said, ok}
				case <-over:
					return
				}
				select {
				case all <- n:
				case <-over:
					return
				}
				if !n.ok || n.Record != nil && n.Record.Final {
					return
				}
			}
		}()
	}
	return all, over
}

// take takes what a worker says.
func (p *Play) take(n news) {
	s := &p.workers[n.k]
	if !s.in() {
		return
	}
	switch {
	case !n.ok:
		p.gone(s, s.ended().Error())
	case n.Failed != nil:
		p.gone(s, short(n.Failed.Text))
	case n.Record != nil:
		err := n.Record.Check()
		if now := s.now().UnixMilli() + s.ahead; err == nil && !n.Record.Within(now-farOff.Milliseconds(), now+farOff.Milliseconds()) {
			err = errors.New("its time is none of this load's")
		}
		if err == nil {
			err = p.sum.Take(n.k, *n.Record, s.ahead)
		}
		if err != nil {
			p.gone(s, fmt.Sprintf("what it says is no record of a load: %v", err))
			return
		}
		s.final = n.Record.Final
		s.phase = slices.Index(phases, n.Record.Phase)
		for _, of := range n.Record.Phases {
			if of.Phase == model.Hold {
				s.Requests = of.Requests
			}
		}
	}
}

// in says whether a worker takes part: it is there, and may say more.
func (s *state) in() bool { return s.Gone == "" && !s.final }

func (p *Play) giveUp(whom func(*state) bool, why string) {
	for k := range p.workers {
		if s := &p.workers[k]; s.in() && whom(s) {
			p.gone(s, why)
		}
	}
}

// gone counts a worker out; what it told stays.
func (p *Play) gone(s *state, why string) {
	k := slices.IndexFunc(p.workers, func(o state) bool { return o.Name == s.Name })
	s.Gone, s.GoneMS = why, s.now().UnixMilli()
	if r := p.sum.Newest(k); r != nil {
		s.GoneMS = r.Time
	}
	if s.GoneMS >= p.began {
		s.Gone += fmt.Sprintf(", in second %d of the load", (s.GoneMS-p.began)/1000+1)
	}
	go func() { _ = s.pipe.Close() }() // so that it ends, if it can hear that
}

// over says whether nobody will say anything more.
func (p *Play) over() bool {
	return !slices.ContainsFunc(p.workers, func(s state) bool { return s.in() })
}

// tell makes a record of the whole load when there is one to make.
func (p *Play) tell() error {
	if p.over() {
		return p.last()
	}
	next, fresh, all := len(phases), false, true
	for k := range p.workers {
		s := &p.workers[k]
		fresh = fresh || p.sum.Fresh(k)
		if !s.in() || s.quiet() > patience && s.phase >= 0 {
			continue // the others are not held up
		}
		all = all && p.sum.Fresh(k)
		next = min(next, s.phase)
	}
	switch {
	case next < len(phases) && next > p.phase:
		return p.change(next)
	case fresh && all && p.phase >= 0:
		return p.put(load.Record{Phase: phases[p.phase]})
	}
	return nil
}

// change tells that the load is in another phase: all are.
func (p *Play) change(next int) error {
	r := load.Record{Phase: phases[next], PhaseStarted: phases[next]}
	if p.phase >= 0 {
		r.PhaseEnded = phases[p.phase]
	}
	p.phase = next
	return p.put(r)
}

// last tells the end, after the changes of phase that nobody is left to see.
func (p *Play) last() error {
	left := slices.ContainsFunc(p.workers, func(s state) bool { return s.final })
	if !left && p.stopped {
		return nil
	}
	if !left {
		var why []error
		for k := range p.workers {
			why = append(why, fmt.Errorf("worker %s (%s): %s", p.workers[k].Name, p.workers[k].Spec, p.workers[k].Gone))
		}
		return oneLine{errors.Join(why...)}
	}
	if p.phase < len(phases)-1 {
		if err := p.change(len(phases) - 1); err != nil {
			return err
		}
	}
	return p.put(load.Record{Phase: load.Drain, PhaseEnded: load.Drain, Final: true})
}

func (p *Play) put(r load.Record) error {
	in := make([]bool, len(p.workers))
	for k := range p.workers {
		in[k] = p.workers[k].Gone == ""
	}
	r, err := p.sum.Record(r, in)
	if err != nil {
		return err
	}
	for k := range r.Workers {
		late := r.Workers[k].LateMS
		r.Workers[k].Worker = p.workers[k].Worker
		r.Workers[k].LateMS = late
		if wire, ok := p.workers[k].pipe.(interface{ Bytes() (sent, received int64) }); ok {
			r.Workers[k].SentBytes, r.Workers[k].ReceivedBytes = wire.Bytes()
		}
	}
	p.records <- r
	return nil
}
