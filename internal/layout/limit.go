package layout

import (
	"math"
	"strconv"
	"strings"
)

// Limit is the threshold in words, in the unit that the sentence gives the value in.
func Limit(is string, value *float64, say string) string {
	op, number := bound(is, value, say)
	switch op {
	case ">=":
		return number + " or more"
	case "<=":
		return number + " or less"
	case ">":
		return "more than " + number
	case "<":
		return "less than " + number
	}
	return is
}

// Gone is what a sentence's value becomes where its threshold no longer holds: "below 50 %"; "" where that is no number to look for, as
// of yes and no.
func Gone(is string, value *float64, say string) string {
	op, number := bound(is, value, say)
	switch {
	case op == ">" && number == "0":
		return "0"
	case op == ">=":
		return "below " + number
	case op == "<=":
		return "above " + number
	case op == ">":
		return number + " or less"
	case op == "<":
		return number + " or more"
	}
	return ""
}

// clearPart is the part of the way from what a value is to its threshold that is more than a value moves by itself.
const clearPart = 0.2

// Band is between which numbers a value is then that went a clear part of the way to its threshold, and no further: "5 to 25.8 ms"; beyond is
// where it is that did not. Both are "" where there is no such number.
func Band(is string, value *float64, say string) (band, beyond string) {
	op, near := bound(is, value, say)
	_, number, _ := strings.Cut(is, " ")
	limit, err := strconv.ParseFloat(number, 64)
	if err != nil || value == nil || !strings.ContainsAny(op, "<>") {
		return "", ""
	}
	edge := *value + clearPart*(limit-*value)
	far := inUnitOf(*value, say)(edge)
	if op == ">" && near == "0" {
		near, far = "1", Count(int64(edge))
	}
	if far == near || far == inUnitOf(*value, say)(*value) || op == ">" && limit == 0 && edge < 2 {
		return "", ""
	}
	if strings.HasPrefix(op, "<") {
		near, far, beyond = far, near, "below"
	} else {
		beyond = "above"
	}
	from, unit, _ := strings.Cut(near, " ")
	if _, same, _ := strings.Cut(far, " "); same != unit {
		from = near
	}
	return from + " to " + far, beyond
}

// bound is a threshold's comparison and its number, in the unit that the sentence gives the value in.
func bound(is string, value *float64, say string) (op, number string) {
	op, number, _ = strings.Cut(is, " ")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || value == nil || v == 0 && op == ">" { // none at all has no unit
		return op, number
	}
	if in := unitOf(*value, say); in != nil {
		return op, in(v)
	}
	if v == math.Trunc(v) {
		number = Count(int64(v))
	}
	return op, number
}

// inUnitOf writes a number in the unit in which a sentence gives a value.
func inUnitOf(value float64, say string) func(float64) string {
	if in := unitOf(value, say); in != nil {
		return in
	}
	return func(v float64) string {
		if v >= 1000 {
			return Count(int64(v))
		}
		return digits3(v)
	}
}

// unitOf is inUnitOf, nil for a mere number.
func unitOf(value float64, say string) func(float64) string {
	for _, unit := range []func(float64) string{share, seconds, size} {
		if saysNumber(say, unit(value)) >= 0 {
			return unit
		}
	}
	if strings.Contains(say, perHundred) && saysNumber(say, hundred(value)) >= 0 {
		return hundred
	}
	return nil
}

// Said is a value as a sentence gives it, with its unit, or the word that says what is counted; "" where the sentence has another number.
func Said(value float64, say string) string {
	for _, unit := range []func(float64) string{share, seconds, size} {
		if text := unit(value); saysNumber(say, text) >= 0 {
			return text
		}
	}
	numbers := []string{Count(int64(value)), strconv.FormatFloat(value, 'f', -1, 64), digits3(value), strconv.FormatFloat(value, 'f', 3, 64)}
	ofHundred := strings.Contains(say, perHundred)
	if ofHundred {
		numbers = []string{hundred(value)}
	}
	for _, number := range numbers {
		at := saysNumber(say, number)
		if at < 0 || !ofHundred && value != math.Trunc(value) && number == Count(int64(value)) {
			continue
		}
		what, _, _ := strings.Cut(strings.TrimPrefix(say[at+len(number):], " "), " ")
		if len(what) > 3 && isLetters(what) {
			return number + " " + what
		}
		return number
	}
	return ""
}

func isLetters(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 'a' || r > 'z' }) < 0
}

// saysNumber is where a sentence has a number that is no part of a longer one, -1 for nowhere.
func saysNumber(say, number string) int {
	for from := 0; ; {
		at := strings.Index(say[from:], number)
		if at < 0 {
			return -1
		}
		at += from
		from = at + len(number)
		before, after := at == 0 || !strings.ContainsRune("0123456789.,:-", rune(say[at-1])), true
		if rest := say[from:]; rest != "" {
			after = rest[0] < '0' || rest[0] > '9'
			if last := number[len(number)-1]; isLetters(string(last)) && isLetters(rest[:1]) { // "1 s" is none of "1 sessions"
				after = false
			}
			if after && len(rest) > 1 && strings.ContainsRune(".,:", rune(rest[0])) {
				after = rest[1] < '0' || rest[1] > '9'
			}
		}
		if before && after {
			return at
		}
	}
}

// nearLimit is how far from its threshold a value is said to be near it, as a factor: a quarter more or less is
// what a value moves by from one run to the next.
const nearLimit = 1.25

// Near says whether a value is so near the threshold in is that the next run may come to the other side of it.
func Near(is string, value float64) bool {
	_, number, _ := strings.Cut(is, " ")
	bound, err := strconv.ParseFloat(number, 64)
	return err == nil && bound != 0 && value/bound < nearLimit && value/bound > 1/nearLimit
}

// share is as a sentence gives one: parts of a whole are never more than it.
func share(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(min(v, 1)*100, 'f', 1, 64), ".0") + " %"
}

// perHundred marks a sentence that says how many of one thing there are to a hundred of another, which may be more.
const perHundred = "each 100 "

// hundred is as such a sentence gives a number.
func hundred(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v*100, 'f', 1, 64), ".0")
}

func seconds(v float64) string { return Micros(v * 1e6) }

func size(v float64) string { return Bytes(int64(v)) }
