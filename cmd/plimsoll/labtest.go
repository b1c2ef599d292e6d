package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/lab"
	"plimsoll/internal/model"
)

const labTestLong = `Runs cases, each several times, in an order shuffled by a seed, and holds every
verdict against the case's truth: the confusion matrix, precision and recall of
each rule, whether the healthy ones stayed quiet, and the time from the last
reading to the verdict. Of two faults at once both must be named, in the order in
which they bind; where the second cannot show before the first is mended, the case
is run again with that mend.

With --twin each case is also run with everything mended, its healthy twin. A
fault counts only if it moved the service: good replies per second, the 99th
percentile of the replies' latency or the share of good replies must be clearly
better in the twin. The twin's verdict must be quiet.

With --mode each case is tried by other hands than its own, and its truth must
hold in all of them: run is Plimsoll's own load; watch-command is "plimsoll
watch -- wrk ..." with the same connections, duration and rate; in watch the
users are wrk (or the case's own tool) in a control group and network namespace
of their own, and Plimsoll looks at the server alone, knowing nothing of them. A
verdict is right; vague, where it is true and not the whole truth; unclear, where
Plimsoll says that it does not know; or wrong. What cannot be driven says why.

Two simple ways of judging are held beside it, on the same recordings. "Largest
z-score" names the signal that moved most from baseline to hold, in standard
deviations (or the signals: many rise from nothing); it leads to all rules whose
answer rests on it. "Mixin alerts"
are those of the node_exporter mixin, without their waiting times; each leads to
the rules that a person of good will would look at. Such a way is right when any
rule that it leads to is what binds first, and alone right when all are the truth.

The recordings stay in the folder of -o. --from judges them again with today's
rules and cases, without running anything; it needs no root. ^C ends the test with
what there is.`

const labTestExample = `  plimsoll lab test --all -n 3 --twin -o exam
  plimsoll lab test php-workers healthy-saturated -n 5 --seed 7
  plimsoll lab test --mode run,watch-command,watch slow-app healthy
  plimsoll lab test --from exam --report exam.html
  plimsoll lab test --from exam --json | jq '.tally.rules[] | select(.recall < 1)'`

// labTestFlags are the flags of lab test.
type labTestFlags struct {
	all, twin bool
	times     int
	seed      uint64
	dir, from string
	modes     []string
}

func labTest(w *world) *cobra.Command {
	c := &cobra.Command{Use: "test [CASE...]", Short: "try cases many times: confusion matrix, precision, recall", Long: labTestLong,
		Example: labTestExample, ValidArgsFunction: completeCase}
	var f labTestFlags
	fs := c.Flags()
	fs.BoolVar(&f.all, "all", false, "try every case")
	fs.IntVarP(&f.times, "times", "n", 1, "try each case `N` times")
	fs.BoolVar(&f.twin, "twin", false, "also run each case with everything mended, and compare")
	fs.Uint64Var(&f.seed, "seed", 0, "shuffle by `N` (default: another one each time; it is printed)")
	fs.StringSliceVar(&f.modes, "mode", nil, "who drives: `MODE` is run, watch-command or watch, or several (default: each case's own way)")
	fs.StringVarP(&f.dir, "output", "o", "", "keep the recordings in `DIR` (default plimsoll-runs/lab-TIME-ID below this folder)")
	fs.StringVar(&f.from, "from", "", "run nothing: judge the recordings in `DIR` again")
	asJSON, page := jsonFlag(c), reportFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		list, err := f.cases(c, args)
		if err != nil {
			return err
		}
		began := time.Now()
		doc := labTestDoc{Seed: f.seed, Dir: f.dir, Trials: []*lab.Trial{}}
		var ended error
		if f.from != "" {
			doc.Dir = f.from
			doc.Trials, ended = judgeKept(f.from, list)
		} else {
			ended = f.run(c.Context(), w, list, &doc, !*asJSON)
		}
		doc.Interrupted = errors.Is(ended, context.Canceled)
		if ended != nil && len(doc.Trials) == 0 {
			return labFailed(ended)
		}
		doc.Tally, doc.Modes = lab.Count(doc.Trials), lab.CountModes(doc.Trials)
		if doc.Ways, err = ways(w, doc.Dir, doc.Trials); err != nil {
			return err
		}
		doc.Seconds = time.Since(began).Seconds()
		if err := errors.Join(writeSheet(*page, testPage(doc)), printLabTest(w, doc, *asJSON)); err != nil {
			return err
		}
		return errors.Join(labFailed(ended), tried(doc.Tally))
	}
	return withExits(c, exitOK, exitNotPassed, exitUsage, exitMissing, exitRunDir, exitInterrupted)
}

