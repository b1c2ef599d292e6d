package main

import (
	"cmp"
	"slices"
	"strings"
)

// nearest returns the word of the list that was most likely meant, "" where none is
// near: a few letters are other ones, or it is the end or another part of one alone.
func nearest(word string, list []string) string {
	word = strings.ToLower(word)
	if len(word) < 2 {
		return ""
	}
	far := max(len(word)/3, 1) + 1 // from here on nothing is alike
	best, least := "", far
	for _, candidate := range list {
		if d := distance(word, strings.ToLower(candidate)); d < least {
			best, least = candidate, d
		}
	}
	if best != "" {
		return best
	}
	parts := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !strings.Contains(strings.ToLower(s), word) })
	if len(parts) == 0 {
		return ""
	}
	return slices.MinFunc(parts, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
}

// maybe is a hint at the nearest word, to be put behind a sentence; "" where none is near.
func maybe(word string, list []string) string {
	if meant := nearest(word, list); meant != "" {
		return "; is it " + meant + " you mean"
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
