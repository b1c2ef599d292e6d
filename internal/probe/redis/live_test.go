package redis

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
	"testing"

	"plimsoll/internal/model"
	"plimsoll/internal/probe/livetest"
	"plimsoll/internal/probe/sockets"
)

func serve(t *testing.T, options ...string) *livetest.Service {
	t.Helper()
	s := livetest.Start(t, nil, append([]string{"redis-server", "--save", "", "--dir", "DIR"}, options...)...)
	s.Sample(All())
	return s
}

// say sends a line and returns the first line of the reply.
func say(t *testing.T, s *livetest.Service, network, address, line string) string {
	t.Helper()
	var said string
	s.Until("redis answers "+line, func() bool {
		c, err := s.Dial(network, address)
		if err != nil {
			return false
		}
		defer c.Close()
		if _, err := fmt.Fprintf(c, "%s\r\n", line); err != nil {
			return false
		}
		said, err = bufio.NewReader(c).ReadString('\n')
		return err == nil
	})
	return strings.TrimSpace(said)
}

func TestLiveOverTCP(t *testing.T) {
	s := serve(t, "--bind", "127.0.0.1", "--port", "6379", "--maxmemory", "100kb")
	if said := say(t, s, "tcp", "127.0.0.1:6379", "SET a b"); !strings.HasPrefix(said, "-OOM") {
		t.Fatalf("with 100 kB for everything redis says %q", said)
	}
	s.Sees("redis_errors_total{127.0.0.1:6379,OOM}", 1)
	s.Sees("redis_up{127.0.0.1:6379}", 1)
	s.Sees("plimsoll_redis_full{127.0.0.1:6379}", 0)
	if st := s.Rec.States["redis_up"]; st.State != model.Read {
		t.Errorf("%+v, want read", st)
	}
}

func TestLiveOverItsUnixSocket(t *testing.T) {
	s := serve(t, "--port", "0", "--unixsocket", "DIR/r.sock")
	s.Sees("redis_connected_clients{unix:"+s.Dir+"/r.sock}", 1)
}

// A password is never sent, and who is not let in says so of every signal.
func TestLiveWithAPassword(t *testing.T) {
	s := serve(t, "--bind", "127.0.0.1", "--port", "6379", "--requirepass", "secret")
	s.Until("redis does not let us in", func() bool {
		s.Round()
		st := s.Rec.States["redis_connected_clients"]
		return st.State == model.Denied && strings.Contains(st.Why, "NOAUTH") && s.Rec.States["redis_up"].State == model.Denied
	})
}

// Who is sent away knows why.
func TestLiveFull(t *testing.T) {
	s := livetest.Start(t, nil, "redis-server", "--save", "", "--dir", "DIR", "--bind", "127.0.0.1", "--port", "6379", "--maxclients", "1")
	s.Until("the only place is taken", func() bool {
		c, err := s.Dial("tcp", "127.0.0.1:6379")
		if err != nil {
			return false
		}
		if _, err := fmt.Fprintf(c, "PING\r\n"); err != nil {
			return false
		}
		said, err := bufio.NewReader(c).ReadString('\n')
		if err != nil || said != "+PONG\r\n" {
			c.Close()
			return false
		}
		t.Cleanup(func() { c.Close() })
		return true
	})
	s.Sample(All())
	s.Sees("plimsoll_redis_full{127.0.0.1:6379}", 1)
	s.Sees("redis_up{127.0.0.1:6379}", 0)
	if st := s.Rec.States["redis_connected_clients"]; st.State != model.Failed || !strings.Contains(st.Why, "max number of clients reached") {
		t.Errorf("%+v, want failed, and why", st)
	}
}

func TestNone(t *testing.T) { livetest.CheckNone(t, All()) }

// Our own connection is nobody's use of the server: where it is the only one, nobody is served there.
func TestLiveOurConnectionIsNoUsers(t *testing.T) {
	s := livetest.Start(t, nil, "redis-server", "--save", "", "--dir", "DIR", "--bind", "127.0.0.1", "--port", "6379")
	s.Sample(slices.Concat(All(), sockets.All()))
	const accepted = "plimsoll_tcp_listen_accepted{127.0.0.1:6379,redis-server}"
	s.Sees("redis_connected_clients{127.0.0.1:6379}", 1)
	s.Until("its connections are counted", func() bool {
		delete(s.Rec.Values, accepted) // what was counted before we were there
		s.Round()
		_, ok := s.Rec.Values[accepted]
		return ok
	})
	if n := s.Rec.Values[accepted]; n != 0 {
		t.Errorf("%v connections are users', want none: there is only ours", n)
	}
	c, err := s.Dial("tcp", "127.0.0.1:6379")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.Sees("redis_connected_clients{127.0.0.1:6379}", 2)
	s.Sees(accepted, 1)
}
