package change

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/service/nginx"
	"plimsoll/internal/service/phpfpm"
)

// edited makes a change of one nginx file that has no includes.
func edited(t testing.TB, src string, c Change) (string, error) {
	t.Helper()
	tree, err := nginx.Parse([]byte(src), "/x")
	if err != nil {
		return "", err
	}
	d := directives[c.Name]
	if !d.value().MatchString(c.To) {
		t.Fatalf("%s: %q is no value", c.Name, c.To)
	}
	e := &editor{c: c, tree: tree, log: "/logs/access.log", edits: map[string][]edit{}, src: map[string][]byte{"/x": []byte(src)}}
	if _, err := e.plan(d); err != nil {
		return "", err
	}
	out, err := apply([]byte(src), e.edits["/x"])
	return string(out), err
}

func TestEditNginx(t *testing.T) {
	for name, c := range map[string]struct {
		change    Change
		src, want string
	}{
		"in its place, quotes go":     {Change{Name: "worker_connections", To: "9"}, "events{worker_connections\n '1'\t;}", "events{worker_connections\n 9\t;}"},
		"where it is nowhere":         {Change{Name: "worker_connections", To: "9"}, "events {\n  use epoll; # x\n}\n", "events {\n  worker_connections 9;\n  use epoll; # x\n}\n"},
		"an empty block":              {Change{Name: "worker_connections", To: "9"}, "events { }", "events { worker_connections 9; }"},
		"a block of CRLF":             {Change{Name: "multi_accept", To: "on"}, "events {\r\n\tuse x;\r\n}", "events {\r\n\tmulti_accept on;\r\n\tuse x;\r\n}"},
		"before events":               {Change{Name: "worker_rlimit_nofile", To: "9"}, "user x;\n\nevents { }", "user x;\n\nworker_rlimit_nofile 9;\nevents { }"},
		"a comment is none":           {Change{Name: "worker_processes", To: "auto"}, "# worker_processes 1;\nworker_processes 2; events {}", "# worker_processes 1;\nworker_processes auto; events {}"},
		"everywhere":                  {Change{Name: "keepalive_timeout", To: "5s"}, "http { keepalive_timeout 1; server { keepalive_timeout 2 3; } }", "http { keepalive_timeout 5s; server { keepalive_timeout 5s; } }"},
		"and where it is inherited":   {Change{Name: "keepalive_timeout", To: "5s"}, "http {\n server { keepalive_timeout 2; }\n}", "http {\n keepalive_timeout 5s;\n server { keepalive_timeout 5s; }\n}"},
		"the same time, otherwise":    {Change{Name: "keepalive_timeout", To: "75s"}, "http { keepalive_timeout 75; server { keepalive_timeout 75ms; } }", "http { keepalive_timeout 75; server { keepalive_timeout 75s; } }"},
		"nginx's own time":            {Change{Name: "keepalive_timeout", To: "75s"}, "http { }", "http { }"},
		"a map's line is none":        {Change{Name: "sendfile", To: "on"}, "http { map $a $b { sendfile off; } sendfile off; }", "http { map $a $b { sendfile off; } sendfile on; }"},
		"no log given":                {Change{Name: "access_log", To: "buffer=8k"}, "http { }", "http { access_log /logs/access.log combined buffer=8k; }"},
		"logs of all sorts":           {Change{Name: "access_log", To: "buffer=8k flush=1s"}, "http { access_log a; access_log b main if=$x; access_log off; access_log syslog:server=x; access_log $h.log; access_log c main buffer=1k; }", "http { access_log a combined buffer=8k flush=1s; access_log b main buffer=8k flush=1s if=$x; access_log off; access_log syslog:server=x; access_log $h.log; access_log c main buffer=1k; }"},
		"logs off":                    {Change{Name: "access_log", To: "off"}, "http { server { access_log 'a b' main; } }", "http { access_log off; server { access_log off; } }"},
		"a listener without":          {Change{Name: "backlog", To: "9"}, "http { server { listen 80; } }", "http { server { listen 80 backlog=9; } }"},
		"the one that has options":    {Change{Name: "backlog", To: "9", Listen: "0.0.0.0:80"}, "http { server { listen 80; } server { listen *:80 reuseport; } server { listen 81; } }", "http { server { listen 80; } server { listen *:80 reuseport backlog=9; } server { listen 81; } }"},
		"a Unix socket":               {Change{Name: "backlog", To: "9"}, "http { server { listen unix:/x; } }", "http { server { listen unix:/x backlog=9; } }"},
		"the group's keepalive":       {Change{Name: "keepalive", To: "9", Upstream: "b"}, "http { upstream a { keepalive 1; } upstream b { server x; keepalive 2; } }", "http { upstream a { keepalive 1; } upstream b { server x; keepalive 9; } }"},
		"FastCGI keeps it":            {Change{Name: "keepalive", To: "9"}, "http {\n upstream b {\n  server x;\n  }\n server {\n  location / {\n   fastcgi_pass b;\n  }\n }\n}", "http {\n upstream b {\n  server x;\n   keepalive 9;\n  }\n server {\n  location / {\n   fastcgi_pass b;\n   fastcgi_keep_conn on;\n  }\n }\n}"},
		"FastCGI is told already":     {Change{Name: "keepalive", To: "9"}, "http { fastcgi_keep_conn on; upstream b { } server { location / { fastcgi_pass b; } location /x { fastcgi_keep_conn off; fastcgi_pass b; } } }", "http { fastcgi_keep_conn on; upstream b { keepalive 9; } server { location / { fastcgi_pass b; } location /x { fastcgi_keep_conn on; fastcgi_pass b; } } }"},
		"websockets were thought of":  {Change{Name: "keepalive", To: "9"}, "http { upstream b { } server { location / { proxy_pass http://b/x; proxy_http_version 1.1; proxy_set_header connection $c; } } }", "http { upstream b { keepalive 9; } server { location / { proxy_pass http://b/x; proxy_http_version 1.1; proxy_set_header connection $c; } } }"},
		"another group is left alone": {Change{Name: "keepalive", To: "9", Upstream: "b"}, "http { upstream b { } upstream bb { } server { proxy_pass http://bb; } }", "http { upstream b { keepalive 9; } upstream bb { } server { proxy_pass http://bb; } }"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := edited(t, c.src, c.change)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			again, err := edited(t, got, c.change)
			if err != nil || again != got {
				t.Errorf("once more: %q, %v", again, err)
			}
		})
	}
}

func TestEditNginxRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change    Change
		src, want string
	}{
		"several listeners": {Change{Name: "backlog", To: "9"}, "http { server { listen 80; listen 81; } }", "say which: 0.0.0.0:80, 0.0.0.0:81"},
		"no such listener":  {Change{Name: "backlog", To: "9", Listen: "0.0.0.0:1"}, "http { server { listen 80; } }", `no listen directive for "0.0.0.0:1" among 0.0.0.0:80`},
		"several groups":    {Change{Name: "keepalive", To: "9"}, "http { upstream a { } upstream b { } }", "say which: a, b"},
		"no group":          {Change{Name: "keepalive", To: "9"}, "http { }", "only a group keeps connections"},
		"no events":         {Change{Name: "worker_connections", To: "9"}, "http { }", "no events block"},
	} {
		if got, err := edited(t, c.src, c.change); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// Whatever the file: after an edit it parses, says what it should, and has lost
// nothing that stood between.
func FuzzEditNginx(f *testing.F) {
	f.Add("worker_processes 2;\nevents { worker_connections 10; } # x\nhttp { upstream a { server b; } server { listen 80; proxy_pass http://a; } }", uint8(0))
	f.Add("events{}\r\nhttp {\r\n access_log \"a;\";\r\n server { listen [::]:80 default_server; } }", uint8(7))
	f.Add("http { keepalive_timeout 'x' ; if ($a ~ \"}\") { } content_by_lua_block { } }", uint8(6))
	names := slices.Sorted(maps.Keys(directives))
	f.Fuzz(func(t *testing.T, src string, which uint8) {
		name := names[int(which)%len(names)]
		to := "9"
		for _, v := range []string{"on", "off", "7"} {
			if directives[name].value().MatchString(v) {
				to = v
			}
		}
		got, err := edited(t, src, Change{Name: name, To: to})
		if err != nil {
			return
		}
		if _, err := nginx.Parse([]byte(got), "/x"); err != nil {
			t.Fatalf("%s of %q became %q: %v", name, src, got, err)
		}
		again, err := edited(t, got, Change{Name: name, To: to})
		if err != nil || again != got {
			t.Fatalf("%s of %q became %q, and once more %q, %v", name, src, got, again, err)
		}
	})
}

func poolEdited(t testing.TB, dir, src, key, to string) (string, error) {
	t.Helper()
	file := filepath.Join(dir, "fpm.conf")
	if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
		t.Fatal(err)
	}
	entries, err := phpfpm.Parse([]byte(src), file)
	if err != nil {
		return "", err
	}
	_, e, _, err := poolEdit(entries, "www", "", key, to)
	if err != nil {
		return "", err
	}
	out, err := apply([]byte(src), []edit{e})
	return string(out), err
}

