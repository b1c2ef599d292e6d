package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	xhttp2 "golang.org/x/net/http2"

	"plimsoll/internal/model"
)

// h2Server is x/net's server, over TCP or TLS, and what it counted.
type h2Server struct {
	url         string
	connections atomic.Int64
	requests    atomic.Int64
	mu          sync.Mutex
	outcomes    map[string]int64 // replies by class
	fields      map[string]bool  // what requests were like
}

// serveHTTP2 has a handler answer, over TLS if a configuration is given.
func serveHTTP2(t *testing.T, config *tls.Config, server *xhttp2.Server, answer http.HandlerFunc) *h2Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &h2Server{url: "http://" + l.Addr().String() + "/", outcomes: map[string]int64{}, fields: map[string]bool{}}
	if config != nil {
		s.url = "https://" + l.Addr().String() + "/"
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		s.mu.Lock()
		s.fields[fmt.Sprintf("%s %s %s %s", r.Method, r.URL, r.Host, r.Header.Get("X-Mark"))] = true
		s.mu.Unlock()
		answer(w, r)
	})
	opts := xhttp2.ServeConnOpts{Handler: handler, BaseConfig: &http.Server{ErrorLog: log.New(io.Discard, "", 0)}}
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
			s.connections.Add(1)
			all.Go(func() {
				defer c.Close()
				if config != nil {
					over := tls.Server(c, config)
					if over.Handshake() != nil {
						return
					}
					server.ServeConn(over, &opts)
					return
				}
				server.ServeConn(c, &opts)
			})
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

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

func TestHTTP2ExactlySoManyRequests(t *testing.T) {
	for _, c := range []struct{ connections, threads, streams int }{{1, 1, 1}, {3, 1, 7}, {4, 3, 32}} {
		s := serveHTTP2(t, nil, &xhttp2.Server{}, ok)
		plan := model.LoadPlan{URL: s.url, Connections: c.connections, Threads: c.threads, Requests: 2003, KeepAlive: true, HTTP2: true, Streams: c.streams, TimeoutMS: 60_000}
		all := runPlan(t, context.Background(), plan)
		if diff := cmp.Diff(map[string]int64{"2xx": 2003}, phaseNamed(all, "hold").Outcomes); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", c, diff)
		}
		if got := s.requests.Load(); got != 2003 {
			t.Errorf("%+v: the server counted %d", c, got)
		}
		if got := s.connections.Load(); got > int64(c.connections) { // a thread that was off its CPU may open none
			t.Errorf("%+v: the server saw %d connections", c, got)
		}
	}
}

func TestHTTP2OpenLoop(t *testing.T) {
	s := serveHTTP2(t, nil, &xhttp2.Server{}, ok)
	plan := model.LoadPlan{URL: s.url, Connections: 2, Threads: 2, CalmMS: 30, RampMS: 60, DurationMS: 300, Rate: 1000, KeepAlive: true, HTTP2: true, Streams: 8, TimeoutMS: 60_000}
	all := runPlan(t, context.Background(), plan)
	hold := phaseNamed(all, "hold")
	if diff := cmp.Diff(map[string]int64{"2xx": 300}, hold.Outcomes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := s.requests.Load(), all[len(all)-1].Totals.Requests; got != want {
		t.Errorf("the server counted %d, we %d", got, want)
	}
	if got := s.connections.Load(); got != 2 {
		t.Errorf("the server saw %d connections, want 2", got)
	}
}

func TestHTTP2ConnectionPerRequest(t *testing.T) {
	s := serveHTTP2(t, nil, &xhttp2.Server{}, ok)
	all := runPlan(t, context.Background(), model.LoadPlan{URL: s.url, Connections: 3, Threads: 1, Requests: 50, HTTP2: true, TimeoutMS: 60_000})
	hold := phaseNamed(all, "hold")
	if diff := cmp.Diff(map[string]int64{"2xx": 50}, hold.Outcomes); diff != "" || s.requests.Load() != 50 || s.connections.Load() != 50 || hold.Connect.Count != 50 {
		t.Errorf("%d requests and %d connections at the server, %d connects; (-want +got):\n%s", s.requests.Load(), s.connections.Load(), hold.Connect.Count, diff)
	}
}

func TestHTTP2WhatIsSent(t *testing.T) {
	body := bytes.Repeat([]byte("body "), 100_000)
	var wrong atomic.Int64
	s := serveHTTP2(t, nil, &xhttp2.Server{MaxUploadBufferPerStream: 1 << 16, MaxUploadBufferPerConnection: 1 << 16}, func(w http.ResponseWriter, r *http.Request) {
		if got, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(got, body) || r.ContentLength != int64(len(body)) {
			wrong.Add(1)
		}
		w.Header().Set("Trailer", "X-Sum")
		w.WriteHeader(201)
		_, _ = w.Write(make([]byte, 100_000))
		w.Header().Set("X-Sum", "1")
	})
	plan := model.LoadPlan{
		URL: s.url + "a?b=c", Method: "PUT", Headers: []string{"Host: example.org", "X-Mark: " + strings.Repeat("m", 20_000)}, Body: body,
		Connections: 2, Threads: 1, Requests: 40, KeepAlive: true, HTTP2: true, Streams: 5, TimeoutMS: 60_000,
	}
	all := runPlan(t, context.Background(), plan)
	if diff := cmp.Diff(map[string]int64{"2xx": 40}, phaseNamed(all, "hold").Outcomes); diff != "" || wrong.Load() > 0 || s.requests.Load() != 40 {
		t.Errorf("%d requests, %d with a wrong body; (-want +got):\n%s", s.requests.Load(), wrong.Load(), diff)
	}
	want := map[string]bool{"PUT /a?b=c example.org " + strings.Repeat("m", 20_000): true}
	if diff := cmp.Diff(want, s.fields); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestHTTP2RepliesOfAllKinds(t *testing.T) {
	for _, c := range []struct {
		method string
		answer http.HandlerFunc
		want   string
	}{
		{"HEAD", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "7") }, "2xx"},
		{"GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, "3xx"},
		{"GET", http.NotFound, "4xx"},
		{"GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(503) }, "5xx"},
		{"GET", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "rst_stream:INTERNAL_ERROR"},
		{"GET", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 3<<20)) }, "2xx"},
	} {
		s := serveHTTP2(t, nil, &xhttp2.Server{}, c.answer)
		plan := model.LoadPlan{URL: s.url, Method: c.method, Connections: 1, Threads: 1, Requests: 12, KeepAlive: true, HTTP2: true, Streams: 3, TimeoutMS: 60_000}
		all := runPlan(t, context.Background(), plan)
		if diff := cmp.Diff(map[string]int64{c.want: 12}, phaseNamed(all, "hold").Outcomes); diff != "" || s.requests.Load() != 12 || s.connections.Load() != 1 {
			t.Errorf("%s, want %s: %d requests, %d connections (-want +got):\n%s", c.method, c.want, s.requests.Load(), s.connections.Load(), diff)
		}
	}
}

