package layout

import (
	"slices"
	"testing"
)

func TestWordsKeepMarkedCommandsWhole(t *testing.T) {
	for text, want := range map[string][]string{
		"":                               nil,
		"set it, then see":               {"set", "it,", "then", "see"},
		"`a -b` first":                   {"`a -b`", "first"},
		"then `a -b && c` (or `d e`), f": {"then", "`a -b && c`", "(or", "`d e`),", "f"},
		"SELECT `a` FROM `b` c":          {"SELECT", "`a`", "FROM", "`b`", "c"},
		"one ` alone":                    {"one", "`", "alone"},
	} {
		if got := Words(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestUnmarkedLeavesNames(t *testing.T) {
	for text, want := range map[string]string{
		"then `a -b` – (`c d`)": "then a -b – (c d)",
		"SELECT `a` FROM `b`":   "SELECT `a` FROM `b`",
		"one ` alone":           "one ` alone",
	} {
		if got := Unmarked(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := Marked("`a b`, `c` and `d e`"); !slices.Equal(got, []string{"a b", "d e"}) {
		t.Errorf("%q", got)
	}
}
