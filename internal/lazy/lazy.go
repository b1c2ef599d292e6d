// Package lazy has what is dear to make wait until somebody asks for it. What a
// package makes when it is initialised, every start of the program pays, also
// one that prints its help.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp compiles a pattern when it is first asked for. One that is wrong
// panics then; internal/tidy compiles every one that it can read.
func Regexp(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
