package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/layout"
	"plimsoll/internal/record"
	"plimsoll/internal/report"
)

const againLong = `Makes a run again: the command that made it, which the run tells, is printed
and then done. Flags behind the run are that command's own, and count more than
what it had: "plimsoll again -c 200" loads with 200 connections.

RUN is one that is kept here ("last", -1, an ID or the last four letters of it;
plimsoll runs list shows them); without one it is the last. A run that lies
elsewhere, or that others can write to, may be anybody's: its command is
printed, to be read and typed, and not done; nor is a command of your own that
was named from the directory you were in (./load.sh). What gives access (a
password, a header) is not kept with a run, so such a command is to be typed.`

const againExample = `  plimsoll again
  plimsoll again --trace full
  plimsoll again -2 -c 200
  plimsoll again 4f1c; plimsoll compare 4f1c last`

func againCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "again [RUN] [FLAG...]", Short: "make a run again, to see whether a change helped", Long: againLong, Example: againExample,
		DisableFlagsInUseLine: true, DisableFlagParsing: true}
	jsonFlag(c) // for its help: all flags are passed on
	c.RunE = func(c *cobra.Command, args []string) error {
		if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
			return c.Help()
		}
		name := "last"
		if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
			name, args = args[0], args[1:]
		}
		words, err := w.wordsOf(c.CommandPath(), name, args)
		if err != nil {
			return err
		}
		fmt.Fprintln(w.stderr, "plimsoll again:", report.Typed(words))
		c.Root().SetArgs(words[1:])
		return c.Root().ExecuteContext(c.Context())
	}
	return withExits(c, exitOK, exitNotPassed, exitUsage, exitMissing, exitUnreachable, exitRunDir, exitRules)
}

// wordsOf are the words that make a kept run again, with flags of that command besides.
func (w *world) wordsOf(command, name string, flags []string) ([]string, error) {
	dir, err := w.runNamed(name)
	if err != nil {
		return nil, err
	}
	run, err := record.Open(dir)
	if err != nil {
		return nil, fail(exitRunDir, err)
	}
	meta, trusted := run.Meta(), w.nameOf(dir) != "" && run.OnlyOurs()
	if err := run.Close(); err != nil {
		return nil, fail(exitRunDir, err)
	}
	words := report.CommandAgain(meta.Plan, meta.Hosts)
	switch {
	case words == nil || !report.Measures(words):
		return nil, fail(exitRunDir, fmt.Errorf("%s: it does not tell a command that makes it again; plimsoll show %s -v has what it tells", spoken(name), layout.Quote(name)))
	case !trusted:
		return nil, usage(command, "%s lies elsewhere than the runs that are kept here, or others can write to it, so it may be anybody's; read its command, and type it:\n%s", spoken(name), report.Typed(words))
	case report.Masked(words):
		return nil, usage(command, "what gives access is not kept with a run; fill in what is (masked), and type it:\n%s", report.Typed(words))
	case report.FromHere(words):
		return nil, usage(command, "the command that makes its load was named from the directory that it was typed in, which is not kept, and here may be another one; type it there:\n%s", report.Typed(words))
	case slices.Contains(flags, "--"):
		return nil, usage(command, "only flags can be added; a command of your own is one of plimsoll watch --")
	}
	at := slices.Index(words, "--")
	if at < 0 {
		at = len(words)
	}
	return slices.Insert(slices.Clone(words), at, flags...), nil
}
