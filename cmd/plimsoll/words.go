package main

import (
	"strings"
	"unicode/utf8"
)

// wrapWords breaks text into lines of at most width columns.
func wrapWords(text string, width int) string {
	var b strings.Builder
	n := 0
	for _, word := range strings.Fields(text) {
		w := utf8.RuneCountInString(word)
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

// indentRest puts a prefix before every line but the first.
func indentRest(text, prefix string) string {
	return strings.ReplaceAll(text, "\n", "\n"+prefix)
}
