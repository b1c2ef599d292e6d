package main

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"plimsoll/internal/load"
	"plimsoll/internal/model"
)

// Which engine opens the connections is told, where it is another than fewer of them would have.
func TestTheEngineThatIsCheaper(t *testing.T) {
	if err := load.TryIOURing(); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		why    string
		change func(*model.LoadPlan)
		engine string
		note   string
	}{
		{"as many as there is room for", func(*model.LoadPlan) {}, model.IOURing, ""},
		{"one more", func(p *model.LoadPlan) { p.Connections++ }, "", "went by epoll: io_uring, which takes less CPU for each, is for up to 4,096 of 2 threads, and 4,097 were asked for"},
		{"one more, that stay", func(p *model.LoadPlan) { p.Connections++; p.KeepAlive = true }, model.IOURing, ""},
		{"that stay, with bodies, at a rate", func(p *model.LoadPlan) { p.KeepAlive, p.Rate, p.Method, p.Body = true, 10, "POST", []byte("x") }, model.IOURing, ""},
		{"pipelined", func(p *model.LoadPlan) { p.KeepAlive, p.Pipeline = true, 2 }, "", ""},
		{"one more, with bodies", func(p *model.LoadPlan) { p.Connections++; p.Method, p.Body = "POST", []byte("x") }, "", ""},
	} {
		plan := model.LoadPlan{URL: "http://127.0.0.1/", Connections: 4096, Threads: 2, DurationMS: 1000, TimeoutMS: 1000}
		c.change(&plan)
		got, note := cheaper(plan)
		if got.Engine != c.engine || got.Connections != plan.Connections || note == "" != (c.note == "") || !strings.Contains(note, c.note) {
			t.Errorf("%s: %d connections by %q, %q; want %q and %q", c.why, got.Connections, got.Engine, note, c.engine, c.note)
		}
	}
}

// Where io_uring is refused, who would have had it is told, and why.
func TestAnEngineThatIsRefusedIsTold(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0 // no ring has a descriptor then
	plan := model.LoadPlan{URL: "http://127.0.0.1/", Connections: 10, Threads: 1, DurationMS: 1000, TimeoutMS: 1000, KeepAlive: true}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	got, note := cheaper(plan)
	plan.Pipeline = 2 // which is not for io_uring
	_, other := cheaper(plan)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if want := "connections went by epoll: io_uring, which takes less CPU for each request, was refused here: io_uring: too many open files"; got.Engine != "" || !strings.HasPrefix(note, want) {
		t.Errorf("%q, %q: want epoll, and %q", got.Engine, note, want)
	}
	if other != "" {
		t.Errorf("pipelined: %q, want nothing said", other)
	}
}
