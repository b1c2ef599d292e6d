package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"plimsoll/internal/collect"
	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

// Run drives plan at its target, observes the hosts meanwhile, and fills
// opt.Dir. Cancelling ctx ends the load early; the run is whole all the same,
// but one that never came to hold the load is an error that matches
// context.Canceled. A target that cannot be used at all is a load.EngineError.
func Run(ctx context.Context, opt Options, plan model.LoadPlan, phases Phases) (err error) {
	begin, err := opt.Engine(ctx, plan)
	if err != nil {
		return err
	}
	s, err := open(ctx, opt, model.Plan{Mode: "run", Interval: opt.Interval.Milliseconds(), Load: &plan, CommandLine: opt.CommandLine})
	if err != nil {
		return err
	}
	rest := context.WithoutCancel(ctx)
	defer func() {
		if e := s.close(rest); err == nil {
			err = e
		}
	}()
	if phases.Baseline > 0 {
		if err := s.window(rest, model.Baseline); err != nil {
			return err
		}
		if err := s.sample(ctx, phases.Baseline, nil, Progress{Window: model.Baseline, Planned: phases.Baseline}); err != nil {
			return err
		}
	}
	if ctx.Err() == nil {
		if err := s.drive(ctx, rest, plan, begin); err != nil {
			return err
		}
	}
	if err := tooEarly(ctx, s.held); err != nil || phases.Cool == 0 {
		return err
	}
	return s.sample(ctx, phases.Cool, nil, Progress{Window: model.Cool, Planned: phases.Cool})
}

// tooEarly is the error of a load that was interrupted before it was held.
func tooEarly(ctx context.Context, held bool) error {
	if err := ctx.Err(); err != nil && !held {
		return fmt.Errorf("interrupted before the load was held, so there is nothing to judge: %w", err)
	}
	return nil
}

// drive runs the load engine to its end. Its phases become windows.
func (s *session) drive(ctx, rest context.Context, plan model.LoadPlan, begin func(context.Context) (collect.Engine, error)) error {
	s.load = collect.NewLoad(s.own.Recorder(), s.now, s.from, plan, begin)
	if err := s.own.Add(ctx, s.load); err != nil {
		return err
	}
	for _, p := range s.load.Processes() {
		if err := s.all.ignoreAt(p.Via, p.PID); err != nil {
			s.out.Note(fmt.Sprintf("the load engine is traced with all others: %v", err))
		}
	}
	tick := time.NewTicker(s.opt.Interval)
	defer tick.Stop()
	view := progressView{plan: plan}
	target := ""
	for {
		select {
		case r, ok := <-s.load.Records():
			if !ok {
				err := s.load.Err()
				if err != nil {
					s.out.Note(fmt.Sprintf("the load ended before its time: %v", err))
				}
				return err
			}
			if err := s.take(rest, r); err != nil {
				return err
			}
			if target == "" {
				target = r.Target
				if err := s.noteUnseen(target); err != nil {
					return err
				}
			}
			s.progress(view.of(r))
		case <-tick.C:
			if err := s.failed(); err != nil {
				return err
			}
		}
	}
}

// mostLate is how late the watching of the hold phase may begin and nobody has to hear of it: well more than what a busy machine takes to wake a process.
const mostLate = time.Second

// take records what the engine says; a change of phase changes the window.
func (s *session) take(ctx context.Context, r load.Record) error {
	s.load.Take(r)
	if err := s.keepWorkers(r); err != nil {
		return err
	}
	if r.Final {
		if err := s.keepHeld(r); err != nil {
			return err
		}
	}
	if r.PhaseStarted == "" {
		return s.failed()
	}
	if late := s.now().Sub(time.UnixMilli(r.Time)); r.PhaseStarted == model.Hold && late > mostLate {
		s.out.Note(fmt.Sprintf("the load had been held for %.1f s before it was watched: this machine is short of CPU time, and what is told of the window is of what was left of it", late.Seconds()))
	}
	return s.window(ctx, windowName(r.PhaseStarted))
}

// keepHeld records for how long the load was held.
func (s *session) keepHeld(r load.Record) error {
	i := slices.IndexFunc(r.Phases, func(p load.PhaseRecord) bool { return p.Phase == model.Hold && p.End > p.Start })
	if i < 0 {
		return nil
	}
	return s.out.Update(func(run *model.Run) { run.HeldMS = r.Phases[i].End - r.Phases[i].Start })
}

// keepWorkers records who plays the load, and how they fared.
func (s *session) keepWorkers(r load.Record) error {
	if len(r.Workers) == 0 || r.PhaseStarted == "" && !r.Final {
		return nil
	}
	return s.out.Update(func(run *model.Run) {
		run.Workers = nil
		for _, w := range r.Workers {
			run.Workers = append(run.Workers, w.Worker)
		}
	})
}

// windowName is the window of one of the engine's phases: while replies to the
// last requests come in, no request begins any more.
func windowName(phase string) string {
	if phase == load.Drain {
		return model.Cool
	}
	return phase
}

// Load drives plan without observing anything, and returns the final record.
// To be interrupted before the load was held is an error as it is of Run.
func Load(ctx context.Context, engines collect.Engines, plan model.LoadPlan, progress func(Progress), keep func(load.Record)) (load.Record, error) {
	var last load.Record
	view := progressView{plan: plan}
	err := collect.Drive(ctx, engines, plan, func(r load.Record) {
		last = r
		if keep != nil {
			keep(r)
		}
		if p := view.of(r); progress != nil {
			progress(p)
		}
	})
	if err != nil {
		return last, err
	}
	held := slices.ContainsFunc(last.Phases, func(p load.PhaseRecord) bool { return p.Phase == model.Hold })
	return last, tooEarly(ctx, held)
}

// progressView turns cumulative records into what happened since the last one.
type progressView struct {
	plan          model.LoadPlan
	at            int64
	replies, good int64
}

func (v *progressView) of(r load.Record) Progress {
	p := Progress{Window: windowName(r.Phase)}
	var replies, good, ended int64
	for _, ph := range r.Phases {
		for name, n := range ph.Outcomes {
			if v.plan.Rate == 0 && model.IsAttempt(name) {
				p.FailedAttempts += n // of which no request came
				continue
			}
			ended += n
			if model.IsReply(name) {
				replies += n
			}
			if model.IsGood(name) {
				good += n
			}
		}
		if ph.Phase == r.Phase {
			p.Elapsed = time.Duration(r.Time-ph.Start) * time.Millisecond
		}
	}
	if secs := float64(r.Time-v.at) / 1000; v.at > 0 && secs > 0 {
		p.RPS, p.GoodRPS = float64(replies-v.replies)/secs, float64(good-v.good)/secs
	}
	v.at, v.replies, v.good = r.Time, replies, good
	p.Failed = ended - good
	p.Planned = time.Duration(map[string]int64{
		model.Calm: v.plan.CalmMS, model.Ramp: v.plan.RampMS, model.Hold: v.plan.DurationMS,
	}[r.Phase]) * time.Millisecond
	return p
}
