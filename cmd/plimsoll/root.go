package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

const rootLong = `Plimsoll drives load at a Linux service, watches every layer of every host the
requests pass through, and names the one cause that holds throughput back, with
its evidence: why, what it costs, how to see it by hand and how to mend it. It
says what it ruled out, and what it could not see.

A run is a directory. "run" and "watch" fill one and judge it; "diagnose" judges
it again, on any machine, with the same answer to the byte.

What it says goes to standard output, talk about the course to standard error.
Every command prints JSON with --json. Colours are for terminals alone; NO_COLOR
switches them off.`

// newRoot builds the whole command tree for one world.
func newRoot(w *world) *cobra.Command {
	root := &cobra.Command{
		Use:               "plimsoll",
		Short:             "find what holds a service back",
		Long:              rootLong,
		Example:           "  plimsoll run http://127.0.0.1/ -c 200 -d 10s\n  plimsoll watch -- wrk -c 200 -d 10 http://127.0.0.1/\n  plimsoll doctor",
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              oneOfCommands,
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	cobra.EnableCommandSorting = false // the order of commands() is the order of learning
	root.SetIn(w.stdin)
	root.SetOut(w.stdout)
	root.SetErr(w.stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usage(c.CommandPath(), "%v", err) })
	cobra.AddTemplateFunc("exits", exits)
	cobra.AddTemplateFunc("flags", func(c *cobra.Command) string {
		return strings.TrimRight(c.LocalFlags().FlagUsagesWrapped(80), "\n")
	})
	root.SetHelpTemplate(helpTemplate)
	root.SetHelpCommand(&cobra.Command{Hidden: true, Use: "no-help"})
	for _, c := range commands(w) {
		root.AddCommand(c)
	}
	return root
}

// oneOfCommands refuses a word that is no subcommand, and says which is near.
func oneOfCommands(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2
	near := c.SuggestionsFor(args[0])
	if len(near) > 0 {
		return usage(c.CommandPath(), "no command %q; is it %s you mean", args[0], strings.Join(near, " or "))
	}
	return usage(c.CommandPath(), "no command %q", args[0])
}

// group is a command that only has others beneath it.
func group(use, short, long string, sub ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: long, Args: oneOfCommands,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(sub...)
	return c
}

// withExits notes which exit codes a command has, for its help.
func withExits(c *cobra.Command, codes ...int) *cobra.Command {
	words := make([]string, len(codes))
	for i, n := range codes {
		words[i] = strconv.Itoa(n)
	}
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations["exits"] = strings.Join(words, " ")
	return c
}

// withFiles notes the section FILES of a command's help.
func withFiles(c *cobra.Command, text string) *cobra.Command {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations["files"] = text
	return c
}

// exits is the section EXIT CODES of a command's help.
func exits(c *cobra.Command) string {
	var codes []int
	for _, word := range strings.Fields(c.Annotations["exits"]) {
		if n, err := strconv.Atoi(word); err == nil {
			codes = append(codes, n)
		}
	}
	if len(codes) == 0 && c.HasParent() {
		return ""
	}
	return exitTable(codes...)
}

const helpTemplate = `{{.CommandPath}} - {{.Short}}

USAGE
  {{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND [flags]{{else}}{{.UseLine}}{{end}}

DESCRIPTION
{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}{{end}}
{{if .HasAvailableSubCommands}}
COMMANDS
{{range .Commands}}{{if .IsAvailableCommand}}  {{rpad .Name .NamePadding}}  {{.Short}}
{{end}}{{end}}
Each has its own --help.
{{end}}{{if .HasAvailableLocalFlags}}
FLAGS
{{flags .}}
{{end}}{{if .HasExample}}
EXAMPLES
{{.Example}}
{{end}}{{with exits .}}
EXIT CODES
{{.}}
{{end}}{{with index .Annotations "files"}}
FILES
{{.}}
{{end}}`
