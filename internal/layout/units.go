// Package layout writes numbers and words as people read them: units, lines of
// a given width, tables, small pictures made of letters.
package layout

import (
	"math"
	"strconv"
	"strings"
)

// Micros writes a time given in microseconds in the unit a person would use,
// with three digits: "850 µs", "1.2 ms", "2.01 s", "3 min 20 s".
func Micros(us float64) string {
	switch {
	case us < 999.5:
		return digits3(us) + " µs"
	case us < 999.5e3:
		return digits3(us/1e3) + " ms"
	case us < 99.95e6:
		return digits3(us/1e6) + " s"
	}
	s := int64(math.Round(us / 1e6))
	if s%60 == 0 {
		return Count(s/60) + " min"
	}
	return Count(s/60) + " min " + strconv.FormatInt(s%60, 10) + " s"
}

// digits3 writes v with three significant digits and no idle zeros after the point.
func digits3(v float64) string {
	places := 2
	switch {
	case v >= 99.95:
		places = 0
	case v >= 9.995:
		places = 1
	}
	s := strconv.FormatFloat(v, 'f', places, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Count writes a whole number with a comma between thousands.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Rate writes a number per second: whole above ten, three digits below.
func Rate(v float64) string {
	if v >= 9.995 {
		return Count(int64(math.Round(v)))
	}
	return digits3(v)
}

// Share writes a ratio of 0…1 as per cent. It says 100 % and 0 % only of what
// is exactly all and exactly nothing.
func Share(v float64) string {
	switch {
	case v == 0:
		return "0 %"
	case v < 0.001:
		return "under 0.1 %"
	case v < 1 && v > 0.999:
		return "over 99.9 %"
	}
	return digits3(v*100) + " %"
}

// Bytes writes a size in the binary unit a person would use.
func Bytes(n int64) string {
	names := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(names)-1 {
		v, i = v/1024, i+1
	}
	return digits3(v) + " " + names[i]
}

// OrDash is a number in words, or a dash where it is not known.
func OrDash(v *float64, in func(float64) string) string {
	if v == nil {
		return "-"
	}
	return in(*v)
}
