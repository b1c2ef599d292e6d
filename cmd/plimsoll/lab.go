package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/lab"
	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/report"
)

const labLong = `The lab causes real faults, on purpose: two network namespaces joined by a cable,
a real nginx and PHP-FPM in one of them, and one thing set too small. Each case
states its truth, and Plimsoll's verdict is held against it.

It needs root, and touches nothing but what it made itself, with three exceptions:
nf_conntrack_max, fs.file-max and netdev_max_backlog are the whole machine's, and
are lowered while the load of a case about them runs. Everything is put back, also
after ^C; what a killed lab left behind, the next one takes down.

To practise: "lab up --random" causes a fault that you do not know, "lab reveal"
tells what it was. To see how good Plimsoll is: "lab test --all".`

func labCommand(w *world) *cobra.Command {
	return withExits(group("lab", "real faults, caused on purpose, to learn and to test on", labLong,
		labList(w), labUp(w), labReveal(w), labDown(w), labRun(w), labTest(w), labWalk(w), labTune(w)), exitOK, exitNotPassed, exitUsage, exitMissing, exitInterrupted)
}

func labRun(w *world) *cobra.Command {
	c := &cobra.Command{Use: "run CASE...", Short: "cause cases, judge them, compare with the truth", ValidArgsFunction: completeCase,
		Long: `Brings each case up, runs this binary against it from outside, takes it down, and
holds the verdict against the truth of the case.`,
		Example: "  plimsoll lab run conntrack-full\n  plimsoll lab run healthy healthy-saturated --json",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c.CommandPath(), "it needs a case; plimsoll lab list shows them")
			}
			return nil
		}}
	mends := mendFlag(c)
	verbose := c.Flags().BoolP("verbose", "v", false, "print each verdict in full")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		opt, err := labOptions(w, args, *mends)
		if err != nil {
			return err
		}
		results := []*lab.Result{}
		for _, id := range args {
			if !*asJSON {
				fmt.Fprintf(w.stderr, "%s …\n", id)
			}
			res, err := theLab().Run(c.Context(), id, opt)
			if err != nil {
				return labFailed(err)
			}
			results = append(results, res)
			if *asJSON {
				continue
			}
			if err := printResult(w, res, *verbose); err != nil {
				return err
			}
		}
		if *asJSON {
			if err := printJSON(w.stdout, caseRuns{results}); err != nil {
				return err
			}
		}
		return passed(results)
	}
	return withExits(c, exitOK, exitNotPassed, exitUsage, exitMissing, exitInterrupted)
}

// What lab run, lab down and lab walk print with --json.
type (
	caseRuns struct {
		Results []*lab.Result `json:"results"`
	}
	caseDown struct {
		Down string `json:"down"` // the case that was up, "" for none
	}
	caseWalk struct {
		Steps []lab.WalkStep `json:"steps"`
	}
)

func printResult(w *world, r *lab.Result, verbose bool) error {
	if verbose {
		if err := report.Text(w.stdout, r.Report, report.TextOptions{Width: w.columns(), Color: w.color(), Detail: report.Everything}); err != nil {
			return err
		}
		fmt.Fprintln(w.stdout)
	}
	word := "pass"
	if !r.Pass {
		word = "FAIL"
	}
	said := string(r.Answer)
	if len(r.Named) > 0 {
		said += ": " + strings.Join(r.Named, ", ")
	}
	fmt.Fprintf(w.stdout, "%s  %-20s %s  (%s good/s, %.0f s, %s)\n", word, r.Case, said, layout.Rate(r.GoodRPS), r.Seconds, r.Dir)
	for _, sentence := range r.Wrong {
		fmt.Fprintf(w.stdout, "      %s\n", sentence)
	}
	return nil
}

func passed(results []*lab.Result) error {
	var not []string
	for _, r := range results {
		if !r.Pass {
			not = append(not, r.Case)
		}
	}
	if len(not) == 0 {
		return nil
	}
	return fail(exitNotPassed, fmt.Errorf("%d of %d cases did not pass (%s); plimsoll diagnose shows each verdict in full",
		len(not), len(results), strings.Join(not, ", ")))
}

func labDown(w *world) *cobra.Command {
	c := &cobra.Command{Use: "down [CASE]", Short: "take a case down, and whatever a lab left behind", ValidArgsFunction: completeCase,
		Long: "Takes the standing case down. With a CASE it refuses when another one is up.\nDoing it twice does no harm.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(c.CommandPath(), "%q is too much; one case is up at a time", args[1])
			}
			return nil
		}}
	asJSON := jsonFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		id := ""
		if len(args) == 1 {
			x, err := theLab().Case(args[0])
			if err != nil {
				return fail(exitUsage, err)
			}
			id = x.ID
		}
		was, err := theLab().Down(id)
		if err != nil {
			return labFailed(err)
		}
		if *asJSON {
			return printJSON(w.stdout, caseDown{was})
		}
		if was == "" {
			fmt.Fprintln(w.stdout, "nothing was up; the lab is down")
			return nil
		}
		fmt.Fprintf(w.stdout, "%s is down; plimsoll lab reveal %s tells what it was\n", was, was)
		return nil
	}
	return withExits(c, exitOK, exitUsage, exitMissing)
}

func labWalk(w *world) *cobra.Command {
	c := &cobra.Command{Use: "walk CASE", Short: "mend what is named, run again, until nothing is named", Args: oneArgument("a case"),
		ValidArgsFunction: completeCase,
		Long: `Does with a case what a person would do with the verdicts: runs it, mends what is
named, runs it again, until the verdict is healthy or capacity. It prints a row
for each step, with what was measured.`,
		Example: "  plimsoll lab walk throughput-chain"}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		opt, err := labOptions(w, args, nil)
		if err != nil {
			return err
		}
		var show func(lab.WalkStep)
		if !*asJSON {
			fmt.Fprintln(w.stdout, walkHead)
			show = func(s lab.WalkStep) { fmt.Fprintln(w.stdout, walkRow(s)) }
		}
		steps, err := theLab().Walk(c.Context(), args[0], opt, show)
		if *asJSON {
			if e := printJSON(w.stdout, caseWalk{append([]lab.WalkStep{}, steps...)}); e != nil {
				return e
			}
		}
		if err != nil && len(steps) > 0 && !errors.Is(err, context.Canceled) {
			return fail(exitNotPassed, err)
		}
		return labFailed(err)
	}
	return withExits(c, exitOK, exitNotPassed, exitUsage, exitMissing, exitInterrupted)
}

var walkHead = fmt.Sprintf("%9s %9s %9s %9s %9s  %-34s %s", "good/s", "replies/s", "good", "p50", "p99", "named", "mended")

func walkRow(s lab.WalkStep) string {
	named := s.Root
	if s.Answer != model.AnswerCause {
		named = string(s.Answer)
	}
	return strings.TrimRight(fmt.Sprintf("%9s %9s %9s %9s %9s  %-34s %s", layout.Rate(s.GoodRPS), layout.Rate(s.RPS),
		layout.Share(s.GoodShare), layout.Micros(s.P50), layout.Micros(s.P99), named, s.Mend), " ")
}
