package load

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"plimsoll/internal/model"
)

func TestRequest(t *testing.T) {
	for _, c := range []struct {
		why  string
		plan model.LoadPlan
		want string
	}{
		{"a plain GET", model.LoadPlan{URL: "http://h:81/a?b=c#frag", KeepAlive: true},
			"GET /a?b=c HTTP/1.1\r\nHost: h:81\r\nUser-Agent: UA\r\n\r\n"},
		{"no path, IPv6, no keep-alive", model.LoadPlan{URL: "http://[::1]:80"},
			"GET / HTTP/1.1\r\nHost: [::1]:80\r\nUser-Agent: UA\r\nConnection: close\r\n\r\n"},
		{"a blank in the query", model.LoadPlan{URL: "http://h/a b?c=d e", KeepAlive: true},
			"GET /a%20b?c=d%20e HTTP/1.1\r\nHost: h\r\nUser-Agent: UA\r\n\r\n"},
		{"a zone", model.LoadPlan{URL: "http://[fe80::1%25lo]:81/", KeepAlive: true},
			"GET / HTTP/1.1\r\nHost: [fe80::1]:81\r\nUser-Agent: UA\r\n\r\n"},
		{"a body", model.LoadPlan{URL: "http://h/", Method: "POST", Body: []byte("x=1"), KeepAlive: true},
			"POST / HTTP/1.1\r\nHost: h\r\nUser-Agent: UA\r\nContent-Length: 3\r\n\r\nx=1"},
		{"an empty POST says so", model.LoadPlan{URL: "http://h/", Method: "POST", KeepAlive: true},
			"POST / HTTP/1.1\r\nHost: h\r\nUser-Agent: UA\r\nContent-Length: 0\r\n\r\n"},
		{"a length that is right", model.LoadPlan{URL: "http://h/", Method: "PUT", Body: []byte("x=1"), Headers: []string{"Content-Length: 3"}, KeepAlive: true},
			"PUT / HTTP/1.1\r\nHost: h\r\nUser-Agent: UA\r\nContent-Length: 3\r\n\r\nx=1"},
		{"a GET that says it has no body", model.LoadPlan{URL: "http://h/", Headers: []string{"Content-Length: 0"}, KeepAlive: true},
			"GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: UA\r\nContent-Length: 0\r\n\r\n"},
		{"a header twice, with a tab and other alphabets", model.LoadPlan{URL: "http://h/", Headers: []string{"Cookie: a=1", "Cookie:\tb=ü\t2 "}, KeepAlive: true},
			"GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: UA\r\nCookie: a=1\r\nCookie: b=ü\t2\r\n\r\n"},
		{"headers replace ours", model.LoadPlan{URL: "http://h/", Headers: []string{"host: other", "USER-AGENT:me", "X-A: b: c "}, KeepAlive: true},
			"GET / HTTP/1.1\r\nhost: other\r\nUSER-AGENT: me\r\nX-A: b: c\r\n\r\n"},
	} {
		c.plan.Connections, c.plan.Requests = 1, 1
		j, err := prepare(c.plan)
		if err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		got := strings.Replace(string(j.requests[0].bytes), "plimsoll/"+version(), "UA", 1)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.why, diff)
		}
	}
}

func TestCheckSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		want string
		spec func(*model.LoadPlan)
	}{
		{`url "http://h/": what is said about TLS is for https:// alone`, func(p *model.LoadPlan) { p.TLS = &model.TLSPlan{} }},
		{`TLS versions "1.4" to "": want 1.0, 1.1, 1.2 or 1.3`, func(p *model.LoadPlan) { p.URL, p.TLS = "https://h/", &model.TLSPlan{MinVersion: "1.4"} }},
		{`TLS versions 1.3 to 1.2: want the lower one first`, func(p *model.LoadPlan) {
			p.URL, p.TLS = "https://h/", &model.TLSPlan{MinVersion: "1.3", MaxVersion: "1.2"}
		}},
		{`cipher "AES": want IANA's name of one that Go knows, like TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`, func(p *model.LoadPlan) {
			p.URL, p.TLS = "https://h/", &model.TLSPlan{Ciphers: []string{"AES"}}
		}},
		{`cipher TLS_AES_128_GCM_SHA256: those of TLS 1.3 are not for choosing; limit the version to 1.2 to choose`, func(p *model.LoadPlan) {
			p.URL, p.TLS = "https://h/", &model.TLSPlan{Ciphers: []string{"TLS_AES_128_GCM_SHA256"}}
		}},
		{`client certificate: give both its file and the file of its private key`, func(p *model.LoadPlan) { p.URL, p.TLS = "https://h/", &model.TLSPlan{Cert: "c"} }},
		{`client certificate /nowhere with key /nowhere: want both as PEM: open /nowhere: no such file or directory`, func(p *model.LoadPlan) {
			p.URL, p.TLS = "https://h/", &model.TLSPlan{Cert: "/nowhere", Key: "/nowhere"}
		}},
		{`certificates to trust: open /nowhere: no such file or directory`, func(p *model.LoadPlan) { p.URL, p.TLS = "https://h/", &model.TLSPlan{CACert: "/nowhere"} }},
		{`certificates to trust, /dev/null: want at least one as PEM (-----BEGIN CERTIFICATE-----)`, func(p *model.LoadPlan) {
			p.URL, p.TLS = "https://h/", &model.TLSPlan{CACert: "/dev/null"}
		}},
		{`url "h/": want one that starts with http:// or https://`, func(p *model.LoadPlan) { p.URL = "h/" }},
		{`url "http:///x": want a host after http://`, func(p *model.LoadPlan) { p.URL = "http:///x" }},
		{`url "http://h:70000/": port "70000": want 1 to 65535`, func(p *model.LoadPlan) { p.URL = "http://h:70000/" }},
		{`url "http://u:p@h/": give user and password as an Authorization header, not in the URL`, func(p *model.LoadPlan) { p.URL = "http://u:p@h/" }},
		{`method "GE T": want GET, HEAD, POST, PUT, DELETE or the like`, func(p *model.LoadPlan) { p.Method = "GE T" }},
		{`header "A b: c": want "Name: value"`, func(p *model.LoadPlan) { p.Headers = []string{"A b: c"} }},
		{`header "A": want "Name: value"`, func(p *model.LoadPlan) { p.Headers = []string{"A"} }},
		{`header ": c": want "Name: value"`, func(p *model.LoadPlan) { p.Headers = []string{": c"} }},
		{`header "A: b\r\nC: d": want a value without line ends and other control characters`, func(p *model.LoadPlan) { p.Headers = []string{"A: b\r\nC: d"} }},
		{`header "A: b\n": want a value without line ends and other control characters`, func(p *model.LoadPlan) { p.Headers = []string{"A: b\n"} }},
		{`header "A: \x00": want a value without line ends and other control characters`, func(p *model.LoadPlan) { p.Headers = []string{"A: \x00"} }},
		{`header "A: \x1b[2J": want a value without line ends and other control characters`, func(p *model.LoadPlan) { p.Headers = []string{"A: \x1b[2J"} }},
		{`header "Content-Length: 5": the body has 0 bytes; leave the header out, it is set where it is needed`,
			func(p *model.LoadPlan) { p.Headers = []string{"Content-Length: 5"} }},
		{`header "content-length: 4": the body has 3 bytes; leave the header out, it is set where it is needed`,
			func(p *model.LoadPlan) { p.Body, p.Headers = []byte("x=1"), []string{"content-length: 4"} }},
		{`header "Transfer-Encoding: chunked": the body is sent as it is, in one piece; leave the header out`,
			func(p *model.LoadPlan) { p.Headers = []string{"Transfer-Encoding: chunked"} }},
		{`header "host: b": it was given before, and servers refuse two of it`, func(p *model.LoadPlan) { p.Headers = []string{"Host: a", "host: b"} }},
		{`header "Content-Length: 0": it was given before, and servers refuse two of it`, func(p *model.LoadPlan) { p.Headers = []string{"Content-Length: 0", "Content-Length: 0"} }},
		{`connections: 0: want 1 to 10000000`, func(p *model.LoadPlan) { p.Connections = 0 }},
		{`nothing ends the load: give a duration or a number of requests`, func(p *model.LoadPlan) { p.Requests = 0 }},
		{`rate: NaN requests/s: want 0 to 1e+08`, func(p *model.LoadPlan) { p.Rate = math.NaN() }},
		{`requests, durations and timeout must not be negative`, func(p *model.LoadPlan) { p.RampMS = -1 }},
	} {
		plan := model.LoadPlan{URL: "http://h/", Connections: 1, Requests: 1}
		c.spec(&plan)
		err := Check(plan)
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

func TestAnUnknownNameIsAnErrorOfItsClass(t *testing.T) {
	// The resolver refuses an empty label itself, without a server.
	plan := model.LoadPlan{URL: "http://no..such/", Connections: 1, Requests: 1}
	err := Run(context.Background(), plan, func(Record) error { return nil })
	if err == nil || !strings.HasPrefix(err.Error(), `resolve "no..such": dns:not_found: check the name`) {
		t.Errorf("got %v", err)
	}
}

func TestOutcomeNames(t *testing.T) {
	for want, o := range map[string]outcome{
		"2xx":                   outcome(2),
		"connect:ECONNREFUSED":  failure(connectFailed, 111),
		"connect:EADDRNOTAVAIL": failure(connectFailed, 99),
		"connect:timeout":       failure(connectFailed, timedOut),
		"write:EPIPE":           failure(writeFailed, 32),
		"read:eof":              failure(readFailed, sawEOF),
		"read:errno_251":        failure(readFailed, 251),
		"queue:timeout":         failure(queueFailed, timedOut),
		"queue:cancelled":       failure(queueFailed, cancelled),
		"protocol:bad_chunk":    failure(protocolFailed, int(badChunk)),
		"protocol:excess_data":  failure(protocolFailed, int(excessData)),

		"tls:ECONNRESET":                   failure(tlsFailed, 104),
		"tls:timeout":                      failure(tlsFailed, timedOut),
		"tls:certificate_expired":          failure(tlsFailed, int(certificateExpired)),
		"tls:alert_handshake_failure":      failure(tlsAlert, 40),
		"tls:alert_inappropriate_fallback": failure(tlsAlert, 86),
		"read:alert_bad_record_mac":        failure(readAlert, 20),
		"read:no_close_notify":             failure(readFailed, int(noCloseNotify)),
	} {
		if got := o.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// What io_uring has room for is a worker's share of the connections, on its own threads.
func TestIOURingHasRoomForAWorkersShare(t *testing.T) {
	plan := func(connections, threads int, part *model.Part) model.LoadPlan {
		return model.LoadPlan{URL: "http://10.0.0.2/", Connections: connections, Threads: threads, Requests: 10_000, TimeoutMS: 1000, Engine: model.IOURing, Part: part}
	}
	for name, c := range map[string]struct {
		plan model.LoadPlan
		want string
	}{
		"alone":                        {plan(mostChains, 1, nil), ""},
		"alone, too many":              {plan(mostChains+1, 1, nil), "connections a thread: ask for fewer"},
		"two workers":                  {plan(2*mostChains, 1, &model.Part{All: 2}), ""},
		"two workers, too many":        {plan(2*mostChains+1, 1, &model.Part{All: 2}), "a thread of each worker, whose share is 2049 for 1 threads"},
		"two workers of two threads":   {plan(4*mostChains, 2, &model.Part{All: 2}), ""},
		"threads are known there only": {plan(4*mostChains+1, 0, &model.Part{All: 2}), ""},
	} {
		err := Check(c.plan)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
