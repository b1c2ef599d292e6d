package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"plimsoll/internal/change"
	"plimsoll/internal/layout"
	"plimsoll/internal/tune"
)

const undoLong = `Takes back what tune (or a sweep that was killed) changed: one change by its ID,
or with --all everything that stands, the newest first; what needs another setting
to be back first is tried again after it. It works on any later day, after kill -9
and after a restart; what a restart undid is recognised.

A setting that somebody else has changed since is left alone, and said so; --force
puts the old value back all the same. "plimsoll tune --status" lists what stands.`

func undoCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "undo [ID]", Short: "take back what tune changed, also after a crash", Long: undoLong,
		Example: "  plimsoll tune --status\n  plimsoll undo --all\n  plimsoll undo 3 --force\n  plimsoll undo --all --host web=ssh:web1"}
	all := c.Flags().Bool("all", false, "take back everything that stands")
	force := c.Flags().Bool("force", false, "also where somebody else changed the setting since")
	var dir string
	addJournal(c.Flags(), w, &dir)
	var at []string
	c.Flags().StringArrayVar(&at, "host", nil, "on the machine of this host, `NAME=ssh:HOST` (see plimsoll run), from its own journal; without it on this one")
	asJSON := jsonFlag(c)
	c.Args = func(c *cobra.Command, args []string) error {
		switch {
		case *all:
			return noArguments(c, args)
		case len(args) == 0:
			return usage(c.CommandPath(), "say what: --all, or the ID of a change (plimsoll tune --status lists them)")
		}
		return oneArgument("the ID of a change")(c, args)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		id := 0
		if len(args) == 1 {
			var err error
			if id, err = strconv.Atoi(args[0]); err != nil || id < 1 {
				return usage(c.CommandPath(), "%q: want the number of a change", args[0])
			}
		}
		via, err := wholeMachine(at)
		if err != nil {
			return usage(c.CommandPath(), "%v", err)
		}
		if via != "" {
			return relay(c.Context(), w, via, undoWords(id, *force, *asJSON)...)
		}
		if _, err := os.Stat(dir); dir != "" && errors.Is(err, fs.ErrNotExist) { // a tune that was killed early has made none
			none := fmt.Errorf("nothing was changed from here: there is no journal of changes in %s (--journal names another)", dir)
			if id > 0 {
				return fail(exitMissing, none)
			}
			fmt.Fprintln(w.stderr, "plimsoll:", none)
			return printUndone(w, nil, *asJSON)
		}
		journal, err := takeJournal(w, dir)
		if err != nil {
			return err
		}
		defer journal.Close()
		results, err := undo(c.Context(), journal, id, *force)
		if err == nil || *asJSON || len(results) > 0 {
			if e := printUndone(w, results, *asJSON); e != nil {
				return e
			}
		}
		if errors.Is(err, change.ErrNoEntry) {
			return fail(exitMissing, err)
		}
		return fail(exitNotPassed, err)
	}
	return withFiles(withExits(c, exitOK, exitNotPassed, exitUsage, exitMissing), "  "+journalFiles)
}

// undoWords are the command that does the same on another machine.
func undoWords(id int, force, asJSON bool) []string {
	which := "--all"
	if id > 0 {
		which = strconv.Itoa(id)
	}
	return []string{"undo", which, "--force=" + strconv.FormatBool(force), "--json=" + strconv.FormatBool(asJSON)}
}

// undo takes one change back, or with the number 0 all. What in the journal could
// not be read may be a change that stands, so it is an error then.
func undo(ctx context.Context, journal *change.Journal, id int, force bool) ([]change.Result, error) {
	skipped := errors.Join(journal.Skipped()...)
	if id == 0 {
		results, err := journal.UndoAll(ctx, force)
		return results, errors.Join(err, skipped)
	}
	one, err := journal.Undo(ctx, id, force)
	if errors.Is(err, change.ErrNoEntry) {
		return nil, errors.Join(err, skipped)
	}
	return []change.Result{one}, err
}

type undoneDocument struct {
	Undone []change.Result `json:"undone"`
}

func printUndone(w *world, results []change.Result, asJSON bool) error {
	if asJSON {
		return printJSON(w.stdout, undoneDocument{append([]change.Result{}, results...)})
	}
	if len(results) == 0 {
		fmt.Fprintln(w.stdout, "Nothing stands that could be taken back.")
	}
	for _, r := range results {
		fmt.Fprintf(w.stdout, "%3d  %s on %s\n", r.Entry.ID, layout.Line(tune.What(r.Entry.Change)), layout.Line(r.Entry.Host))
		for _, s := range r.Sentences {
			fmt.Fprintf(w.stdout, "     %s\n", layout.Line(s))
		}
	}
	return nil
}
