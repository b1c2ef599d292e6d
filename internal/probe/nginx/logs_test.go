package nginx

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readLines(t testing.TB, file string) [][]byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
}

// The fixtures were written by nginx 1.22.1 with these faults made for real.
func TestErrorLog(t *testing.T) {
	want := strings.TrimPrefix(`
error not_found
error upstream=127.0.0.1:19001 connect ECONNREFUSED
error upstream=127.0.0.1:19001 connect ECONNREFUSED
error upstream=127.0.0.1:19011 read timeout
error upstream=127.0.0.1:19012 read eof
error upstream=127.0.0.1:19013 read ECONNRESET
error upstream_protocol
error upstream=127.0.0.1:19016 connect timeout
error upstream=127.0.0.1:19001 connect ECONNREFUSED
warn upstream=127.0.0.1:19001 connect disabled
error upstream=127.0.0.1:19002 connect ECONNREFUSED
warn upstream=127.0.0.1:19002 connect disabled
error upstream=two connect no_live_upstreams
error upstream=unix:/run/full.sock connect EAGAIN
crit upstream=unix:/run/none.sock connect ENOENT
error not_found
error limit_req
error limit_conn
error not_found
error upstream=unknown connect ECONNREFUSED
crit upstream=127.0.0.1:19011 connect EADDRNOTAVAIL
crit upstream=127.0.0.1:19011 connect EADDRNOTAVAIL
warn worker_connections
alert worker_connections
alert worker_connections
crit accept_emfile
alert socket_emfile upstream=127.0.0.1:19014 connect EMFILE
crit open_emfile
warn limit_req_delay
`, "\n")
	var got strings.Builder
	for _, line := range readLines(t, "testdata/error.log") {
		e, ok := parseErrorLine(line)
		if !ok {
			t.Errorf("not understood: %s", line)
		}
		got.WriteString(e.level)
		if e.class != "" {
			got.WriteString(" " + e.class)
		}
		if e.upstream != "" {
			fmt.Fprintf(&got, " upstream=%s %s %s", e.upstream, e.phase, e.errno)
		}
		got.WriteString("\n")
	}
	if d := cmp.Diff(want, got.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestErrorLinesOfOtherShapes(t *testing.T) {
	for line, want := range map[string]errorLine{
		`2024/01/31 12:00:00 [notice] 1#1: using the "epoll" event method`:                                                                                                                                                  {level: "notice"},
		`2024/01/31 12:00:00 [error] 1#1: *7 connect() to [::1]:9000 failed (111: verweigert) while connecting to upstream, client: 1.2.3.4, server: x`:                                                                     {level: "error", upstream: "[::1]:9000", phase: "connect", errno: "ECONNREFUSED"},
		`2024/01/31 12:00:00 [error] 1#1: *7 connect() failed (111: x) while connecting to upstream, client: 1.2.3.4, server: 0.0.0.0:1, upstream: "10.0.0.1:5", bytes`:                                                     {level: "error", upstream: "10.0.0.1:5", phase: "connect", errno: "ECONNREFUSED"},
		`2024/01/31 12:00:00 [error] 1#1: *7 writev() failed (32: x) while sending request to upstream, client: c, upstream: "uwsgi://[fe80::1]:5"`:                                                                         {level: "error", upstream: "[fe80::1]:5", phase: "send", errno: "EPIPE"},
		`2024/01/31 12:00:00 [error] 1#1: *7 open() "/srv/a" failed (2: x" failed (2: No such file or directory), client: c, server: , request: "GET /a HTTP/1.1"`:                                                          {level: "error", class: "not_found", missing: `/srv/a" failed (2: x`},
		`2024/01/31 12:00:00 [warn] 1#1: *7 upstream server temporarily disabled while reading response header from upstream, client: c, upstream: "http://127.0.0.1:8001/"`:                                                {level: "warn", upstream: "127.0.0.1:8001", phase: "read", errno: "disabled"},
		`2024/01/31 12:00:00 [error] 1#1: *7 upstream SSL certificate verify error: (10:certificate has expired) while SSL handshaking to upstream, client: c, upstream: "https://127.0.0.1:8443/"`:                         {level: "error", upstream: "127.0.0.1:8443", phase: "connect", errno: "certificate: certificate has expired"},
		`2024/01/31 12:00:00 [error] 1#1: *7 upstream SSL certificate verify error: (24:invalid CA certificate) while SSL handshaking to upstream, client: c, upstream: "https://a:1"`:                                      {level: "error", upstream: "a:1", phase: "connect", errno: "certificate: invalid CA certificate"},
		`2024/01/31 12:00:00 [error] 1#1: *7 upstream SSL certificate verify error: (10:` + "\x1b" + `[2J) while SSL handshaking to upstream, client: c, upstream: "https://a:1"`:                                           {level: "error", upstream: "a:1", phase: "connect", errno: "certificate: other"},
		`2024/01/31 12:00:00 [error] 1#1: *7 upstream SSL certificate does not match "inside" while SSL handshaking to upstream, client: c, upstream: "https://a:1"`:                                                        {level: "error", upstream: "a:1", phase: "connect", errno: "certificate: another name"},
		`2024/01/31 12:00:00 [error] 1#1: *7 upstream sent too big header while reading response header from upstream, client: c, upstream: "http://127.0.0.1:8100/"`:                                                       {level: "error", upstream: "127.0.0.1:8100", phase: "read", errno: "header_too_big"},
		`2024/01/31 12:00:00 [error] 1#1: *7 upstream sent invalid header: "a b\x20..." while reading response header from upstream, client: c, upstream: "http://a:1/"`:                                                    {level: "error", upstream: "a:1", phase: "read", errno: "invalid_reply"},
		`2024/01/31 12:00:00 [error] 1#1: *7 upstream sent "Content-Length" and "Transfer-Encoding" headers at the same time while reading response header from upstream, client: c, upstream: "http://a:1/"`:               {level: "error", upstream: "a:1", phase: "read", errno: "invalid_reply"},
		`2024/01/31 12:00:00 [error] 1#1: *7 upstream sent unsupported FastCGI protocol version: 72 while reading response header from upstream, client: c, upstream: "fastcgi://a:1"`:                                      {level: "error", upstream: "a:1", phase: "read", errno: "invalid_reply"},
		`2024/01/31 12:00:00 [error] 1#1: *7 upstream sent unexpected FastCGI record: 9 while reading response header from upstream, client: c, upstream: "fastcgi://a:1"`:                                                  {level: "error", upstream: "a:1", phase: "read", errno: "invalid_reply"},
		`2024/01/31 12:00:00 [error] 1#1: *7 upstream sent duplicate header line: "Content-Length: 1", previous value: "Content-Length: 2" while reading response header from upstream, client: c, upstream: "http://a:1/"`: {level: "error", upstream: "a:1", phase: "read", errno: "invalid_reply"},
		`2024/01/31 12:00:00 [error] 1#1: *7 upstream sent unknown "Transfer-Encoding": "x" while reading response header from upstream, client: c, upstream: "http://a:1/"`:                                                {level: "error", upstream: "a:1", phase: "read", errno: "invalid_reply"},
		`2024/01/31 12:00:00 [error] 1#1: *7 upstream sent too large http2 frame: 9000000 while reading response header from upstream, client: c, upstream: "grpc://a:1"`:                                                   {level: "error", upstream: "a:1", phase: "read", errno: "invalid_reply"},
		`2024/01/31 12:00:00 [error] 1#1: *7 upstream sent no :status header while reading response header from upstream, client: c, upstream: "grpc://a:1"`:                                                                {level: "error", upstream: "a:1", phase: "read", errno: "invalid_reply"},
		`2024/01/31 12:00:00 [error] 1#1: *7 upstream rejected request with error 7 while reading response header from upstream, client: c, upstream: "grpc://a:1"`:                                                         {level: "error", upstream: "a:1", phase: "read", errno: "rejected"},
		`2024/01/31 12:00:00 [error] 1#1: *7 upstream prematurely sent response while reading response header from upstream, client: c, upstream: "https://a:1/"`:                                                           {level: "error", upstream: "a:1", phase: "read", errno: "invalid_reply"},
		`2024/01/31 12:00:00 [error] 1#1: *7 memcached sent invalid response: "x" while reading response header from upstream, client: c, upstream: "memcached://a:1"`:                                                      {level: "error", upstream: "a:1", phase: "read", errno: "invalid_reply"},
		`2024/01/31 12:00:00 [warn] 1#1: *7 upstream sent duplicate header line: "Expires: 1", previous value: "Expires: 2", ignored while reading response header from upstream, client: c, upstream: "http://a:1/"`:       {level: "warn", class: "upstream_protocol"},
		`2024/01/31 12:00:00 [warn] 1#1: *7 upstream sent data after final chunk while reading upstream, client: c, upstream: "http://a:1/"`:                                                                                {level: "warn", class: "upstream_protocol"},
		`2024/01/31 12:00:00 [warn] 1#1: *7 upstream sent more data than specified in "Content-Length" header while reading upstream, client: c, upstream: "http://a:1/"`:                                                   {level: "warn", class: "upstream_protocol"},
		`2024/01/31 12:00:00 [error] 1#1: *7 upstream sent no valid HTTP/1.0 header while reading response header from upstream, client: c, upstream: "http://a:1/"`:                                                        {level: "error", class: "upstream_protocol"},
		`2024/01/31 12:00:00 [error] 1#1: *7 FastCGI sent in stderr: "x (99: y)" while reading response header from upstream, client: c, upstream: "fastcgi://a:1"`:                                                         {level: "error", upstream: "a:1", phase: "read", errno: "EADDRNOTAVAIL", class: "fastcgi_stderr"},
	} {
		got, ok := parseErrorLine([]byte(line))
		if strings.Contains(line, "FastCGI sent") { // an application's text is not the system's number
			want.upstream, want.phase, want.errno = "", "", ""
		}
		if !ok || got != want {
			t.Errorf("%s\n got %+v %v\nwant %+v", line, got, ok, want)
		}
	}
	for _, line := range []string{"", "PHP message: x", "2024/01/31 12:00:00 [oops] 1#1: x", "2024/01/31 12:00:00 [error] x", "2024/01/31 12:00:00 [error"} {
		if e, ok := parseErrorLine([]byte(line)); ok {
			t.Errorf("%q was taken for %+v", line, e)
		}
	}
}

func FuzzErrorLine(f *testing.F) {
	b, err := os.ReadFile("testdata/error.log")
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		f.Add(bytes.TrimSpace(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, ok := parseErrorLine(line)
		if !ok && e.class+e.upstream != "" {
			t.Errorf("%q: %+v although not understood", line, e)
		}
		if (e.upstream == "") != (e.errno == "") || (e.upstream == "") != (e.phase == "") {
			t.Errorf("%q: %+v: upstream, phase and errno belong together", line, e)
		}
	})
}

// BenchmarkErrorLine answers: what does a line of an error log cost to parse?
func BenchmarkErrorLine(b *testing.B) {
	lines := readLines(b, "testdata/error.log")
	b.ReportAllocs()
	for b.Loop() {
		parseErrorLine(lines[20])
	}
}

func TestStubStatus(t *testing.T) {
	got, err := parseStub([]byte("Active connections: 1 \nserver accepts handled requests\n 24 24 25 \nReading: 0 Writing: 1 Waiting: 0 \n"))
	want := stub{active: 1, accepted: 24, handled: 24, requests: 25, writing: 1}
	if err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := parseStub([]byte("<html>")); err == nil {
		t.Error("an HTML page was taken")
	}
	if _, err := parseStub([]byte("Active connections: 99999999999999999999999 \nserver accepts handled requests\n 24 24 25 \nReading: 0 Writing: 1 Waiting: 0 \n")); err == nil {
		t.Error("a number that does not fit was taken")
	}
}

func FuzzStubStatus(f *testing.F) {
	f.Add([]byte("Active connections: 1 \nserver accepts handled requests\n 24 24 25 \nReading: 0 Writing: 1 Waiting: 0 \n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := parseStub(b); err != nil && s != (stub{}) {
			t.Error("both a value and an error")
		}
	})
}
