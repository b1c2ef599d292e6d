package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"plimsoll/internal/model"
)

// engines are those of a plan with a connection for each request.
var engines = []string{"", model.IOURing}

// stay and stayByRing are how connections may stay.
const (
	stay       = "keep-alive"
	stayByRing = "keep-alive by io_uring"
)

// goesBy has a plan go by one of engines, or one of those above.
func goesBy(how string, p model.LoadPlan) model.LoadPlan {
	switch how {
	case stay, stayByRing:
		p.KeepAlive = true
		if how == stayByRing {
			p.Engine = model.IOURing
		}
	default:
		p.Engine = how
	}
	return p
}

// What a server says before it has heard all of a request is its reply, by each engine.
func TestAReplyToHalfARequestCounts(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1000)) // and no more of it: the close resets the connection
			_, _ = c.Write([]byte("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"))
			c.Close()
		}
	}()
	for _, engine := range append(engines, stay, stayByRing) {
		plan := goesBy(engine, model.LoadPlan{URL: "http://" + listener.Addr().String(), Connections: 1, Threads: 1, Requests: 5, TimeoutMS: 60_000, Method: "POST", Body: make([]byte, 8<<20)})
		var last Record
		if err := Run(t.Context(), plan, func(r Record) error { last = r; return nil }); err != nil {
			t.Fatal(err)
		}
		if last.Totals.Outcomes["4xx"] != 5 {
			t.Errorf("engine %q: %v, want 5 of 4xx", engine, last.Totals.Outcomes)
		}
	}
}

func TestExactlySoManyRequests(t *testing.T) {
	for _, engine := range append(engines, stay, stayByRing) {
		keepAlive := strings.HasPrefix(engine, stay)
		for _, threads := range []int{1, 3} {
			s := serve(t, say(okReply))
			plan := goesBy(engine, model.LoadPlan{URL: s.url, Connections: 7, Threads: threads, Requests: 1003})
			all := runPlan(t, context.Background(), plan)
			if diff := cmp.Diff(map[string]int64{"2xx": 1003}, phaseNamed(all, "hold").Outcomes); diff != "" {
				t.Errorf("%q, %d threads (-want +got):\n%s", engine, threads, diff)
			}
			s.mustCount(t, 1003)
			connections := phaseNamed(all, "hold").Connect.Count
			if want := map[bool]int64{true: 7, false: 1003}[keepAlive]; connections != want || s.connections.Load() != want {
				t.Errorf("%q: %d connects, the server saw %d, want %d", engine, connections, s.connections.Load(), want)
			}
		}
	}
}

func TestPhasesAreCountedApartAndMarkedOnce(t *testing.T) {
	for _, rate := range []float64{0, 500} {
		s := serve(t, say(okReply))
		plan := model.LoadPlan{URL: s.url, Connections: 4, Threads: 2, CalmMS: 50, RampMS: 100, DurationMS: 200, KeepAlive: true, Rate: rate}
		all := runPlan(t, context.Background(), plan)
		var marks []string
		for _, r := range all {
			if r.PhaseStarted != "" || r.PhaseEnded != "" {
				marks = append(marks, r.PhaseEnded+">"+r.PhaseStarted)
			}
		}
		if diff := cmp.Diff([]string{">calm", "calm>ramp", "ramp>hold", "hold>drain", "drain>"}, marks); diff != "" {
			t.Errorf("rate %g (-want +got):\n%s", rate, diff)
		}
		last := all[len(all)-1]
		for _, p := range last.Phases {
			if p.End-p.Start != map[string]int64{"calm": 50, "ramp": 100, "hold": 200}[p.Phase] {
				t.Errorf("rate %g: %s lasted %d ms", rate, p.Phase, p.End-p.Start)
			}
		}
		s.mustCount(t, last.Totals.Requests)
		if got := phaseNamed(all, "hold").Requests; rate > 0 && got != 100 {
			t.Errorf("rate %g for 200 ms: %d requests begun in hold, want 100", rate, got)
		}
	}
}

