// Package sqlshape says what a SQL statement does without the values that are in it: of
// SELECT name FROM users WHERE mail = 'a@b.c' it leaves SELECT name FROM users WHERE mail = ?.
// A recording keeps shapes, so what users of a database keep secret must not get through: strings,
// numbers and comments are left out, and where a text can be read in two ways (a backslash before a
// quote, whose meaning is a setting of the session), the rest of it is.
package sqlshape

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Dialect is whose SQL it is: it says what quotes mean.
type Dialect int

const (
	// Postgres has names in "…", strings in $tag$…$tag$, too.
	Postgres Dialect = iota
	// MySQL, and MariaDB, have names in `…`, strings in "…" (unless ANSI_QUOTES is set), and comments from # on.
	MySQL
)

const (
	// Max bounds the bytes of a shape.
	Max = 160
	// longest bounds the bytes of a name, longList what is told of what a SELECT selects.
	longest  = 64
	longList = 40
	cut      = "…"
)

// Of is the shape of a statement, in one line; "" where nothing is left.
func Of(text string, d Dialect) string {
	w := writer{}
	s := scanner{rest: strings.ToValidUTF8(text, "?"), dialect: d}
	for {
		token, whole := s.next()
		if !whole {
			w.add(cut)
			break
		}
		if token == "" || w.full() {
			break
		}
		w.add(token)
		if w.hides() {
			w.add(cut)
			break
		}
	}
	return w.line()
}

// scanner cuts a statement into tokens.
type scanner struct {
	rest    string
	dialect Dialect
}

// next is the next token, of which a value is "?"; "" at the end. It is not whole where what follows can be read in two ways.
func (s *scanner) next() (token string, whole bool) {
	if whole = s.skip(); !whole || s.rest == "" {
		return "", whole
	}
	r, size := utf8.DecodeRuneInString(s.rest)
	switch {
	case r == '\'' || r == '"' && s.dialect == MySQL:
		return "?", s.quoted(r)
	case r == '"' || r == '`' && s.dialect == MySQL:
		return s.name(r)
	case r == '$' && s.dialect == Postgres:
		return "?", s.dollar()
	case r == '`' || r == '[' && s.dialect == MySQL: // an operator of nobody's; a name, or not, by a setting
		return "", false
	case unicode.IsDigit(r) || r == '.' && len(s.rest) > 1 && s.rest[1] >= '0' && s.rest[1] <= '9':
		s.word(func(r rune) bool { return r == '.' || inWord(r) })
		return "?", true
	case inWord(r):
		word := s.word(inWord)
		if s.dialect == MySQL && (word[0] == '$' || strings.Contains(word, "$$")) { // a name, or since MySQL 8.0.34 a string
			return "", false
		}
		if strings.HasPrefix(s.rest, "'") || strings.HasPrefix(s.rest, "&") && strings.EqualFold(word, "u") { // E'…', U&'…': how the string is written
			s.rest = strings.TrimPrefix(s.rest, "&")
			return s.next()
		}
		return shorten(word), true
	case r == '\\': // psql's, or of a string that we did not see begin
		return "", false
	}
	s.rest = s.rest[size:]
	if r > unicode.MaxASCII {
		return "?", true
	}
	return string(r), true
}

func inWord(r rune) bool {
	return r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r)
}

// word takes what fits.
func (s *scanner) word(fits func(rune) bool) string {
	end := strings.IndexFunc(s.rest, func(r rune) bool { return !fits(r) })
	if end < 0 {
		end = len(s.rest)
	}
	word := s.rest[:end]
	s.rest = s.rest[end:]
	return word
}

// skip goes over blanks and comments. One within another ends at different places in the two dialects.
func (s *scanner) skip() (whole bool) {
	for {
		s.rest = strings.TrimLeftFunc(s.rest, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
		switch {
		case strings.HasPrefix(s.rest, "/*"):
			inside, after, ended := strings.Cut(s.rest[2:], "*/")
			code := s.dialect == MySQL && (strings.HasPrefix(inside, "!") || strings.HasPrefix(inside, "M!"))
			if !ended || code || strings.Contains(inside+"*", "/*") {
				return false
			}
			s.rest = after
		case strings.HasPrefix(s.rest, "--"):
			if s.dialect == MySQL && len(s.rest) > 2 && !strings.ContainsAny(s.rest[2:3], " \t\r\n") { // twice minus
				return false
			}
			s.endLine()
		case strings.HasPrefix(s.rest, "#") && s.dialect == MySQL:
			s.endLine()
		default:
			return true
		}
	}
}

// endLine goes to the end of a comment's line.
func (s *scanner) endLine() {
	ends := "\n"
	if s.dialect == Postgres {
		ends = "\r\n"
	}
	if end := strings.IndexAny(s.rest, ends); end >= 0 {
		s.rest = s.rest[end:]
		return
	}
	s.rest = ""
}

// quoted goes over a string. A quote after an odd number of backslashes ends it in one setting and not in the other.
func (s *scanner) quoted(quote rune) (whole bool) {
	end := strings.IndexRune(s.rest[1:], quote) + 1
	if end == 0 {
		return false
	}
	inside := s.rest[1:end]
	s.rest = s.rest[end+1:]
	return (len(inside)-len(strings.TrimRight(inside, `\`)))%2 == 0
}

// name takes a name in quotes.
func (s *scanner) name(quote rune) (string, bool) {
	end := strings.IndexRune(s.rest[1:], quote) + 1
	if end == 0 {
		return "", false
	}
	name := s.rest[1:end]
	s.rest = s.rest[end+1:]
	if strings.IndexFunc(name, func(r rune) bool { return !inWord(r) }) >= 0 || name == "" {
		return "?", true
	}
	return shorten(name), true
}

// dollar goes over $1, or over a string between two tags, of which it knows those that are plain words.
func (s *scanner) dollar() (whole bool) {
	s.rest = s.rest[1:]
	if number := s.word(unicode.IsDigit); number != "" {
		return true
	}
	tag := s.word(func(r rune) bool { return r < utf8.RuneSelf && r != '$' && inWord(r) })
	if !strings.HasPrefix(s.rest, "$") {
		return false
	}
	_, after, ended := strings.Cut(s.rest[1:], "$"+tag+"$")
	s.rest = after
	return ended
}

func shorten(name string) string {
	if len(name) <= longest {
		return name
	}
	end := longest
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + cut
}
