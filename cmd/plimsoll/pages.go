package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"plimsoll/internal/model"
	sheet "plimsoll/internal/page"
	"plimsoll/internal/query"
	"plimsoll/internal/record"
	"plimsoll/internal/ruleset"
)

// reportFlag adds --report and returns where its value lands.
func reportFlag(c *cobra.Command) *string {
	return c.Flags().String("report", "", "write the report as a page, too: one HTML `FILE`")
}

// writePage writes the page of runs to a file; "" for the file writes nothing.
func writePage(file string, dirs []string, site *siteFlags) error {
	if file == "" {
		return nil
	}
	p, err := pageOfAll(dirs, nil, site)
	if err != nil {
		return err
	}
	return writeSheet(file, p)
}

// pageOfAll reads what a page shows of runs; from has the addresses of those that were fetched.
func pageOfAll(dirs []string, from map[string]string, site *siteFlags) (sheet.Page, error) {
	var runs []*sheet.Run
	for _, dir := range dirs {
		run, err := pageOf(dir, from[dir], site)
		if err != nil {
			return sheet.Page{}, err
		}
		runs = append(runs, run)
	}
	return onePage(runs...), nil
}

// onePage has runs on one page.
func onePage(runs ...*sheet.Run) sheet.Page {
	p := sheet.Page{Title: "Plimsoll", Runs: runs}
	for _, run := range runs {
		p.Title += ": " + run.Verdict.Sentence
	}
	return p
}

// pageOf judges a run directory, and reads what a page shows of it. One that was fetched goes by where it is from.
func pageOf(dir, from string, site *siteFlags) (out *sheet.Run, err error) {
	_, err = judged(dir, site, drawnTo(&out, from))
	return out, err
}

// drawnTo reads what a page shows of a run that is judged, and which is from elsewhere where from says so.
func drawnTo(out **sheet.Run, from string) useOfRun {
	return func(run *record.Run, q *query.Run, set ruleset.Rules, r model.Report) (err error) {
		r.Dir = cmp.Or(from, r.Dir)
		if *out, err = sheet.Read(run, q, r, set); err != nil {
			return fail(exitRunDir, err)
		}
		(*out).Elsewhere = from != ""
		return nil
	}
}

// tuningFile is where a walk is kept, beside its runs.
const tuningFile = "tuning.json"

// walkPage writes a walk as a page, with its first run and its last.
func walkPage(file string, t model.Tuning, site *siteFlags) error {
	if file == "" || len(t.Steps) == 0 {
		return nil
	}
	dirs := []string{t.Steps[0].Dir}
	if t.End.Dir != "" && t.End.Dir != dirs[0] {
		dirs = append(dirs, t.End.Dir)
	}
	p, err := pageOfAll(dirs, nil, site)
	if err != nil {
		return err
	}
	p.Tuned = sheet.Walk(t)
	return writeSheet(file, p)
}