func TestHowRequestsEnd(t *testing.T) {
	reset := func(c *net.TCPConn, _ int64) bool {
		_ = c.SetLinger(0)
		return false
	}
	stall := func(*net.TCPConn, int64) bool { return true }
	byteByByte := func(c *net.TCPConn, _ int64) bool {
		for i := range len(okReply) {
			if _, err := c.Write([]byte(okReply[i : i+1])); err != nil {
				return false
			}
		}
		return true
	}
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		why    string
		answer func(*net.TCPConn, int64) bool
		want   string
	}{
		{"a reset instead of a reply", reset, "read:ECONNRESET"},
		{"silence", stall, "read:timeout"},
		{"an end instead of a reply", sayAndClose(""), "read:eof"},
		{"half a head, then the end", sayAndClose("HTTP/1.1 200 OK\r\nConte"), "read:eof"},
		{"half a body, then the end", sayAndClose("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), "read:eof"},
		{"half a reply, then silence", say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), "read:timeout"},
		{"another protocol", say("220 mail.example ESMTP\r\n"), "protocol:bad_status_line"},
		{"garbage among chunks", say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokay\r\n0\r\n\r\n"), "protocol:bad_chunk"},
		{"more than was announced", say(okReply + "!"), "protocol:excess_data"},
		{"a reply in single bytes", byteByByte, "2xx"},
		{"a reply that ends with the connection", sayAndClose("HTTP/1.0 200 OK\r\n\r\nok"), "2xx"},
		{"a long body by length", say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(long), long)), "2xx"},
		{"a long chunk", say(fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(long), long)), "2xx"},
		{"an announced close", sayAndClose("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"), "4xx"},
		{"a server error", say("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"), "5xx"},
		{"an interim reply first", say("HTTP/1.1 100 Continue\r\n\r\n" + okReply), "2xx"},
	} {
		for _, engine := range append(engines, stay, stayByRing) {
			t.Run(strings.ReplaceAll(c.why, " ", "_")+"/"+engine, func(t *testing.T) {
				s := serve(t, c.answer)
				plan := goesBy(engine, model.LoadPlan{URL: s.url, Connections: 3, Threads: 1, Requests: 9, TimeoutMS: 60_000})
				if strings.HasSuffix(c.want, ":timeout") {
					plan.TimeoutMS = 50
				}
				all := runPlan(t, context.Background(), plan)
				got, sent := phaseNamed(all, "hold").Outcomes, int64(9)
				// A thread that was off its CPU may find that a connect timed out: that was not sent.
				if late := got["connect:timeout"]; plan.TimeoutMS == 50 && late < sent {
					sent -= late
					delete(got, "connect:timeout")
				}
				if diff := cmp.Diff(map[string]int64{c.want: sent}, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				s.mustCount(t, sent)
			})
		}
	}
}

func TestARefusedPortIsNoBusyLoop(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	l.Close()
	for _, engine := range append(engines, stay, stayByRing) {
		all := runPlan(t, context.Background(), goesBy(engine, model.LoadPlan{URL: url, Connections: 2, Threads: 1, Requests: 8}))
		got := phaseNamed(all, "hold")
		if d := cmp.Diff(map[string]int64{"connect:ECONNREFUSED": 8}, got.Outcomes); d != "" {
			t.Errorf("outcomes (-want +got):\n%s", d)
		}
		if got.Attempts != 8 {
			t.Errorf("%d attempts to connect, want 8", got.Attempts)
		}
		if c := all[len(all)-1].Connections; c.Failed != 2 || c.Untried != 0 {
			t.Errorf("at the end %+v, want both connections among those that were never open", c)
		}
		// One of the two tries four times at least, and rests for 80 ms at least in between.
		if took := got.End - got.Start; took < 3*80 {
			t.Errorf("8 attempts by 2 connections took %d ms, want 240 at least", took)
		}
	}
}

