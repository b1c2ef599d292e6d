package load

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	xhttp2 "golang.org/x/net/http2"
	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
)

// serveInBatches answers nothing before so many requests of a connection have come, then all of them with what reply returns
// for each in a single write; a nil one closes the connection.
func serveInBatches(t *testing.T, depth int, reply func(n int64) []byte) *server {
	t.Helper()
	return serveConns(t, func(s *server, c *net.TCPConn) {
		defer c.Close()
		s.connections.Add(1)
		for r := bufio.NewReader(c); ; {
			for n := 0; n < depth; {
				line, err := r.ReadString('\n')
				if err != nil {
					return
				}
				if line == "\r\n" {
					n++
				}
			}
			var out []byte
			closes := false
			for range depth {
				b := reply(s.requests.Add(1))
				closes = closes || b == nil
				if !closes {
					out = append(out, b...)
				}
			}
			if _, err := c.Write(out); err != nil || closes {
				return
			}
		}
	})
}

// The server says nothing before all of them are there: so they are on the wire together.
func TestSoManyRequestsAreOnTheWire(t *testing.T) {
	replies := [][]byte{
		[]byte(okReply),
		[]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
		fmt.Appendf(nil, "HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s", 3*bufferSize, strings.Repeat("x", 3*bufferSize)),
		[]byte("HTTP/1.1 204 No Content\r\n\r\n"),
	}
	for _, depth := range []int{2, 8, 32} {
		for why, change := range map[string]func(*model.LoadPlan){
			"closed loop":    func(*model.LoadPlan) {},
			"open loop":      func(p *model.LoadPlan) { p.Rate = 5000 },
			"open, dense":    func(p *model.LoadPlan) { p.Rate = 60_000 },
			"paced connects": func(p *model.LoadPlan) { p.ConnectRate = 1.0 / 3600 },
			"paced, open":    func(p *model.LoadPlan) { p.ConnectRate, p.Rate = 1.0/3600, 5000 },
		} {
			t.Run(fmt.Sprint(why, " ", depth), func(t *testing.T) {
				s := serveInBatches(t, depth, func(n int64) []byte { return replies[n%4] })
				plan := model.LoadPlan{URL: s.url, Connections: 1, Threads: 1, Requests: int64(depth) * 40, KeepAlive: true, Pipeline: depth, TimeoutMS: 600_000}
				change(&plan)
				got := phaseNamed(runPlan(t, t.Context(), plan), "hold")
				want := map[string]int64{"2xx": plan.Requests * 3 / 4, "4xx": plan.Requests / 4}
				if diff := cmp.Diff(want, got.Outcomes); diff != "" || got.Attempts != 1 {
					t.Errorf("%d attempts to connect (-want +got):\n%s", got.Attempts, diff)
				}
			})
		}
	}
}

// onTheWire waits until so many requests are sent on the stage's connection, and nothing is left to be sent.
func (s *stage) onTheWire(n int) *pipe {
	s.t.Helper()
	p := &s.thread.protocol.(*pipelined).pipes[0]
	s.until(fmt.Sprintf("%d requests are sent", n), func() bool {
		if s.peer < 0 && s.thread.conns[0].state >= connecting {
			s.accept()
		}
		return p.order.n == n && p.sent == len(p.out)
	})
	return p
}

