package bill

import "strings"

// leastCalled is for which part of a mechanism's samples a function has to stand on the stack to be named as what calls for it.
const leastCalled = 0.8

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
		c := of.callers[f.name]
		if c == nil {
			c = &caller{}
			of.callers[f.name] = c
		}
		c.samples += count
		c.depth += count * int64(i)
	}
}

// caller is the innermost function of the program that most of a mechanism was called for by; "" where there is none.
func (of *sum) caller() (best string) {
	far := func(name string) float64 { return float64(of.callers[name].depth) / float64(of.callers[name].samples) }
	for name, c := range of.callers {
		if float64(c.samples) < leastCalled*float64(of.samples) {
			continue
		}
		if best == "" || far(name) < far(best) || far(name) == far(best) && name < best {
			best = name
		}
	}
	return best
}
