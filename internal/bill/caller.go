package bill

import "strings"

// leastCalled is for which part of a mechanism's samples a function has to stand on the stack to be named as what calls for it.
const leastCalled = 0.8

// leastOwn is the same for a function that is known to be the program's own, and no library's: that most of it is there.
const leastOwn = 0.5

// caller is a function of the program: on how many samples' stacks it is, and how far out, in frames, all together.
type caller struct{ samples, depth int64 }

// names says whether a function tells where in a program something is called for: one of a PHP script, or of a Go program's
// own packages. What else stands on the stack is most often the loop that a server runs in, which tells nothing.
func (f *frame) names() bool {
	if strings.HasPrefix(f.name, "php:") {
		return !strings.HasPrefix(f.name, "php:{")
	}
	domain, _, imported := strings.Cut(f.name, "/")
	return strings.HasPrefix(f.name, "main.") && f.name != "main.main" || imported && strings.Contains(domain, ".")
}

// addCallers counts the functions of the program that stand on a stack, each once.
func (of *sum) addCallers(st *stack, count int64) {
	seen := map[string]bool{}
	for i, f := range st.user {
		if seen[f.name] || !f.names() {
			continue
		}
		seen[f.name] = true
		called(of.callers, f.name, i, count)
	}
}

// called counts a function that stands so far out on the stacks of so many samples.
func called(by map[string]*caller, name string, depth int, count int64) {
	c := by[name]
	if c == nil {
		c = &caller{}
		by[name] = c
	}
	c.samples += count
	c.depth += count * int64(depth)
}

// innermost is the innermost of these functions that at least such a part of all samples was called for by; "" where there is none.
func innermost(by map[string]*caller, all int64, least float64) (best string) {
	far := func(name string) float64 { return float64(by[name].depth) / float64(by[name].samples) }
	for name, c := range by {
		if float64(c.samples) < least*float64(all) {
			continue
		}
		if best == "" || far(name) < far(best) || far(name) == far(best) && name < best {
			best = name
		}
	}
	return best
}
