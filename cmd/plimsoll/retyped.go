package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll/internal/secret"
)

// notAgain are the flags that say where what a run makes goes, how it is printed, and what it is held against: they are for one run.
var notAgain = []string{"dir", "json", "verbose", "report", "live", "repeat", "slo", "fail-on", "junit", "github"}

// retyped are the words that make such a run again: the command, what it was given, and its flags but for those of notAgain. What gives
// access is masked, since the words are kept with the run, which people show to others.
func retyped(c *cobra.Command, args []string) []string {
	words := strings.Fields(c.CommandPath())
	behind := c.ArgsLenAtDash()
	if behind < 0 {
		behind = len(args)
	}
	for _, arg := range args[:behind] {
		words = append(words, secret.Text(arg))
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(notAgain, f.Name) {
			words = append(words, flagWords(f)...)
		}
	})
	if behind < len(args) {
		words = append(append(words, "--"), secret.Args(args[behind:])...)
	}
	return words
}

// flagWords is a flag as it is typed, once for each value of one that may be given again.
func flagWords(f *pflag.Flag) (words []string) {
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand
	}
	values := []string{f.Value.String()}
	if list, several := f.Value.(pflag.SliceValue); several {
		values = list.GetSlice()
	}
	for _, value := range values {
		switch {
		case f.Value.Type() == "bool" && value == "true":
			words = append(words, name)
		case f.NoOptDefVal != "": // its value has to be in the same word
			words = append(words, "--"+f.Name+"="+secret.Text(value))
		default:
			words = append(words, name, flagValue(f, value))
		}
	}
	return words
}

// masked stands for what is not kept.
const masked = "(masked)"

// flagValue is a flag's value as it is kept.
func flagValue(f *pflag.Flag, value string) string {
	switch {
	case f.Name == "header":
		return secret.Header(value)
	case f.Name == "body" && !strings.HasPrefix(value, "@"): // which a run does not keep either
		return masked
	case f.Value.Type() == "duration":
		if whole, minutes := strings.CutSuffix(value, "m0s"); minutes {
			return whole + "m"
		}
		return value
	}
	return secret.Text(value)
}
