package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"plimsoll/internal/collect"
	"plimsoll/internal/layout"
	"plimsoll/internal/load"
	"plimsoll/internal/model"
	"plimsoll/internal/report"
	"plimsoll/internal/session"
	"plimsoll/internal/tune"
)

// kneeDocument is what load --find-knee --json prints.
type kneeDocument struct {
	Plan model.LoadPlan `json:"plan"`
	Knee model.Knee     `json:"knee"`
	// Interrupted says that the search was stopped before it was done.
	Interrupted bool `json:"interrupted"`
}

const (
	// Each number of connections is held so long where -d does not say, after a ramp in which they open.
	numberHeld = 2 * time.Second
	numberRamp = 500 * time.Millisecond
)

// kneePlan is the plan of each step of a search, but for its number of connections.
func kneePlan(command string, plan model.LoadPlan, asked func(string) bool) (model.LoadPlan, error) {
	for _, flag := range []string{"rate", "stage", "speed", "max-connections"} {
		if asked(flag) {
			return plan, usage(command, "--%s: --find-knee is about how many connections keep the service busy, each of which sends its next request when it has the last reply", flag)
		}
	}
	if asked("max-requests") {
		return plan, usage(command, "-n: with --find-knee each number of connections is held for a time (-d)")
	}
	if plan.Connections < tune.LeastConnections {
		return plan, usage(command, "-c %d: with --find-knee want %d or more, up to which 1, 2, 4 … are tried", plan.Connections, tune.LeastConnections)
	}
	if !asked("duration") {
		plan.DurationMS = numberHeld.Milliseconds()
	}
	if !asked("ramp") {
		plan.RampMS = max(plan.RampMS, numberRamp.Milliseconds())
	}
	return plan, nil
}

// findKnee searches for the number of connections beyond which more add more waiting than throughput, and prints what it found.
func findKnee(ctx context.Context, w *world, plan model.LoadPlan, asJSON bool) error {
	options := report.TextOptions{Width: w.columns(), Color: w.color()}
	shown := func(s model.KneeStep) {
		if asJSON {
			fmt.Fprintf(w.stderr, "%s: %s good/s\n", connectionsText(int64(s.Connections)), layout.Rate(s.GoodRPS))
			return
		}
		_ = report.KneeStep(w.stdout, s, options) // who does not read it ends the search at its foot
	}
	if !asJSON {
		if err := report.KneeHead(w.stdout, version, plan.WithoutSecrets(), options); err != nil {
			return err
		}
	}
	found, err := tune.FindKnee(ctx, plan.Connections, func(ctx context.Context, n int) (model.KneeStep, error) {
		return holdConnections(ctx, w, plan, n)
	}, shown)
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(w.stderr, "plimsoll: interrupted: the search was stopped before it was done, so no knee is told")
	} else if err != nil {
		return err
	}
	if asJSON {
		err = errors.Join(printJSON(w.stdout, kneeDocument{plan.WithoutSecrets(), found, err != nil}), err)
	} else if err == nil {
		err = report.KneeFoot(w.stdout, found, plan.WithoutSecrets().URL, options)
	}
	if err == nil && (found.Top == nil || found.Top.GoodRPS == 0) {
		err = fail(exitNotPassed, errors.New("no number of connections had good replies twice, so no knee is told: plimsoll load without --find-knee says what failed"))
	}
	return err
}

// holdConnections drives the plan with so many of them; once more where this generator stood still meanwhile.
func holdConnections(ctx context.Context, w *world, plan model.LoadPlan, n int) (model.KneeStep, error) {
	plan.Connections, plan.Threads = n, min(plan.Threads, n)
	var got model.Load
	var last load.Record
	for range 2 {
		line := w.progress()
		var show func(session.Progress)
		if line != nil {
			show = line.show
		}
		var err error
		last, err = session.Load(ctx, collect.OneProcess(engineCommand(w)), plan, show, nil)
		line.end()
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return model.KneeStep{}, err
		}
		if got = loadOf(plan, last); got.StoodStill == 0 {
			break
		}
	}
	return model.KneeStep{GoodRPS: got.GoodRPS, GoodShare: got.GoodShare, P50: got.Waited.P50, P99: got.Waited.P99, GeneratorCPU: busiestThread(last), StoodStill: got.StoodStill}, nil
}