func TestEditPool(t *testing.T) {
	for src, want := range map[string]string{
		"[www]\npm.max_children=5\n":                              "[www]\npm.max_children=64\n",
		"[www]\r\n  pm.max_children = \"5\"  ; few\r\n":           "[www]\r\n  pm.max_children = 64  ; few\r\n",
		"[www]\npm.max_children = 5;few\n":                        "[www]\npm.max_children = 64;few\n",
		"[a]\npm.max_children = 5\n[www]\n  pm = static":          "[a]\npm.max_children = 5\n[www]\n  pm = static\n  pm.max_children = 64",
		"[www]\npm.max_children = 5\n; pm.max_children = 6\n":     "[www]\npm.max_children = 64\n; pm.max_children = 6\n",
		"[www]\npm.max_children = 5\npm.max_children = 6\n":       "[www]\npm.max_children = 5\npm.max_children = 64\n",
		"[www]\npm.max_children =\nlisten = 9000\n":               "[www]\npm.max_children =64\nlisten = 9000\n",
		"[www]\npm = static\nlisten = 9000\n[b]\npm = ondemand\n": "[www]\npm = static\npm.max_children = 64\nlisten = 9000\n[b]\npm = ondemand\n",
	} {
		if got, err := poolEdited(t, t.TempDir(), src, "pm.max_children", "64"); err != nil || got != want {
			t.Errorf("%q: got %q, want %q, %v", src, got, want, err)
		}
	}
}

func FuzzEditPool(f *testing.F) {
	f.Add("[www]\npm.max_children = '5' ; x\n")
	f.Add("[global]\n[www]\r\npm = static\r\n")
	f.Fuzz(func(t *testing.T, src string) {
		got, err := poolEdited(t, t.TempDir(), src, "pm.max_children", "64")
		if err != nil {
			return
		}
		entries, err := phpfpm.Parse([]byte(got), "x")
		if err != nil || phpfpm.Value(entries, "www", "pm.max_children") != "64" {
			t.Fatalf("%q became %q: %v", src, got, err)
		}
	})
}

func TestApplyEdits(t *testing.T) {
	got, err := apply([]byte("abcdef"), []edit{{4, 5, "E"}, {0, 0, "<"}, {1, 3, ""}, {6, 6, ">"}})
	if err != nil || string(got) != "<adEf>" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := apply([]byte("abc"), []edit{{0, 2, ""}, {1, 3, ""}}); err == nil {
		t.Error("two edits of the same bytes were made")
	}
}

