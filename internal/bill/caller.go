package bill

import "strings"

// leastCalled is for which part of a mechanism's samples a function has to stand on the stack to be named as what calls for it.
const leastCalled = 0.8

// caller is a function of the program: on how many samples' stacks it is, and how far out, in frames, all together.
type caller struct{ samples, depth int64 }

// others are files of code that call for nothing by themselves, by the beginning of their names: the
// system's libraries, and interpreters, which do it for a script.
var others = []string{"libc.so", "libc-", "ld-linux", "ld-2", "libpthread", "libm.so", "libstdc++", "libgcc_s", "[vdso]",
	"python", "libpython", "ruby", "libruby", "php", "libphp", "perl", "libperl", "node", "java", "libjvm", "lua", "beam", "dotnet", "libcoreclr"}

// beginnings are where each thread begins.
var beginnings = map[string]bool{"main": true, "_start": true, "runtime.goexit": true, "runtime.main": true, "main.main": true, "start_thread": true, "clone": true, "clone3": true, "thread_start": true}

// names says whether a function tells where in a program something is called for.
func (f *frame) names() bool {
	if strings.HasPrefix(f.name, "php:") {
		return !strings.HasPrefix(f.name, "php:{")
	}
	return f.name != "" && !strings.HasPrefix(f.name, "[") && !strings.Contains(f.name, "+0x") && !beginnings[f.name] && !beginsAny(f.module, others)
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

// caller is the innermost function of the program that nearly all of a mechanism was called for by; "" where there is none.
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
