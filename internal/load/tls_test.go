package load

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
)

// agreed adds handshakes up.
func agreed(r Record) (full, resumed int64) {
	if r.TLS == nil {
		return 0, 0
	}
	for _, h := range r.TLS.Handshakes {
		if h.Resumed {
			resumed += h.Count
		} else {
			full += h.Count
		}
	}
	return full, resumed
}

func TestOverTLS(t *testing.T) {
	a := newAuthority(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, c := range []struct {
			why           string
			plan          model.LoadPlan
			never         bool
			full, resumed int64
		}{
			{"keep-alive", model.LoadPlan{Connections: 7, Threads: 3, KeepAlive: true}, false, 7, 0},
			{"sessions resumed", model.LoadPlan{Connections: 7, Threads: 1}, false, 7, 496},
			{"sessions never resumed", model.LoadPlan{Connections: 7, Threads: 3}, true, 503, 0},
			{"a fixed rate", model.LoadPlan{Connections: 4, Threads: 2, KeepAlive: true, Rate: 2000}, false, 4, 0},
		} {
			t.Run(tls.VersionName(version)+" "+c.why, func(t *testing.T) {
				config := &tls.Config{Certificates: []tls.Certificate{a.issue(nil)}, MaxVersion: version, NextProtos: []string{"h2", "http/1.1"}}
				s := serveTLS(t, config, sayTLS(okReply))
				c.plan.URL, c.plan.Requests, c.plan.TimeoutMS = s.url, 503, 60_000
				c.plan.TLS = &model.TLSPlan{CACert: a.file(), NeverResume: c.never}
				all := runPlan(t, context.Background(), c.plan)
				if diff := cmp.Diff(map[string]int64{"2xx": 503}, phaseNamed(all, "hold").Outcomes); diff != "" {
					t.Fatalf("(-want +got):\n%s\n%v", diff, all[len(all)-1].Causes)
				}
				s.mustCount(t, 503)
				last := all[len(all)-1]
				full, resumed := agreed(last)
				if c.plan.KeepAlive { // requests may be used up before the last one is opened
					c.full = min(s.connections.Load(), c.full)
				}
				if full != c.full || resumed != c.resumed || s.connections.Load() != full+resumed {
					t.Errorf("%d full handshakes and %d resumed, want %d and %d; the server saw %d connections", full, resumed, c.full, c.resumed, s.connections.Load())
				}
				if last.TLS.Full.Count != full || last.TLS.Resumed.Count != resumed || last.TLS.Full.P50 == 0 {
					t.Errorf("the times of %d full and %d resumed handshakes: %+v", full, resumed, last.TLS)
				}
				if h := last.TLS.Handshakes[0]; h.Phase != "hold" || h.Version != tlsVersionName(version) || !strings.HasPrefix(h.Cipher, "TLS_") {
					t.Errorf("agreed upon: %+v", h)
				}
				// One connection is measured, and others may use up the requests before its thread has a CPU.
				if c.plan.Threads > 1 && c.plan.Rate == 0 {
					return
				}
				if last.TLS.Crypto.Count == 0 || last.TLS.Crypto.Seconds == 0 {
					t.Errorf("what sealing took was not measured: %+v", last.TLS.Crypto)
				}
			})
		}
	}
}

