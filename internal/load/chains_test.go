package load

import (
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"plimsoll/internal/model"
)

// A request is sent before the end of its connect is told, and either may meet with an error first that is the other's.
func TestWhoseErrorItIs(t *testing.T) {
	for _, c := range []struct {
		why     string
		sent    bool
		send    syscall.Errno
		connect syscall.Errno
		given   outcome
		broke   syscall.Errno
		lost    syscall.Errno
	}{
		{why: "all went", sent: true},
		{why: "the connect's own", connect: unix.EADDRNOTAVAIL, send: unix.EPIPE, given: failure(connectFailed, int(unix.EADDRNOTAVAIL)), lost: unix.EPIPE},
		{why: "the send took the connect's", connect: unix.ECONNABORTED, send: unix.ECONNREFUSED, given: failure(connectFailed, int(unix.ECONNREFUSED)), lost: unix.ECONNREFUSED},
		{why: "the same, where the connect then says that it stands", send: unix.ECONNREFUSED, given: failure(connectFailed, int(unix.ECONNREFUSED)), lost: unix.ECONNREFUSED},
		{why: "the send's own", send: unix.EFAULT, lost: unix.EFAULT},
		{why: "the server broke it when the request had gone", sent: true, connect: unix.ECONNRESET, broke: unix.ECONNRESET},
	} {
		r, err := Prepare(t.Context(), model.LoadPlan{URL: "http://127.0.0.1:1/", Connections: 1, Threads: 1, Requests: 1, TimeoutMS: 1000, Engine: model.IOURing})
		if err != nil {
			t.Fatal(err)
		}
		h := r.engine.threads[0].protocol.(*chains)
		p := &h.conns[0]
		p.asked = h.choose()
		h.begin(p, hold, 0, 0)
		n := 0
		if c.sent {
			n = len(p.asked.bytes)
		}
		h.sendEnded(p, n, c.send)
		h.connectEnded(p, c.connect)
		if l := h.links[0]; l.given != c.given || l.broke != c.broke || syscall.Errno(p.lost) != c.lost {
			t.Errorf("%s: ended by %v, broken by %v, not sent for %v; want %v, %v, %v", c.why, l.given, l.broke, syscall.Errno(p.lost), c.given, c.broke, c.lost)
		}
		if p.stood != (c.given == 0) {
			t.Errorf("%s: it stood: %v", c.why, p.stood)
		}
		r.Close()
	}
}

// A server that breaks connections when it has read the request is told as that, however many begin at once.
func TestConnectionsThatAreBrokenOnceTheyStand(t *testing.T) {
	s := serveConns(t, func(_ *server, c *net.TCPConn) {
		_, _ = c.Read(make([]byte, 1<<10))
		_ = c.SetLinger(0)
		c.Close()
	})
	for _, engine := range engines {
		plan := model.LoadPlan{URL: s.url, Connections: 50, Threads: 1, Requests: 1000, TimeoutMS: 30_000, Engine: engine}
		if got := phaseNamed(runPlan(t, t.Context(), plan), "hold"); got.Outcomes["read:ECONNRESET"] != 1000 {
			t.Errorf("engine %q: %v, want 1000 of read:ECONNRESET", engine, got.Outcomes)
		}
	}
}
