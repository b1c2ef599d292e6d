package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// quantity is a number on the command line that may end in k (thousand) or M (million).
type quantity[T int | int64 | float64] struct{ p *T }

// String writes the value as pflag shows a default.
func (q quantity[T]) String() string {
	if q.p == nil {
		return "0"
	}
	return strconv.FormatFloat(float64(*q.p), 'f', -1, 64)
}

// Type names the value in help texts.
func (quantity[T]) Type() string { return "number" }

// Set parses one value. Where only whole numbers have a meaning others are refused.
func (q quantity[T]) Set(text string) error {
	digits, times := text, 1.0
	for end, x := range map[string]float64{"k": 1e3, "K": 1e3, "m": 1e6, "M": 1e6} {
		if d, ok := strings.CutSuffix(text, end); ok {
			digits, times = d, x
		}
	}
	v, err := strconv.ParseFloat(digits, 64)
	v *= times
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || strings.ContainsAny(digits, "xXpP_") {
		return fmt.Errorf("want a number like 200, 10k or 1M")
	}
	const exact = 1 << 53 // whole numbers are, up to here
	if math.Abs(v) > exact {
		return fmt.Errorf("want at most %d", int64(exact))
	}
	if float64(T(v)) != v {
		return fmt.Errorf("want a whole number like 200 or 10k")
	}
	*q.p = T(v)
	return nil
}

// rate is a number of something per second, with or without "/s" behind it.
type rate struct{ p *float64 }

// String writes the value as pflag shows a default.
func (r rate) String() string { return quantity[float64]{r.p}.String() }

// Type names the value in help texts.
func (rate) Type() string { return "number" }

// Set parses one value.
func (r rate) Set(text string) error {
	return quantity[float64]{r.p}.Set(strings.TrimSuffix(text, "/s"))
}
