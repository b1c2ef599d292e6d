package nginx

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func settingsOf(t *testing.T, src, accessLog string, version int) *Settings {
	t.Helper()
	list, err := Parse([]byte(src), "x")
	if err != nil {
		t.Fatal(err)
	}
	return newSettings(list, "/srv", accessLog, version)
}

func TestSettingsNumbers(t *testing.T) {
	e := settingsOf(t, `
worker_processes auto; worker_rlimit_nofile 1000;
error_log logs/error.log warn; error_log syslog:server=x crit;
events { worker_connections 64; }
stream { server { listen 5000-5002; listen 53 udp; proxy_pass 10.0.0.9:53; } }
http {
  keepalive_timeout 1m30s; keepalive_requests 50;
  log_format timed '$status $request_time $upstream_response_time';
  access_log /var/log/a.log; access_log logs/b.log timed buffer=32k flush=1s;
  upstream app { server 127.0.0.1:9000; server [::1]:9000 weight=2; server unix:/run/a.sock; server backend; keepalive 16; }
  upstream plain { server 10.0.0.1; }
  server { listen 80 backlog=10; listen [::]:80; server_name _ a.example; 
    location / { fastcgi_pass app; error_log /x/$e.log; }
    location /p { proxy_pass http://10.0.0.2/uri; access_log off; }
    location /u { proxy_pass http://unix:/run/b.sock:/uri; }
    location /v { proxy_pass http://$host; if ($x) { proxy_pass http://localhost:81; } }
    location /s { stub_status; }
  }
  server { listen *:80; listen localhost:8080 ssl; keepalive_timeout 10 20; access_log /var/log/c.log nosuch; }
  server { access_log syslog:server=x; access_log /var/log/$host.log; }
}`, "/var/log/default.log", 1022001)
	want := map[string]int{"0.0.0.0:80": 10, "[::]:80": 511, "127.0.0.1:8080": 511, "0.0.0.0:5000": 511, "0.0.0.0:5001": 511, "0.0.0.0:5002": 511}
	if d := cmp.Diff(want, e.Backlogs); d != "" {
		t.Errorf("backlogs (-want +got):\n%s", d)
	}
	want = map[string]int{"127.0.0.1:9000": 16, "[::1]:9000": 16, "unix:/run/a.sock": 16, "backend:80": 16, "10.0.0.1:80": 0,
		"10.0.0.2:80": 0, "unix:/run/b.sock": 0, "127.0.0.1:81": 0, "10.0.0.9:53": 0}
	if d := cmp.Diff(want, e.Keepalives); d != "" {
		t.Errorf("keepalives (-want +got):\n%s", d)
	}
	if e.WorkerProcesses != 0 || e.WorkerConnections != 64 || e.KeepaliveTimeout != 10 || e.KeepaliveRequests != 50 {
		t.Errorf("numbers: %+v", e)
	}
	if d := cmp.Diff(&StatusPage{"tcp", "127.0.0.1:80", "a.example", "/s"}, e.Status); d != "" {
		t.Errorf("status page (-want +got):\n%s", d)
	}
	wantErrors := []ErrorLog{{"/srv/logs/error.log", LevelWarn, ""}, {"syslog:server=x", 3, "goes to syslog"}, {"/x/$e.log", LevelError, ""}} // no error_log has variables
	if d := cmp.Diff(wantErrors, e.ErrorLogs); d != "" {
		t.Errorf("error logs (-want +got):\n%s", d)
	}
	type log struct {
		Path     string
		Buffered bool
		Unread   string
	}
	var logs []log
	for _, l := range e.AccessLogs {
		logs = append(logs, log{l.Path, l.Buffered, l.Unread})
	}
	wantLogs := []log{
		{"/srv/logs/b.log", true, ""},
		{"/var/log/c.log", false, "has a log_format in which no $status can be found"},
		{"syslog:server=x", false, "goes to syslog"},
	}
	if d := cmp.Diff(wantLogs, logs); d != "" {
		t.Errorf("access logs (-want +got):\n%s", d)
	}
}

