package nginx

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/host"
	"plimsoll/internal/model"
	"plimsoll/internal/probe/livetest"
	"plimsoll/internal/service/nginx"
)

const liveConf = `
user root; worker_processes 2; pid nginx.pid; daemon off;
error_log error.log;
events { worker_connections 64; }
http {
	log_format timed '$remote_addr "$request" $status $request_time $upstream_response_time';
	access_log access.log timed;
	client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
	open_file_cache max=10; open_file_cache_errors on;
	include sites/*.conf;
}`

const liveSite = `server {
	listen 127.0.0.1:8080 backlog=100;
	location = /ok { return 200 "ok"; }
	location = /refused { fastcgi_pass 127.0.0.1:9; }
	location = /status { stub_status; access_log off; }
}`

// live is a real nginx.
type live struct{ *livetest.Service }

// get asks for a page and returns its status; 0 when there was no answer.
func (l live) get(uri string) int {
	c, err := l.Dial("tcp", "127.0.0.1:8080")
	if err != nil {
		return 0
	}
	defer c.Close()
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", uri)
	reply, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	return reply.StatusCode
}

func TestLiveNginx(t *testing.T) {
	l := live{livetest.Start(t, map[string]string{"nginx.conf": liveConf, "sites/a.conf": liveSite}, "nginx", "-p", "DIR", "-c", "nginx.conf")}
	l.Until("nginx answers", func() bool { return l.get("/ok") == 200 })
	l.Until("it logged that", func() bool { // after the reply, and what is there already is not counted
		text, err := os.ReadFile(filepath.Join(l.Dir, "access.log"))
		return err == nil && strings.HasSuffix(string(text), "\n")
	})
	l.Sample(All())
	for range 7 {
		l.get("/ok")
	}
	for range 5 {
		l.get("/refused")
	}
	l.Sees("plimsoll_nginx_responses_total{200}", 7)
	l.Sees("plimsoll_nginx_responses_total{502}", 5)
	l.Sees("plimsoll_nginx_request_seconds_count{}", 12)
	l.Sees("plimsoll_nginx_upstream_response_seconds_count{}", 5)
	l.Sees("plimsoll_nginx_upstream_errors_total{127.0.0.1:9,connect,ECONNREFUSED}", 5)
	l.Sees("plimsoll_nginx_config_worker_processes{}", 2)
	l.Sees("plimsoll_nginx_config_worker_connections{}", 64)
	l.Sees("plimsoll_nginx_config_listen_backlog{127.0.0.1:8080}", 100)
	l.Sees("plimsoll_nginx_config_upstream_keepalive{127.0.0.1:9}", 0)
	l.Sees("plimsoll_nginx_config_access_log_buffered{}", 0)
	l.Sees("nginx_up{}", 1)
	l.Sees("nginx_connections_active{}", 1) // the question itself
	for _, s := range allSignals() {
		if st := l.Rec.States[s.Name]; st.State != model.Read {
			t.Errorf("%s: %+v", s.Name, st)
		}
	}
	if len(l.Rec.Lines) == 0 || !strings.HasPrefix(l.Rec.Lines[0], "nginx.error 20") {
		t.Errorf("events: %q", l.Rec.Lines)
	}
	l.socketsOfAWorker(t)
	l.rotate(t)
	if len(l.Rec.Notes) > 0 {
		t.Errorf("notes: %q", l.Rec.Notes)
	}
	l.reload()
}

