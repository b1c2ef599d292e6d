package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	"plimsoll/internal/record"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/secret"
)

const runsLong = `Lists, shows and removes the runs that are kept. They lie in $PLIMSOLL_RUNS,
else in /var/lib/plimsoll/runs (root's) or ~/.local/state/plimsoll/runs (yours;
$XDG_STATE_HOME is heeded). Nothing removes a run unless you ask for it.

Wherever a command takes a run, it may be named by its path, by its ID as it is
listed here or the last four letters of that, which stay the same run's, or by its
age: "last" and -1 are the newest, -2 the one before it.`

const runsFiles = `  $PLIMSOLL_RUNS              where runs are kept, else
  /var/lib/plimsoll/runs      root's
  ~/.local/state/plimsoll/runs  those of other users`

func runsCommand(w *world) *cobra.Command {
	return withFiles(withExits(group("runs", "the runs that are kept: list, show, remove", runsLong, runsList(w), runsShow(w), runsRemove(w), runsPrune(w)), exitOK, exitUsage), runsFiles)
}

// keptRun is a run as it is listed.
type keptRun struct {
	ID      string   `json:"id"`
	Dir     string   `json:"dir"`
	Started int64    `json:"started_ms"` // Unix milliseconds
	What    string   `json:"what"`       // the URL or the command, what gives access masked
	Seconds float64  `json:"seconds"`
	Bytes   int64    `json:"bytes"`
	Closed  bool     `json:"closed"`
	Answer  string   `json:"answer"` // "" where no verdict is kept
	Rules   []string `json:"rules"`  // what the answer rests on
	Hosts   []string `json:"hosts"`
	Made    string   `json:"version"` // of the Plimsoll that made it
	said    string
}

// runList is what runs list --json prints.
type runList struct {
	Dir  string    `json:"dir"` // where runs are kept
	Runs []keptRun `json:"runs"`
}

// describe is all that is listed of a run.
func describe(k record.Kept) (keptRun, error) {
	r, err := summarize(k)
	size, sizeErr := k.Bytes()
	r.Bytes = size
	return r, errors.Join(err, sizeErr)
}

// summarize is describe without the run's size, for which all its files are looked at.
func summarize(k record.Kept) (keptRun, error) {
	r := keptRun{ID: k.ID, Dir: k.Dir, Started: k.Meta.Started, Closed: k.Meta.Closed, Made: k.Meta.Version, Rules: []string{}, Hosts: []string{}}
	plan := k.Meta.Plan
	switch {
	case plan.Load != nil:
		r.What = plan.Load.Method + " " + plan.Load.URL
	case len(plan.Command) > 0:
		r.What = "watch " + strings.Join(plan.Command, " ")
	default:
		r.What = plan.Mode
	}
	r.What = secret.Text(r.What)
	for _, h := range k.Meta.Hosts {
		r.Hosts = append(r.Hosts, h.Name)
	}
	if ws := k.Meta.Windows; len(ws) > 0 {
		r.Seconds = float64(max(ws[len(ws)-1].End-ws[0].Start, 0)) / 1e3
	}
	v, err := k.Verdict()
	if v != nil {
		r.Answer, r.said = string(v.Answer), v.Sentence
		for _, f := range slices.Concat(v.Root, v.Grounds) {
			if !slices.Contains(r.Rules, f.Rule) {
				r.Rules = append(r.Rules, f.Rule)
			}
		}
	}
	return r, err
}

func runsList(w *world) *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "list the runs, the newest last", Args: noArguments,
		Long: "Lists the runs that are kept, a line each, the newest last, with the verdict\nthat was given when each was made."}
	asJSON := jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		kept, skipped, err := record.List(w.runsDir())
		if err != nil {
			return fail(exitRunDir, err)
		}
		list := []keptRun{}
		for _, k := range kept {
			r, err := describe(k)
			if err != nil {
				skipped = append(skipped, err)
			}
			list = append(list, r)
		}
		for _, err := range skipped {
			fmt.Fprintln(w.stderr, "plimsoll:", layout.Line(err.Error()))
		}
		if *asJSON {
			return printJSON(w.stdout, runList{w.runsDir(), list})
		}
		if len(list) == 0 {
			fmt.Fprintf(w.stdout, "No run%s in %s.\n", map[bool]string{true: " that can be read"}[len(skipped) > 0], w.runsDir())
			return nil
		}
		rows := [][]string{{"ID", "STARTED", "SIZE", "VERDICT", "OF"}}
		for _, r := range list {
			rows = append(rows, []string{layout.Line(r.ID), time.UnixMilli(r.Started).Local().Format("01-02 15:04"), layout.Bytes(r.Bytes),
				layout.Line(r.answered()), layout.Line(r.What)})
		}
		w.table(rows)
		return nil
	}
	return withExits(c, exitOK, exitUsage, exitRunDir)
}

// answered is the verdict in a few words.
func (r keptRun) answered() string {
	switch {
	case r.Answer == "":
		return "none kept"
	case r.Answer == string(model.AnswerCause) && len(r.Rules) > 0:
		return strings.Join(r.Rules, ", ")
	}
	return r.Answer
}