func TestHowHandshakesEnd(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	with := func(change func(*x509.Certificate)) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{a.issue(change)}}
	}
	clientCert, clientKey := files(t, a.issue(nil))
	strange, strangeKey := files(t, other.issue(nil))
	asks := func(version uint16) *tls.Config {
		c := with(nil)
		c.ClientAuth, c.ClientCAs, c.MaxVersion = tls.RequireAndVerifyClientCert, x509.NewCertPool(), version
		c.ClientCAs.AddCert(a.cert)
		return c
	}
	for _, c := range []struct {
		why    string
		server *tls.Config
		plan   model.TLSPlan
		want   string
	}{
		{"a right certificate", with(nil), model.TLSPlan{}, "2xx"},
		{"one of TLS 1.2", with(nil), model.TLSPlan{MaxVersion: "1.2", Ciphers: []string{"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"}}, "2xx"},
		{"another name by SNI", with(nil), model.TLSPlan{ServerName: "service.example"}, "2xx"},
		{"an expired certificate", with(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }), model.TLSPlan{}, "tls:certificate_expired"},
		{"one that begins later", with(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }), model.TLSPlan{}, "tls:certificate_not_yet_valid"},
		{"one for another host", with(func(c *x509.Certificate) { c.IPAddresses = nil }), model.TLSPlan{}, "tls:certificate_wrong_host"},
		{"another name by SNI that it is not for", with(nil), model.TLSPlan{ServerName: "other.example"}, "tls:certificate_wrong_host"},
		{"one for clients", with(func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[1:] }), model.TLSPlan{}, "tls:certificate_invalid"},
		{"one of an unknown authority", &tls.Config{Certificates: []tls.Certificate{other.issue(nil)}}, model.TLSPlan{}, "tls:certificate_unknown_authority"},
		{"one signed by itself", &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}}, model.TLSPlan{}, "tls:certificate_self_signed"},
		{"one signed by itself, and no check", &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}}, model.TLSPlan{Insecure: true}, "2xx"},
		{"no version in common", &tls.Config{Certificates: with(nil).Certificates, MinVersion: tls.VersionTLS13}, model.TLSPlan{MaxVersion: "1.2"}, "tls:alert_protocol_version"},
		{"no cipher in common", &tls.Config{Certificates: with(nil).Certificates, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384}},
			model.TLSPlan{Ciphers: []string{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}}, "tls:alert_handshake_failure"},
		{"another protocol alone", &tls.Config{Certificates: with(nil).Certificates, NextProtos: []string{"other"}}, model.TLSPlan{}, "tls:alert_no_application_protocol"},
		{"a client certificate", asks(tls.VersionTLS13), model.TLSPlan{Cert: clientCert, Key: clientKey}, "2xx"},
		{"no client certificate", asks(tls.VersionTLS13), model.TLSPlan{}, "tls:alert_certificate_required"},
		{"no client certificate, TLS 1.2", asks(tls.VersionTLS12), model.TLSPlan{}, "tls:alert_handshake_failure"},
		{"a stranger's client certificate", asks(tls.VersionTLS13), model.TLSPlan{Cert: strange, Key: strangeKey}, "tls:alert_unknown_ca"},
		{"a stranger's client certificate, TLS 1.2", asks(tls.VersionTLS12), model.TLSPlan{Cert: strange, Key: strangeKey}, "tls:alert_unknown_ca"},
	} {
		t.Run(strings.ReplaceAll(c.why, " ", "_"), func(t *testing.T) {
			s := serveTLS(t, c.server, sayTLS(okReply))
			c.plan.CACert = a.file()
			all := runPlan(t, context.Background(), model.LoadPlan{URL: s.url, Connections: 2, Threads: 1, Requests: 4, TimeoutMS: 60_000, TLS: &c.plan})
			if diff := cmp.Diff(map[string]int64{c.want: 4}, phaseNamed(all, "hold").Outcomes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			last := all[len(all)-1]
			if cause := last.Causes[c.want]; (cause == "") != (c.want == "2xx") {
				t.Errorf("the cause is told as %q", cause)
			}
			if want := int64(4); c.want == "2xx" {
				s.mustCount(t, want)
			} else if s.requests.Load() != 0 {
				t.Errorf("the server got %d requests", s.requests.Load())
			}
		})
	}
}