func TestAFullAcceptQueueIsAConnectTimeout(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	err = errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0))
	if err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", name.(*unix.SockaddrInet4).Port)
	for _, engine := range append(engines, stay, stayByRing) {
		// A queue of length 0 takes one connection; it is never accepted, so its request gets no reply.
		all := runPlan(t, context.Background(), goesBy(engine, model.LoadPlan{URL: url, Connections: 5, Threads: 1, Requests: 5, TimeoutMS: 200}))
		got := phaseNamed(all, "hold").Outcomes
		if got["connect:timeout"] == 0 || got["connect:timeout"]+got["read:timeout"] != 5 {
			t.Errorf("outcomes %v, want connect:timeout for all that the queue did not take", got)
		}
	}
}

// The one request was had by the first connection; it cannot be told of the others
// that they were there.
func TestConnectionsThatWereNeverOpenedAreTold(t *testing.T) {
	s := serve(t, say(okReply))
	all := runPlan(t, context.Background(), model.LoadPlan{URL: s.url, Connections: 5, Threads: 1, Requests: 1, KeepAlive: true})
	if c := all[len(all)-1].Connections; c.Failed != 0 || c.Untried != 4 {
		t.Errorf("at the end %+v, want 4 of the 5 connections untried", c)
	}
	if got := phaseNamed(all, "hold").Attempts; got != 1 {
		t.Errorf("%d attempts to connect, want 1", got)
	}
}

// A server that does everything wrong in turn: whatever comes of each request,
// every one is accounted for.
func TestEveryRequestEndsOnce(t *testing.T) {
	answers := []func(*net.TCPConn, int64) bool{
		say(okReply), sayAndClose(okReply), sayAndClose(""), say("nonsense\r\n"), say(okReply + "x"),
		func(c *net.TCPConn, _ int64) bool { _ = c.SetLinger(0); return false },
		func(*net.TCPConn, int64) bool { return true },
		sayAndClose("HTTP/1.1 200 OK\r\nContent-Le"),
	}
	for _, plan := range []model.LoadPlan{
		{Connections: 20, Threads: 2, CalmMS: 50, RampMS: 100, DurationMS: 300, KeepAlive: true, TimeoutMS: 50},
		{Connections: 20, Threads: 2, RampMS: 50, DurationMS: 300, KeepAlive: false, TimeoutMS: 50},
		{Connections: 20, Threads: 2, CalmMS: 50, RampMS: 50, DurationMS: 300, TimeoutMS: 50, Engine: model.IOURing},
		{Connections: 20, Threads: 2, Requests: 2000, TimeoutMS: 50, Engine: model.IOURing, ConnectRate: 10_000},
		{Connections: 20, Threads: 2, CalmMS: 50, RampMS: 100, DurationMS: 300, KeepAlive: true, TimeoutMS: 50, Rate: 2000},
		{Connections: 3, Threads: 3, RampMS: 100, Requests: 500, KeepAlive: true, TimeoutMS: 50, Rate: 1000},
		{Connections: 20, Threads: 2, Requests: 2000, KeepAlive: true, TimeoutMS: 50},
		{Connections: 5, Threads: 1, Requests: 1000, KeepAlive: true, TimeoutMS: 50, Method: "POST", Body: make([]byte, 5<<20)},
		{Connections: 5, Threads: 1, Requests: 1000, TimeoutMS: 50, Method: "POST", Body: make([]byte, 5<<20), Engine: model.IOURing},
		{Connections: 20, Threads: 2, CalmMS: 50, RampMS: 100, DurationMS: 300, KeepAlive: true, TimeoutMS: 50, Engine: model.IOURing},
		{Connections: 20, Threads: 2, CalmMS: 50, RampMS: 100, DurationMS: 300, KeepAlive: true, TimeoutMS: 50, Rate: 2000, Engine: model.IOURing},
		{Connections: 20, Threads: 2, Requests: 2000, KeepAlive: true, TimeoutMS: 50, Engine: model.IOURing, ConnectRate: 10_000},
		{Connections: 5, Threads: 1, Requests: 1000, KeepAlive: true, TimeoutMS: 50, Method: "POST", Body: make([]byte, 5<<20), Engine: model.IOURing},
	} {
		var turn atomic.Int64
		s := serve(t, func(c *net.TCPConn, n int64) bool {
			return answers[turn.Add(1)%int64(len(answers))](c, n)
		})
		if plan.Body != nil {
			plan.Requests = 50
		}
		plan.URL = s.url
		all := runPlan(t, context.Background(), plan) // which checks the sums
		if got := phaseNamed(all, "hold").Requests; plan.Requests > 0 && got != plan.Requests {
			t.Errorf("%d requests begun in hold, want %d", got, plan.Requests)
		}
	}
}