func runsShow(w *world) *cobra.Command {
	c := &cobra.Command{Use: "show RUN", Short: "say what a run is: when, of what, how large", Args: oneArgument("a run"),
		Long: "Says of one run when and by what it was made, what was asked for, and how large\nit is. Its verdict in full is what \"plimsoll show RUN\" prints."}
	asJSON := jsonFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		k, err := w.keptNamed(args[0])
		if err != nil {
			return err
		}
		r, err := describe(k)
		if err != nil {
			return fail(exitRunDir, err)
		}
		if *asJSON {
			return printJSON(w.stdout, r)
		}
		whole := "whole"
		if !r.Closed {
			whole = "cut off, or still being made"
		}
		layout.Table(w.stdout, [][]string{
			{"run", layout.Line(r.ID)}, {"of", layout.Line(r.What)}, {"hosts", layout.Line(strings.Join(r.Hosts, ", "))},
			{"started", time.UnixMilli(r.Started).Local().Format("2006-01-02 15:04:05 -0700")}, {"took", layout.Micros(r.Seconds * 1e6)},
			{"state", whole}, {"made by", "plimsoll " + layout.Line(r.Made)}, {"size", layout.Bytes(r.Bytes)}, {"lies in", layout.Line(r.Dir)},
			{"verdict", layout.Line(strings.TrimSpace(r.answered() + ". " + r.said))},
		})
		return nil
	}
	return withExits(c, exitOK, exitUsage, exitRunDir)
}

// keptNamed finds a run that is kept by one of its names.
func (w *world) keptNamed(name string) (record.Kept, error) {
	dir, err := w.runNamed(name)
	if err != nil {
		return record.Kept{}, err
	}
	list, skipped, err := record.List(dir)
	switch {
	case err != nil:
		return record.Kept{}, fail(exitRunDir, err)
	case len(list) == 1 && list[0].ID == "":
		list[0].ID = filepath.Base(dir)
		return list[0], nil
	case len(list) > 0:
		return record.Kept{}, fail(exitRunDir, fmt.Errorf("%s: %d runs in this folder; name one of them: %s", name, len(list), filepath.Join(name, list[0].ID)))
	}
	return record.Kept{}, fail(exitRunDir, errors.Join(append(skipped, fmt.Errorf("%s: no run here; plimsoll runs list shows those that are kept", name))...))
}

func runsRemove(w *world) *cobra.Command {
	c := &cobra.Command{Use: "rm RUN...", Short: "remove runs", Long: `Removes runs, or folders of runs, that are kept where runs are kept. What lies
elsewhere is yours to remove, and so is a folder with something of yours in it.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(c.CommandPath(), "it needs a run; plimsoll runs list shows them")
			}
			return nil
		}}
	asJSON := jsonFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		var ids []string
		for _, name := range args { // all of them are found before the first goes: "last" is another one then
			dir, err := w.runNamed(name)
			if err != nil {
				return err
			}
			id, err := filepath.Rel(w.runsDir(), dir)
			if err != nil || !filepath.IsLocal(id) || id == "." {
				id = name
			}
			ids = append(ids, id)
		}
		return w.remove(ids, *asJSON)
	}
	return withExits(c, exitOK, exitUsage, exitRunDir)
}

// remove removes runs by their IDs and says which.
func (w *world) remove(ids []string, asJSON bool) error {
	removed := []string{}
	var failed error
	for _, id := range ids {
		if err := writer.Remove(w.runsDir(), id); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		removed = append(removed, id)
	}
	if asJSON {
		return errors.Join(printJSON(w.stdout, removedDocument{removed}), fail(exitRunDir, failed))
	}
	if len(ids) == 0 {
		fmt.Fprintf(w.stdout, "Nothing to remove in %s.\n", w.runsDir())
	}
	for _, id := range removed {
		fmt.Fprintf(w.stdout, "removed %s\n", layout.Line(id))
	}
	return fail(exitRunDir, failed)
}

// removedDocument is what rm and prune print with --json, wouldRemove what prune --dry-run does.
type (
	removedDocument struct {
		Removed []string `json:"removed"`
	}
	wouldRemove struct {
		WouldRemove []string `json:"would_remove"`
	}
)

func runsPrune(w *world) *cobra.Command {
	c := &cobra.Command{Use: "prune --keep N", Short: "remove all but the newest runs", Args: noArguments, DisableFlagsInUseLine: true,
		Long: `Removes all runs but the newest N. The runs of one tune, sweep or --repeat lie
in one folder, and count as one. What is not closed yet, and was begun within an
hour, may be at work, and stays.`}
	keep := c.Flags().Int("keep", 0, "keep the newest `N`")
	dry := c.Flags().Bool("dry-run", false, "only say which would go")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if !c.Flags().Changed("keep") || *keep < 0 {
			return usage(c.CommandPath(), "want --keep N, how many runs stay")
		}
		list, _, err := record.List(w.runsDir())
		if err != nil {
			return fail(exitRunDir, err)
		}
		ids := old(list, *keep, time.Now())
		if !*dry {
			return w.remove(ids, *asJSON)
		}
		if *asJSON {
			return printJSON(w.stdout, wouldRemove{ids})
		}
		if len(ids) == 0 {
			fmt.Fprintf(w.stdout, "Nothing to remove in %s.\n", w.runsDir())
		}
		for _, id := range ids {
			fmt.Fprintf(w.stdout, "would remove %s\n", layout.Line(id))
		}
		return nil
	}
	return withExits(c, exitOK, exitUsage, exitRunDir)
}

// old are the entries of a shelf, the oldest first, that are not among the newest so
// many and are not at work.
func old(list []record.Kept, keep int, now time.Time) []string {
	ids := []string{}
	atWork := map[string]bool{}
	for _, k := range slices.Backward(list) {
		top, _, _ := strings.Cut(k.ID, "/")
		if !slices.Contains(ids, top) {
			ids = append(ids, top)
		}
		atWork[top] = atWork[top] || !k.Meta.Closed && now.Sub(time.UnixMilli(k.Meta.Started)) < time.Hour
	}
	ids = slices.DeleteFunc(ids[min(keep, len(ids)):], func(id string) bool { return atWork[id] || id == "" })
	slices.Reverse(ids)
	return ids
}
