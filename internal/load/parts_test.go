package load

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
)

func TestWhereTheTimeGoes(t *testing.T) {
	const head, body = 30 * time.Millisecond, 20 * time.Millisecond
	s := serve(t, func(c *net.TCPConn, _ int64) bool {
		time.Sleep(head)
		_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"))
		time.Sleep(body)
		_, err := c.Write([]byte("ok"))
		return err == nil
	})
	plan := model.LoadPlan{URL: s.url, Connections: 2, Threads: 1, Requests: 6, KeepAlive: false}
	got := phaseNamed(runPlan(t, context.Background(), plan), "hold")
	// A sleep is never shorter than asked for, so these bounds hold on any machine; one that sees
	// the first byte late takes from the body what it adds before it.
	if mean := got.Parts["first_byte"] / 6; mean < head.Seconds() {
		t.Errorf("first_byte: %.6f s a request, want at least %v; all: %v", mean, head, got.Parts)
	}
	if mean := (got.Parts["first_byte"] + got.Parts["body"]) / 6; got.Parts["body"] <= 0 || mean < (head+body).Seconds() {
		t.Errorf("first byte and body: %.6f s a request, want at least %v, some of it for the body; all: %v", mean, head+body, got.Parts)
	}
	for _, part := range []string{"queue", "late"} {
		if got.Parts[part] != 0 {
			t.Errorf("%s: %g s in a closed loop, want none", part, got.Parts[part])
		}
	}
	if got.ConnectCalls.Count != 6 || got.ConnectCalls.Seconds <= 0 || got.ConnectCalls.Seconds > got.Parts["connect"] {
		t.Errorf("connect calls %+v, want 6 that are a part of connecting, %g s", got.ConnectCalls, got.Parts["connect"])
	}
	if got.ReplyUnread.Count == 0 || got.ReplyUnread.Count > 3 {
		t.Errorf("%d requests had their replies stamped, want the 3 or so of one connection of two", got.ReplyUnread.Count)
	}
}

func TestWaitingForAConnectionIsNotLateness(t *testing.T) {
	const answer = 50 * time.Millisecond
	s := serve(t, func(c *net.TCPConn, n int64) bool {
		time.Sleep(answer)
		return say(okReply)(c, n)
	})
	// Ten requests planned within 100 ms, one connection that takes 50 ms for each.
	plan := model.LoadPlan{URL: s.url, Connections: 1, Threads: 1, DurationMS: 100, KeepAlive: true, TimeoutMS: 10_000, Rate: 100}
	got := phaseNamed(runPlan(t, context.Background(), plan), "hold")
	// Request i is planned at 10i ms and cannot begin before 50i ms.
	if want := 45 * 0.040; got.Parts["queue"] < want {
		t.Errorf("queue: %g s, want at least %g: %v", got.Parts["queue"], want, got.Parts)
	}
	if got.Parts["late"] > got.Parts["queue"] {
		t.Errorf("late: %g s, more than the wait for a connection", got.Parts["late"])
	}
}

func TestARefusedConnectIsConnecting(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	l.Close()
	got := phaseNamed(runPlan(t, context.Background(), model.LoadPlan{URL: url, Connections: 1, Threads: 1, Requests: 2}), "hold")
	if got.Parts["connect"] <= 0 || got.Parts["first_byte"] != 0 {
		t.Errorf("parts %v, want time in connect and none after it", got.Parts)
	}
}

// The first byte and the transfer of a reply whose two pieces come apart, since the test says so.
func TestFirstByteAndTransferAreTold(t *testing.T) {
	const pause = 20 * time.Millisecond
	for _, rate := range []float64{0, 0.001} {
		s := newStage(t, model.LoadPlan{Connections: 1, DurationMS: 3_600_000, KeepAlive: true, Rate: rate})
		c := &s.thread.conns[0]
		s.until("connected and sent", func() bool { return c.state == awaiting })
		s.accept()
		defer unix.Close(s.peer)
		time.Sleep(pause)
		s.answer([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"))
		s.until("heard", func() bool { return c.heard })
		time.Sleep(2 * pause)
		if _, err := unix.Write(s.peer, []byte("ok")); err != nil {
			t.Fatal(err)
		}
		s.until("replied", func() bool { return s.replies() == 1 })
		of := &s.thread.tally.phases[hold]
		first, body := of.measured(firstWait), of.measured(transfer)
		if first.TotalCount() != 1 || first.Max() < pause.Microseconds() || body.TotalCount() != 1 || body.Max() < 2*pause.Microseconds() {
			t.Errorf("rate %g: first byte %d of %d µs, transfer %d of %d µs; want one of each, of at least %v and %v",
				rate, first.TotalCount(), first.Max(), body.TotalCount(), body.Max(), pause, 2*pause)
		}
		if all := of.measured(service).Max(); first.Max()+body.Max() > all+all/500+2 {
			t.Errorf("rate %g: first byte %d µs and transfer %d µs are more than the %d µs of it all", rate, first.Max(), body.Max(), all)
		}
	}
}

func TestANameIsLookedUpOnce(t *testing.T) {
	s := serve(t, say(okReply))
	plan := model.LoadPlan{URL: strings.Replace(s.url, "127.0.0.1", "localhost", 1), Connections: 1, Requests: 3, TimeoutMS: 60_000}
	all := runPlan(t, t.Context(), plan)
	if last := all[len(all)-1]; last.DNS == nil || *last.DNS <= 0 {
		t.Errorf("DNS took %v, want some time", last.DNS)
	}
	plan.URL = s.url
	all = runPlan(t, t.Context(), plan)
	if last := all[len(all)-1]; last.DNS != nil {
		t.Errorf("DNS took %v s, and there was no name", *last.DNS)
	}
}
