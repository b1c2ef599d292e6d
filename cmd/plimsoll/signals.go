package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll/internal/capture/tally"
	"plimsoll/internal/layout"
	"plimsoll/internal/load"
	"plimsoll/internal/model"
	"plimsoll/internal/probe/all"
)

const signalsLong = `Lists every signal: its name (node_exporter's, process-exporter's and the other
exporters' own where they have it), kind, unit, labels, where it is read, and the
classic command that shows the same by hand. PATTERN keeps those in whose name,
help or source it occurs.

--tools turns the table round: which numbers does each classic tool show.`

func signalsCommand(w *world) *cobra.Command {
	c := &cobra.Command{Use: "signals [PATTERN]", Short: "every signal: its unit, its source, how to see it by hand",
		Long: signalsLong, Example: "  plimsoll signals\n  plimsoll signals conntrack\n  plimsoll signals --json | jq -r '.signals[].name'",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(c.CommandPath(), "%q is too much; it takes one pattern", args[1])
			}
			return nil
		}}
	var byTool bool
	c.Flags().BoolVar(&byTool, "tools", false, "list the classic tools, and which signals each shows")
	var verbose bool
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "all that is known of each, not one line")
	asJSON := jsonFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		list := allSignals(w)
		if len(args) == 1 {
			list = slices.DeleteFunc(list, func(s *model.Signal) bool { return !signalMatches(s, args[0]) })
		}
		if byTool {
			return printTools(w, signalTools(list), *asJSON)
		}
		if *asJSON {
			return printJSON(w.stdout, signalList{list})
		}
		if len(list) == 0 {
			var names []string
			for _, s := range allSignals(w) {
				names = append(names, s.Name)
			}
			return usage("plimsoll signals", "no signal has %q in its name, help or source%s", args[0], layout.Maybe(args[0], names))
		}
		printSignals(w, list, verbose || len(list) == 1)
		return nil
	}
	return withExits(c, exitOK, exitUsage)
}

// printSignals writes a line for each signal, or all of it.
func printSignals(w *world, list []*model.Signal, verbose bool) {
	rows := [][]string{{"SIGNAL", "UNIT", "WHAT IT IS"}}
	for i, s := range list {
		if !verbose {
			rows = append(rows, []string{s.Name, s.Unit, s.Help})
			continue
		}
		if i > 0 {
			fmt.Fprintln(w.stdout)
		}
		fmt.Fprint(w.stdout, signalText(s))
	}
	if !verbose {
		w.table(rows)
	}
}

// signalList is what signals --json prints.
type signalList struct {
	Signals []*model.Signal `json:"signals"`
}

// signalTools sorts signals by the tools that show them, each tool's by name.
func signalTools(list []*model.Signal) map[string][]string {
	tools := map[string][]string{}
	for _, s := range list {
		tool := toolOf(s.ByHand)
		tools[tool] = append(tools[tool], s.Name)
	}
	return tools
}

// toolOf is the program that a command line calls.
func toolOf(command string) string {
	for _, word := range strings.Fields(command) {
		if !strings.Contains(word, "=") { // a variable that is set for it
			return strings.TrimRight(word, ";,")
		}
	}
	return command
}

type toolList struct {
	Tools map[string][]string `json:"tools"`
}

func printTools(w *world, tools map[string][]string, asJSON bool) error {
	if asJSON {
		return printJSON(w.stdout, toolList{tools})
	}
	const indent = "                    "
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		text := layout.Indent(layout.Wrap(strings.Join(tools[tool], " "), w.columns()-len(indent)), indent)
		fmt.Fprintf(w.stdout, "%-*s%s\n", len(indent), tool, text)
	}
	return nil
}

// allSignals returns every declared signal, each once, by name.
func allSignals(w *world) []*model.Signal {
	list := slices.Concat(load.Signals, tally.Signals)
	for _, p := range all.All() {
		list = append(list, p.Signals...)
	}
	for _, t := range allTracers(w) {
		list = append(list, t.Signals...)
	}
	slices.SortFunc(list, func(a, b *model.Signal) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(list, func(a, b *model.Signal) bool { return a.Name == b.Name })
}

func signalMatches(s *model.Signal, pattern string) bool {
	text := strings.ToLower(s.Name + " " + s.Help + " " + s.Source)
	return strings.Contains(text, strings.ToLower(pattern))
}

func signalText(s *model.Signal) string {
	name := s.Name
	if len(s.Labels) > 0 {
		name += "{" + strings.Join(s.Labels, ",") + "}"
	}
	field := func(label, text string) string {
		return "  " + label + strings.Repeat(" ", 9-len(label)) + layout.Indent(layout.Wrap(text, 69), strings.Repeat(" ", 11)) + "\n"
	}
	return name + "\n" + field("is", s.Help) + field("kind", string(s.Kind)+", "+s.Unit) +
		field("source", s.Source) + field("by hand", s.ByHand)
}
