package haproxy

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/model"
)

// TestParse reads what an HAProxy 2.6 said with two of nine requests at the only server that is up, whose maxconn is 2.
func TestParse(t *testing.T) {
	text, err := os.ReadFile("testdata/stat-2.6.csv")
	if err != nil {
		t.Fatal(err)
	}
	list, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, v := range list {
		got[fmt.Sprintf("%s%v", v.signal.Name, v.labels)] = v.number
	}
	want := map[string]float64{
		"haproxy_frontend_current_sessions[site]": 5, "haproxy_frontend_limit_sessions[site]": 4000, "haproxy_frontend_current_session_rate[site]": 9,
		"haproxy_frontend_requests_denied_total[site]": 0, "haproxy_frontend_http_requests_total[site]": 9,
		"haproxy_server_up[app app1]": 1, "haproxy_server_current_queue[app app1]": 0, "haproxy_server_current_sessions[app app1]": 2, "haproxy_server_limit_sessions[app app1]": 2,
		"haproxy_server_weight[app app1 127.0.0.1:18001]": 1, "haproxy_server_sessions_total[app app1]": 6,
		"haproxy_server_weight[app app2 127.0.0.1:18002]": 1, "haproxy_server_sessions_total[app app2]": 0,
		"haproxy_server_http_responses_total[app app1 5xx]": 0, "haproxy_server_response_time_average_seconds[app app1]": 0.226,
		"haproxy_server_http_responses_total[app app2 5xx]": 0, "haproxy_server_response_time_average_seconds[app app2]": 0,
		"haproxy_server_check_up_down_total[app app2]": 1, "haproxy_server_check_duration_seconds[app app2]": 0, "haproxy_server_check_status[app app2 L4CON]": 1,
		"haproxy_backend_http_responses_total[app 5xx]": 0,
		"haproxy_server_up[app app2]":                   0, "haproxy_server_current_queue[app app2]": 0, "haproxy_server_current_sessions[app app2]": 0,
		"haproxy_backend_current_queue[app]": 3, "haproxy_backend_current_sessions[app]": 5, "haproxy_backend_queue_time_average_seconds[app]": 0.111,
		"haproxy_backend_retry_warnings_total[app]": 0, "haproxy_backend_redispatch_warnings_total[app]": 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestNoRateLimitIsNone: 0 is how HAProxy says that a frontend may begin any number of sessions.
func TestNoRateLimitIsNone(t *testing.T) {
	list, err := parse([]byte("# pxname,svname,type,rate,rate_lim\nsite,FRONTEND,0,30,30\nother,FRONTEND,0,31,0\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []value{{frontRate, 30, []string{"site"}}, {frontRateLimit, 30, []string{"site"}}, {frontRate, 31, []string{"other"}}}
	if diff := cmp.Diff(want, list, cmp.AllowUnexported(value{}), cmp.Comparer(func(a, b *model.Signal) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "HTTP/1.0 400 Bad request\r\n", "# pxname,svname,qcur,type\napp,BACKEND,many,1\n"} {
		if _, err := parse([]byte(text)); err == nil {
			t.Errorf("%q is no table of HAProxy's", text)
		}
	}
}

func TestConfiguration(t *testing.T) {
	const conf = "global\n  stats socket /run/haproxy/admin.sock mode 660 level admin # for us\n #stats socket /no\n stats socket unix@/run/b expose-fd listeners\n stats socket ipv4@127.0.0.1:9999\n stats timeout 30s\n" +
		" stats socket \"/run/a ;#b\" mode 600#x\n stats socket '/run/\\c'\n stats socket unix@/run/d\\ \\#e\n stats socket /run/f\" \"g\n stats socket \"\"\n"
	if diff := cmp.Diff([]string{"/run/haproxy/admin.sock", "/run/b", "/run/a ;#b", "/run/\\c", "/run/d #e", "/run/f g"}, sockets([]byte(conf))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a.cfg", "b.cfg", "c.cfg"}, files(strings.Fields("haproxy -W -f a.cfg -p /run/x.pid -f b.cfg -- c.cfg"))); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/stat-2.6.csv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parse(text)
		if err == nil && len(list) > 6*maxRows {
			t.Errorf("%d numbers", len(list))
		}
		sockets(text)
	})
}
