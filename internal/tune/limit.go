package tune

import (
	"context"
	"math"
	"slices"
	"strings"

	"plimsoll/internal/model"
)

// The bounds of a search for a rate, in requests/s, and how close together the highest that is met and the lowest
// that is missed have to be.
const (
	LeastRate = 1
	MostRate  = 10_000_000
	closeness = 1.05
)

// maxConfirmations is how many rates are tried for a second time before none is believed.
const maxConfirmations = 5

// WithErrors returns goals in which some bound of what may fail is: a service that refuses
// quickly would keep any latency.
func WithErrors(goals []Goal) []Goal {
	if slices.ContainsFunc(goals, func(g Goal) bool {
		return strings.HasPrefix(g.text, "errors") || strings.HasPrefix(g.text, "share") || strings.HasPrefix(g.text, "good")
	}) {
		return goals
	}
	added, _ := ParseGoals("errors<1%")
	return slices.Concat(goals, added)
}

// Texts are the goals as they were asked for.
func Texts(goals []Goal) []string {
	list := []string{}
	for _, g := range goals {
		list = append(list, g.text)
	}
	return list
}

// Try drives a load at a rate and says what came of it.
type Try func(ctx context.Context, rate float64) (model.LimitStep, error)

// FindLimit searches for the highest rate at which goals are met: it doubles from start until one is
// missed (or halves until one is met), bisects, and tries what it found once more. A rate is missed when it was
// twice: a hiccup is no limit. shown is told of each step. With an error, what was found up to it is returned, too.
func FindLimit(ctx context.Context, goals []Goal, start float64, try Try, shown func(model.LimitStep)) (model.Limit, error) {
	s := limitSearch{ctx: ctx, do: try, shown: shown}
	s.found.Steps = []model.LimitStep{}
	s.found.Goals = Texts(goals)
	err := s.bracket(start)
	if err == nil {
		err = s.bisect()
	}
	if err == nil {
		err = s.confirm()
	}
	s.found.Missed = s.missed
	for _, step := range s.found.Steps {
		if step.Rate == s.missed && !step.Met {
			s.found.By = step.By
		}
	}
	return s.found, err
}

// limitSearch is where a search stands.
type limitSearch struct {
	ctx   context.Context
	do    Try
	shown func(model.LimitStep)
	found model.Limit
	// met is the highest rate that was, missed the lowest that was not; 0 for none.
	met, missed float64
}

// try tries a rate, and once more if it is missed.
func (s *limitSearch) try(rate float64, confirms bool) (met bool, err error) {
	for range 2 {
		step, err := s.do(s.ctx, rate)
		if err != nil {
			return false, err
		}
		step.Rate, step.Confirms = rate, confirms
		s.found.Steps = append(s.found.Steps, step)
		s.shown(step)
		if step.Met {
			return true, nil
		}
	}
	return false, nil
}

// bracket finds a rate that is met and one that is not, no more than twice as high.
func (s *limitSearch) bracket(rate float64) error {
	for {
		met, err := s.try(rate, false)
		switch {
		case err != nil:
			return err
		case met:
			s.met = rate
			if s.missed > 0 || rate >= MostRate {
				return nil
			}
			rate = min(2*rate, MostRate)
		default:
			s.missed = rate
			if s.met > 0 || rate <= LeastRate {
				return nil
			}
			rate = max(rate/2, LeastRate)
		}
	}
}

// bisect brings them close together.
func (s *limitSearch) bisect() error {
	for s.met > 0 && s.missed > closeness*s.met {
		rate := round(math.Sqrt(s.met * s.missed))
		if rate <= s.met || rate >= s.missed {
			return nil
		}
		met, err := s.try(rate, false)
		switch {
		case err != nil:
			return err
		case met:
			s.met = rate
		default:
			s.missed = rate
		}
	}
	return nil
}

// confirm tries the rate that was found once more, and where that misses, the next lower one.
func (s *limitSearch) confirm() error {
	for range maxConfirmations {
		if s.met == 0 {
			return nil
		}
		met, err := s.try(s.met, true)
		if err != nil {
			return err
		}
		if met {
			s.found.Rate = s.met
			return nil
		}
		s.missed, s.met = s.met, 0
		for _, step := range s.found.Steps {
			if step.Met && step.Rate < s.missed {
				s.met = max(s.met, step.Rate)
			}
		}
	}
	return nil
}

// round leaves three digits of a rate, so that it can be read and typed.
func round(rate float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(rate))-2)
	return math.Round(rate/unit) * unit
}

// behindSchedule is a lag of the generator, in microseconds, that counts beside what users waited.
const behindSchedule = 1000

// LimitStepOf is what a load came to; generatorCPU is how busy the generator's busiest thread was.
func LimitStepOf(goals []Goal, l *model.Load, generatorCPU float64) model.LimitStep {
	s := model.LimitStep{GoodRPS: l.GoodRPS, GoodShare: l.GoodShare, P50: l.Waited.P50, P99: l.Waited.P99, LagP99: l.Lag.P99, GeneratorCPU: generatorCPU}
	s.Goals, s.Met = Met(goals, l)
	if !s.Met {
		s.By = inTheWay(l, generatorCPU)
	}
	return s
}

// inTheWay says what kept an open loop's requests from being served in time.
func inTheWay(l *model.Load, generatorCPU float64) string {
	const wholeCPU = 0.95
	switch {
	case l.Lag.P99 >= max(behindSchedule, l.Waited.P99/4), generatorCPU > wholeCPU:
		return model.ByGenerator
	case l.Outcomes["queue:timeout"] > 0, l.Service.P99 < l.Latency.P99/2:
		return model.ByConnections
	}
	return model.ByService
}
