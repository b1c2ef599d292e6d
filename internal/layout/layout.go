package layout

import (
	"fmt"
	"io"
	"math"
	"strings"
)

var blocks = []rune("▁▂▃▄▅▆▇█")

// Bar draws v against peak as one block: nothing at all is a dot, the smallest
// something a low block, so that one failed request is still seen.
func Bar(v, peak float64) rune {
	if v <= 0 || peak <= 0 {
		return '·'
	}
	i := int(math.Ceil(v/peak*float64(len(blocks)))) - 1
	return blocks[min(max(i, 0), len(blocks)-1)]
}

// Spark draws values as a line of blocks, the largest the highest.
func Spark(values []float64) string {
	peak := 0.0
	for _, v := range values {
		peak = max(peak, v)
	}
	var b strings.Builder
	for _, v := range values {
		b.WriteRune(Bar(v, peak))
	}
	return b.String()
}

// Wrap breaks text into lines of at most width columns.
func Wrap(text string, width int) string {
	var b strings.Builder
	n := 0
	for _, word := range strings.Fields(text) {
		w := Columns(word)
		switch {
		case n > 0 && n+1+w > width:
			b.WriteByte('\n')
			n = 0
		case n > 0:
			b.WriteByte(' ')
			n++
		}
		b.WriteString(word)
		n += w
	}
	return b.String()
}

// Indent puts a prefix before every line but the first.
func Indent(text, prefix string) string {
	return strings.ReplaceAll(text, "\n", "\n"+prefix)
}

// Table writes rows with their columns aligned, two spaces apart.
func Table(w io.Writer, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Columns(cell))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", widths[i]-Columns(cell)+2))
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}
