package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/layout"
)

func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(c.CommandPath(), "%q is too much; it takes no argument", args[0])
	}
	return nil
}

// oneArgument asks for exactly one argument, and says of what kind.
func oneArgument(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usage(c.CommandPath(), "it needs %s", what)
		case len(args) > 1:
			return usage(c.CommandPath(), "%q is too much; it takes %s and nothing else", args[1], what)
		}
		return nil
	}
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

// oneOfCommands refuses a word that is no subcommand, and says which is near.
func oneOfCommands(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			names = append(append(names, sub.Name()), sub.Aliases...)
		}
	}
	if !c.HasParent() && lastRun().MatchString(args[0]) {
		return usage(c.CommandPath(), "no command %q, which names a run; did you mean show %s?", spoken(args[0]), spoken(args[0]))
	}
	return usage(c.CommandPath(), "no command %q%s", args[0], layout.Maybe(args[0], names))
}