// A request is given up just when its connect or its send is done, and what follows is yet to begin: from a server that says
// nothing that would never end.
func TestWhoIsGivenUpBetweenTwoCallsEnds(t *testing.T) {
	slow := func(_ *server, c *net.TCPConn) {
		defer c.Close()
		time.Sleep(20 * time.Millisecond)
		_, _ = io.Copy(io.Discard, c)
	}
	silent := func(_ *server, c *net.TCPConn) {
		defer c.Close()
		_, _ = io.Copy(io.Discard, c)
	}
	for _, try := range []struct {
		serve func(*server, *net.TCPConn)
		plan  model.LoadPlan
	}{
		{silent, model.LoadPlan{Connections: 50, Requests: 500, TimeoutMS: 1}},
		{slow, model.LoadPlan{Connections: 5, Requests: 50, TimeoutMS: 20, Method: "POST", Body: make([]byte, 5<<20)}},
	} {
		try.plan.URL, try.plan.Threads, try.plan.Engine = serveConns(t, try.serve).url, 1, model.IOURing
		all := runPlan(t, context.Background(), try.plan) // which ends
		if got := phaseNamed(all, "hold").Requests; got != try.plan.Requests {
			t.Errorf("%d requests begun, want %d", got, try.plan.Requests)
		}
	}
}

// The stall must be in the latencies of the requests that were planned during it.
func TestOpenLoopDoesNotOmitAStall(t *testing.T) {
	const stall = 300 * time.Millisecond
	var first atomic.Bool
	s := serve(t, func(c *net.TCPConn, n int64) bool {
		if first.CompareAndSwap(false, true) {
			time.Sleep(stall)
		}
		return say(okReply)(c, n)
	})
	plan := model.LoadPlan{URL: s.url, Connections: 1, Threads: 1, DurationMS: 500, KeepAlive: true, TimeoutMS: 5000, Rate: 100}
	all := runPlan(t, context.Background(), plan)
	got := phaseNamed(all, "hold")
	if diff := cmp.Diff(map[string]int64{"2xx": 50}, got.Outcomes); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	// 29 requests were planned while the first was not answered; the median of
	// 50 waited for what then remained of the stall, and says so.
	if got.Response.P50 < 30_000 || got.Response.Max < 299_000 {
		t.Errorf("response %+v: the stall of %v is missing", got.Response, stall)
	}
	if got.Lag.Count != 50 {
		t.Errorf("the lag of %d requests is known, want all 50", got.Lag.Count)
	}
	if got.SendDelay.Max < 280_000 {
		t.Errorf("send delay %+v: the second request waited for a connection for 290 ms", got.SendDelay)
	}
}

func TestOpenLoopAccountsForWhatWasNeverSent(t *testing.T) {
	s := serve(t, func(*net.TCPConn, int64) bool { return true })
	plan := model.LoadPlan{URL: s.url, Connections: 2, Threads: 1, DurationMS: 300, KeepAlive: true, TimeoutMS: 200, Rate: 1000}
	all := runPlan(t, context.Background(), plan)
	got := phaseNamed(all, "hold")
	if got.Requests != 300 || got.Outcomes["queue:timeout"] < 200 {
		t.Errorf("%d requests: %v; want 300, most of them queue:timeout", got.Requests, got.Outcomes)
	}
	s.mustCount(t, got.Outcomes["read:timeout"])
}

