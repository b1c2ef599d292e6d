package layout

import (
	"strconv"
	"strings"
)

// Limit is the threshold in words, in the unit that the sentence gives the value in.
func Limit(is string, value *float64, say string) string {
	op, number, _ := strings.Cut(is, " ")
	bound, err := strconv.ParseFloat(number, 64)
	for _, unit := range []func(float64) string{share, seconds, size} {
		if err == nil && value != nil && strings.Contains(say, unit(*value)) {
			number = unit(bound)
			break
		}
	}
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

func seconds(v float64) string { return Micros(v * 1e6) }

func size(v float64) string { return Bytes(int64(v)) }
