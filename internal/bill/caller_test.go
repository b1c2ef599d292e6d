package bill

import "testing"

// What a mechanism is called for by is the innermost function of the program on nearly all of its stacks; the system's
// libraries, interpreters and beginnings of threads tell nothing.
func TestCaller(t *testing.T) {
	frames := func(names ...string) *stack {
		st := &stack{}
		for _, name := range names {
			module := "shop"
			switch name {
			case "fstatat":
				module = "libc.so.6"
			case "_PyEval_EvalFrameDefault":
				module = "python3.11"
			}
			st.user = append(st.user, &frame{name: name, module: module})
		}
		return st
	}
	for _, c := range []struct {
		want   string
		stacks []*stack
	}{
		{"php:session_start", []*stack{frames("fstatat", "php:session_start", "php:{main}"), frames("php:session_start", "php:{main}")}},
		{"main.page", []*stack{frames("parse.next", "main.page", "main.main"), frames("escape", "main.page", "main.main"), frames("main.page", "main.main")}},
		{"", []*stack{frames("read", "main.page"), frames("write", "main.list")}},
		{"", []*stack{frames("fstatat", "_PyEval_EvalFrameDefault", "main"), frames("shop+0x17", "main")}},
	} {
		of := &sum{callers: map[string]*caller{}}
		for _, st := range c.stacks {
			of.samples += 10
			of.addCallers(st, 10)
		}
		if got := of.caller(); got != c.want {
			t.Errorf("it is called for by %q, want %q", got, c.want)
		}
	}
}
