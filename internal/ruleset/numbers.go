package ruleset

import (
	"math"
	"strconv"
	"strings"
)

// FormatNumber writes whole values as they are, and others with at most three digits
// after the point.
func FormatNumber(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	if math.Abs(v) < 0.001 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return trimZeros(strconv.FormatFloat(v, 'f', 3, 64))
}

func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// spoken writes a number for a sentence: what is not whole with three digits, also what is next to nothing,
// which is not written as 3.34e-05: not everybody reads that.
func spoken(v float64) string {
	if math.Abs(v) < 1e-9 || v == math.Trunc(v) {
		return FormatNumber(v)
	}
	places := 2
	switch p := math.Abs(v); {
	case p < 0.001:
		places = 2 + int(math.Ceil(-math.Log10(p)))
	case p >= 99.95:
		places = 0
	case p >= 9.995:
		places = 1
	case p < 1:
		places = 3
	}
	return trimZeros(strconv.FormatFloat(v, 'f', places, 64))
}

// formatShare writes a part of a whole. What it is made of was not read at one moment, and
// may come out as more than all or less than nothing: then it is all, or nothing.
func formatShare(v float64) string {
	if math.IsNaN(v) {
		return "?"
	}
	return formatPercent(min(max(v, 0), 1))
}

// formatPercent writes a ratio, of what may be more than what it is compared with; small ones with more digits, so that no
// failure reads as "0 %".
func formatPercent(v float64) string {
	digits := 1
	if p := math.Abs(v) * 100; p > 0 && p < 0.1 {
		digits = 3
	}
	return trimZeros(strconv.FormatFloat(v*100, 'f', digits, 64)) + " %"
}

// formatHundred writes a ratio as so many to a hundred of what it is compared with.
func formatHundred(v float64) string {
	return markOne(func(float64) string { return strings.TrimSuffix(formatPercent(v), " %") })(v * 100)
}

// formatCount writes a whole number in groups of three digits.
func formatCount(v float64) string {
	if v != math.Trunc(v) || math.Abs(v) >= 1e15 {
		return spoken(v)
	}
	s := strconv.FormatFloat(math.Abs(v), 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if v < 0 {
		return "-" + s
	}
	return s
}

func formatSeconds(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1 || a == 0:
		return threeDigits(v) + " s"
	case a >= 1e-3:
		return threeDigits(v*1e3) + " ms"
	default:
		return threeDigits(v*1e6) + " µs"
	}
}

// formatMillis is formatSeconds of what was counted in whole milliseconds: zero of them is not no time.
func formatMillis(v float64) string {
	if v < 1e-3 {
		return "less than 1 ms"
	}
	return formatSeconds(v)
}

func formatBytes(v float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for math.Abs(v) >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	return threeDigits(v) + " " + units[i]
}

// threeDigits rounds to three significant digits, whole numbers kept whole.
func threeDigits(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return trimZeros(strconv.FormatFloat(v, 'f', 1, 64))
	default:
		return trimZeros(strconv.FormatFloat(v, 'f', 2, 64))
	}
}
