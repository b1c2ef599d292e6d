package main

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"plimsoll/internal/breakdown"
	"plimsoll/internal/diagnose"
	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/report"
)

const diagnoseLong = `Judges a run directory again and prints the verdict. The verdict depends on the
directory and the rules alone: the same directory gives the same answer, to the
byte, on any machine. It only reads. A run that was cut off is judged up to its
last second.`

func diagnoseCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "diagnose DIR", Short: "judge a run directory again", Long: diagnoseLong, Args: oneArgument("a run directory"),
		Example: "  plimsoll diagnose plimsoll-runs/20260102T030405Z-9f3c\n  plimsoll diagnose DIR --json | jq .verdict.root"}
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		r, err := judge(args[0])
		if err != nil {
			return err
		}
		return printReport(w, r, *asJSON)
	}
	return withExits(c, exitOK, exitUsage, exitRunDir)
}

// judge makes the report of a run directory by the built-in rules.
func judge(dir string) (model.Report, error) {
	set, err := ruleSet(nil)
	if err != nil {
		return model.Report{}, err
	}
	return judgeBy(dir, set)
}

// judgeBy makes the report of a run directory.
func judgeBy(dir string, set diagnose.Rules) (model.Report, error) {
	run, err := record.Open(dir)
	if err != nil {
		return model.Report{}, fail(exitRunDir, err)
	}
	defer run.Close()
	verdict, err := diagnose.Diagnose(run, set)
	if err != nil {
		return model.Report{}, fail(exitRunDir, fmt.Errorf("judge %s: %w", dir, err))
	}
	load, err := run.Load()
	if err != nil {
		return model.Report{}, fail(exitRunDir, fmt.Errorf("judge %s: %w", dir, err))
	}
	where, err := breakdown.Of(run)
	if err != nil {
		return model.Report{}, fail(exitRunDir, err)
	}
	meta := run.Meta()
	return model.Report{
		Verdict: verdict, Load: load, Breakdown: where, Plan: meta.Plan, Cost: meta.Cost, Hosts: meta.Hosts, Windows: meta.Windows,
		Notes: meta.Notes, Tracing: meta.Tracing, RulesHash: set.Hash, Version: meta.Version, Dir: filepath.Clean(dir), Closed: meta.Closed,
	}, nil
}

// judgeNew judges a run that was just made, leaves the verdict in its
// directory, and prints it.
func judgeNew(w *world, dir string, asJSON bool) error {
	set, err := ruleSet(nil)
	if err != nil {
		return err
	}
	r, err := judgeAndKeep(dir, set)
	if err != nil {
		return err
	}
	return printReport(w, r, asJSON)
}

// judgeAndKeep judges a run that was just made, and leaves the verdict in its directory.
func judgeAndKeep(dir string, set diagnose.Rules) (model.Report, error) {
	r, err := judgeBy(dir, set)
	if err != nil {
		return r, err
	}
	var doc bytes.Buffer
	if err := report.JSON(&doc, r); err != nil {
		return r, fmt.Errorf("write the verdict of %s: %w", dir, err)
	}
	return r, fail(exitRunDir, writer.Verdict(dir, doc.Bytes()))
}

func printReport(w *world, r model.Report, asJSON bool) error {
	if asJSON {
		return report.JSON(w.stdout, r)
	}
	return report.Text(w.stdout, r, report.TextOptions{Width: w.columns(), Color: w.color()})
}