// socketsOfAWorker opens connections and finds them counted.
func (l live) socketsOfAWorker(t *testing.T) {
	t.Helper()
	var held []net.Conn
	for range 50 {
		c, err := l.Dial("tcp", "127.0.0.1:8080")
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	l.Until("25 sockets in a worker", func() bool {
		l.Round()
		used := l.Rec.Values["plimsoll_nginx_worker_connections_used{}"]
		return used >= 25 && used <= 64
	})
	for _, c := range held {
		c.Close()
	}
}

// rotate does what logrotate does.
func (l live) rotate(t *testing.T) {
	t.Helper()
	access := filepath.Join(l.Dir, "access.log")
	if err := os.Rename(access, access+".1"); err != nil {
		t.Fatal(err)
	}
	l.get("/ok")
	l.Sees("plimsoll_nginx_responses_total{200}", 8)
	l.Signal(syscall.SIGUSR1)
	l.Until("the new log", func() bool { _, err := os.Stat(access); return err == nil })
	l.get("/ok")
	l.Sees("plimsoll_nginx_responses_total{200}", 9)
}

// reload changes the configuration; only then the numbers change. nginx takes its time,
// and until it has read the file there is a note of that.
func (l live) reload() {
	l.Write("nginx.conf", strings.Replace(liveConf, "worker_connections 64", "worker_connections 128", 1))
	l.Signal(syscall.SIGHUP)
	l.Sees("plimsoll_nginx_config_worker_connections{}", 128)
	l.get("/ok")
	l.Sees("plimsoll_nginx_responses_total{200}", 10)
}

func TestNoNginxIsAFact(t *testing.T) { livetest.CheckNone(t, All()) }

func TestLiveNginxThatTellsLittle(t *testing.T) {
	l := live{livetest.Start(t, map[string]string{"nginx.conf": `
pid nginx.pid; error_log error.log crit;
events { }
http {
	access_log syslog:server=127.0.0.1:514;
	client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
	server { listen 127.0.0.1:8080; location = /ok { return 200 "ok"; } location /p { proxy_pass http://127.0.0.1:9; } }
}`}, "nginx", "-p", "DIR", "-c", "DIR/nginx.conf", "-g", "daemon off; user root; worker_rlimit_nofile 321;")}
	l.Until("nginx answers", func() bool { return l.get("/ok") == 200 })
	l.Sample(All())
	l.get("/p")
	l.Sees("plimsoll_nginx_config_worker_rlimit_nofile{}", 321)
	l.Sees("plimsoll_nginx_config_worker_connections{}", 512)
	l.Sees("plimsoll_nginx_config_error_log_level{}", 3)
	for _, c := range []struct {
		signal *model.Signal
		state  model.State
		why    string
	}{
		{responses, model.Absent, "goes to syslog"}, {upstreamSum, model.Absent, "goes to syslog"},
		{upstreamErrors, model.Absent, "level crit"}, {errorLines, model.Read, ""},
		{missingThere, model.Absent, "open_file_cache_errors"},
		{requests, model.Absent, "stub_status"}, {bufferedLog, model.Absent, "no access log"}, {connsUsed, model.Read, ""},
	} {
		if st := l.Rec.States[c.signal.Name]; st.State != c.state || !strings.Contains(st.Why, c.why) {
			t.Errorf("%s: %+v, want %s, …%s…", c.signal.Name, st, c.state, c.why)
		}
	}
	for series := range l.Rec.Values {
		if strings.HasPrefix(series, responses.Name) || strings.HasPrefix(series, "nginx_") {
			t.Errorf("%s has a value", series)
		}
	}
}

func TestParseNofile(t *testing.T) {
	b := []byte("Limit                     Soft Limit           Hard Limit           Units     \nMax cpu time              unlimited            unlimited            seconds   \nMax open files            20                   4096                 files     \n")
	if n, err := parseNofile(b); err != nil || n != 20 {
		t.Errorf("got %v, %v", n, err)
	}
	for _, bad := range []string{"", "Max open files\n", "Max open files   unlimited  unlimited files\n"} {
		if n, err := parseNofile([]byte(bad)); err == nil {
			t.Errorf("%q was taken for %v", bad, n)
		}
	}
}

// A status page at a Unix socket is asked there, and nobody else is asked in nginx's place.
func TestLiveStatusAtAUnixSocket(t *testing.T) {
	l := livetest.Start(t, map[string]string{"nginx.conf": liveConf, "sites/a.conf": "server { listen unix:DIR/own.sock; location = /status { stub_status; } }"}, "nginx", "-p", "DIR", "-c", "nginx.conf")
	in := &instance{master: host.Proc{PID: l.PID}, root: "/"}
	ask := func(socket string) error {
		var a stubAsker
		a.ask(l.Host, in, &nginx.StatusPage{Network: "unix", Address: filepath.Join(l.Dir, socket), Host: "localhost", URI: "/status"}, time.Now())
		return (<-a.reply).err
	}
	l.Until("nginx answers", func() bool { return ask("own.sock") == nil })
	other, err := net.Listen("unix", filepath.Join(l.Dir, "other.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := ask("other.sock"); err == nil || !strings.Contains(err.Error(), "no process of the service listens") {
		t.Errorf("%v, want that nobody is asked there", err)
	}
}