// Whoever answers there may be no server of TLS, or none that is well.
func TestHowConnectionsThatAreNoTLSEnd(t *testing.T) {
	for _, c := range []struct {
		why    string
		handle func(*net.TCPConn)
		want   string
	}{
		{"plain HTTP", func(c *net.TCPConn) {
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"))
			_, _ = io.Copy(io.Discard, c)
		}, "tls:not_tls"},
		{"the end at once", func(c *net.TCPConn) { _, _ = c.Read(make([]byte, 4096)) }, "tls:eof"},
		{"a reset", func(c *net.TCPConn) {
			_, _ = c.Read(make([]byte, 1))
			_ = c.SetLinger(0)
		}, "tls:ECONNRESET"},
		{"silence", func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) }, "tls:timeout"},
		{"half a record, then silence", func(c *net.TCPConn) {
			_, _ = c.Write([]byte{22, 3, 3, 0, 100, 2})
			_, _ = io.Copy(io.Discard, c)
		}, "tls:timeout"},
		{"half a record, then the end", func(c *net.TCPConn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write([]byte{22, 3, 3, 0, 100, 2})
		}, "tls:eof"},
		{"an alert", func(c *net.TCPConn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write([]byte{21, 3, 3, 0, 2, 2, 112})
		}, "tls:alert_unrecognized_name"},
		{"a handshake of nonsense", func(c *net.TCPConn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write([]byte{22, 3, 3, 0, 4, 99, 0, 0, 0})
			_, _ = io.Copy(io.Discard, c)
		}, "tls:protocol_error"},
	} {
		t.Run(strings.ReplaceAll(c.why, " ", "_"), func(t *testing.T) {
			s := serveConns(t, func(_ *server, raw *net.TCPConn) {
				defer raw.Close()
				c.handle(raw)
			})
			plan := model.LoadPlan{URL: "https" + s.url[len("http"):], Connections: 3, Threads: 1, Requests: 6, KeepAlive: true, TimeoutMS: 60_000}
			if c.want == "tls:timeout" {
				plan.TimeoutMS = 50
			}
			all := runPlan(t, context.Background(), plan)
			got := phaseNamed(all, "hold").Outcomes
			if late := got["connect:timeout"]; c.want == "tls:timeout" && late < 6 {
				delete(got, "connect:timeout")
				got[c.want] += late
			}
			if diff := cmp.Diff(map[string]int64{c.want: 6}, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, all[len(all)-1].Causes)
			}
			if missing := all[len(all)-1].Connections.Failed; missing != 3 {
				t.Errorf("%d connections never stood, want 3", missing)
			}
		})
	}
}

func TestHowRequestsOverTLSEnd(t *testing.T) {
	a := newAuthority(t)
	type answer = func(*tls.Conn, *net.TCPConn, int64) bool
	then := func(text string, do func(*tls.Conn, *net.TCPConn)) answer {
		return func(c *tls.Conn, raw *net.TCPConn, _ int64) bool {
			_, _ = c.Write([]byte(text))
			do(c, raw)
			return false
		}
	}
	announced := func(c *tls.Conn, _ *net.TCPConn) { _ = c.CloseWrite() }
	cutOff := func(_ *tls.Conn, raw *net.TCPConn) { raw.Close() }
	const lastReply = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
	const untilEnd = "HTTP/1.0 200 OK\r\n\r\nok"
	long := strings.Repeat("x", 1<<20)
	byteByByte := func(c *tls.Conn, _ *net.TCPConn, _ int64) bool {
		for i := range len(okReply) {
			if _, err := c.Write([]byte(okReply[i : i+1])); err != nil {
				return false
			}
		}
		return true
	}
	for _, c := range []struct {
		why    string
		answer answer
		want   string
	}{
		{"a reply in records of one byte", byteByByte, "2xx"},
		{"a long body", sayTLS(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(long), long)), "2xx"},
		{"a reply, and an announced end", then(lastReply, announced), "2xx"},
		{"a reply, and the end", then(lastReply, cutOff), "2xx"},
		{"a reply that ends with an announced end", then(untilEnd, announced), "2xx"},
		{"a reply that ends with the connection", then(untilEnd, cutOff), "read:no_close_notify"},
		{"more than was announced", sayTLS(okReply + "!"), "protocol:excess_data"},
		{"more in a record of its own", func(c *tls.Conn, _ *net.TCPConn, _ int64) bool {
			f := c.NetConn().(*forger)
			f.hold = true
			_, _ = c.Write([]byte(okReply))
			f.hold = false
			_, _ = c.Write([]byte("!"))
			return true
		}, "protocol:excess_data"},
		{"half a reply, and an announced end", then("HTTP/1.1 200 OK\r\nConte", announced), "read:eof"},
		{"half a reply, and the end", then("HTTP/1.1 200 OK\r\nConte", cutOff), "read:eof"},
		{"an end instead of a reply", then("", cutOff), "read:eof"},
		{"silence", sayTLS(""), "read:timeout"},
		{"half a record", func(_ *tls.Conn, raw *net.TCPConn, _ int64) bool {
			_, _ = raw.Write([]byte{23, 3, 3, 0, 100, 2})
			return true
		}, "read:timeout"},
		{"a record that nobody sealed", func(_ *tls.Conn, raw *net.TCPConn, _ int64) bool {
			_, _ = raw.Write([]byte("\x17\x03\x03\x00\x20" + strings.Repeat("x", 32)))
			return true
		}, "read:protocol_error"},
		{"an alert in the middle of a reply", alertAfter("HTTP/1.1 200 OK\r\nConte"), "read:alert_bad_record_mac"},
		{"a reset in the middle of a reply", then("HTTP/1.1 200 OK\r\nConte", func(_ *tls.Conn, raw *net.TCPConn) {
			_ = raw.SetLinger(0)
			raw.Close()
		}), "read:ECONNRESET"},
	} {
		t.Run(strings.ReplaceAll(c.why, " ", "_"), func(t *testing.T) {
			config := &tls.Config{Certificates: []tls.Certificate{a.issue(nil)}, MaxVersion: tls.VersionTLS13}
			s := serveTLS(t, config, c.answer)
			plan := model.LoadPlan{URL: s.url, Connections: 2, Threads: 1, Requests: 6, KeepAlive: true, TimeoutMS: 60_000, TLS: &model.TLSPlan{CACert: a.file()}}
			if c.want == "read:timeout" {
				plan.TimeoutMS = 300
			}
			all := runPlan(t, context.Background(), plan)
			got, sent := phaseNamed(all, "hold").Outcomes, int64(6)
			for _, early := range []string{"connect:timeout", "tls:timeout"} { // on a machine that has no time
				if n := got[early]; c.want == "read:timeout" && n < sent {
					sent -= n
					delete(got, early)
				}
			}
			if diff := cmp.Diff(map[string]int64{c.want: sent}, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, all[len(all)-1].Causes)
			}
			s.mustCount(t, sent)
		})
	}
}

