package main

import (
	"bytes"
	"io"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"plimsoll/internal/layout"
	"plimsoll/internal/model"
	sheet "plimsoll/internal/page"
	"plimsoll/internal/record/writer"
	"plimsoll/internal/report"
)

// jsonFlag adds --json and returns where its value lands.
func jsonFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("json", false, "print one JSON document")
}

// printFlags say how a report is printed.
type printFlags struct {
	json    bool
	verbose int
}

func (f *printFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	c.Flags().CountVarP(&f.verbose, "verbose", "v", "print the evidence, too; -vv also what was ruled out and what was not seen")
	c.Flags().Lookup("verbose").DefValue = "" // "count" would say nothing
}

// print writes a report; run is how it is named on a command line, "" for by its directory.
func (w *world) print(r model.Report, f printFlags, run string) error {
	if f.json {
		return report.JSON(w.stdout, r)
	}
	detail := min(report.Detail(f.verbose), report.Everything)
	return report.Text(w.stdout, r, report.TextOptions{Width: w.columns(), Color: w.color(), Detail: detail, Run: run})
}

// leastText is how much of a row's last cell is shown on any terminal, in columns.
const leastText = 24

// table writes rows, a line each; on a terminal the last cell is as long as its line has room
// for, elsewhere, where somebody may look for words in it, it is whole.
func (w *world) table(rows [][]string) {
	widths := []int{}
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell)+2)
		}
	}
	room := w.width
	for _, n := range widths {
		room -= n
	}
	room = max(room, leastText)
	for _, row := range rows {
		if last := []rune(row[len(row)-1]); w.width > 0 && len(last) > room {
			row[len(row)-1] = string(last[:room-1]) + "…"
		}
	}
	layout.Table(w.stdout, rows)
}

// printJSON writes v, an object, as one document.
func printJSON(w io.Writer, v any) error { return report.Document(w, v) }

// writeSheet writes a page to a file; "" for the file writes nothing.
func writeSheet(file string, p sheet.Page) error {
	if file == "" {
		return nil
	}
	var doc bytes.Buffer
	if err := sheet.Write(&doc, p); err != nil {
		return err
	}
	return fail(exitRunDir, writer.File(file, doc.Bytes()))
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
