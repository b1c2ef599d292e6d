package load

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"

	"plimsoll/internal/model"
)

// What is counted is what went over the connections: of replies that fit into a read, and of those that the kernel throws away.
func TestBytesAreCounted(t *testing.T) {
	long := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", 5*bufferSize, strings.Repeat("x", 5*bufferSize))
	for why, c := range map[string]struct {
		reply  string
		change func(*model.LoadPlan)
	}{
		"short":         {okReply, func(*model.LoadPlan) {}},
		"long":          {long, func(*model.LoadPlan) {}},
		"a new one":     {okReply, func(p *model.LoadPlan) { p.KeepAlive = false }},
		"by io_uring":   {long, func(p *model.LoadPlan) { p.KeepAlive, p.Engine = false, model.IOURing }},
		"they stay":     {long, func(p *model.LoadPlan) { p.Engine = model.IOURing }},
		"in a rate":     {long, func(p *model.LoadPlan) { p.Engine, p.Rate = model.IOURing, 1000 }},
		"a long POST":   {long, func(p *model.LoadPlan) { p.Engine, p.Method, p.Body = model.IOURing, "POST", make([]byte, 1<<20) }},
		"open loop":     {long, func(p *model.LoadPlan) { p.Rate = 1000 }},
		"pipelined":     {okReply, func(p *model.LoadPlan) { p.Pipeline = 4 }},
		"both":          {long, func(p *model.LoadPlan) { p.Pipeline = 4 }},
		"a long body":   {okReply, func(p *model.LoadPlan) { p.Method, p.Body = "POST", make([]byte, 1<<20) }},
		"over TLS":      {okReply, func(p *model.LoadPlan) { p.TLS = &model.TLSPlan{Insecure: true} }},
		"over TLS, too": {long, func(p *model.LoadPlan) { p.TLS, p.Pipeline = &model.TLSPlan{Insecure: true}, 4 }},
	} {
		plan := model.LoadPlan{Connections: 3, Threads: 1, Requests: 60, KeepAlive: true, TimeoutMS: 600_000}
		c.change(&plan)
		var s *server
		if plan.TLS != nil {
			s = serveTLS(t, &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}}, sayTLS(c.reply))
		} else if plan.Body != nil {
			s = serveConns(t, func(_ *server, conn *net.TCPConn) { answerBodies(conn, len(plan.Body), c.reply) })
		} else {
			s = serve(t, say(c.reply))
		}
		plan.URL = s.url
		j, err := prepare(plan)
		if err != nil {
			t.Fatal(err)
		}
		got := phaseNamed(runPlan(t, t.Context(), plan), "hold")
		if in, out := int64(60*len(c.reply)), int64(60*len(j.requests[0].bytes)); got.Received != in || got.Sent != out {
			t.Errorf("%s: %d bytes received and %d sent, want %d and %d", why, got.Received, got.Sent, in, out)
		}
	}
}

// What went of a request that was cut off by its timeout is counted, by each engine.
func TestBytesOfARequestThatWasCutOffAreCounted(t *testing.T) {
	for _, engine := range append(engines, stay, stayByRing) {
		hold := make(chan struct{})
		s := serveConns(t, func(_ *server, c *net.TCPConn) { <-hold; c.Close() })
		plan := goesBy(engine, model.LoadPlan{URL: s.url, Connections: 2, Threads: 1, Requests: 4, TimeoutMS: 300, Method: "POST", Body: make([]byte, 64<<20)})
		got := phaseNamed(runPlan(t, t.Context(), plan), "hold")
		close(hold)
		if got.Outcomes["write:timeout"] != 4 || got.Sent == 0 || got.Sent >= 4*64<<20 {
			t.Errorf("engine %q: %d bytes sent, and %v; want 4 cut off, and a part of each", engine, got.Sent, got.Outcomes)
		}
	}
}

// answerBodies answers each request with a body of so many bytes when all of it is there.
func answerBodies(c *net.TCPConn, size int, reply string) {
	defer c.Close()
	b := make([]byte, 64<<10)
	for got, head := 0, -1; ; {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		if head < 0 {
			head = strings.Index(string(b[:n]), "\r\n\r\n") + 4 // it comes in one piece
		}
		if got += n; got == head+size {
			if got, head = 0, -1; !say(reply)(c, 0) {
				return
			}
		}
	}
}
