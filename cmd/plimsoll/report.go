package main

import (
	"github.com/spf13/cobra"

	"plimsoll/internal/model"
	sheet "plimsoll/internal/page"
	"plimsoll/internal/record"
	"plimsoll/internal/ruleset"
)

const reportLong = `Writes the report of a run as a page: one HTML file that needs nothing else, and
opens from disk, from a mail and where scripts and styles are blocked. On it are
the sentence; the line, which is the way of a request with how far each place on
it is loaded; each clue with its course over the run and its threshold; where
the time goes; the load over time; the hosts; stacks; events; what was ruled out
and not seen; and the numbers as tables. They are those of plimsoll diagnose.`

const reportExample = `  plimsoll report last -o report.html
  plimsoll run http://127.0.0.1/ --report report.html`

func reportCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "report RUN... -o FILE", Short: "write a run's report as one HTML file", Long: reportLong, Example: reportExample,
		DisableFlagsInUseLine: true}
	var site siteFlags
	site.add(c)
	var file string
	c.Flags().StringVarP(&file, "output", "o", "", "write the page to this `FILE`")
	c.Args = func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usage(c.CommandPath(), "want a run directory, or several")
		case file == "":
			return usage(c.CommandPath(), "want -o FILE, the page to be written")
		}
		return nil
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		var dirs []string
		for _, name := range args {
			dir, err := w.runNamed(name)
			if err != nil {
				return err
			}
			dirs = append(dirs, dir)
		}
		return writePage(file, dirs, &site)
	}
	return withExits(c, exitOK, exitUsage, exitRunDir, exitRules)
}

// reportFlag adds --report and returns where its value lands.
func reportFlag(c *cobra.Command) *string {
	return c.Flags().String("report", "", "write the report as a page, too: one HTML `FILE`")
}

// writePage writes the page of runs to a file; "" for the file writes nothing.
func writePage(file string, dirs []string, site *siteFlags) error {
	if file == "" {
		return nil
	}
	p, err := pageOfAll(dirs, site)
	if err != nil {
		return err
	}
	return writeSheet(file, p)
}

// pageOfAll reads what a page shows of runs.
func pageOfAll(dirs []string, site *siteFlags) (sheet.Page, error) {
	var runs []*sheet.Run
	for _, dir := range dirs {
		run, err := pageOf(dir, site)
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

// pageOf judges a run directory, and reads what a page shows of it.
func pageOf(dir string, site *siteFlags) (out *sheet.Run, err error) {
	_, err = judged(dir, site, drawnTo(&out))
	return out, err
}

// drawnTo reads what a page shows of a run that is judged.
func drawnTo(out **sheet.Run) func(*record.Run, ruleset.Rules, model.Report) error {
	return func(run *record.Run, set ruleset.Rules, r model.Report) (err error) {
		*out, err = sheet.Read(run, r, set)
		return fail(exitRunDir, err)
	}
}
