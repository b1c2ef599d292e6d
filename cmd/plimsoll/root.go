package main

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll/internal/layout"
	"plimsoll/internal/lazy"
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
		Version:           version,
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
	root.SetFlagErrorFunc(wrongFlag)
	cobra.AddTemplateFunc("exits", exits)
	cobra.AddTemplateFunc("flags", func(c *cobra.Command) string {
		return strings.TrimRight(c.LocalFlags().FlagUsagesWrapped(80), "\n")
	})
	root.SetHelpTemplate(helpTemplate)
	root.SetHelpCommand(helpCommand(root))
	for _, c := range commands(w) {
		root.AddCommand(c)
	}
	return root
}

// helpCommand is --help as people type it, too.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{Use: "help [COMMAND]", Short: "Show how a command is used", Hidden: true, RunE: func(_ *cobra.Command, args []string) error {
		c, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 {
			return oneOfCommands(c, append(rest, args...))
		}
		return c.Help()
	}}
}

// goErrors is how Go words what is wrong with a flag's value, and what is wanted.
var goErrors = []struct {
	form func() *regexp.Regexp
	want string
}{
	{lazy.Regexp(`strconv\.Parse(Int|Uint): parsing ".*": invalid syntax`), "want a whole number"},
	{lazy.Regexp(`strconv\.Parse(Int|Uint): parsing ".*": value out of range`), "that is too much"},
	{lazy.Regexp(`strconv\.ParseBool: parsing ".*": invalid syntax`), "want true or false"},
}

// wrongFlag says what is wrong with a flag, and which is near to one that is none.
func wrongFlag(c *cobra.Command, err error) error {
	said, hint := err.Error(), ""
	for _, e := range goErrors {
		said = e.form().ReplaceAllString(said, e.want)
	}
	if name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --"); unknown {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		hint = layout.Maybe("--"+name, names)
	}
	return usage(c.CommandPath(), "%s%s", said, hint)
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