func FuzzParseEntry(f *testing.F) {
	f.Add([]byte(`{"id":1,"state":"done","change":{"kind":"sysctl","name":"a","to":"b"},"parts":[{"place":{"sort":"kernel","path":"/x"},"old":"MQ==","new":"Mg=="}]}`))
	f.Add([]byte(`{"id":1,"state":"pending","parts":[{"place":{"sort":"cpus"}}],"service":{"sort":"nginx","pid":1}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := parseEntry(b)
		if err != nil {
			return
		}
		for _, p := range e.Parts {
			if s, err := p.Target.setting(); (s == nil) == (err == nil) {
				t.Errorf("%+v: %v, %v", p, s, err)
			}
			p.ours("x")
		}
	})
}

func FuzzParsers(f *testing.F) {
	f.Add("0,2-3", "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 77 1\n")
	f.Fuzz(func(t *testing.T, cpus, table string) {
		if set, err := parseCPUs(cpus); err == nil {
			if again, err := parseCPUs(cpuList(set)); err != nil || *again != *set {
				t.Errorf("%q became %q", cpus, cpuList(set))
			}
			cpuMask(set)
		}
		_ = parseListeners([]byte(table), map[string][]string{})
		cpuMounts(table)
		groupsOf(table)
		_, _ = sysctlPath(cpus)
	})
}

func TestParseListeners(t *testing.T) {
	all := map[string][]string{}
	err := parseListeners([]byte("head\n 0: 0100007F:1F90 0:0 0A a b c 0 0 77 1\n 1: 0100007F:1F91 0:0 01 a b c 0 0 78 1\n 2: 00000000000000000000000001000000:0050 0:0 0A a b c 0 0 79 1\n"), all)
	if d := cmp.Diff(map[string][]string{"127.0.0.1:8080": {"77"}, "[::1]:80": {"79"}}, all); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func TestSysctlPath(t *testing.T) {
	for name, want := range map[string]string{
		"net.core.somaxconn":              "/proc/sys/net/core/somaxconn",
		"net/ipv4/conf/eth0.1/rp_filter":  "/proc/sys/net/ipv4/conf/eth0.1/rp_filter",
		"net.ipv4.conf.eth0/1.rp_filter":  "/proc/sys/net/ipv4/conf/eth0.1/rp_filter",
		"net..core":                       "",
		"../x":                            "",
		"net/../../x":                     "",
		"":                                "",
		"/net":                            "",
		"net.core.somaxconn.":             "",
		"net/ipv4/conf/../conf/all/x":     "",
		"net.ipv4.conf.eth0/../x.forward": "",
	} {
		if got, err := sysctlPath(name); got != want && !(want == "" && err != nil) {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

func TestThreadsMayHaveChanged(t *testing.T) {
	p := part{Target: target{Kind: inNice}, Old: []byte("0;7=3"), New: []byte("5")}
	for now, want := range map[string]bool{"0": true, "5": true, "5;9=0": true, "0;9=3": true, "5;9=1": false, "2": false} {
		if p.ours(now) != want {
			t.Errorf("%q: %v", now, !want)
		}
	}
}

func TestThreadsKeepWhatIsNotThePolicy(t *testing.T) {
	for old, want := range map[string]string{
		"other": "idle", "batch;7=other": "idle", "other;7=other+reset-on-fork": "idle;7=idle+reset-on-fork",
		"other+reset-on-fork;7=idle": "idle+reset-on-fork;7=idle", "other;7=fifo": "", "rr+reset-on-fork": "",
	} {
		got, err := withPolicy(old, "idle")
		if got != want || errors.Is(err, ErrNotPossible) != (want == "") {
			t.Errorf("%s: %q, %v", old, got, err)
		}
	}
	p := part{Target: target{Kind: inPolicy}, Old: []byte("other;7=other+reset-on-fork"), New: []byte("idle;7=idle+reset-on-fork")}
	for now, want := range map[string]bool{"idle;8=other": true, "idle+reset-on-fork": true, "batch": false, "idle;9=fifo": false} {
		if p.ours(now) != want {
			t.Errorf("%q: %v", now, !want)
		}
	}
}

func TestLasting(t *testing.T) {
	for _, c := range []struct {
		change Change
		want   string
	}{
		{Change{Kind: Sysctl, Name: "a.b", To: "1 2"}, "a.b = 1 2"}, {Change{Kind: Limit, Name: "nofile", To: "unlimited"}, "[Service] LimitNOFILE=infinity"},
		{Change{Kind: Quota, To: "150000 100000"}, "[Service] CPUQuota=150%"}, {Change{Kind: Nginx, Name: "x", To: "1"}, ""},
		{Change{Kind: Policy, To: "5"}, "[Service] CPUSchedulingPolicy=idle"},
		{Change{Kind: Backlog, Listen: "0.0.0.0:80", To: "4096"}, "backlog of 0.0.0.0:80: 4096"},
		{Change{Kind: TxQueue, Name: "eth0", To: "1000"}, "txqueue eth0 = 1000"},
	} {
		if _, line, ok := Lasting(c.change); line != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q", c.change, line)
		}
	}
}

func TestChangesThatMakeNoSense(t *testing.T) {
	s := sleeper(t)
	for _, c := range []Change{
		{Kind: "x"}, {Kind: Sysctl, Name: "net.core.somaxconn", To: "1\n2"}, {Kind: Nginx, Name: "worker_connections", To: "9; user x"},
		{Kind: PHPFPM, Name: "pm.max_children", To: "4.5"}, {Kind: Limit, Name: "x", To: "1", PID: 1}, {Kind: Limit, Name: "nofile", To: "-1", PID: 1},
		{Kind: Nice, To: "20", PID: 1}, {Kind: Policy, To: "2", PID: 1}, {Kind: Policy, To: "idle", PID: 1}, {Kind: Affinity, To: "3-1", PID: 1}, {Kind: Affinity, To: "0"}, {Kind: Quota, To: "1", PID: 1},
		{Kind: RPS, Name: "../x", To: "0"}, {Kind: Ring, Name: "eth0", To: "1"}, {Kind: IRQ, Name: "x", To: "0"}, {Kind: Backlog, To: "1"},
	} {
		if _, err := Prepare(s.Host, c); err == nil || errors.Is(err, ErrAlready) || bytes.ContainsRune([]byte(err.Error()), '\n') {
			t.Errorf("%s: %v", c, err)
		}
	}
}
