package bill

import "testing"

// What a mechanism is called for by is the innermost function of a script or of a Go program's own on most of its stacks.
func TestCaller(t *testing.T) {
	frames := func(names ...string) *stack {
		st := &stack{}
		for _, name := range names {
			st.user = append(st.user, &frame{name: name})
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
		{"", []*stack{frames("writev", "ngx_process_events_and_timers", "main"), frames("net/http.(*conn).serve", "runtime.goexit", "main.main")}},
		{"example.org/shop/cart.Sum", []*stack{frames("runtime.mallocgc", "example.org/shop/cart.Sum", "net/http.(*conn).serve")}},
	} {
		of := &sum{callers: map[string]*caller{}}
		for _, st := range c.stacks {
			of.samples += 10
			of.addCallers(st, 10)
		}
		if got := innermost(of.callers, of.samples, leastCalled); got != c.want {
			t.Errorf("it is called for by %q, want %q", got, c.want)
		}
	}
}
