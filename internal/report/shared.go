package report

// Clean makes text from outside harmless on a terminal: control characters and
// broken UTF-8 become "?".
func Clean(s string) string { return clean(s) }

// Bar draws v against peak as one block; nothing at all is a dot.
func Bar(v, peak float64) rune { return bar(v, peak) }
