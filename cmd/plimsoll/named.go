package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll/internal/change"
	"plimsoll/internal/lazy"
	"plimsoll/internal/record"
)

// runsDir is where runs are kept when nobody says: $PLIMSOLL_RUNS, else beside the
// journal of changes, else below the working directory.
func (w *world) runsDir() string {
	if dir := w.env("PLIMSOLL_RUNS"); dir != "" {
		return dir
	}
	if journal := change.DefaultDir(w.env("XDG_STATE_HOME"), w.env("HOME"), os.Geteuid() == 0); journal != "" {
		return filepath.Join(filepath.Dir(journal), "runs")
	}
	return "plimsoll-runs"
}

// newRun is the directory of a run that is to be made where runs are kept.
func (w *world) newRun(now time.Time) string {
	return filepath.Join(w.runsDir(), fmt.Sprintf("%s-%04x", now.UTC().Format("20060102T150405Z"), rand.N(1<<16)))
}

// lastRun is a name for the newest run, or for one so many before it.
var lastRun = lazy.Regexp(`^last(?:~([0-9]{1,6}))?$`)

// runNamed returns the directory of a run that is named by its path, by its ID in the
// place where runs are kept or the end of that, or by its age: "last".
func (w *world) runNamed(name string) (string, error) {
	age := lastRun().FindStringSubmatch(name)
	if age == nil {
		dir := w.runWithID(name)
		if ends := w.runsEnding(name); dir == name && len(ends) > 1 {
			return "", fail(exitRunDir, fmt.Errorf("%s: several runs end so: %s; name one by all of its ID", name, strings.Join(ends, ", ")))
		}
		return dir, nil
	}
	before, _ := strconv.Atoi(age[1]) // "" is 0, and else the pattern has digits
	list, _, err := record.List(w.runsDir())
	if err != nil {
		return "", fail(exitRunDir, err)
	}
	if n := len(list); n > 0 && n <= before {
		return "", fail(exitRunDir, fmt.Errorf("%s: the oldest of the runs that are kept in %s is -%d; plimsoll runs list shows them", spoken(name), w.runsDir(), n))
	}
	if len(list) == 0 {
		return "", fail(exitRunDir, fmt.Errorf("%s: no runs are kept in %s; plimsoll run makes one", spoken(name), w.runsDir()))
	}
	return list[len(list)-1-before].Dir, nil
}

// idEnd is the end of a run's ID by which it is told from others: the four letters that newRun draws.
var idEnd = lazy.Regexp(`^[0-9a-f]{4}$`)

// madeID is an ID that newRun made.
var madeID = lazy.Regexp(`^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}$`)

// runWithID is the directory of the run that is kept under an ID, or under the one that ends so; what is none is a path.
func (w *world) runWithID(name string) string {
	kept := filepath.Join(w.runsDir(), name)
	if _, err := os.Lstat(name); err == nil || !filepath.IsLocal(name) {
		return name
	}
	if info, err := os.Stat(kept); err == nil && info.IsDir() {
		return kept
	}
	if ends := w.runsEnding(name); len(ends) == 1 {
		return filepath.Join(w.runsDir(), ends[0])
	}
	return name
}

// runsEnding are the IDs that end in what a run is named by in short, none where that is no such end.
func (w *world) runsEnding(name string) (ids []string) {
	if !idEnd().MatchString(name) {
		return nil
	}
	list, _ := os.ReadDir(w.runsDir()) // where nothing is kept nothing ends so
	for _, e := range list {
		if e.IsDir() && madeID().MatchString(e.Name()) && strings.HasSuffix(e.Name(), "-"+name) {
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// nameOf is how a run is named on a command line, now and after any number of further ones: by the end of its ID, by all of it
// where another one ends so, too; "" of one that is not kept.
func (w *world) nameOf(dir string) string {
	id, err := filepath.Rel(w.runsDir(), dir)
	if err != nil || !filepath.IsLocal(id) || id == "." || strings.HasPrefix(id, "-") || w.runWithID(id) == id {
		return ""
	}
	if end := id[max(0, len(id)-4):]; madeID().MatchString(id) && w.runWithID(end) == filepath.Join(w.runsDir(), id) {
		return end
	}
	return id
}

// ofRuns are the commands whose arguments are runs.
var ofRuns = []string{"again", "diagnose", "show", "report", "compare", "export", "flame", "runs"}

var byAge = lazy.Regexp(`^-[1-9][0-9]{0,5}$`)

// runWords gives "-1", the last run, "-2", the one before it, and so on a name that is
// not taken for a flag. What follows a flag that takes a value is that.
func runWords(args []string, takesValue func(word string) bool) []string {
	if len(args) == 0 || !slices.Contains(ofRuns, args[0]) {
		return args
	}
	args = slices.Clone(args)
	for i, a := range args {
		if a == "--" {
			break
		}
		if byAge().MatchString(a) && !takesValue(args[i-1]) {
			n, _ := strconv.Atoi(a[1:]) // the pattern has digits
			args[i] = "last~" + strconv.Itoa(n-1)
		}
	}
	return args
}

// valueFlags says which words of a command line are flags whose value is the next word.
func valueFlags(root *cobra.Command, args []string) func(word string) bool {
	c, _, err := root.Find(args)
	if err != nil {
		return func(string) bool { return false }
	}
	return func(word string) bool {
		var f *pflag.Flag
		switch name, long := strings.CutPrefix(word, "--"); {
		case long:
			f = c.Flag(name)
		case len(word) == 2 && word[0] == '-':
			f = c.Flags().ShorthandLookup(word[1:])
		}
		return f != nil && f.NoOptDefVal == ""
	}
}

// spoken is the name of a run as it was typed.
func spoken(name string) string {
	if before, ok := strings.CutPrefix(name, "last~"); ok {
		if n, err := strconv.Atoi(before); err == nil {
			return "-" + strconv.Itoa(n+1)
		}
	}
	return name
}
