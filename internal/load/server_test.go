package load

import (
	"bufio"
	"context"
	"math"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"plimsoll/internal/model"
)

const okReply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// server is a listener on 127.0.0.1 that answers as a test wants.
type server struct {
	url         string
	connections atomic.Int64
	requests    atomic.Int64
}

// serve calls answer for each request that arrives, with the number of its
// connection; a false return closes the connection.
func serve(t *testing.T, answer func(c *net.TCPConn, connection int64) bool) *server {
	t.Helper()
	return serveConns(t, func(s *server, c *net.TCPConn) {
		s.answerAll(c, func(number int64) bool { return answer(c, number) })
	})
}

// serveConns has each connection handled as a test wants.
func serveConns(t *testing.T, handle func(*server, *net.TCPConn)) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{url: "http://" + l.Addr().String() + "/"}
	var all sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[c] = true
			mu.Unlock()
			all.Go(func() { handle(s, c.(*net.TCPConn)) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return s
}

func (s *server) answerAll(c net.Conn, answer func(number int64) bool) {
	defer c.Close()
	number := s.connections.Add(1)
	for r := bufio.NewReader(c); ; {
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			if line == "\r\n" {
				break
			}
		}
		s.requests.Add(1)
		if !answer(number) {
			return
		}
	}
}

// mustCount waits until the server has read want requests: one that the load
// gave up may still lie in a socket.
func (s *server) mustCount(t *testing.T, want int64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); s.requests.Load() < want && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if got := s.requests.Load(); got != want {
		t.Errorf("the server counted %d requests, want %d", got, want)
	}
}

// say answers with text and keeps the connection.
func say(text string) func(*net.TCPConn, int64) bool {
	return func(c *net.TCPConn, _ int64) bool {
		_, err := c.Write([]byte(text))
		return err == nil
	}
}

// sayAndClose answers with text and closes the connection.
func sayAndClose(text string) func(*net.TCPConn, int64) bool {
	return func(c *net.TCPConn, _ int64) bool {
		_, _ = c.Write([]byte(text))
		return false
	}
}

// runPlan runs a plan and returns its records, after checking what must hold for every run.
func runPlan(t *testing.T, ctx context.Context, plan model.LoadPlan) []Record {
	t.Helper()
	var all []Record
	err := Run(ctx, plan, func(r Record) error {
		all = append(all, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1]
	if !last.Final || last.Totals == nil {
		t.Fatalf("the last record is not final: %+v", last)
	}
	var total int64
	for _, p := range last.Phases {
		total += p.Requests
		if got := sum(p.Outcomes); got != p.Requests {
			t.Errorf("%s: %d requests, %d outcomes: %v", p.Phase, p.Requests, got, p.Outcomes)
		}
		if waits, parts := sumSeconds(p.Waits), sumSeconds(p.Parts); math.Abs(waits-parts) > 1e-6 {
			t.Errorf("%s: the parts %v add up to %.9f s, the waits to %.9f s", p.Phase, p.Parts, parts, waits)
		}
		if got, want := sum(p.Statuses), completeReplies(p.Outcomes); got != want {
			t.Errorf("%s: %d complete replies, %d statuses: %v, %v", p.Phase, want, got, p.Outcomes, p.Statuses)
		}
		if p.Waited.Count != p.Requests {
			t.Errorf("%s: %d requests, %d waited", p.Phase, p.Requests, p.Waited.Count)
		}
		if n := countReplies(p.Outcomes); p.Response.Count != n || p.Service.Count != n || p.FirstByte.Count != n || p.Transfer.Count != n {
			t.Errorf("%s: %d replies, %d responses, %d services, %d first bytes, %d transfers", p.Phase, n, p.Response.Count, p.Service.Count, p.FirstByte.Count, p.Transfer.Count)
		}
	}
	if last.Totals.Requests != total || sum(last.Totals.Outcomes) != total {
		t.Errorf("totals %+v, want %d requests and outcomes", last.Totals, total)
	}
	if c := last.Connections; c.Connecting != 0 || c.Open != c.Idle {
		t.Errorf("at the end: %+v, want nothing but idle connections", c)
	}
	return all
}

func sum(counts map[string]int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

func sumSeconds(seconds map[string]float64) (sum float64) {
	for _, s := range seconds {
		sum += s
	}
	return sum
}

// completeReplies are those that came whole, whether they were wanted or not.
func completeReplies(outcomes map[string]int64) (n int64) {
	for name, c := range outcomes {
		if strings.HasSuffix(name, "xx") || strings.HasPrefix(name, "check:") {
			n += c
		}
	}
	return n
}

func countReplies(outcomes map[string]int64) (n int64) {
	for name, c := range outcomes {
		if strings.HasSuffix(name, "xx") {
			n += c
		}
	}
	return n
}

// phaseNamed finds a phase in the final record; a phase that was not begun is empty.
func phaseNamed(all []Record, name string) PhaseRecord {
	for _, p := range all[len(all)-1].Phases {
		if p.Phase == name {
			return p
		}
	}
	return PhaseRecord{}
}
