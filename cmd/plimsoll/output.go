package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// jsonFlag adds --json and returns where its value lands.
func jsonFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("json", false, "print one JSON document")
}

// printJSON writes v as one indented document.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// color says whether standard output shows colours and wants them.
func (w *world) color() bool {
	return w.stdoutTTY && w.env("NO_COLOR") == "" && w.env("TERM") != "dumb"
}

// columns is the width to lay text out for: the terminal's, but no wider than
// a person reads with ease.
func (w *world) columns() int {
	if w.width == 0 {
		return 80
	}
	return min(w.width, 100)
}

// printTable writes rows with their columns aligned, two blanks between them.
func printTable(w io.Writer, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}