// alertAfter says text, and then has the server find that what it is sent is forged.
func alertAfter(text string) func(*tls.Conn, *net.TCPConn, int64) bool {
	return func(c *tls.Conn, raw *net.TCPConn, _ int64) bool {
		_, _ = c.Write([]byte(text))
		forged := "\x17\x03\x03\x00\x20" + strings.Repeat("x", 32)
		c.NetConn().(*forger).next.Store(&forged)
		_, _ = c.Read(make([]byte, 1))
		return false
	}
}

// forger is a connection that may be made to read something else, and to hold back what
// it writes until more comes.
type forger struct {
	*net.TCPConn
	next atomic.Pointer[string]
	hold bool
	held []byte
}

func (f *forger) Write(b []byte) (int, error) {
	f.held = append(f.held, b...)
	if f.hold {
		return len(b), nil
	}
	_, err := f.TCPConn.Write(f.held)
	f.held = nil
	return len(b), err
}

func (f *forger) Read(b []byte) (int, error) {
	if text := f.next.Swap(nil); text != nil {
		return copy(b, *text), nil
	}
	return f.TCPConn.Read(b)
}

// What comes over TLS on a connection that waits for no reply: a word about why it is
// closed costs nobody anything, anything else the next request.
func TestARepliesBeforeTheRequestOverTLS(t *testing.T) {
	a := newAuthority(t)
	for said, want := range map[string]string{
		okReply: "protocol:unasked_reply",
		"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n": "5xx",
	} {
		s := serveConns(t, func(_ *server, raw *net.TCPConn) {
			defer raw.Close()
			c := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{a.issue(nil)}, MaxVersion: tls.VersionTLS12})
			// With TLS 1.2 resumed, or False Start, a server could be first; here it speaks in the
			// same flight as its Finished.
			if c.Handshake() == nil {
				_, _ = c.Write([]byte(said))
				_, _ = io.Copy(io.Discard, c)
			}
		})
		plan := model.LoadPlan{URL: "https" + s.url[len("http"):], Connections: 1, Requests: 3, TimeoutMS: 60_000, TLS: &model.TLSPlan{CACert: a.file()}}
		all := runPlan(t, context.Background(), plan)
		got := phaseNamed(all, "hold").Outcomes
		if want == "protocol:unasked_reply" { // where the request was quicker, it is a reply
			got[want] += got["2xx"]
			delete(got, "2xx")
		}
		if diff := cmp.Diff(map[string]int64{want: 3}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", said, diff)
		}
	}
}

