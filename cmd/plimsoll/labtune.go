package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/lab"
	"plimsoll/internal/layout"
)

const labTuneLong = `Brings a case up, has this binary tune it from outside ("plimsoll tune --apply"),
takes everything back ("plimsoll undo --all"), and compares a snapshot of the
hosts with the one before: settings of the kernel, files, limits of processes,
queues of listeners. With --twin it then runs the case with all its mends, and
tells how near tuning came: nine tenths of its good replies a second are wanted.

With --kill N it tunes once to see when changes are made, then starts N tunes and
kills each (kill -9) at a random moment, half of them about a change; each time it
undoes and compares the snapshots.`

func labTune(w *world) *cobra.Command {
	c := &cobra.Command{Use: "tune CASE", Short: "tune a case, take it back, compare the state before and after", Long: labTuneLong,
		Args: oneArgument("a case"), ValidArgsFunction: completeCase,
		Example: "  plimsoll lab tune throughput-chain --twin\n  plimsoll lab tune worker-connections --kill 100"}
	twin := c.Flags().Bool("twin", false, "also run the mended case, and compare")
	kills := c.Flags().Int("kill", 0, "kill `N` tunes, each at a random moment")
	seed := c.Flags().Uint64("seed", 0, "seed of the random moments (default: another each time)")
	var hold time.Duration
	durationFlag(c.Flags(), &hold, "duration", "d", 0, "how long to hold each load, in place of what the case says")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		opt, err := labOptions(w, args, nil)
		if err != nil {
			return err
		}
		if hold > 0 {
			opt.Args = append(opt.Args, "-d", hold.String())
		}
		if *kills > 0 {
			return killTunes(c.Context(), w, args[0], opt, *kills, *seed, *asJSON)
		}
		show := w.stdout
		if *asJSON {
			show = w.stderr
		}
		res, err := theLab().Tune(c.Context(), args[0], opt, *twin, show)
		if err != nil {
			return labFailed(err)
		}
		return printTuned(w, res, *asJSON)
	}
	return withExits(c, exitOK, exitNotPassed, exitUsage, exitMissing, exitInterrupted)
}

func printTuned(w *world, r *lab.TuneResult, asJSON bool) error {
	if asJSON {
		if err := printJSON(w.stdout, r); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(w.stdout)
		if r.Twin != nil {
			fmt.Fprintf(w.stdout, "mended by its author, the case gives %s good/s, p99 %s; tuned %s good/s, p99 %s\n",
				layout.Rate(r.Twin.GoodRPS), layout.Micros(r.Twin.P99), layout.Rate(r.Tuning.End.GoodRPS), layout.Micros(r.Tuning.End.P99))
		}
		if r.Pass {
			fmt.Fprintln(w.stdout, "everything was taken back: settings, files, limits and queues are as they were")
		}
	}
	if !r.Pass {
		return fail(exitNotPassed, fmt.Errorf("case %s: %s", r.Case, strings.Join(r.Wrong, "; ")))
	}
	return nil
}

// shortRun makes a tune quick, so that many can be killed.
var shortRun = []string{"-d", "2s", "--baseline", "300ms", "--calm", "0", "--ramp", "300ms", "--cool", "0", "--trace", "off"}

func killTunes(ctx context.Context, w *world, id string, opt lab.Options, times int, seed uint64, asJSON bool) error {
	if seed == 0 {
		seed = rand.Uint64N(1_000_000) + 1
	}
	opt.Args = append(append([]string{}, shortRun...), opt.Args...)
	fmt.Fprintf(w.stderr, "seed %d\n", seed)
	results, err := theLab().Kill(ctx, id, opt, times, seed, w.stderr, func(i int, r lab.KillResult) {
		word := "the same"
		if len(r.Wrong) > 0 {
			word = "NOT THE SAME: " + strings.Join(r.Wrong, "; ")
		}
		fmt.Fprintf(w.stderr, "%4d  killed after %6.2f s, %d changes begun: %s\n", i, r.After.Seconds(), r.Begun, word)
	})
	if err != nil {
		return labFailed(err)
	}
	bad, begun := 0, 0
	for _, r := range results {
		begun += r.Begun
		if len(r.Wrong) > 0 {
			bad++
		}
	}
	if asJSON {
		if err := printJSON(w.stdout, map[string]any{"case": id, "seed": seed, "kills": results}); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(w.stdout, "%d tunes were killed, %d changes begun; after undo the state was the same in %d\n", len(results), begun, len(results)-bad)
	}
	if bad > 0 {
		return fail(exitNotPassed, errors.New("undo did not bring everything back"))
	}
	return nil
}
