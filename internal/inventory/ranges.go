package inventory

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var errQuote = errors.New("a quote is not closed")

// clip is the beginning of what somebody wrote, for an error.
func clip(text string) string { return text[:min(len(text), 60)] }

// maxPattern is longer than any name of a host (253 letters) with ranges in it.
const maxPattern = 300

// expand is what a pattern stands for: web[01:10].example is ten hosts, [a:c] three, [0:10:5] those with a step.
func expand(pattern string) ([]string, error) {
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("%q…: a host's name of %d letters, want at most %d", clip(pattern), len(pattern), maxPattern)
	}
	done, names := []string{""}, pattern
	for {
		before, rest, more := strings.Cut(names, "[")
		if !more {
			return join(done, []string{before})
		}
		inside, after, closed := strings.Cut(rest, "]")
		if !closed {
			return nil, fmt.Errorf("%q: a bracket is not closed", clip(pattern))
		}
		var list []string
		if parts := strings.Split(inside, ":"); len(parts) == 2 || len(parts) == 3 {
			var err error
			if list, err = steps(parts); err != nil {
				return nil, fmt.Errorf("%q: %w", clip(pattern), err)
			}
		}
		if list == nil { // an IPv6 address
			return nil, fmt.Errorf("%q: want a range like [01:10] or [a:f] in brackets; give the host a name, and its address as ansible_host", clip(pattern))
		}
		var err error
		if done, err = join(done, []string{before}); err == nil {
			done, err = join(done, list)
		}
		if err != nil {
			return nil, err
		}
		names = after
	}
}

// join has each of some beginnings go on with each of some ends.
func join(heads, tails []string) ([]string, error) {
	if len(heads)*len(tails) > maxHosts {
		return nil, fmt.Errorf("more than %d hosts", maxHosts)
	}
	var list []string
	for _, head := range heads {
		for _, tail := range tails {
			list = append(list, head+tail)
		}
	}
	return list, nil
}

// steps are the members of a range of numbers, as wide as they are written, or of letters.
func steps(parts []string) (list []string, err error) {
	step := 1
	if len(parts) == 3 {
		if step, err = strconv.Atoi(parts[2]); err != nil || step < 1 {
			return nil, fmt.Errorf("a step of %q: want a number from 1 on", parts[2])
		}
	}
	from, to := parts[0], parts[1]
	if isLetter(from) && isLetter(to) && from <= to {
		for c := int(from[0]); c <= int(to[0]); c += step {
			list = append(list, string(rune(c)))
		}
		return list, nil
	}
	first, err := number(from)
	last, err2 := number(to)
	if errors.Join(err, err2) != nil || first > last || (last-first)/step >= maxHosts {
		return nil, fmt.Errorf("[%s:%s] is no range of numbers or letters, or of more than %d hosts", clip(from), clip(to), maxHosts)
	}
	width := 0
	if len(from) > 1 && from[0] == '0' {
		if width = len(from); len(to) != width {
			return nil, fmt.Errorf("[%s:%s]: want both ends as wide as each other", from, to)
		}
	}
	for n := first; n <= last; n += step {
		list = append(list, fmt.Sprintf("%0*d", width, n))
	}
	return list, nil
}

func isLetter(s string) bool {
	return len(s) == 1 && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z')
}

const maxDigits = 9

func number(s string) (int, error) {
	if s == "" || len(s) > maxDigits || strings.Trim(s, "0123456789") != "" {
		return 0, errors.New("no number")
	}
	return strconv.Atoi(s)
}
