package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"plimsoll/internal/input"
	"plimsoll/internal/model"
)

const reportLong = `Writes the report of a run as a page: one HTML file that needs nothing else, and
opens from disk, from a mail and where scripts and styles are blocked. On it are
the sentence; the line, which is the way of a request with how far each place on
it is loaded; each clue with its course over the run and its threshold; where
the time goes; the load over time; the hosts; stacks; events; what was ruled out
and not seen; and the numbers as tables. They are those of plimsoll diagnose.

Of the directory of a tuning it is the staircase of its steps, as tune --report
writes it, with the first run and the last below.

A run that plimsoll watch --bucket put into object storage is named by its
address, s3://BUCKET/RUN; what is fetched is removed again.`

const reportExample = `  plimsoll report last -o report.html
  plimsoll run http://127.0.0.1/ --report report.html
  plimsoll report s3://runs/web1/20261127T020000Z-1a2b --bucket s3.yml -o r.html`

func reportCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "report RUN...|TUNING -o FILE", Short: "write a run's report as one HTML file", Long: reportLong, Example: reportExample,
		DisableFlagsInUseLine: true}
	var site siteFlags
	site.add(c)
	var file string
	var stored bucketFlag
	stored.add(c, "for s3://BUCKET/RUN: this `FILE` says by which server and keys; only its owner and group may read it")
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
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if err := stored.check(c); err != nil {
			return err
		}
		names, from, done, err := stored.fetched(c.Context(), c.CommandPath(), args)
		defer func() { err = errors.Join(err, done()) }()
		if err != nil {
			return err
		}
		var dirs []string
		for _, name := range names {
			dir, err := w.runNamed(name)
			if err != nil {
				return err
			}
			dirs = append(dirs, dir)
		}
		for _, dir := range dirs {
			tuned, err := tuningIn(dir)
			switch {
			case err != nil:
				return fail(exitRunDir, err)
			case tuned != nil && len(dirs) > 1:
				return usage(c.CommandPath(), "%s is a tuning, which has a page of its own; want it alone, or run directories", dir)
			case tuned != nil:
				return walkPage(file, *tuned, &site)
			}
		}
		p, err := pageOfAll(dirs, from, &site)
		if err != nil {
			return err
		}
		return writeSheet(file, p)
	}
	return withExits(c, exitOK, exitUsage, exitMissing, exitUnreachable, exitRunDir, exitRules)
}

// The most bytes of a tuning.json that are read, and the most steps of one.
const (
	maxTuning      = 4 << 20
	maxTuningSteps = 1000
)

// tuningIn reads the tuning that was kept in a directory, nil where none was. Its runs are those
// beside it, wherever they were made: the directory may have been moved, or be anybody's.
func tuningIn(dir string) (*model.Tuning, error) {
	path := filepath.Join(dir, tuningFile)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: it is no plain file, as what came of a tuning is (%s)", path, info.Mode().Type())
	}
	raw, err := input.Read(path, maxTuning)
	if err != nil {
		return nil, err
	}
	t := &model.Tuning{}
	if err := json.Unmarshal(raw, t); err != nil {
		return nil, fmt.Errorf("%s: it is damaged, or none of Plimsoll's; plimsoll report of a run beside it shows that run: %w", path, err)
	}
	if len(t.Steps) == 0 || len(t.Steps) > maxTuningSteps {
		return nil, fmt.Errorf("%s: %d steps, want 1 to %d; plimsoll report of a run beside it shows that run", path, len(t.Steps), maxTuningSteps)
	}
	first := &t.Steps[0].Dir
	for _, run := range []*string{first, &t.End.Dir} {
		if *run == "" && run != first {
			continue // it ended without a run
		}
		*run = filepath.Join(dir, filepath.Base(*run))
		if info, err := os.Lstat(*run); err == nil && !info.IsDir() {
			return nil, fmt.Errorf("%s: a link, or no directory; the runs of a tuning are directories beside %s", *run, tuningFile)
		}
	}
	return t, nil
}
