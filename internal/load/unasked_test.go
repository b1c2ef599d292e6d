package load

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"plimsoll/internal/model"
)

// outcomesOf are those of the hold phase so far.
func (s *stage) outcomesOf() map[string]int64 {
	return s.thread.tally.phases[hold].ended.named()
}

// say writes text though no request was read.
func (s *stage) say(text string) {
	s.t.Helper()
	if _, err := unix.Write(s.peer, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
}

// next lets the thread of an open loop plan one more request, and begin it.
func (s *stage) next() {
	s.t.Helper()
	s.thread.shared.arrivals.total++
	s.thread.dueAt, s.thread.headAt = s.thread.now, s.thread.now
	begun := s.thread.tally.phases[hold].begun
	s.until("one more begun", func() bool { return s.thread.tally.phases[hold].begun > begun })
}

// What comes on a connection that waits for no reply answers no request: not
// the one before it, nor the next.
func TestAReplyThatNobodyAskedFor(t *testing.T) {
	for _, c := range []struct {
		why, said string
		end       bool
		want      map[string]int64
	}{
		{"a second reply to one request", okReply, false, map[string]int64{"2xx": 2, "protocol:unasked_reply": 1}},
		{"a second reply, and the end", okReply, true, map[string]int64{"2xx": 2, "protocol:unasked_reply": 1}},
		{"nonsense", "!", false, map[string]int64{"2xx": 2, "protocol:unasked_reply": 1}},
		{"a word about why it closes", "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n", true, map[string]int64{"2xx": 3}},
		{"the end", "", true, map[string]int64{"2xx": 3}},
	} {
		bothEngines(t, c.why+"/", func(t *testing.T, engine string) {
			s := newStage(t, model.LoadPlan{Connections: 1, DurationMS: 3_600_000, KeepAlive: true, Rate: 0.01, Engine: engine})
			conn := &s.thread.conns[0]
			answer := func() {
				if conn.state != closed && s.peer >= 0 {
					s.until("sent", func() bool { return conn.state == awaiting })
				}
				before := s.replies()
				s.answer([]byte(okReply))
				s.until("answered", func() bool { return s.replies() > before })
			}
			s.next()
			s.until("connected and sent", func() bool { return conn.state == awaiting })
			s.accept()
			answer()
			if c.said != "" {
				s.say(c.said)
			}
			if c.end {
				unix.Close(s.peer)
			}
			s.until("its connection is closed", func() bool { return conn.state == closed })
			for s.replies() < c.want["2xx"] {
				s.next()
				s.thread.turn()
				if conn.state == closed {
					continue // it ended at once
				}
				if s.until("sent", func() bool { return conn.state == awaiting }); s.peer >= 0 && s.replies() == 1 {
					s.accept()
				}
				answer()
			}
			if d := cmp.Diff(c.want, s.outcomesOf()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// A 101 is the end of HTTP on its connection: where no request asked for another protocol it is no reply.
func TestAProtocolThatNobodyAskedFor(t *testing.T) {
	switches := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	asks := []string{"Connection: Upgrade", "upgrade: websocket"}
	for _, c := range []struct {
		why, said string
		headers   []string
		pipeline  int
		want      map[string]int64
	}{
		{"not asked for", switches, nil, 0, map[string]int64{"protocol:unasked_upgrade": 4}},
		{"after an interim reply", "HTTP/1.1 103 Early Hints\r\n\r\n" + switches, nil, 0, map[string]int64{"protocol:unasked_upgrade": 4}},
		{"asked for", switches, asks, 0, map[string]int64{"1xx": 4}},
		{"asked for, after an interim reply", "HTTP/1.1 103 Early Hints\r\n\r\n" + switches, asks, 0, map[string]int64{"1xx": 4}},
		{"not asked for, pipelined", switches, nil, 2, map[string]int64{"protocol:unasked_upgrade": 4}},
		{"asked for, pipelined", switches, asks, 2, map[string]int64{"1xx": 2, "read:eof": 2}},
	} {
		t.Run(c.why, func(t *testing.T) {
			s := serveInBatches(t, max(c.pipeline, 1), func(int64) []byte { return []byte(c.said) })
			plan := model.LoadPlan{URL: s.url, Headers: c.headers, Connections: 1, Threads: 1, Requests: 4, KeepAlive: true, Pipeline: c.pipeline, TimeoutMS: 600_000}
			if diff := cmp.Diff(c.want, phaseNamed(runPlan(t, t.Context(), plan), "hold").Outcomes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A target's own headers ask, too.
func TestATargetAsksForAnotherProtocol(t *testing.T) {
	s := serveInBatches(t, 1, func(int64) []byte { return []byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n") })
	plan := model.LoadPlan{URL: s.url, Connections: 1, Threads: 1, Requests: 3, KeepAlive: true, TimeoutMS: 600_000,
		Targets: []model.Target{{Name: "ws", Method: "GET", Path: "/", Weight: 1, Headers: []string{"Upgrade: x"}}}}
	if diff := cmp.Diff(map[string]int64{"1xx": 3}, phaseNamed(runPlan(t, t.Context(), plan), "hold").Outcomes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A reply that is there before the request was sent is none to it.
func TestAReplyBeforeTheRequest(t *testing.T) {
	bothEngines(t, "", repliesBeforeTheRequest)
}

func repliesBeforeTheRequest(t *testing.T, engine string) {
	for said, want := range map[string]string{
		okReply: "protocol:unasked_reply",
		"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n": "5xx", // a server that is too busy for more connections
	} {
		s := newStage(t, model.LoadPlan{Connections: 1, DurationMS: 3_600_000, KeepAlive: true, Engine: engine})
		conn := &s.thread.conns[0]
		s.until("connecting", func() bool { return conn.state == connecting })
		s.accept()
		s.say(said)
		s.until("ended", func() bool { return len(s.outcomesOf()) > 0 })
		if d := cmp.Diff(map[string]int64{want: 1}, s.outcomesOf()); d != "" {
			t.Errorf("%q (-want +got):\n%s", said, d)
		}
		unix.Close(s.peer)
	}
}
