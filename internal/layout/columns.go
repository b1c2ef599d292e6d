package layout

import (
	"unicode"

	"golang.org/x/text/width"
)

// Columns is how many columns of a terminal a text takes: two for each wide letter, as those of Chinese, none for a mark on another.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case r < 0x300:
			n++
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		default:
			n++
			if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
				n++
			}
		}
	}
	return n
}
