package main

import (
	"strings"
	"testing"

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
