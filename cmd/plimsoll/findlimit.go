package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"plimsoll/internal/layout"
	"plimsoll/internal/load"
	"plimsoll/internal/model"
	"plimsoll/internal/report"
	"plimsoll/internal/session"
	"plimsoll/internal/tune"
)

// limitDocument is what load --find-limit --json prints.
type limitDocument struct {
	Plan  model.LoadPlan `json:"plan"`
	Limit model.Limit    `json:"limit"`
	// Interrupted says that the search was stopped before it was done.
	Interrupted bool `json:"interrupted"`
}

const (
	firstRate = 100 // requests/s, where -R does not say
	// Each rate is held so long where -d does not say, after a ramp in which connections open.
	rateHeld = 5 * time.Second
	rateRamp = time.Second
)

// limitPlan is the plan of each step of a search, but for its rate.
func limitPlan(command string, plan model.LoadPlan, asked func(string) bool) (model.LoadPlan, error) {
	if asked("max-requests") {
		return plan, usage(command, "-n: with --find-limit each rate is held for a time (-d)")
	}
	if len(plan.Stages) > 0 || asked("stage") {
		return plan, usage(command, "--stage: with --find-limit each rate is held by itself; -R says where to begin")
	}
	if plan.Recorded != nil && plan.Recorded.Speed > 0 {
		return plan, usage(command, "--speed: with --find-limit each rate is held by itself; without --speed requests are drawn from the recording")
	}
	if plan.Rate == 0 {
		plan.Rate = firstRate
	}
	if plan.Rate < tune.LeastRate || plan.Rate > tune.MostRate {
		return plan, usage(command, "-R %g: with --find-limit want %d to %d, where to begin", plan.Rate, tune.LeastRate, tune.MostRate)
	}
	if !asked("duration") {
		plan.DurationMS = rateHeld.Milliseconds()
	}
	if !asked("ramp") {
		plan.RampMS = max(plan.RampMS, rateRamp.Milliseconds())
	}
	return plan, nil
}

// findLimit searches for the highest rate at which goals are met, and prints what it found.
func findLimit(ctx context.Context, w *world, crew *crew, plan model.LoadPlan, goals []tune.Goal, asJSON bool) error {
	goals = tune.WithErrors(goals)
	options := report.TextOptions{Width: w.columns(), Color: w.color()}
	shown := func(s model.LimitStep) {
		if asJSON {
			fmt.Fprintf(w.stderr, "%s/s: %s\n", layout.Rate(s.Rate), map[bool]string{true: "kept", false: "missed"}[s.Met])
			return
		}
		_ = report.LimitStep(w.stdout, s, options) // who does not read it ends the search at its foot
	}
	if !asJSON {
		if err := report.LimitHead(w.stdout, version, plan.WithoutSecrets(), tune.Texts(goals), options); err != nil {
			return err
		}
	}
	found, err := tune.FindLimit(ctx, goals, plan.Rate, func(ctx context.Context, rate float64) (model.LimitStep, error) {
		return tryRate(ctx, w, crew, plan, rate, goals)
	}, shown)
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(w.stderr, "plimsoll: interrupted: the search was stopped before it was done, so no rate was confirmed")
	} else if err != nil {
		return err
	}
	if asJSON {
		err = errors.Join(printJSON(w.stdout, limitDocument{plan.WithoutSecrets(), found, err != nil}), err)
	} else if err == nil {
		err = report.LimitFoot(w.stdout, found, plan, options)
	}
	if err == nil && found.Rate == 0 {
		err = fail(exitNotPassed, errors.New("no rate kept the service level, and did so again"))
	}
	return err
}

// tryRate drives the plan at a rate.
func tryRate(ctx context.Context, w *world, crew *crew, plan model.LoadPlan, rate float64, goals []tune.Goal) (model.LimitStep, error) {
	plan.Rate = rate
	line := w.progress()
	var show func(session.Progress)
	if line != nil {
		show = line.show
	}
	last, err := session.Load(ctx, crew.engines(w), plan, show, nil)
	line.end()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return model.LimitStep{}, err
	}
	got := loadOf(plan, last)
	return tune.LimitStepOf(goals, &got, busiestThread(last)), nil
}

// busiestThread is how much of a CPU the busiest of the load's threads had.
func busiestThread(last load.Record) (most float64) {
	for _, t := range last.Threads {
		if !strings.HasSuffix(t.Thread, "rest") && last.Totals != nil && last.Totals.Seconds > 0 {
			most = max(most, (t.User+t.System)/last.Totals.Seconds)
		}
	}
	return most
}
