package main

import (
	"errors"
	"fmt"
	"io/fs"
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
		a, err := w.readSide(args[0])
		if err != nil {
			return err
		}
		list := []model.Comparison{}
		sheets := []*sheet.Comparison{}
		for _, dir := range args[1:] {
			b, err := w.readSide(dir)
			if err != nil {
				return err
			}
			why := compare.Comparable(a, b)
			if why != nil && !anyway {
				return fail(exitRunDir, fmt.Errorf("%w; --anyway compares them all the same", why))
			}
			one := compare.Compare(a, b)
			if why != nil {
				one.NotComparable = why.Error()
			}
			list = append(list, one)
			if *file != "" {
				drawn, err := comparedPage(one)
				if err != nil {
					return err
				}
				sheets = append(sheets, drawn)
			}
		}
		if err := writeSheet(*file, sheet.Page{Title: "Plimsoll: " + strings.Join(args, ", "), Compared: sheets}); err != nil {
			return err
		}
		return printComparisons(w, list, *asJSON)
	}
	return withExits(c, exitOK, exitNotPassed, exitUsage, exitRunDir)
}

// comparedPage lays the first run of each side over the other.
func comparedPage(c model.Comparison) (*sheet.Comparison, error) {
	a, err := record.Open(c.Runs[0][0])
	if err != nil {
		return nil, fail(exitRunDir, err)
	}
	defer a.Close()
	b, err := record.Open(c.Runs[1][0])
	if err != nil {
		return nil, fail(exitRunDir, err)
	}
	defer b.Close()
	out, err := sheet.Compare(c, a, b)
	return out, fail(exitRunDir, err)
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

// readSide reads what is named on the command line.
func (w *world) readSide(name string) (compare.Side, error) {
	dir, err := w.runNamed(name)
	if err != nil {
		return compare.Side{}, err
	}
	return readSide(dir)
}

// readSide reads a run, or all runs in a folder.
func readSide(dir string) (compare.Side, error) {
	readsAnybodys()
	dirs, err := runsIn(dir)
	if err != nil {
		return compare.Side{}, fail(exitRunDir, err)
	}
	var runs []*record.Run
	for _, d := range dirs {
		r, err := record.Open(d)
		if err != nil {
			return compare.Side{}, fail(exitRunDir, err)
		}
		defer r.Close()
		runs = append(runs, r)
	}
	side, err := compare.NewSide(runs...)
	return side, fail(exitRunDir, err)
}

// runsIn returns dir itself if it is a run, else the runs in it.
func runsIn(dir string) ([]string, error) {
	if isRun(dir) {
		return []string{dir}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read a run: %w", err)
	}
	var found []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if _, err := os.Stat(filepath.Join(path, record.ManifestFile)); err == nil {
			found = append(found, path)
		} else if !errors.Is(err, fs.ErrNotExist) && e.IsDir() {
			return nil, fmt.Errorf("read a run: %w", err)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no run here, and none in a folder of it; plimsoll run makes one", dir)
	}
	if len(found) > maxRepeat {
		return nil, fmt.Errorf("%s: %d runs in it, want at most %d", dir, len(found), maxRepeat)
	}
	slices.SortFunc(found, byNumber)
	return found, nil
}

// isRun says whether a run lies in a directory.
func isRun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, record.ManifestFile))
	return err == nil
}

// byNumber orders the runs of --repeat, whose folders are numbered.
func byNumber(a, b string) int {
	x, errX := strconv.Atoi(filepath.Base(a))
	y, errY := strconv.Atoi(filepath.Base(b))
	if errX == nil && errY == nil {
		return x - y
	}
	if a < b {
		return -1
	}
	return 1
}
