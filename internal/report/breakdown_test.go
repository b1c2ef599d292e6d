package report

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"plimsoll/internal/model"
)

// brokenDown is a pool that is too small, with every kind of part that a
// waterfall can have.
func brokenDown() *model.Breakdown {
	at := func(host, process string, p model.BreakdownPart) model.BreakdownPart {
		p.Host, p.Process = host, process
		return p
	}
	part := func(name, text string, ms float64, how model.How, inside ...model.BreakdownPart) model.BreakdownPart {
		return model.BreakdownPart{
			Name: name, Text: text, Seconds: num(ms / 1e3), Share: num(ms / 408), How: how,
			Signals: []string{"plimsoll_" + name + "_seconds_total"}, Parts: inside,
		}
	}
	return &model.Breakdown{
		Requests: 1468, MeanSeconds: 0.408,
		Good: &model.MeanTime{Requests: 1459, Seconds: 0.398}, Bad: &model.MeanTime{Requests: 9, Seconds: 2},
		Parts: []model.BreakdownPart{
			at("client", "plimsoll-load", part("connect", "connecting", 3.4, model.Exact,
				at("client", "plimsoll-load", part("connect_call", "in connect()", 2.9, model.Exact)),
				at("client", "plimsoll-load", part("syn_wait", "until SYN was answered", 0.5, model.Exact)))),
			at("client", "plimsoll-load", part("connect_lag", "connect seen late", 0, model.Exact)),
			at("server", "nginx", model.BreakdownPart{Name: "unread", Text: "waits to be read", Why: "tracing is off", Signals: []string{"plimsoll_unread_seconds_sum"}}),
			at("server", "nginx", part("cpu_user", "on a CPU, user", 0.1, model.Exact)),
			at("server", "nginx", part("cpu_system", "on a CPU, system", 0.62, model.Exact)),
			at("server", "nginx", model.BreakdownPart{Name: "blocked", Text: "blocked", Why: "tracing is off", Signals: []string{"plimsoll_wait_blocked_seconds_total"}}),
			at("server", "nginx", part("upstream", "upstream", 398, model.Estimate,
				at("server", "php-fpm-of-a-long-name", part("accept_queue", "in the accept queue", 371, model.Little)),
				at("server", "php-fpm-of-a-long-name", part("blocked", "blocked: sleep", 20, model.Exact)))),
			at("client", "plimsoll-load", part("reply_unread", "reply waits to be read", 0.9, model.Estimate)),
		},
		AttributedSeconds: 0.39552, AttributedShare: 0.39552 / 0.408, NotAttributedSeconds: 0.01248,
		Warnings: []string{"the parts of nginx add up to 12 ms a request and it took 11 ms: some of them passed at the same time, or for no request of ours"},
	}
}

func brokenDownReport() model.Report {
	r := capacityReport()
	r.Breakdown = brokenDown()
	return r
}

func TestAWideWaterfall(t *testing.T) {
	p := newPaper(TextOptions{Width: 100})
	breakdown(p, brokenDown())
	golden(t, "breakdown_100.txt", []byte(p.b.String()))
}

func TestNoBreakdownNoSection(t *testing.T) {
	p := newPaper(TextOptions{})
	breakdown(p, nil)
	breakdown(p, &model.Breakdown{})
	if p.b.Len() > 0 {
		t.Errorf("wrote %q", p.b.String())
	}
}

// Bars never leave their columns, and the smallest part is still to be seen.
func TestBars(t *testing.T) {
	for _, c := range []struct {
		start, length float64
		want          string
	}{
		{0, 1, "████"}, {0, 0.5, "██"}, {0.5, 0.5, "  ██"}, {0.25, 0.001, " ▏"}, {1, 0.001, "   ▏"}, {0.9, 5, "   █"}, {0.7, 5, "   █"},
	} {
		if got := bar(c.start, c.length, 4); got != c.want {
			t.Errorf("from %g for %g: %q, want %q", c.start, c.length, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		got := bar(rapid.Float64Range(0, 3).Draw(t, "start"), rapid.Float64Range(0, 3).Draw(t, "length"), 16)
		if n := utf8.RuneCountInString(got); n > 16 || strings.TrimSpace(got) == "" {
			t.Fatalf("drew %q", got)
		}
	})
}

func TestPercent(t *testing.T) {
	for v, want := range map[float64]string{0: "0.0 %", 0.0001: "<0.1 %", 0.0123: "1.2 %", 0.099: "9.9 %", 0.0996: "10 %", 1: "100 %"} {
		if got := percent(v); got != want {
			t.Errorf("%g: %q, want %q", v, got, want)
		}
	}
}
