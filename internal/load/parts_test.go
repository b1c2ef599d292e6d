package load

import (
	"context"
	"net"
	"testing"
	"time"

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
