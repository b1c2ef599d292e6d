package layout

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Clean makes text from outside (log lines, names of processes) harmless on a
// terminal, and shows what it took out: control characters and what steers the
// direction or hides are written as JSON would escape them (ESC is \u001b), so
// that a document stays a document, and broken UTF-8 becomes U+FFFD. Line feeds
// and tabs stay. What a CI would take for a command to it is none any more; see place.
func Clean(s string) string { return new(place).clean(s, "\n\t") }

// Line is Clean for what has to stay within one line: line feeds and tabs are
// written as \n and \t.
func Line(s string) string { return new(place).clean(s, "") }

// place is what stands right before a character in its line, as far as it begins what a
// CI that reads the log obeys: ::error:: at a line's beginning (GitHub, Forgejo, Gitea),
// ##[error], ##vso[…] and ##teamcity[…] anywhere. One character of such a word is
// escaped; no address (::1, ::ffff:10.0.0.1) is one.
type place struct {
	// colons are those at the line's beginning, blanks aside; elsewhere when something
	// else stands there.
	colons int
	hashes int // right before, but for letters
}

const elsewhere = -1

// take goes on by a character, and says whether that makes a command of what is before it.
func (p *place) take(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	address := letter && strings.ContainsRune("abcdefABCDEF", r) || r >= '0' && r <= '9'
	command := p.hashes >= 2 && r == '[' || p.colons >= 2 && (letter && !address || r == '-')
	switch {
	case r == '#':
		p.hashes++
	case p.hashes < 2 || !letter:
		p.hashes = 0
	}
	switch {
	case r == '\n':
		p.colons = 0
	case p.colons == 0 && unicode.IsSpace(r), p.colons >= 2 && address:
	case p.colons >= 0 && r == ':':
		p.colons++
	default:
		p.colons = elsewhere
	}
	return command
}

func (p *place) clean(s, stays string) string {
	for i, r := range s { // nearly always nothing has to be done
		before := *p
		if harmful(r, stays) || r == utf8.RuneError || p.take(r) {
			*p = before
			return s[:i] + p.cleaned(s[i:], stays)
		}
	}
	return s
}

func (p *place) cleaned(s, stays string) string {
	var b strings.Builder
	for _, r := range s {
		if !harmful(r, stays) && !p.take(r) {
			b.WriteRune(r) // a byte that is no UTF-8 is U+FFFD here
			continue
		}
		*p = place{colons: elsewhere}
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// harmful says whether a rune does something to a terminal instead of showing.
func harmful(r rune, stays string) bool {
	if r >= ' ' && r < 0x7f {
		return false
	}
	return (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)) && !strings.ContainsRune(stays, r)
}

// Writer cleans all that is written to it (see Clean), but for what Own says is
// ours. It is safe for concurrent use.
type Writer struct {
	mu   sync.Mutex
	out  io.Writer
	held []byte // the beginning of a rune whose end comes with the next Write
	at   place  // what comes next
	lost error  // why what was written first did not get out
}

// NewWriter returns a Writer before out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write cleans p and passes it on.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := p
	if len(w.held) > 0 {
		text = append(w.held, p...)
	}
	whole := len(text) - unfinished(text)
	w.held = append([]byte(nil), text[whole:]...)
	if err := w.pass(w.at.clean(string(text[:whole]), "\n\t")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// pass writes text and remembers the first failure.
func (w *Writer) pass(text string) error {
	_, err := io.WriteString(w.out, text)
	if w.lost == nil {
		w.lost = err
	}
	return err
}

// Lost is the first error with which something could not be written, nil for none: most who print look
// at no line's error, and words that are lost must not end in success.
func (w *Writer) Lost() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// unfinished is how many bytes at the end may be the beginning of a rune.
func unfinished(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if tail := p[len(p)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// own passes text on as it is.
func (w *Writer) own(text string) error {
	if err := w.flush(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range text {
		w.at.take(r)
	}
	return w.pass(text)
}

// flush writes what was held back, since the rest of it may have come.
func (w *Writer) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := w.held
	w.held = nil
	return w.pass(w.at.clean(string(held), "\n\t"))
}

// Own writes text that has escapes or commands of ours in it, such as colours, and nothing
// from outside that was not cleaned: a Writer passes it on as it is.
func Own(w io.Writer, text string) error {
	if cleaning, ok := w.(*Writer); ok {
		return cleaning.own(text)
	}
	_, err := io.WriteString(w, text)
	return err
}