func TestSettingsDefaults(t *testing.T) {
	e := settingsOf(t, "events {} http { server { location = /st { stub_status on; } } upstream a { server 1.2.3.4; } }",
		"/var/log/default.log", 1018000)
	if e.WorkerProcesses != 1 || e.WorkerConnections != 512 || e.KeepaliveTimeout != 75 || e.KeepaliveRequests != 100 {
		t.Errorf("numbers: %+v", e)
	}
	if d := cmp.Diff(map[string]int{"0.0.0.0:80": 511}, e.Backlogs); d != "" {
		t.Errorf("backlogs (-want +got):\n%s", d)
	}
	if len(e.AccessLogs) != 1 || e.AccessLogs[0].Path != "/var/log/default.log" {
		t.Errorf("access logs: %+v", e.AccessLogs)
	}
	if buffered, known := e.LogsBuffered(); buffered || !known {
		t.Errorf("buffered: %v %v", buffered, known)
	}
	if e.Status == nil || e.Status.URI != "/st" || e.Status.Host != "localhost" {
		t.Errorf("status page: %+v", e.Status)
	}
	e = settingsOf(t, "http { access_log off; upstream a { server 1.2.3.4; } server { listen 443 ssl; location /s { stub_status; } } }", "", 1030000)
	if _, known := e.LogsBuffered(); known || e.Status != nil || e.Keepalives["1.2.3.4:80"] != 32 {
		t.Errorf("newer nginx, TLS only, no log: %+v", e)
	}
}

func TestWhatIsRemembered(t *testing.T) {
	for src, want := range map[string]float64{
		"http { open_file_cache max=10; open_file_cache_errors on; }":                                                                                  60,
		"http { open_file_cache max=10; open_file_cache_errors on; open_file_cache_valid 10m; }":                                                       600,
		"http { open_file_cache max=10; open_file_cache_valid 10m; server { location / { open_file_cache_errors on; open_file_cache_valid 5s; } } }":   5,
		"http { open_file_cache max=10; open_file_cache_errors on; server { open_file_cache off; } }":                                                  60,
		"http { open_file_cache_errors on; server { } }":                                                                                               0,
		"http { open_file_cache max=10; }":                                                                                                             0,
		"http { open_file_cache max=10; open_file_cache_errors off; server { open_file_cache_valid 1h; } }":                                            0,
		"stream { open_file_cache max=10; open_file_cache_errors on; }":                                                                                0,
		"http { open_file_cache; open_file_cache_errors; server { location / { open_file_cache max=1; open_file_cache_errors on; } location /a {} } }": 60,
	} {
		if got := settingsOf(t, src, "", 0).RemembersMissing; got != want {
			t.Errorf("%s: %v seconds, want %v", src, got, want)
		}
	}
}

func TestPlainRoot(t *testing.T) {
	for src, want := range map[string]string{
		"http { server { root www/; } }": "/srv/www",
		"http { root /a; server { root /a; location / { try_files $uri $uri/ =404; } } }": "/a",
		"http { error_page 500 502 /50x.html; server { root /a; } }":                      "/a",
		"http { error_page 403 =404 /x; server { root /a; } }":                            "",
		"http { server { root /a; location /b { root /b; } } }":                           "",
		"http { server { root /a/$host; } }":                                              "",
		"http { server { root /a; location /b { alias /b; } } }":                          "",
		"http { server { root /a; location /b { internal; } } }":                          "",
		"http { server { root /a; location ~ /[.] { return 404; } } }":                    "",
		"http { server { root /a; location /b { try_files /c $uri; } } }":                 "",
		"http { server { root /a; location ~ php { fastcgi_pass 127.0.0.1:9000; } } }":    "",
		"http { server { root /a; location /l { content_by_lua_file x; } } }":             "",
		"http { server { root /a; } server { listen 81; } }":                              "",
		"http { server { location / { root /a; } } }":                                     "/a",
		"http { server { location / { root /a; } location /b { } } }":                     "",
		"http { server { location /b { root /a; } } }":                                    "",
		"http { server { } }": "",
	} {
		if got := settingsOf(t, src, "", 0).PlainRoot; got != want {
			t.Errorf("%s: %q, want %q", src, got, want)
		}
	}
}