func TestCancelledLoadStillAddsUp(t *testing.T) {
	for _, plan := range []model.LoadPlan{{KeepAlive: true}, {KeepAlive: true, Rate: 1000}, {Engine: model.IOURing}, {KeepAlive: true, Engine: model.IOURing}} {
		ctx, cancel := context.WithCancel(context.Background())
		s := serve(t, func(c *net.TCPConn, n int64) bool {
			if n == 2 {
				cancel()
				return true // and never answers
			}
			return say(okReply)(c, n)
		})
		plan.URL, plan.Connections, plan.Threads, plan.DurationMS, plan.TimeoutMS = s.url, 2, 2, 3_600_000, 100
		all := runPlan(t, ctx, plan)
		if last := all[len(all)-1]; !last.Totals.Cancelled || last.Totals.Outcomes["read:timeout"] == 0 {
			t.Errorf("%+v: %+v, want cancelled, with the request in flight timed out", plan, last.Totals)
		}
		cancel()
	}
}

func TestAnErrorOfEmitEndsTheLoad(t *testing.T) {
	s := serve(t, say(okReply))
	wrong := errors.New("pipe closed")
	err := Run(context.Background(), model.LoadPlan{URL: s.url, Connections: 2, DurationMS: 3_600_000}, func(Record) error { return wrong })
	if !errors.Is(err, wrong) {
		t.Errorf("got %v, want %v", err, wrong)
	}
}

func TestIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		if errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Skipf("no IPv6 here: %v", err)
		}
		t.Fatal(err)
	}
	defer l.Close()
	s := new(server)
	go func() {
		c, err := l.Accept()
		if err == nil {
			s.answerAll(c, func(number int64) bool { return say(okReply)(c.(*net.TCPConn), number) })
		}
	}()
	all := runPlan(t, context.Background(), model.LoadPlan{URL: "http://" + l.Addr().String(), Connections: 1, Requests: 3, KeepAlive: true})
	if got := phaseNamed(all, "hold").Outcomes["2xx"]; got != 3 {
		t.Errorf("%d replies, want 3", got)
	}
}

func TestRecordsAreWhole(t *testing.T) {
	s := serve(t, say(okReply))
	plan := model.LoadPlan{URL: s.url, Connections: 9, Threads: 2, RampMS: 50, DurationMS: 1800, KeepAlive: true, Rate: 400}
	all := runPlan(t, context.Background(), plan)
	counted := map[string]int64{}
	seen := map[string]int64{}
	for _, r := range all {
		for _, p := range r.Phases {
			if p.Requests < seen[p.Phase] {
				t.Errorf("%s went back from %d to %d requests", p.Phase, seen[p.Phase], p.Requests)
			}
			seen[p.Phase] = p.Requests
		}
		for _, i := range r.Intervals {
			h, err := hdr.Decode([]byte(i.Histogram))
			if err != nil {
				t.Fatal(err)
			}
			counted[i.Phase+" "+i.Kind] += h.TotalCount()
			if i.End < i.Start {
				t.Errorf("interval ends before it starts: %+v", i)
			}
		}
	}
	for _, p := range all[len(all)-1].Phases {
		for kind, want := range map[string]int64{"response": p.Response.Count, "service": p.Service.Count} {
			if got := counted[p.Phase+" "+kind]; got != want {
				t.Errorf("the intervals of %s %s hold %d, its total %d", p.Phase, kind, got, want)
			}
		}
	}
	ticks := slices.ContainsFunc(all, func(r Record) bool { return r.PhaseStarted == "" && !r.Final })
	if !ticks {
		t.Error("no record at a full second within 1.85 s")
	}
	if got := phaseNamed(all, "hold").Unread.Count; got == 0 {
		t.Error("no reply's time in the kernel was measured")
	}
	var back Record
	text, err := json.Marshal(all[len(all)-1])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all[len(all)-1], back); diff != "" {
		t.Errorf("through JSON (-want +got):\n%s", diff)
	}
}
