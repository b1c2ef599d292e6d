package change

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// edit puts a text in the place of the bytes from begin up to end of a file.
type edit struct {
	begin, end int
	text       string
}

// apply makes edits; all else stays byte for byte.
func apply(src []byte, edits []edit) ([]byte, error) {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int { return a.begin - b.begin })
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		if e.begin < at || e.end < e.begin || e.end > len(src) {
			return nil, fmt.Errorf("two changes at byte %d", e.begin)
		}
		out.Write(src[at:e.begin])
		out.WriteString(e.text)
		at = e.end
	}
	out.Write(src[at:])
	return out.Bytes(), nil
}

// lineEnd is how lines end in a file.
func lineEnd(src []byte) string {
	if bytes.Contains(src, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// indent is the blanks at the beginning of the line of a byte.
func indent(src []byte, at int) string {
	begin := bytes.LastIndexByte(src[:at], '\n') + 1
	rest := src[begin:at]
	return string(rest[:len(rest)-len(bytes.TrimLeft(rest, " \t"))])
}

// first inserts directives at the beginning of a block: open is behind its "{",
// end behind its "}".
func first(src []byte, open, end int, directives ...string) edit {
	if !bytes.Contains(src[open:end], []byte("\n")) {
		return edit{open, open, " " + strings.Join(directives, " ")}
	}
	text := ""
	for _, d := range directives {
		text += lineEnd(src) + indent(src, open) + step(src, open, end) + d
	}
	return edit{open, open, text}
}

// last inserts directives at the end of a block.
func last(src []byte, open, end int, directives ...string) edit {
	brace := end - 1
	line := bytes.LastIndexByte(src[:brace], '\n') + 1
	if line <= open || len(bytes.TrimLeft(src[line:brace], " \t")) > 0 {
		return edit{brace, brace, strings.Join(directives, " ") + " "}
	}
	text := ""
	for _, d := range directives {
		text += indent(src, brace) + step(src, open, end) + d + lineEnd(src)
	}
	return edit{line, line, text}
}

// step is by how much a block's lines stand further right than the block.
func step(src []byte, open, end int) string {
	for line := range bytes.Lines(src[open:end]) {
		text := bytes.TrimLeft(line, " \t")
		if len(bytes.TrimSpace(text)) == 0 || text[0] == '}' {
			continue
		}
		blanks := string(line[:len(line)-len(text)])
		if more, ok := strings.CutPrefix(blanks, indent(src, open)); ok && more != "" {
			return more
		}
	}
	return "    "
}
