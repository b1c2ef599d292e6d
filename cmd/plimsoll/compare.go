package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/compare"
	"plimsoll/internal/model"
	sheet "plimsoll/internal/page"
	"plimsoll/internal/record"
	"plimsoll/internal/report"
)

const compareLong = `Says whether run B was better than run A beyond what chance explains, and what
else was different: what was set to something else, and which signals moved, the
largest effect first. With several, each is compared with A.

A and B are run directories, or folders of runs of the same thing, as
"plimsoll run --repeat" makes them. With one run each, seconds are compared with
seconds (Welch's t, n of them for √n, since a slow second is followed by slow
ones), and differences within 5 % (of a latency 10 %) count as none, because how
runs differ from one another is not known; of the share of good replies they
count where the failures of one run are more than twice the other's. With two or
more on both sides, the runs themselves are what is compared, which is what to
trust. Intervals are at 95 %.

Latency is what users waited, failed requests included. "Wait of a user" is the
wait in which a user is found at any moment: with an open load the mean; in a
closed one, where who waits makes no other request, each wait counts for as long
as it lasted, so that the few who get in do not stand for all.

It refuses to compare runs of another load or another machine; --anyway does it
all the same, and says so. What processors did differently, function by function,
"plimsoll flame B --compare A" shows.

It ends with 1 if B is worse in any measure: for use in CI. One thing does not
count: a worse p50 where the wait of a user is better, or surely grew less. Then
half of the requests took longer and the others made up for it, which the good
requests/s, the wait and p99 tell of.`

const compareExample = `  plimsoll compare -2 -1
  plimsoll compare before after
  plimsoll run URL --repeat 5 --dir before; sysctl -w net.core.somaxconn=4096
  plimsoll run URL --repeat 5 --dir after && plimsoll compare before after
  plimsoll compare A B --json | jq '.comparisons[].differences[].answer'`

func compareCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "compare A B...", Short: "whether one run was better than another, and what else changed", Long: compareLong,
		Example: compareExample, Args: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage(c.CommandPath(), "want two run directories, or more")
			}
			return nil
		}}
	var anyway bool
	c.Flags().BoolVar(&anyway, "anyway", false, "compare runs of another load, or of another machine, all the same")
	asJSON, file := jsonFlag(c), reportFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		a, err := w.openSide(args[0])
		if err != nil {
			return err
		}
		defer a.close()
		list := []model.Comparison{}
		sheets := []*sheet.Comparison{}
		with := func(name string) error {
			b, err := w.openSide(name)
			if err != nil {
				return err
			}
			defer b.close()
			one := comparedSides(a, b)
			if one.NotComparable != "" && !anyway {
				return fail(exitRunDir, errors.New(one.NotComparable+"; --anyway compares them all the same"))
			}
			list = append(list, one)
			if *file == "" {
				return nil
			}
			drawn, err := sheet.Compare(one, a.first, b.first)
			if err != nil {
				return fail(exitRunDir, err)
			}
			sheets = append(sheets, drawn)
			return nil
		}
		for _, name := range args[1:] {
			if err := with(name); err != nil {
				return err
			}
		}
		if err := writeSheet(*file, sheet.Page{Title: "Plimsoll: " + strings.Join(args, ", "), Compared: sheets}); err != nil {
			return err
		}
		return printComparisons(w, list, *asJSON)
	}
	return withExits(c, exitOK, exitNotPassed, exitUsage, exitRunDir)
}

// comparedSides compares two sides, also where they are of different things; then it says so.
func comparedSides(a, b side) model.Comparison {
	one := compare.Compare(a.Side, b.Side)
	if why := compare.Comparable(a.Side, b.Side); why != nil {
		one.NotComparable = why.Error()
	}
	return one
}

// comparisons is what compare --json prints.
type comparisons struct {
	Comparisons []model.Comparison `json:"comparisons"`
}

func printComparisons(w *world, list []model.Comparison, asJSON bool) error {
	if asJSON {
		if err := printJSON(w.stdout, comparisons{list}); err != nil {
			return err
		}
	}
	for i, one := range list {
		if asJSON {
			break
		}
		if i > 0 {
			fmt.Fprintln(w.stdout)
		}
		if err := report.Comparison(w.stdout, one, report.TextOptions{Width: w.columns(), Color: w.color()}); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(list, func(c model.Comparison) bool { return c.Answer() == model.Worse }) {
		return fail(exitNotPassed, errors.New("worse in at least one measure that counts"))
	}
	return nil
}

// side is what is compared, with the first of its runs, which is drawn.
type side struct {
	compare.Side
	first *record.Run
}

func (s side) close() { _ = s.first.Close() } // it was only read

// openSide opens what is named on the command line.
func (w *world) openSide(name string) (side, error) {
	dir, err := w.runNamed(name)
	if err != nil {
		return side{}, err
	}
	return openSide(dir)
}

// openSide opens a run, or all runs in a folder.
func openSide(dir string) (side, error) {
	readsAnybodys()
	runs, err := runsIn(dir)
	if err != nil {
		return side{}, fail(exitRunDir, err)
	}
	return sideOf(runs...)
}

// sideOf reads runs that are open, and closes all but the first.
func sideOf(runs ...*record.Run) (side, error) {
	for _, r := range runs[1:] {
		defer r.Close()
	}
	s, err := compare.NewSide(runs...)
	if err != nil {
		return side{}, fail(exitRunDir, errors.Join(err, runs[0].Close()))
	}
	return side{s, runs[0]}, nil
}

// readSide reads a run, or all runs in a folder.
func readSide(dir string) (compare.Side, error) {
	s, err := openSide(dir)
	if err == nil {
		s.close()
	}
	return s.Side, err
}

// runsIn opens the run in dir, or those of a folder.
func runsIn(dir string) (runs []*record.Run, err error) {
	if isRun(dir) {
		run, err := record.Open(dir)
		return []*record.Run{run}, err
	}
	shelf, err := record.OpenShelf(dir)
	if err != nil {
		return nil, err
	}
	defer shelf.Close()
	found, err := shelf.Direct()
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, fmt.Errorf("%s: no run here, and none in a folder of it; plimsoll run makes one", dir)
	case len(found) > maxRepeat:
		return nil, fmt.Errorf("%s: %d runs in it, want at most %d", dir, len(found), maxRepeat)
	}
	slices.SortFunc(found, byNumber)
	for _, k := range found {
		run, err := k.Open()
		if err != nil {
			for _, r := range runs {
				err = errors.Join(err, r.Close())
			}
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// isRun says whether a run lies in a directory.
func isRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, record.ManifestFile))
	return err == nil
}

// byNumber orders the runs of --repeat, whose folders are numbered.
func byNumber(a, b record.Kept) int {
	x, errX := strconv.Atoi(a.ID)
	y, errY := strconv.Atoi(b.ID)
	if errX == nil && errY == nil {
		return x - y
	}
	return strings.Compare(a.ID, b.ID)
}