func TestLimitsOfServers(t *testing.T) {
	e := settingsOf(t, "http { upstream a { server 10.0.0.1 max_conns=5 max_fails=0; server 10.0.0.2:81; server 10.0.0.3 down; } }", "", 0)
	if d := cmp.Diff(map[string]int{"10.0.0.1:80": 5, "10.0.0.3:80": 0}, e.MaxConns); d != "" {
		t.Errorf("max_conns (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string]int{"10.0.0.1:80": 0, "10.0.0.2:81": 1}, e.MaxFails); d != "" {
		t.Errorf("max_fails (-want +got):\n%s", d)
	}
	e = settingsOf(t, "http { upstream a { server 10.0.0.1 weight=5; server 10.0.0.2:81; server 10.0.0.3 down; server 10.0.0.4 backup; } upstream b { server 10.0.0.1; } }", "", 0)
	want := map[Server]int{{"a", "10.0.0.1:80"}: 5, {"a", "10.0.0.2:81"}: 1, {"b", "10.0.0.1:80"}: 1}
	if d := cmp.Diff(want, e.Weights); d != "" {
		t.Errorf("weights (-want +got):\n%s", d)
	}
}

func TestSeconds(t *testing.T) {
	for s, want := range map[string]float64{"75": 75, "75s": 75, "1m30s": 90, "500ms": 0.5, "1h 5m": 3900, "0": 0, "x": -1, "5q": -1, "m": -1} {
		if got := seconds(s, -1); got != want {
			t.Errorf("seconds(%q) = %v, want %v", s, got, want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	debian := parseBuildInfo([]byte("\x00\x7fELF nginx version: nginx/1.22.1\x00configure arguments: --with-cc-opt='-g' --prefix=/usr/share/nginx --conf-path=/etc/nginx/nginx.conf --http-log-path=/var/log/nginx/access.log --error-log-path=stderr --x\x00"))
	if d := cmp.Diff(buildInfo{"/usr/share/nginx", "/etc/nginx/nginx.conf", "stderr", "/var/log/nginx/access.log", 1022001}, debian, cmp.AllowUnexported(buildInfo{})); d != "" {
		t.Errorf("build (-want +got):\n%s", d)
	}
	source := parseBuildInfo([]byte("nginx version: nginx/1.9.15\x00"))
	if source.version != 1009015 {
		t.Errorf("version %d", source.version)
	}
	for title, c := range map[string]struct {
		build buildInfo
		want  paths
		g     string
	}{
		"nginx: master process /usr/sbin/nginx -g daemon on; master_process on;": {debian,
			paths{"/etc/nginx/nginx.conf", "/etc/nginx", "/usr/share/nginx", "stderr", "/var/log/nginx/access.log"}, "daemon on; master_process on;"},
		"nginx: master process nginx -g error_log /e.log; daemon off; -c x.conf -p rel -e /dev/null": {debian,
			paths{"/cwd/rel/x.conf", "/cwd/rel", "/cwd/rel", "/dev/null", "/var/log/nginx/access.log"}, "error_log /e.log; daemon off;"},
		"nginx: master process ./nginx": {source,
			paths{"/usr/local/nginx/conf/nginx.conf", "/usr/local/nginx/conf", "/usr/local/nginx", "/usr/local/nginx/logs/error.log", "/usr/local/nginx/logs/access.log"}, ""},
		"nginx: master process nginx -q -c/a/b.conf": {debian,
			paths{"/a/b.conf", "/a", "/usr/share/nginx", "stderr", "/var/log/nginx/access.log"}, ""},
	} {
		o := parseTitle(title)
		if d := cmp.Diff(c.want, o.resolve(c.build, "/cwd"), cmp.AllowUnexported(paths{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", title, d)
		}
		if o.directives != c.g {
			t.Errorf("%s: -g is %q, want %q", title, o.directives, c.g)
		}
	}
}

func FuzzCommandLine(f *testing.F) {
	f.Add("nginx: master process nginx -g daemon off; -c x")
	f.Fuzz(func(t *testing.T, title string) {
		p := parseTitle(title).resolve(parseBuildInfo([]byte(title)), "/")
		if p.conf == "" || p.conf[0] != '/' {
			t.Errorf("%q: configuration %q", title, p.conf)
		}
	})
}

// Who writes a configuration has us send nothing but a question for a status page.
func TestAStatusPageIsOneWord(t *testing.T) {
	for conf, want := range map[string]*StatusPage{
		"location = \"/s HTTP/1.0\r\n\r\nDELETE /x\" { stub_status; }":        nil,
		"location = '/a b' { stub_status; }":                                  nil,
		"server_name \"a\r\nX: y\"; location = /s { stub_status; }":           {"tcp", "127.0.0.1:80", "localhost", "/s"},
		"server_name \"a\r\nX: y\" b.example; location = /s { stub_status; }": {"tcp", "127.0.0.1:80", "b.example", "/s"},
	} {
		conf = strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(conf)
		got := settingsOf(t, "events {} http { server { listen 127.0.0.1:80; "+conf+" } }", "", 1024000).Status
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q: %s", conf, d)
		}
	}
}
