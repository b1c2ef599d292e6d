package load

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"plimsoll/internal/model"
)

// Replies that the kernel receives by itself, and those that the thread does, may follow one another on a connection in any order,
// and either may be its last.
func TestLongAndShortRepliesInTurn(t *testing.T) {
	reply := func(size int) string {
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size))
	}
	last := func(reply string) func(*net.TCPConn, int64) bool {
		return sayAndClose(strings.Replace(reply, "Content", "Connection: close\r\nContent", 1))
	}
	short, piece, long := reply(5), reply(2*longPiece), reply(20*bufferSize)
	answers := []func(*net.TCPConn, int64) bool{
		say(short), say(long), say(short), say(piece), say(short), last(long),
		say(short), say(piece), last(short), say(long), say(long), last(piece),
	}
	for _, plan := range []model.LoadPlan{{Requests: 1200}, {Requests: 600, Rate: 2000}} {
		s := serveConns(t, func(s *server, c *net.TCPConn) {
			turn := s.connections.Load() // connections begin with each of them
			s.answerAll(c, func(n int64) bool { turn++; return answers[turn%int64(len(answers))](c, n) })
		})
		plan.URL, plan.Connections, plan.Threads, plan.TimeoutMS, plan.KeepAlive, plan.Engine = s.url, 9, 1, 600_000, true, model.IOURing
		got := phaseNamed(runPlan(t, t.Context(), plan), "hold")
		if got.Outcomes["2xx"] != plan.Requests {
			t.Errorf("rate %g: %v, want %d of 2xx", plan.Rate, got.Outcomes, plan.Requests)
		}
		if got.Received < plan.Requests/12*20*bufferSize {
			t.Errorf("rate %g: %d bytes received, want long bodies among them", plan.Rate, got.Received)
		}
	}
}

// What kept a request from being sent is told, also where it leaves the connection as it is, and the server waits for the rest.
func TestASendThatFailsIsToldAsThat(t *testing.T) {
	s := serveConns(t, func(_ *server, c *net.TCPConn) { _, _ = io.Copy(io.Discard, c); c.Close() })
	for _, length := range []int{100, 2 * quietSend} {
		nothing, err := unix.Mmap(-1, 0, length, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			t.Fatal(err)
		}
		for _, engine := range append(engines, stay, stayByRing) {
			r, err := Prepare(t.Context(), goesBy(engine, model.LoadPlan{URL: s.url, Connections: 2, Threads: 1, Requests: 4, TimeoutMS: 5_000}))
			if err != nil {
				t.Fatal(err)
			}
			r.engine.job.requests[0].bytes = unsafe.Slice(unsafe.SliceData(nothing), length) // the kernel can't read it: EFAULT
			var last Record
			if err := r.Run(t.Context(), time.Now(), func(r Record) error { last = r; return nil }); err != nil {
				t.Fatal(err)
			}
			if got := last.Totals.Outcomes; got["write:EFAULT"] != 4 {
				t.Errorf("engine %q, %d bytes: %v, want 4 of write:EFAULT", engine, length, got)
			}
			if got := phaseNamed([]Record{last}, "hold").Sent; got != 0 {
				t.Errorf("engine %q, %d bytes: %d bytes sent, want none", engine, length, got)
			}
		}
		_ = unix.Munmap(nothing)
	}
}

// Where a reply has begun when a send fails, the rest of it is waited for.
func TestAReplyInPiecesAfterASendThatFails(t *testing.T) {
	const length = 16 << 20 // more than the kernel takes before the server reads
	request, err := unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(request) }()
	const page = 4096
	if err := unix.Mprotect(request[length-page:], unix.PROT_NONE); err != nil { // which the kernel can't read: the send ends there
		t.Fatal(err)
	}
	s := serveConns(t, func(_ *server, c *net.TCPConn) {
		defer c.Close()
		const head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 10\r\n\r\n"
		_, _ = c.Read(make([]byte, 1)) // before the request has begun, nobody has asked for a reply
		_, _ = io.WriteString(c, head+"hello")
		time.Sleep(100 * time.Millisecond) // until that is there while the send stands still
		for took := 1; took > 0; {         // until nothing more comes, since the send has failed
			_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
			took, _ = c.Read(make([]byte, 1<<20))
		}
		_, _ = io.WriteString(c, "world")
	})
	for _, engine := range append(engines, stay, stayByRing) {
		r, err := Prepare(t.Context(), goesBy(engine, model.LoadPlan{URL: s.url, Connections: 1, Threads: 1, Requests: 2, TimeoutMS: 30_000}))
		if err != nil {
			t.Fatal(err)
		}
		r.engine.job.requests[0].bytes = request
		var last Record
		if err := r.Run(t.Context(), time.Now(), func(r Record) error { last = r; return nil }); err != nil {
			t.Fatal(err)
		}
		if got := last.Totals.Outcomes; got["2xx"] != 2 {
			t.Errorf("engine %q: %v, want 2 of 2xx", engine, got)
		}
	}
}

