package main

import (
	"cmp"
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
hosts with the one before: settings of the kernel, files, limits of processes and
control groups, queues of listeners and devices.

A case passes when nothing holds its load back at the end; or when what does is
in the case's truth, has no fix that a program can make, and tune says what a
person has to decide; and when the snapshots are the same. Of several cases, or
--all, each is a line of a table.

With --twin it then runs each case with all its mends, and tells how near tuning
came: nine tenths of its good replies a second are wanted. Cases that come with a
load tool of their own are tuned with that ("plimsoll tune -- CMD"); how many good
replies it gets is not known, so there is nothing to tell of a twin. Cases whose
users come by themselves are skipped.

With --kill N it tunes one case once to see when changes are made, then starts N
tunes and kills each (kill -9) at a random moment, half of them about a change;
each time it undoes and compares the snapshots.

With --ssh the server is a machine of its own: a real sshd in its network
namespace, with file systems of its own (its journal of changes, its locks, its
/tmp, which lets nothing run). Plimsoll reaches it as --host server=ssh:server,
and undoes there ("plimsoll undo --all --host server=ssh:server"); with --kill
the way there is cut by that.`

// labTuneFlags are the flags of lab tune.
type labTuneFlags struct {
	all, twin bool
	ssh       bool
	kills     int
	seed      uint64
	hold      time.Duration
	report    *string
}

func labTune(w *world) *cobra.Command {
	c := &cobra.Command{Use: "tune [CASE...]", Short: "tune cases, take it back, compare the state before and after", Long: labTuneLong,
		ValidArgsFunction: completeCase,
		Example:           "  plimsoll lab tune throughput-chain --twin\n  plimsoll lab tune --all\n  plimsoll lab tune worker-connections --kill 100\n  plimsoll lab tune throughput-chain --ssh"}
	var f labTuneFlags
	c.Flags().BoolVar(&f.all, "all", false, "tune every case")
	c.Flags().BoolVar(&f.twin, "twin", false, "also run the mended case, and compare")
	c.Flags().BoolVar(&f.ssh, "ssh", false, "have the server be a machine of its own, behind a real sshd, and tune and undo over ssh")
	c.Flags().IntVar(&f.kills, "kill", 0, "kill `N` tunes, each at a random moment")
	c.Flags().Uint64Var(&f.seed, "seed", 0, "seed of the random moments (default: another each time)")
	durationFlag(c.Flags(), &f.hold, "duration", "d", 0, "how long to hold each load, in place of what the case says; a case's own load tool takes as long as it takes")
	asJSON := jsonFlag(c)
	f.report = reportFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		list, err := f.cases(c, args)
		if err != nil {
			return err
		}
		opt, err := labOptions(w, nil, nil)
		if err != nil {
			return err
		}
		if f.hold > 0 {
			opt.Hold = f.hold
		}
		opt.SSH = f.ssh
		switch {
		case f.kills > 0:
			return killTunes(c.Context(), w, args[0], opt, f.kills, f.seed, *asJSON)
		case len(list) == 1:
			return f.one(c.Context(), w, list[0], opt, *asJSON)
		}
		return f.several(c.Context(), w, list, opt, *asJSON)
	}
	return withExits(c, exitOK, exitNotPassed, exitUsage, exitMissing, exitInterrupted)
}

// cases checks the flags and returns the ids of the cases to tune.
func (f *labTuneFlags) cases(c *cobra.Command, args []string) ([]string, error) {
	path := c.CommandPath()
	switch {
	case f.all && len(args) > 0:
		return nil, usage(path, "--all is every case; leave %s out, or --all", args[0])
	case !f.all && len(args) == 0:
		return nil, usage(path, "it needs cases, or --all; plimsoll lab list shows the cases")
	case f.kills > 0 && len(args) != 1:
		return nil, usage(path, "--kill is for one case")
	}
	for _, id := range args {
		one, err := theLab().Case(id)
		if err != nil {
			return nil, fail(exitUsage, err)
		}
		if f.kills > 0 && one.Load.URL == "" {
			return nil, usage(path, "--kill needs runs that can be cut short, and %s comes with a load of its own", id)
		}
	}
	if !f.all {
		return args, nil
	}
	list, err := theLab().List()
	for _, c := range list {
		args = append(args, c.ID)
	}
	return args, err
}

// one tunes a case, and shows the walk.
func (f *labTuneFlags) one(ctx context.Context, w *world, id string, opt lab.Options, asJSON bool) error {
	show := w.commandOut // it is this same program, which cleans
	if asJSON {
		show = w.commandErr
	}
	r, err := theLab().Tune(ctx, id, opt, f.twin, show)
	if err != nil {
		return labFailed(err)
	}
	if err := writeSheet(*f.report, tunedPage([]*lab.TuneResult{r})); err != nil {
		return err
	}
	if asJSON {
		if err := printJSON(w.stdout, r); err != nil {
			return err
		}
	} else {
		printTuned(w, r)
		if *f.report != "" {
			fmt.Fprintln(w.stdout, "the walk as a page, for any browser:", *f.report)
		}
	}
	if !r.Pass {
		return fail(exitNotPassed, fmt.Errorf("case %s: %s", r.Case, strings.Join(r.Wrong, "; ")))
	}
	return nil
}

// printTuned says beneath the walk what came of it.
func printTuned(w *world, r *lab.TuneResult) {
	if r.Came == lab.TuneSkipped {
		fmt.Fprintf(w.stdout, "%s: skipped: %s\n", r.Case, r.Why)
		return
	}
	fmt.Fprintln(w.stdout)
	if end := r.Tuning.End; r.Twin != nil {
		fmt.Fprintf(w.stdout, "mended by its author, the case gives %s good/s, p99 %s; tuned %s good/s, p99 %s\n",
			layout.OrDash(r.Twin.GoodRPS, layout.Rate), layout.OrDash(r.Twin.P99, layout.Micros), layout.OrDash(end.GoodRPS, layout.Rate), layout.OrDash(end.P99, layout.Micros))
	}
	if r.Pass && r.Came == lab.TunePerson {
		fmt.Fprintln(w.stdout, "what is left is a person's to decide, as it should be in this case")
	}
	if len(r.Different) == 0 {
		fmt.Fprintln(w.stdout, "everything was taken back: settings, files, limits and queues are as they were")
	}
}

// several tunes cases one after the other, a line each. One that fails is one of
// the results; ^C ends it with what there is.
func (f *labTuneFlags) several(ctx context.Context, w *world, list []string, opt lab.Options, asJSON bool) error {
	opt.Talk = nil
	results := []*lab.TuneResult{}
	line := w.progress()
	failed := 0
	if !asJSON {
		fmt.Fprintf(w.stdout, tuneRow+"\n", "CASE", "CAME TO", "STEPS", "AT THE END", "GOOD/S", "AFTER", "UNDONE")
	}
	for i, id := range list {
		if line != nil {
			line.say(fmt.Sprintf("%d/%d  %s …", i+1, len(list), id))
		}
		r, err := theLab().Tune(ctx, id, opt, f.twin, nil)
		line.end()
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			r = &lab.TuneResult{Case: id, Wrong: []string{err.Error()}, Different: []string{}}
		}
		if !r.Pass {
			failed++
		}
		results = append(results, r)
		if !asJSON {
			printTuneRow(w, r)
		}
	}
	if err := writeSheet(*f.report, tunedPage(results)); err != nil {
		return err
	}
	if asJSON {
		if err := printJSON(w.stdout, casesTuned{results}); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed > 0 {
		return fail(exitNotPassed, fmt.Errorf("%d of %d cases did not come to what they should", failed, len(list)))
	}
	return nil
}

// tuneRow is a line of the table of cases: 100 columns with the longest names.
const tuneRow = "%-26s %-10s %5s %-29s %6s %6s %s"

func printTuneRow(w *world, r *lab.TuneResult) {
	cells := tuneCells(r)
	if r.Came == lab.TuneSkipped {
		fmt.Fprintf(w.stdout, "%-26s %-10s %s\n", r.Case, r.Came, r.Why)
	} else {
		fmt.Fprintln(w.stdout, strings.TrimRight(fmt.Sprintf(tuneRow, anys(cells)...), " "))
	}
	for _, sentence := range r.Wrong {
		fmt.Fprintf(w.stdout, "    %s\n", wrapped(sentence, w.columns()-4, 4))
	}
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// shortHold and shortRun make a tune quick, so that many can be killed.
const shortHold = 2 * time.Second

var shortRun = []string{"--baseline", "300ms", "--calm", "0", "--ramp", "300ms", "--cool", "0", "--trace", "off"}

func killTunes(ctx context.Context, w *world, id string, opt lab.Options, times int, seed uint64, asJSON bool) error {
	if seed == 0 {
		seed = rand.Uint64N(1_000_000) + 1
	}
	opt.Args, opt.Hold = shortRun, cmp.Or(opt.Hold, shortHold)
	fmt.Fprintf(w.stderr, "seed %d\n", seed)
	results, err := theLab().Kill(ctx, id, opt, times, seed, w.stderr, func(i int, r lab.KillResult) {
		word := "the same"
		if len(r.Wrong) > 0 {
			word = "NOT THE SAME: " + strings.Join(r.Wrong, "; ")
		}
		fmt.Fprintf(w.stderr, "%4d  killed after %6.2f s, %d changes begun: %s\n", i, r.After.Seconds(), r.Begun, word)
	})
	interrupted := errors.Is(err, context.Canceled)
	if err != nil && !interrupted {
		return labFailed(err)
	}
	left := err // but for the ^C: a case that could not be taken down
	if err == ctx.Err() {
		left = nil
	}
	k := killed{id, seed, append([]lab.KillResult{}, results...), interrupted}
	return errors.Join(k.print(w, times, asJSON), left)
}

// casesTuned is what lab tune prints of several cases with --json.
type casesTuned struct {
	Results []*lab.TuneResult `json:"results"`
}

// killed is what came of tunes that were killed; interrupted, they are not all.
type killed struct {
	Case        string           `json:"case"`
	Seed        uint64           `json:"seed"`
	Kills       []lab.KillResult `json:"kills"`
	Interrupted bool             `json:"interrupted"`
}

// print says what came of them. What undo did not bring back outweighs a ^C.
func (k killed) print(w *world, times int, asJSON bool) error {
	bad, begun := 0, 0
	for _, r := range k.Kills {
		begun += r.Begun
		if len(r.Wrong) > 0 {
			bad++
		}
	}
	if asJSON {
		if err := printJSON(w.stdout, k); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(w.stdout, "%d tunes were killed, %d changes begun; after undo the state was the same in %d\n", len(k.Kills), begun, len(k.Kills)-bad)
	}
	switch {
	case bad > 0:
		return fail(exitNotPassed, errors.New("undo did not bring everything back"))
	case k.Interrupted:
		return fail(exitInterrupted, fmt.Errorf("interrupted: %d of %d tunes were killed", len(k.Kills), times))
	}
	return nil
}
