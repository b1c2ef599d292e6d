package main

import (
	"encoding/json"
	"io"

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
