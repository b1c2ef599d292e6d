package ruleset

import (
	"fmt"
	"strconv"
	"strings"

	"plimsoll/internal/lazy"
)

// Comparison is one threshold: an operator and a number.
type Comparison struct {
	Op    string
	Bound float64
}

var comparisonForm = lazy.Regexp(`^(>=|<=|==|!=|>|<)\s*(\S+)$`)

// ParseComparison reads a threshold such as ">= 0.95".
func ParseComparison(s string) (Comparison, error) {
	m := comparisonForm().FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return Comparison{}, fmt.Errorf(`is %q: want a comparison such as ">= 0.95"`, s)
	}
	bound, err := strconv.ParseFloat(m[2], 64)
	if err != nil || bound != bound {
		return Comparison{}, fmt.Errorf("is %q: want a number after the operator", s)
	}
	return Comparison{Op: m[1], Bound: bound}, nil
}

// Holds says whether a value meets the threshold.
func (c Comparison) Holds(v float64) bool {
	switch c.Op {
	case ">":
		return v > c.Bound
	case ">=":
		return v >= c.Bound
	case "<":
		return v < c.Bound
	case "<=":
		return v <= c.Bound
	case "==":
		return v == c.Bound
	}
	return v != c.Bound
}