func TestHTTP2OverTLS(t *testing.T) {
	for _, c := range []struct {
		streams int
		rate    float64
	}{{1, 0}, {32, 0}, {4, 2000}} {
		ca := newAuthority(t)
		config := &tls.Config{Certificates: []tls.Certificate{ca.issue(nil)}}
		config.NextProtos = []string{"h2"}
		s := serveHTTP2(t, config, &xhttp2.Server{}, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
			_, _ = w.Write(make([]byte, 50_000))
		})
		plan := model.LoadPlan{
			URL: s.url, Method: "POST", Body: make([]byte, 40_000), Connections: 2, Threads: 1, Requests: 100, KeepAlive: true,
			HTTP2: true, Streams: c.streams, Rate: c.rate, TimeoutMS: 60_000, TLS: &model.TLSPlan{CACert: ca.file()},
		}
		all := runPlan(t, context.Background(), plan)
		if diff := cmp.Diff(map[string]int64{"2xx": 100}, phaseNamed(all, "hold").Outcomes); diff != "" || s.requests.Load() != 100 {
			t.Errorf("%+v: %d requests (-want +got):\n%s", c, s.requests.Load(), diff)
		}
		if tls := all[len(all)-1].TLS; tls == nil || tls.Crypto.Count == 0 || tls.Crypto.Count > 100 {
			t.Errorf("%+v: TLS %+v, want the requests of some connections, at most 100", c, tls)
		}
	}
}

func TestHTTP2NotChosenOverTLS(t *testing.T) {
	for protocol, want := range map[string]string{"": "tls:no_http2", "http/1.1": "tls:alert_no_application_protocol"} {
		ca := newAuthority(t)
		config := &tls.Config{Certificates: []tls.Certificate{ca.issue(nil)}}
		if protocol != "" {
			config.NextProtos = []string{protocol}
		}
		s := serveHTTP2(t, config, &xhttp2.Server{}, ok)
		plan := model.LoadPlan{URL: s.url, Connections: 1, Threads: 1, Requests: 2, KeepAlive: true, HTTP2: true, Streams: 3, TimeoutMS: 60_000, TLS: &model.TLSPlan{CACert: ca.file()}}
		hold := phaseNamed(runPlan(t, context.Background(), plan), "hold")
		if diff := cmp.Diff(map[string]int64{want: 2}, hold.Outcomes); diff != "" || hold.Attempts != 2 {
			t.Errorf("%q: %d attempts (-want +got):\n%s", protocol, hold.Attempts, diff)
		}
	}
}

func TestHTTP2RefusedPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	l.Close()
	for _, rate := range []float64{0, 2000} {
		plan := model.LoadPlan{URL: url, Connections: 2, Threads: 1, Requests: 8, HTTP2: true, Streams: 16, KeepAlive: true, Rate: rate}
		got := phaseNamed(runPlan(t, context.Background(), plan), "hold")
		if d := cmp.Diff(map[string]int64{"connect:ECONNREFUSED": 8}, got.Outcomes); d != "" || got.Attempts != 8 {
			t.Errorf("rate %g: %d attempts to connect, want 8; outcomes (-want +got):\n%s", rate, got.Attempts, d)
		}
	}
}