// A handshake that is given up leaves no descriptor behind, though a goroutine waits in it.
func TestAHandshakeThatIsGivenUpClosesItsSocket(t *testing.T) {
	var ended atomic.Int64
	s := serveConns(t, func(s *server, raw *net.TCPConn) {
		s.connections.Add(1)
		_, _ = io.Copy(io.Discard, raw)
		ended.Add(1)
		raw.Close()
	})
	before := openFiles(t)
	all := runPlan(t, context.Background(), model.LoadPlan{URL: "https" + s.url[len("http"):], Connections: 10, Threads: 2, Requests: 20, TimeoutMS: 50})
	if n := phaseNamed(all, "hold").Outcomes["tls:timeout"]; n == 0 {
		t.Fatalf("no handshake was given up: %v", phaseNamed(all, "hold").Outcomes)
	}
	for deadline := time.Now().Add(time.Minute); ended.Load() < s.connections.Load() || openFiles(t) > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d files open, %d before; %d of %d connections ended", openFiles(t), before, ended.Load(), s.connections.Load())
		}
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// A server that does everything wrong in turn, over TLS.
func TestEveryRequestOverTLSEndsOnce(t *testing.T) {
	a := newAuthority(t)
	config := &tls.Config{Certificates: []tls.Certificate{a.issue(nil)}}
	var turn atomic.Int64
	s := serveConns(t, func(s *server, raw *net.TCPConn) {
		switch turn.Add(1) % 6 {
		case 0:
			raw.Close()
			return
		case 1:
			_ = raw.SetLinger(0)
			raw.Close()
			return
		case 2:
			_, _ = io.Copy(io.Discard, raw)
			raw.Close()
			return
		}
		c := tls.Server(raw, config)
		s.answerAll(c, func(int64) bool {
			n := turn.Add(1)
			_, _ = c.Write([]byte([]string{okReply, okReply, "", "nonsense\r\n", "HTTP/1.1 200 OK\r\nConte"}[n%5]))
			return n%3 > 0
		})
	})
	for _, plan := range []model.LoadPlan{
		{Connections: 20, Threads: 2, CalmMS: 50, RampMS: 100, DurationMS: 500, KeepAlive: true},
		{Connections: 20, Threads: 2, RampMS: 50, DurationMS: 500},
		{Connections: 20, Threads: 2, CalmMS: 50, RampMS: 100, DurationMS: 500, KeepAlive: true, Rate: 500},
		{Connections: 5, Threads: 1, Requests: 60, KeepAlive: true, Method: "POST", Body: make([]byte, 5<<20)},
	} {
		plan.URL, plan.TimeoutMS, plan.TLS = "https"+s.url[len("http"):], 50, &model.TLSPlan{CACert: a.file()}
		runPlan(t, context.Background(), plan) // which checks the sums
	}
}

// nginx's own count, and its own word on sessions, agree with ours.
func TestNginxCountsTheSame(t *testing.T) {
	a := newAuthority(t)
	cert, key := files(t, a.issue(nil))
	address, counts := startNginx(t, "ssl", "$status $ssl_session_reused $ssl_protocol",
		fmt.Sprintf("ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate %s; ssl_certificate_key %s; return 200 ok;", cert, key))
	want := map[string]int64{}
	for _, plan := range []model.LoadPlan{
		{Connections: 9, Threads: 2, Requests: 500, KeepAlive: true, TLS: &model.TLSPlan{}},
		{Connections: 9, Threads: 2, Requests: 100, TLS: &model.TLSPlan{}},
		{Connections: 9, Threads: 2, Requests: 100, TLS: &model.TLSPlan{MaxVersion: "1.2"}},
		{Connections: 9, Threads: 1, Requests: 50, TLS: &model.TLSPlan{NeverResume: true}},
	} {
		plan.URL, plan.TimeoutMS, plan.TLS.CACert = "https://"+address+"/", 60_000, a.file()
		all := runPlan(t, context.Background(), plan)
		if got := phaseNamed(all, "hold").Outcomes["2xx"]; got != plan.Requests {
			t.Fatalf("%d replies of %d: %+v %v", got, plan.Requests, phaseNamed(all, "hold").Outcomes, all[len(all)-1].Causes)
		}
		_, resumed := agreed(all[len(all)-1])
		version := "TLSv" + all[len(all)-1].TLS.Handshakes[0].Version
		if plan.KeepAlive {
			resumed = 0
		}
		want["200 r "+version] += resumed
		want["200 . "+version] += plan.Requests - resumed
	}
	if diff := cmp.Diff(want, counts()); diff != "" {
		t.Errorf("the access log (-ours +nginx's):\n%s", diff)
	}
}
