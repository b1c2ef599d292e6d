package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"plimsoll/internal/model"
	"plimsoll/internal/report"
	"plimsoll/internal/session"
	"plimsoll/internal/tune"
)

const loadLong = `Drives the load and says what came back, and nothing else: no host is watched, no
run directory is made, there is no verdict. The flags are those of "plimsoll run",
but nothing is sent beside what was asked for: --calm and --ramp are 0.

With --find-limit it searches for the highest rate that keeps --slo: it holds
one rate after the other (open loop, from -R or 100/s on) for 5 s each, doubles
until one is missed, goes between, and tries what it found once more. A miss is
tried again, since a hiccup is no limit. It says whether the service was in the
way, or the generator, or too few connections (-c). Where --slo bounds no errors,
errors<1% is added: who refuses quickly keeps any latency.`

func loadCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "load URL", Short: "the load alone", Long: loadLong, Args: oneArgument("the URL of the service"),
		Example: "  plimsoll load http://127.0.0.1/ -c 50 -d 5s\n  plimsoll load http://127.0.0.1/ -R 2000 --json\n  plimsoll load http://127.0.0.1/ --find-limit --slo 'p99<50ms,errors<0.1%'"}
	var what loadFlags
	what.add(c, 0, 0)
	asJSON := jsonFlag(c)
	slo := c.Flags().String("slo", "", "end with 1 unless this is kept, like 'p99<50ms,errors<0.1%,good>5000/s'")
	format := c.Flags().String("format", "text", "print the result as `TOOL` does, for scripts that read that: wrk or ab; lines of it for which there is no figure are left out")
	limit := c.Flags().Bool("find-limit", false, "search for the highest rate that keeps --slo")
	c.RunE = func(c *cobra.Command, args []string) error {
		plan, err := what.plan(c.CommandPath(), args[0], c.Flags().Changed)
		if err != nil {
			return err
		}
		what.tell(w)
		if err := checkFormat(c.CommandPath(), *format, *asJSON || *limit); err != nil {
			return err
		}
		goals, err := loadGoals(c.CommandPath(), *slo, *limit)
		if err != nil {
			return err
		}
		if *limit {
			if plan, err = limitPlan(c.CommandPath(), plan, c.Flags().Changed); err != nil {
				return err
			}
		}
		if err := reach(c.Context(), w, plan, what.may, false); err != nil {
			return err
		}
		if *limit {
			return findLimit(c.Context(), w, plan, goals, *asJSON)
		}
		line := w.progress()
		var show func(session.Progress)
		if line != nil {
			show = line.show
		}
		last, err := session.Load(c.Context(), engineCommand(w), plan, show)
		line.end()
		if err != nil {
			return err
		}
		if last.Totals != nil && last.Totals.Cancelled {
			fmt.Fprintln(w.stderr, "plimsoll: interrupted: the load was stopped before its plan was done")
		}
		got := loadOf(plan, last)
		why := explainAll(plan, got, roomFor(c.Context(), plan))
		if *format != "text" {
			err = report.FormatOf(w.stdout, *format, plan.WithoutSecrets(), got)
			for _, text := range why {
				fmt.Fprintln(w.stderr, "plimsoll:", text)
			}
		} else if *asJSON {
			err = printJSON(w.stdout, map[string]any{"plan": plan.WithoutSecrets(), "load": got, "explanations": why})
		} else {
			err = report.LoadText(w.stdout, version, plan.WithoutSecrets(), got, why, report.TextOptions{Width: w.columns(), Color: w.color()})
		}
		if err != nil || last.Totals != nil && last.Totals.Cancelled {
			return err
		}
		return cmp.Or(fellShort(plan, got), keptGoals(goals, &got))
	}
	return withExits(c, exitOK, exitNotPassed, exitUsage, exitMissing, exitUnreachable, exitInterrupted)
}

// checkFormat says what is wrong with --format; other means that something else was asked for that it does not go with.
func checkFormat(command, format string, other bool) error {
	switch {
	case format != "text" && format != "wrk" && format != "ab":
		return usage(command, "--format %s: want text, wrk or ab (--json is for all else)", format)
	case format != "text" && other:
		return usage(command, "--format %s goes with neither --json nor --find-limit; leave out one of both", format)
	}
	return nil
}

// loadGoals reads --slo.
func loadGoals(command, slo string, limit bool) ([]tune.Goal, error) {
	switch {
	case slo == "" && limit:
		return nil, usage(command, "--find-limit needs --slo, what has to be kept, like 'p99<50ms,errors<0.1%%'")
	case slo == "":
		return nil, nil
	}
	goals, err := tune.ParseGoals(slo)
	if err != nil {
		return nil, usage(command, "--slo: %v", err)
	}
	return goals, nil
}

// keptGoals says which goals were not kept.
func keptGoals(goals []tune.Goal, got *model.Load) error {
	var faults []error
	list, _ := tune.Met(goals, got)
	for _, g := range list {
		if !g.Met {
			faults = append(faults, fmt.Errorf("not kept: %s: it was %s", g.Goal, goalValue(g)))
		}
	}
	return fail(exitNotPassed, errors.Join(faults...))
}
