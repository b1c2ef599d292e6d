package sqlshape

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// writer puts tokens together again. What only repeats is told once: of a list of values there is one,
// of rows of them as well, so that statements which differ in how many have one shape.
type writer struct {
	list []string
	size int
}

// changes are the statements in which SET names a column; in all others it names a setting.
var changes = []string{"UPDATE", "INSERT", "REPLACE", "MERGE", "WITH"}

// hides says whether what follows is not told: a setting's value, which needs no quotes, and another statement.
func (w *writer) hides() bool {
	last := w.list[len(w.list)-1]
	return last == ";" || strings.EqualFold(last, "SET") && !slices.ContainsFunc(changes, func(c string) bool { return strings.EqualFold(c, w.list[0]) })
}

func (w *writer) full() bool { return w.size > 4*Max }

func (w *writer) add(token string) {
	if token == "?" && w.repeats() {
		return
	}
	w.list = append(w.list, token)
	w.size += len(token) + 1
	if w.ends("(", "?", ")", ",", "(", "?", ")") {
		w.drop(4)
	}
	if strings.EqualFold(token, "FROM") {
		w.foldList()
	}
}

// repeats says whether a value follows a value, and takes the comma between them away. MySQL's LIMIT 100000, 20
// is no list: the first is how many rows are read in vain.
func (w *writer) repeats() bool {
	if w.ends("?") {
		return true
	}
	if n := len(w.list); !w.ends("?", ",") || n > 2 && strings.EqualFold(w.list[n-3], "LIMIT") {
		return false
	}
	w.drop(1)
	return true
}

func (w *writer) ends(tokens ...string) bool {
	from := len(w.list) - len(tokens)
	if from < 0 {
		return false
	}
	for i, t := range tokens {
		if w.list[from+i] != t {
			return false
		}
	}
	return true
}

func (w *writer) drop(n int) { w.list = w.list[:len(w.list)-n] }

// foldList leaves out what a SELECT selects where that is long: what it reads from, and how, says more.
func (w *writer) foldList() {
	from, depth, size := len(w.list)-1, 0, 0
	for i := from - 1; i >= 0; i-- {
		switch t := w.list[i]; {
		case t == ")":
			depth++
		case t == "(" && depth == 0: // EXTRACT(… FROM …)
			return
		case t == "(":
			depth--
		case depth == 0 && strings.EqualFold(t, "SELECT"):
			if size > longList {
				w.list = append(w.list[:i+1], cut, w.list[from])
			}
			return
		}
		size += len(w.list[i]) + 1
	}
}

// line is all tokens in one line.
func (w *writer) line() string {
	var b strings.Builder
	for i, t := range w.list {
		if i > 0 && apart(w.list[i-1], t) {
			b.WriteByte(' ')
		}
		b.WriteString(t)
	}
	line := strings.TrimRight(b.String(), " ;")
	if len(w.list) > 1 && w.list[len(w.list)-2] == ";" { // one that only ends so, or goes on
		line = strings.TrimSuffix(line, "; "+cut)
	}
	if len(line) <= Max {
		return line
	}
	end := Max - len(cut)
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + cut
}

// apart says whether a blank belongs between two tokens.
func apart(before, after string) bool {
	switch {
	case strings.Contains(",);.[]", after) || strings.Contains(".([", before):
		return false
	case after == "(":
		return !word(before) || strings.EqualFold(before, "IN") || strings.EqualFold(before, "VALUES") || strings.EqualFold(before, "AND") || strings.EqualFold(before, "OR")
	case !word(before) && !word(after) && before != "," && before != ")": // <=, ->>, ::
		return false
	case before == ":" || after == ":" || before == "@":
		return false
	}
	return true
}

func word(token string) bool {
	r, _ := utf8.DecodeRuneInString(token)
	return inWord(r) || token == "?" || token == cut
}
