package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"plimsoll/internal/layout"
)

// style is how a piece of text stands out on a terminal; in a pipe it is nothing.
type style string

const (
	plain style = ""
	bold  style = "1"
	dim   style = "2"
	red   style = "1;31"
	green style = "1;32"
	amber style = "1;33"
)

// labelWidth is the column in which the text after a label begins.
const labelWidth = 11

// paper lays text out in lines of at most width columns. Only a word or a
// command that is longer by itself sticks out. What is written may come from
// outside: paint cleans it, and nothing gets onto the paper but through paint.
type paper struct {
	b     strings.Builder
	width int
	color bool
}

// painted is text that was cleaned, with our own escape codes around it.
type painted string

func newPaper(o TextOptions) *paper {
	if o.Width == 0 {
		o.Width = 80
	}
	return &paper{width: max(o.Width, 60), color: o.Color}
}

// print writes the paper to w.
func (p *paper) print(w io.Writer) error {
	if p.color {
		return layout.Own(w, p.b.String())
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

func (p *paper) blank() { p.b.WriteByte('\n') }

// paint cleans s, which has been laid out already, and wraps it in the style's
// escape codes.
func (p *paper) paint(st style, s string) painted {
	s = layout.Line(s)
	if !p.color || st == plain || s == "" {
		return painted(s)
	}
	return painted("\x1b[" + string(st) + "m" + s + "\x1b[0m")
}

func (p *paper) line(indent int, st style, s string) {
	p.put(indent, p.paint(st, s))
}

// put writes a line of pieces.
func (p *paper) put(indent int, pieces ...painted) {
	line := strings.Repeat(" ", indent)
	for _, s := range pieces {
		line += string(s)
	}
	p.b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// heading begins a section.
func (p *paper) heading(st style, s string) {
	if p.b.Len() > 0 {
		p.blank()
	}
	p.line(0, st, s)
}

// para writes text wrapped, every line indented alike; but what goes on from the first
// column stands further in, where words from outside cannot pass for a line of ours. A line
// feed in it, which may come from outside too, begins no line.
func (p *paper) para(indent int, st style, text string) {
	further := indent
	if indent == 0 {
		further = 2
	}
	for i, l := range wrapFurther(layout.Line(text), p.width-indent, p.width-further) {
		if i == 1 {
			indent = further
		}
		p.line(indent, st, l)
	}
}

// hang writes lead and then text wrapped beside it: text begins, in all lines,
// in column `column`. A lead that is too long for that has a line to itself.
func (p *paper) hang(indent, column int, lead string, leadStyle style, text string) {
	lead = layout.Line(lead)
	lines := wrap(layout.Line(text), p.width-column)
	room := column - indent
	if utf8.RuneCountInString(lead) >= room {
		p.line(indent, leadStyle, lead)
	} else {
		pad := strings.Repeat(" ", room-utf8.RuneCountInString(lead))
		p.put(indent, p.paint(leadStyle, lead), p.paint(plain, pad+lines[0]))
		lines = lines[1:]
	}
	for _, l := range lines {
		p.line(column, plain, l)
	}
}

// item is a labelled text in the report's own column.
func (p *paper) item(label, text string) { p.hang(0, labelWidth, label, bold, text) }

// typed is item for something to be typed.
func (p *paper) typed(label, text string) {
	for i, part := range breakCommand(layout.Line(text), p.width-labelWidth-4) {
		if i == 0 {
			p.put(0, p.paint(bold, label), p.paint(plain, strings.Repeat(" ", labelWidth-len(label))+part))
		} else {
			p.line(labelWidth+4, plain, part)
		}
	}
}

// command writes something to be typed. Its own line breaks stay; a line that
// is too long is continued the way a shell understands, between words that
// stand outside quotes.
func (p *paper) command(indent int, text string) {
	for _, l := range strings.Split(strings.TrimRight(layout.Clean(text), "\n"), "\n") {
		for i, part := range breakCommand(strings.TrimRight(l, " \t"), p.width-indent) {
			in := indent
			if i > 0 {
				in += 4
			}
			p.line(in, plain, part)
		}
	}
}

// wrap breaks text into lines of at most width columns; runs of blanks are one.
// It always returns a line.
func wrap(text string, width int) []string { return wrapFurther(text, width, width) }

// wrapFurther is wrap with another width from the second line on.
func wrapFurther(text string, width, further int) []string {
	lines, _ := laid(text, width, further)
	return lines
}

// laid is wrapFurther, and what of the text stands in each line, with the marks of its commands. A marked command stays on a line, or goes on
// behind a backslash on the next where no line has room for it.
func laid(text string, width, further int) (lines, sources []string) {
	line, source, n := "", "", 0
	flush := func() {
		lines, sources = append(lines, line), append(sources, source)
		line, source, n, width = "", "", 0, further
	}
	for _, word := range words(text) {
		printed := layout.Unmarked(word)
		if printed == word {
			printed = shortened(word)
		}
		w := utf8.RuneCountInString(printed)
		if n > 0 && n+1+w > width {
			flush()
		}
		if parts := breakCommand(printed, width); printed != word && len(parts) > 1 {
			for _, part := range parts[:len(parts)-1] {
				line = part
				flush()
			}
			line, source, n = parts[len(parts)-1], word, utf8.RuneCountInString(parts[len(parts)-1])
			continue
		}
		if n > 0 {
			line, source, n = line+" ", source+" ", n+1
		}
		line, source, n = line+printed, source+word, n+w
	}
	flush()
	return lines, sources
}

// longestWord is how much of a word is worth showing: a URL or a path has less,
// and what somebody wants to flood a screen with has more.
const longestWord = 240

// shortened leaves out the middle of a word that nobody would read.
func shortened(word string) string {
	letters := []rune(word)
	if len(letters) <= longestWord {
		return word
	}
	return fmt.Sprintf("%s…(%s more)…%s", string(letters[:longestWord*3/4]), layout.Count(int64(len(letters)-longestWord)), string(letters[len(letters)-longestWord/4:]))
}

// units are the words that stay on the line of the number before them.
var units = []string{"%", "µs", "ms", "s", "min", "bytes", "KiB", "MiB", "GiB", "TiB"}

// words splits text at blanks, a number and its unit being one word, and a marked command.
func words(text string) []string {
	var list []string
	for _, w := range layout.Words(text) {
		if n := len(list); n > 0 && endsInDigit(list[n-1]) && slices.Contains(units, strings.TrimRight(w, ".,;:)")) {
			list[n-1] += " " + w
			continue
		}
		list = append(list, w)
	}
	return list
}

func endsInDigit(s string) bool { return s != "" && s[len(s)-1] >= '0' && s[len(s)-1] <= '9' }

// breakCommand splits one line of shell into lines that end in a backslash; the
// lines after the first are to be indented by four.
func breakCommand(s string, width int) []string {
	var parts []string
	for utf8.RuneCountInString(s) > width {
		cut := lastBreak(s, width-2) // " \" comes after it
		if cut < 0 {
			break
		}
		parts = append(parts, s[:cut]+" \\")
		s = s[cut+1:]
		if len(parts) == 1 {
			width -= 4
		}
	}
	return append(parts, s)
}

// lastBreak returns the byte offset of the last blank outside quotes within the
// first width columns of s, else of the first one after them, else -1.
func lastBreak(s string, width int) int {
	indent := len(s) - len(strings.TrimLeft(s, " "))
	cut := -1
	for _, i := range layout.Breaks(s) {
		switch {
		case i < indent:
		case cut >= 0 && utf8.RuneCountInString(s[:i]) > width:
			return cut
		case strings.HasPrefix(s[i+1:], "#"):
			return -1 // a comment cannot be continued
		default:
			cut = i
		}
	}
	return cut
}

// bullet is an item whose text begins with a mark; an empty label continues the list.
func (p *paper) bullet(label, mark, text string) {
	pad := strings.Repeat(" ", labelWidth-utf8.RuneCountInString(label))
	lines := wrap(layout.Line(text), p.width-labelWidth-len(mark))
	p.put(0, p.paint(bold, label), p.paint(plain, pad+mark+lines[0]))
	for _, l := range lines[1:] {
		p.line(labelWidth+len(mark), plain, l)
	}
}

// Detail is how much of a report is written.
type Detail int

const (
	// Brief is what fits a screen, what to do last.
	Brief Detail = iota
	// Evidence is why the answer is believed: the roots in full, where the time went, what
	// comes next.
	Evidence
	// Everything is also what was ruled out and what was not seen.
	Everything
)

// TextOptions say what the text is written for.
type TextOptions struct {
	// Width is the number of columns; 0 is 80. Below 60 it is taken as 60.
	Width int
	// Color asks for ANSI colours, for a terminal that shows them.
	Color bool
	// Detail is how much is written.
	Detail Detail
	// Run is how the run is named on a command line, "" for by its directory.
	Run string
}