// cases checks the flags and returns the cases to try, or those to judge again.
func (f *labTestFlags) cases(c *cobra.Command, args []string) ([]*lab.Case, error) {
	path := c.CommandPath()
	switch {
	case f.all && len(args) > 0:
		return nil, usage(path, "--all is every case; leave %s out, or --all", args[0])
	case f.times < 1 || f.times > 1000:
		return nil, usage(path, "-n %d: want 1 to 1000", f.times)
	case f.from != "" && (f.dir != "" || f.twin || len(f.modes) > 0 || c.Flags().Changed("times") || c.Flags().Changed("seed")):
		return nil, usage(path, "--from runs nothing, so -o, -n, --mode, --twin and --seed say nothing to it")
	case f.from == "" && !f.all && len(args) == 0:
		return nil, usage(path, "it needs cases, --all, or --from; plimsoll lab list shows the cases")
	case f.all || len(args) == 0:
		return theLab().List()
	}
	var list []*lab.Case
	for _, id := range args {
		one, err := theLab().Case(id)
		if err != nil {
			return nil, fail(exitUsage, err)
		}
		list = append(list, one)
	}
	return list, nil
}

// run makes the trials.
func (f *labTestFlags) run(ctx context.Context, w *world, list []*lab.Case, doc *labTestDoc, show bool) error {
	opt, err := labOptions(w, nil, nil)
	if err != nil {
		return err
	}
	modes, err := parseModes("plimsoll lab test", f.modes)
	if err != nil {
		return err
	}
	if doc.Seed == 0 {
		doc.Seed = uint64(rand.Uint32())
	}
	if doc.Dir == "" {
		doc.Dir = filepath.Join("plimsoll-runs", fmt.Sprintf("lab-%s-%04x", time.Now().UTC().Format("20060102T150405Z"), rand.N(1<<16)))
	}
	if doc.Dir, err = filepath.Abs(doc.Dir); err != nil {
		return fmt.Errorf("folder for the recordings: %w", err)
	}
	opt.Talk = nil
	test := lab.TestOptions{Options: opt, Cases: list, Modes: modes, Times: f.times, Seed: doc.Seed, Dir: doc.Dir}
	if f.twin {
		test.Moved = moved
	}
	now := ""
	line := w.progress()
	test.Before = func(t *lab.Trial, done, all int) {
		now = fmt.Sprintf("%*d/%d", len(fmt.Sprint(all)), done+1, all)
		if line != nil {
			line.say(fmt.Sprintf("%s  %s …", now, trialName(t)))
		}
	}
	test.After = func(t *lab.Trial) {
		line.end()
		if show {
			printTrial(w, now, t)
		}
	}
	doc.Trials, err = theLab().Test(ctx, test)
	line.end()
	return err
}

// judgeKept judges the recordings of a test again. One that cannot be judged is
// one of the results.
func judgeKept(dir string, list []*lab.Case) ([]*lab.Trial, error) {
	trials, err := lab.Trials(dir)
	if err != nil {
		return nil, fail(exitRunDir, err)
	}
	trials = slices.DeleteFunc(trials, func(t *lab.Trial) bool {
		return !slices.ContainsFunc(list, func(c *lab.Case) bool { return c.ID == t.Case })
	})
	if len(trials) == 0 {
		return nil, fail(exitRunDir, fmt.Errorf("%s: no trial of these cases in it", dir))
	}
	builtIn := func(run string) (model.Report, error) { return judgeDir(run, new(siteFlags)) }
	for _, t := range trials {
		if err := theLab().JudgeAgain(dir, t, builtIn, moved); err != nil {
			// What it was judged to be then is not today's judgement.
			t.Failure, t.Faulty, t.Then, t.Twin = err.Error(), nil, nil, nil
		}
	}
	return trials, nil
}

// tried is the end of a test: an error unless everything was right.
func tried(t lab.Tally) error {
	if t.Right == t.Trials {
		return nil
	}
	return fail(exitNotPassed, fmt.Errorf("%d of %d trials were not right", t.Trials-t.Right, t.Trials))
}
