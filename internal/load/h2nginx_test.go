package load

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
)

// What nginx wrote into its log is what we counted, over TLS and without, whatever it answers. What was on its way
// when it ended a connection after so many requests was not answered, and is told.
func TestHTTP2CountsWhatNginxCounts(t *testing.T) {
	ca := newAuthority(t)
	cert, key := files(t, ca.issue(nil))
	ssl := fmt.Sprintf("ssl_certificate %s; ssl_certificate_key %s; ", cert, key)
	for _, c := range []struct {
		why, listen, server string
		over                *model.TLSPlan
		streams             int
		path                string
		class               string
		status              int
	}{
		{"h2c, one stream", "http2", "location / { return 200 hello; }", nil, 1, "/", "2xx", 200},
		{"h2c", "http2", "location / { return 200 hello; }", nil, 16, "/", "2xx", 200},
		{"an error", "http2", "location / { return 503; }", nil, 16, "/", "5xx", 503},
		{"h2", "ssl http2", ssl + "location / { return 200 hello; }", &model.TLSPlan{CACert: ca.file()}, 16, "/", "2xx", 200},
		{"few streams allowed", "http2", "http2_max_concurrent_streams 3; location / { return 204; }", nil, 16, "/", "2xx", 204},
		{"connections end", "http2", "keepalive_requests 50; location / { return 204; }", nil, 8, "/", "2xx", 204},
	} {
		address, counts := startNginx(t, c.listen, "$server_protocol $status", c.server)
		const n = 1500
		url := "http://" + address + c.path
		if c.over != nil {
			url = "https://" + address + c.path
		}
		plan := model.LoadPlan{URL: url, TLS: c.over, Connections: 3, Threads: 1, Requests: n, KeepAlive: true, HTTP2: true, Streams: c.streams, TimeoutMS: 60_000}
		got := phaseNamed(runPlan(t, context.Background(), plan), "hold").Outcomes
		want := map[string]int64{c.class: n}
		if gone := got["goaway:NO_ERROR"]; c.why == "connections end" && gone > 0 {
			want = map[string]int64{c.class: n - gone, "goaway:NO_ERROR": gone}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", c.why, d)
		}
		if d := cmp.Diff(map[string]int64{fmt.Sprint("HTTP/2.0 ", c.status): want[c.class]}, counts()); d != "" {
			t.Errorf("%s: nginx (-ours +its)\n%s", c.why, d)
		}
	}
}