// What was sent and not answered when the server hung up ends as that, each request by itself.
func TestAConnectionThatEndsWithRequestsOnIt(t *testing.T) {
	for _, c := range []struct {
		why, fourth string // what comes as the fourth reply of eight; then the connection ends
		want        map[string]int64
	}{
		{"an end", "", map[string]int64{"2xx": 3, "read:eof": 5}},
		{"an announced end", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", map[string]int64{"2xx": 4, "read:eof": 4}},
		{"and what follows it is nothing", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" + okReply, map[string]int64{"2xx": 4, "read:eof": 4}},
		{"a body to the end", "HTTP/1.0 200 OK\r\n\r\nbody", map[string]int64{"2xx": 4, "read:eof": 4}},
		{"half a reply", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", map[string]int64{"2xx": 3, "read:eof": 5}},
		{"garbage", "nonsense\r\n", map[string]int64{"2xx": 3, "protocol:bad_status_line": 5}},
		{"all, and then more", strings.Repeat(okReply, 5) + "x", map[string]int64{"2xx": 7, "protocol:excess_data": 1}},
	} {
		t.Run(c.why, func(t *testing.T) {
			s := newStage(t, model.LoadPlan{Connections: 1, Requests: 8, KeepAlive: true, Pipeline: 8})
			s.onTheWire(8)
			s.answer([]byte(strings.Repeat(okReply, 3) + c.fourth))
			if err := unix.Shutdown(s.peer, unix.SHUT_WR); err != nil {
				t.Fatal(err)
			}
			s.until("all have their outcomes", func() bool { return s.thread.inFlight == 0 })
			if diff := cmp.Diff(c.want, s.thread.tally.phases[hold].ended.named()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The reply to a request that was given up comes after all: it is nobody's, and the one behind it is what it was sent for.
func TestALateReplyIsNotTakenForTheNext(t *testing.T) {
	s := newStage(t, model.LoadPlan{Connections: 1, Requests: 2, KeepAlive: true, Pipeline: 2})
	th := s.thread
	h := th.protocol.(*pipelined)
	s.onTheWire(2)
	h.fail(&h.pipes[0].places[0], failure(readFailed, timedOut))
	s.answer([]byte("HTTP/1.1 500 Late\r\nContent-Length: 0\r\n\r\n" + okReply))
	s.until("the second has its reply", func() bool { return th.inFlight == 0 })
	if got := th.tally.phases[hold].ended.named(); !cmp.Equal(got, map[string]int64{"read:timeout": 1, "2xx": 1}) {
		t.Errorf("%v, want the first timed out and the second good", got)
	}
	if k := th.conns[0].state; k != closed {
		t.Errorf("the connection is in state %d, want it closed: a reply on it was late", k)
	}
}

// What comes when nothing was asked for costs the next request, unless it says why the connection ends.
func TestAnUnaskedReplyOnAPipelinedConnection(t *testing.T) {
	for text, want := range map[string]string{
		okReply + okReply: "protocol:excess_data",
		okReply + "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n": "protocol:excess_data",
	} {
		s := serveInBatches(t, 2, func(n int64) []byte { return []byte(map[bool]string{true: text, false: okReply}[n%2 == 0]) })
		plan := model.LoadPlan{URL: s.url, Connections: 1, Threads: 1, Requests: 20, KeepAlive: true, Pipeline: 2, TimeoutMS: 600_000}
		if diff := cmp.Diff(map[string]int64{"2xx": 10, want: 10}, phaseNamed(runPlan(t, t.Context(), plan), "hold").Outcomes); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	s := newStage(t, model.LoadPlan{Connections: 1, Rate: 1e6, Requests: 1, KeepAlive: true, Pipeline: 2})
	th := s.thread
	p := s.onTheWire(1)
	s.answer([]byte(okReply))
	s.until("it is answered", func() bool { return th.inFlight == 0 })
	for text, owed := range map[string]outcome{"HTTP/1.1 408 Request Timeout\r\n\r\n": 0, okReply: failure(protocolFailed, int(unaskedReply))} {
		p.owed = 0
		th.protocol.(*pipelined).unasked(p, []byte(text))
		if p.owed != owed {
			t.Errorf("%q: the next request ends as %v, want %v", text, p.owed, owed)
		}
	}
}

// A server that does everything wrong in turn: whatever comes of each request, every one is accounted for.
func TestEveryPipelinedRequestEndsOnce(t *testing.T) {
	answers := []func(*net.TCPConn, int64) bool{
		say(okReply), say(okReply), say(okReply), sayAndClose(okReply), sayAndClose(""), say("nonsense\r\n"), say(okReply + "x"),
		func(c *net.TCPConn, _ int64) bool { _ = c.SetLinger(0); return false },
		func(*net.TCPConn, int64) bool { return true },
		sayAndClose("HTTP/1.1 200 OK\r\nContent-Le"),
	}
	for i, plan := range []model.LoadPlan{
		{Connections: 10, Threads: 2, CalmMS: 50, RampMS: 100, DurationMS: 300, TimeoutMS: 50},
		{Connections: 10, Threads: 2, CalmMS: 50, RampMS: 100, DurationMS: 300, TimeoutMS: 50, Rate: 4000},
		{Connections: 10, Threads: 2, DurationMS: 300, TimeoutMS: 50, ConnectRate: 500},
		{Connections: 2, Threads: 2, RampMS: 100, Requests: 500, TimeoutMS: 50, Rate: 1000, ConnectRate: 100},
		{Connections: 20, Threads: 2, Requests: 2000, TimeoutMS: 50},
		{Connections: 5, Threads: 1, Requests: 50, TimeoutMS: 50, Method: "POST", Body: make([]byte, 1<<19)},
	} {
		var turn atomic.Int64
		s := serve(t, func(c *net.TCPConn, n int64) bool { return answers[turn.Add(1)%int64(len(answers))](c, n) })
		plan.URL, plan.KeepAlive, plan.Pipeline = s.url, true, 4
		all := runPlan(t, t.Context(), plan) // which checks the sums
		if got := phaseNamed(all, "hold").Requests; plan.Requests > 0 && got != plan.Requests {
			t.Errorf("plan %d: %d requests begun in hold, want %d", i, got, plan.Requests)
		}
	}
}

func TestPipelinedOverTLS(t *testing.T) {
	for _, rate := range []float64{0, 3000} {
		s := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}}, sayTLS(okReply))
		plan := model.LoadPlan{URL: s.url, TLS: &model.TLSPlan{Insecure: true}, Connections: 3, Threads: 1, Requests: 600, KeepAlive: true, Pipeline: 8, Rate: rate, TimeoutMS: 600_000}
		if diff := cmp.Diff(map[string]int64{"2xx": 600}, phaseNamed(runPlan(t, t.Context(), plan), "hold").Outcomes); diff != "" {
			t.Errorf("rate %g (-want +got):\n%s", rate, diff)
		}
	}
}

// nginx ends a connection after so many requests, whatever is behind them: what it counts is what was answered.
func TestPipelinedAgainstNginx(t *testing.T) {
	address, counts := startNginx(t, "", "$status", "keepalive_requests 100; location / { return 200 ok; } location /miss { return 404; }")
	plan := model.LoadPlan{URL: "http://" + address + "/", Connections: 5, Threads: 2, Requests: 5000, KeepAlive: true, Pipeline: 16, TimeoutMS: 600_000,
		Targets: []model.Target{{Name: "/", Method: "GET", Path: "/", Weight: 3}, {Name: "/miss", Method: "HEAD", Path: "/miss", Weight: 1}}}
	got := phaseNamed(runPlan(t, t.Context(), plan), "hold").Outcomes
	log := counts()
	if got["2xx"] != log["200"] || got["4xx"] != log["404"] || log["404"] == 0 {
		t.Errorf("outcomes %v, nginx counted %v", got, log)
	}
	left := int64(5000) - got["2xx"] - got["4xx"]
	if unanswered := got["read:eof"] + got["read:ECONNRESET"] + got["write:EPIPE"] + got["write:ECONNRESET"]; unanswered != left || left == 0 {
		t.Errorf("outcomes %v: want the rest to have been lost with connections, some at least", got)
	}
}

func TestPipelinesThatAreNone(t *testing.T) {
	for why, plan := range map[string]model.LoadPlan{
		"HTTP/2":                        {Pipeline: 2, HTTP2: true, KeepAlive: true},
		"a connection each":             {Pipeline: 2},
		"less than none":                {Pipeline: -1, KeepAlive: true},
		"more than are counted":         {Pipeline: 1 << 30, KeepAlive: true},
		"more bytes than belong on one": {Pipeline: 100, KeepAlive: true, Body: make([]byte, 1<<20)},
	} {
		plan.URL, plan.Connections, plan.DurationMS = "http://127.0.0.1/", 10, 1000
		if err := Check(plan); err == nil {
			t.Errorf("%s: was taken", why)
		}
	}
}

// While one lane waits for leave to connect the others of its connection wait for it, and not in the line.
func TestLanesDoNotStandInLineForAConnectionThatStands(t *testing.T) {
	all := make(chan struct{})
	var n atomic.Int64
	s := serveHTTP2(t, nil, &xhttp2.Server{}, func(http.ResponseWriter, *http.Request) {
		if n.Add(1) == 4 {
			close(all)
		}
		<-all
	})
	for _, rate := range []float64{0, 1000} {
		plan := model.LoadPlan{URL: s.url, HTTP2: true, Streams: 4, Connections: 2, Threads: 1, Requests: 4, KeepAlive: true, ConnectRate: 1.0 / 3600, Rate: rate, TimeoutMS: 600_000}
		got := phaseNamed(runPlan(t, t.Context(), plan), "hold")
		if got.Outcomes["2xx"] != 4 || got.Attempts != 1 {
			t.Errorf("rate %g: %v, %d attempts; want four good on the one connection that may be opened this hour", rate, got.Outcomes, got.Attempts)
		}
	}
}