// A connection is received from by the kernel again when its replies have been short for a while.
func TestShortRepliesAfterALongOne(t *testing.T) {
	s := serveConns(t, func(s *server, c *net.TCPConn) {
		size := 20 * bufferSize
		s.answerAll(c, func(n int64) bool {
			defer func() { size = 5 }()
			return say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size)))(c, n)
		})
	})
	for _, n := range []int64{shortInARow / 2, 4 * shortInARow} {
		r, err := Prepare(t.Context(), model.LoadPlan{URL: s.url, Connections: 1, Threads: 1, Requests: n, TimeoutMS: 30_000, KeepAlive: true, Engine: model.IOURing})
		if err != nil {
			t.Fatal(err)
		}
		var last Record
		if err := r.Run(t.Context(), time.Now(), func(r Record) error { last = r; return nil }); err != nil {
			t.Fatal(err)
		}
		if got := last.Totals.Outcomes; got["2xx"] != n {
			t.Errorf("%v, want %d of 2xx", got, n)
		}
		if long := r.engine.threads[0].sockets.long; long != (n < shortInARow) {
			t.Errorf("after %d replies the thread still receives by itself: %v", n, long)
		}
	}
}

// idleOverPair is a connection that is idle, of an engine that is not at work, and the descriptor of its other end.
func idleOverPair(t *testing.T) (h stays, c *conn, far int) {
	t.Helper()
	r, err := Prepare(t.Context(), model.LoadPlan{URL: "http://127.0.0.1:1/", Connections: 1, Threads: 1, Requests: 1, TimeoutMS: 1000, KeepAlive: true, Engine: model.IOURing})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = unix.Close(pair[0]), unix.Close(pair[1]) })
	h = stays{r.engine.threads[0]}
	c = &h.conns[0]
	c.fd, c.state = int32(pair[0]), idle
	return h, c, pair[1]
}

// A send may fail when all of the reply has come: the connection is idle, and stays so until its end is told.
func TestASendThatFailsBehindItsReply(t *testing.T) {
	h, c, far := idleOverPair(t)
	c.heard = true
	h.cut(c, unix.EPIPE)
	if n, err := unix.Read(far, make([]byte, 1)); c.state != idle || n != 0 || err != nil {
		t.Errorf("state %v, want idle; its end at the other side: %d, %v", c.state, n, err)
	}
}

// What is received after a wait does not make what was there when it returned look late.
func TestALongReplyMakesNoShortOneLate(t *testing.T) {
	h, c, _ := idleOverPair(t)
	h.woke, h.now = 7, 7
	h.seen(c, &end{result: unix.POLLIN, flags: endFollows})
	if h.now != h.woke {
		t.Errorf("what is told next is dated %d, and was there at %d", h.now, h.woke)
	}
}

// What went of the very last request is counted when it is cut off, too: all that the server gets in the end.
func TestBytesOfTheLastSendAreCounted(t *testing.T) {
	for _, engine := range append(engines, stay, stayByRing) {
		over, took := make(chan struct{}), make(chan int64, 1)
		s := serveConns(t, func(_ *server, c *net.TCPConn) {
			<-over
			n, _ := io.Copy(io.Discard, c)
			took <- n
			c.Close()
		})
		plan := goesBy(engine, model.LoadPlan{URL: s.url, Connections: 1, Threads: 1, Requests: 1, TimeoutMS: 200, Method: "POST", Body: make([]byte, 64<<20)})
		got := phaseNamed(runPlan(t, t.Context(), plan), "hold")
		close(over)
		if n := <-took; got.Sent != n || n == 0 {
			t.Errorf("engine %q: %d bytes sent, and the server got %d", engine, got.Sent, n)
		}
	}
}

// The memory that is told before a load is what its threads map.
func TestMemoryOfRings(t *testing.T) {
	for _, plan := range []model.LoadPlan{{Connections: 1, KeepAlive: true}, {Connections: 300, KeepAlive: true}, {Connections: 3000, Threads: 2, KeepAlive: true}, {Connections: 300}} {
		plan.URL, plan.Engine, plan.Requests, plan.TimeoutMS, plan.Threads = "http://127.0.0.1:1/", model.IOURing, 1, 1000, max(plan.Threads, 1)
		r, err := Prepare(t.Context(), plan)
		if err != nil {
			t.Fatal(err)
		}
		mapped := int64(0)
		for _, h := range r.engine.threads {
			ring := h.poller.ring
			mapped += int64(len(ring.memory) + len(ring.callMemory) + len(ring.lent))
		}
		r.Close()
		if told := RingMemory(plan); told < mapped*9/10 || told > mapped*11/10 {
			t.Errorf("%d connections, %d threads: %d bytes are told, and %d mapped", plan.Connections, plan.Threads, told, mapped)
		}
	}
	if got := RingMemory(model.LoadPlan{Connections: 300, Threads: 2, KeepAlive: true}); got != 0 {
		t.Errorf("by epoll: %d bytes, want none", got)
	}
}
