package trace

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/layout"
)

// Spaces are the network namespaces of a report: where there are several, each
// is marked by a letter.
type Spaces []uint32

// Add puts one in, unless it is there.
func (s *Spaces) Add(netns uint32) {
	if !slices.Contains(*s, netns) {
		*s = append(*s, netns)
	}
}

// Mark is the letter of one, or its number behind the 26th; "" if there is but one.
func (s Spaces) Mark(netns uint32) string {
	i := slices.Index(s, netns)
	switch {
	case len(s) < 2 || i < 0:
		return ""
	case i < 26:
		return string(rune('A' + i))
	}
	return fmt.Sprint(i + 1)
}

// Legend says which network namespace each letter is; "" if there is but one.
func (s Spaces) Legend(columns int) string {
	if len(s) < 2 {
		return ""
	}
	var parts []string
	for _, netns := range s {
		name := fmt.Sprint(netns)
		if netns == 0 {
			name = "not known"
		}
		parts = append(parts, s.Mark(netns)+" "+name)
	}
	return "\n" + layout.Wrap("network namespaces: "+strings.Join(parts, ", "), columns) + "\n"
}

// Rows writes a table without more than so many rows beneath its heads, and says how
// many there are besides. Where it would be wider than columns, the cells of one column
// are shortened in their middle.
func Rows(b *strings.Builder, rows [][]string, shown, long, columns int) {
	cut := rows[:min(len(rows), shown+1)]
	widths := map[int]int{}
	for _, row := range cut {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	total := -2
	for _, w := range widths {
		total += w + 2
	}
	limit := max(widths[long]-max(0, total-columns), 12)
	for _, row := range cut {
		row[long] = shorten(row[long], limit)
	}
	layout.Table(b, cut)
	More(b, len(rows)-1-shown, "")
}

// More says how many things of a report are not in its text; nothing of none.
func More(b *strings.Builder, n int, things string) {
	if n > 0 {
		fmt.Fprintf(b, "and %s more%s; --json has them all\n", Number(uint64(n)), things)
	}
}

func shorten(s string, limit int) string {
	r := []rune(s)
	if len(r) <= limit {
		return s
	}
	tail := limit / 2
	return string(r[:limit-1-tail]) + "…" + string(r[len(r)-tail:])
}
