package layout

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"plimsoll/internal/lazy"
)

// Quote writes s as one word of a shell's command line, whatever is in it: bare
// where nothing has to be quoted, else in single quotes. What a terminal would
// not show has printf write it: "$(printf '\033')", which every POSIX shell knows, as
// not all do $'\033'. Line feeds at the very end get lost so.
func Quote(s string) string {
	s = strings.ReplaceAll(s, "\x00", "") // no argument can have one
	switch {
	case s == "":
		return "''"
	case bare(s) && Line(s) == s: // a CI takes ::word at the beginning of a line for a command
		return s
	case Line(s) == s && !strings.ContainsRune(s, '\ufffd'):
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; bare(string(c)) && c < 0x80 && (c != '-' || i > 0) && c != '%' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\%03o`, c)
		}
	}
	return `"$(printf '` + b.String() + `')"`
}

// bare says whether no shell sees anything in s but a word.
func bare(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("_@%+:,./-", rune(c)) && (c != '=' || i == 0) {
			return false
		}
	}
	return true
}

// Command is a command line that is put together from text of ours and words
// from outside.
type Command struct {
	b     strings.Builder
	state shell
}

// Ours adds text of our own, as it is.
func (c *Command) Ours(text string) {
	c.b.WriteString(text)
	for i := range len(text) {
		c.state.step(text[i])
	}
}

// Outside adds text from outside so that the shell takes it as it is, wherever
// it stands: between quotes, within them, in a comment.
func (c *Command) Outside(text string) {
	quoted := Quote(text)
	switch top := c.state.top(); {
	case top == '#':
		quoted = Line(text)
	case text == "":
		quoted = ""
	case quoted == text:
	case top == '"' || top == '\'': // end the quotes, and begin them anew
		quoted = string(top) + quoted + string(top)
	}
	c.b.WriteString(quoted)
	c.state.begun, c.state.start = true, false
}

// String is the line so far.
func (c *Command) String() string { return c.b.String() }

// Fit says whether text from outside can be quoted where the line ends now: not
// right behind a backslash or a dollar, nor within backticks, ${ }, $(( )) or $' '.
func (c *Command) Fit() bool {
	return !c.state.odd && !c.state.escaped && !c.state.dollar && c.state.top() != '$'
}

// Closed says whether all quotes and parentheses are closed.
func (c *Command) Closed() bool { return len(c.state.in) == 0 || c.state.top() == '#' }

// Breaks are the byte offsets of the blanks at which a command line can be
// continued on the next line: those outside quotes and before a comment.
func Breaks(line string) []int {
	var list []int
	var state shell
	for i := range len(line) {
		escaped := state.escaped
		state.step(line[i])
		switch state.top() {
		case '#':
			return list
		case 0, '(':
			if line[i] == ' ' && !escaped && !bytes.ContainsRune(state.in, '"') {
				list = append(list, i)
			}
		}
	}
	return list
}

// shell is where in a command line one is.
type shell struct {
	in      []byte // what was begun: ' and " and $ (for $'), ( for $(, # for a comment
	escaped bool   // the next one is after a backslash
	dollar  bool   // the last one was a $
	start   bool   // the last one was a blank, or began a command
	opened  bool   // the last two were $(
	begun   bool
	odd     bool // there was what Fit refuses
}

func (s *shell) top() byte {
	if len(s.in) == 0 {
		return 0
	}
	return s.in[len(s.in)-1]
}

func (s *shell) pop() { s.in = s.in[:len(s.in)-1] }

// step goes on by one byte.
func (s *shell) step(c byte) {
	start, dollar, opened := s.start || !s.begun, s.dollar, s.opened
	s.begun, s.start, s.dollar, s.opened = true, false, false, false
	s.odd = s.odd || opened && c == '('
	if s.escaped {
		s.escaped = false
		return
	}
	top := s.top()
	switch {
	case top == '#':
		if c == '\n' {
			s.pop()
			s.start = true
		}
	case top == '\'' || top == '$':
		s.escaped = top == '$' && c == '\\'
		if c == '\'' {
			s.pop()
		}
	case c == '\\':
		s.escaped = true
	case c == '"' && top == '"':
		s.pop()
	case c == '`' || dollar && c == '{':
		s.odd = true
	case dollar && c == '(':
		s.in = append(s.in, '(')
		s.start, s.opened = true, true
	case top == '"':
		s.dollar = c == '$'
	default:
		s.plain(c, start, dollar)
	}
}

// plain goes on by one byte that stands outside quotes.
func (s *shell) plain(c byte, start, dollar bool) {
	switch {
	case c == '\'' && dollar:
		s.in = append(s.in, '$')
	case c == '\'' || c == '"':
		s.in = append(s.in, c)
	case c == '#' && start:
		s.in = append(s.in, '#')
	case c == ')' && s.top() == '(':
		s.pop()
	default:
		s.dollar = c == '$'
		s.start = strings.IndexByte(" \t\n;|&(", c) >= 0
	}
}

// Piece is a part of a command line.
type Piece struct {
	Text    string
	Outside bool // it came from outside, and has to be quoted
}

// NotKnown stands in the place of a value that is not known, and is not quoted.
const NotKnown = "…"

// afterPgrep is a command line that ends where pgrep takes its pattern.
var afterPgrep = lazy.Regexp(`\bpgrep( -[a-z,-]+)* $`)

// CommandLine puts a command line together. Where pgrep takes a name, that is a
// pattern: it is written so that it fits itself alone.
func CommandLine(pieces []Piece) string {
	var line Command
	for _, p := range pieces {
		switch {
		case !p.Outside, p.Text == NotKnown:
			line.Ours(p.Text)
		case afterPgrep().MatchString(line.String()):
			line.Outside(patternOf(p.Text))
		default:
			line.Outside(p.Text)
		}
	}
	return line.String()
}

// patternOf is the regular expression of a name, which also is no option.
func patternOf(name string) string {
	pattern := regexp.QuoteMeta(name)
	if strings.HasPrefix(pattern, "-") {
		pattern = "[-]" + pattern[1:]
	}
	return pattern
}
