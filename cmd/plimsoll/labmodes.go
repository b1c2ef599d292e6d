package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"plimsoll/internal/lab"
	"plimsoll/internal/layout"
)

// parseModes reads the words of --mode.
func parseModes(path string, words []string) ([]lab.Mode, error) {
	var modes []lab.Mode
	for _, word := range words {
		m := lab.Mode(word)
		if !slices.Contains(lab.Modes, m) {
			return nil, usage(path, "--mode %s: want run, watch-command or watch, or several with commas between", word)
		}
		if !slices.Contains(modes, m) {
			modes = append(modes, m)
		}
	}
	return modes, nil
}

// printModes writes how each mode did, and each case in them.
func printModes(w *world, scores []lab.ModeScore) {
	if len(scores) == 0 {
		return
	}
	head := []string{"MODE"}
	for _, o := range lab.Outcomes {
		head = append(head, strings.ToUpper(string(o)))
	}
	totals, cases := [][]string{head}, map[string]bool{}
	names := []string{"CASE"}
	for _, s := range scores {
		row := []string{string(s.Mode)}
		for _, o := range lab.Outcomes {
			row = append(row, fmt.Sprint(s.Counts[o]))
		}
		totals = append(totals, row)
		names = append(names, strings.ToUpper(string(s.Mode)))
		for id := range s.Cases {
			cases[id] = true
		}
	}
	rows := [][]string{names}
	for _, id := range slices.Sorted(maps.Keys(cases)) {
		row := []string{id}
		for _, s := range scores {
			row = append(row, lab.Words(s.Cases[id]))
		}
		rows = append(rows, row)
	}
	layout.Table(w.stdout, rows)
	fmt.Fprintln(w.stdout)
	layout.Table(w.stdout, totals)
	fmt.Fprintln(w.stdout)
}
