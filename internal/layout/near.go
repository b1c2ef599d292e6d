package layout

import (
	"cmp"
	"slices"
	"strings"
)

// Nearest returns the word of the list that was most likely meant, "" where none is
// near: a few letters are other ones, or it is a part of one, or each of its parts (set
// apart by dots and the like) is near one of the other's.
func Nearest(word string, list []string) string {
	word = strings.ToLower(word)
	if len(word) < 2 {
		return ""
	}
	best, least, same := "", far(word), 0
	for _, candidate := range list {
		d, n := distance(word, strings.ToLower(candidate)), begins(word, strings.ToLower(candidate))
		if d < least || d == least && n > same {
			best, least, same = candidate, d, n
		}
	}
	if whole := slices.IndexFunc(list, func(s string) bool { return strings.HasPrefix(strings.ToLower(s), word) }); whole >= 0 && least > 0 {
		return list[whole] // who stopped typing made no mistake yet
	}
	if best != "" {
		return best
	}
	parts := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !strings.Contains(strings.ToLower(s), word) })
	if len(parts) == 0 {
		parts = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !partsNear(word, strings.ToLower(s)) })
	}
	if len(parts) == 0 {
		return ""
	}
	return slices.MinFunc(parts, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
}

// begins is how many letters two words have in common at their beginning.
func begins(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// far is the distance from which on nothing is like a word.
func far(word string) int { return max(len(word)/3, 1) + 1 }

// partsNear says whether each of a word's parts is near one of another's, of which there
// are more.
func partsNear(word, other string) bool {
	split := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("._-/ ", r) })
	}
	few, many := split(word), split(other)
	if len(few) < 2 || len(few) > len(many) {
		return false
	}
	for _, part := range few {
		if !slices.ContainsFunc(many, func(s string) bool { return distance(part, s) < far(part) }) {
			return false
		}
	}
	return true
}

// Maybe is a question for the nearest word, to be put behind a sentence; "" where none is near.
func Maybe(word string, list []string) string {
	if meant := Nearest(word, list); meant != "" {
		return "; did you mean " + meant + "?"
	}
	return ""
}

// distance is how many letters have to be put in, left out, changed or swapped with
// their neighbour to make b of a (Damerau and Levenshtein).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			change := rows[i-1][j-1]
			if x[i-1] != y[j-1] {
				change++
			}
			rows[i][j] = min(change, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
