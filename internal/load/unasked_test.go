package load

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"plimsoll/internal/model"
)

// outcomesOf are those of the hold phase so far.
func (s *stage) outcomesOf() map[string]int64 {
	return outcomeNames(&s.thread.tally.phases[hold].outcomes)
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
		t.Run(c.why, func(t *testing.T) {
			s := newStage(t, model.LoadPlan{Connections: 1, DurationMS: 3_600_000, KeepAlive: true, Rate: 0.01})
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

// A reply that is there before the request was sent is none to it.
func TestAReplyBeforeTheRequest(t *testing.T) {
	for said, want := range map[string]string{
		okReply: "protocol:unasked_reply",
		"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n": "5xx", // a server that is too busy for more connections
	} {
		s := newStage(t, model.LoadPlan{Connections: 1, DurationMS: 3_600_000, KeepAlive: true})
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
