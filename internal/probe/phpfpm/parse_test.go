package phpfpm

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/host"
)

func TestParseIni(t *testing.T) {
	src := "; comment\n[global]\nerror_log = /x.log ; why\n# old comment\n\n[www]\nlisten=127.0.0.1:9000\nuser = \"a;b\"\nenv[X] = 'q'\nphp_admin_flag[log_errors] = on\nempty =\n"
	got, err := parseIni([]byte(src), "f")
	if err != nil {
		t.Fatal(err)
	}
	want := []entry{
		{"global", "", "", "f", 2, false}, {"global", "error_log", "/x.log", "f", 3, false}, {"www", "", "", "f", 6, false}, {"www", "listen", "127.0.0.1:9000", "f", 7, false},
		{"www", "user", "a;b", "f", 8, false}, {"www", "env[X]", "q", "f", 9, false}, {"www", "php_admin_flag[log_errors]", "on", "f", 10, false}, {"www", "empty", "", "f", 11, false},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(entry{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for src, want := range map[string]string{
		"a=1\n[x":   `parse f: line 2: want [section], got "[x"`,
		"[x] y":     `parse f: line 1: want [section], got "[x] y"`,
		"\nnothing": `parse f: line 2: want key = value, got "nothing"`,
		"= 1":       `parse f: line 1: want key = value, got "= 1"`,
	} {
		if _, err := parseIni([]byte(src), "f"); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", src, err, want)
		}
	}
}

// write makes files under a root directory.
func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConfigWithIncludes(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{
		// as Docker's image has it: an include relative to the prefix /usr/local
		"usr/local/etc/php-fpm.conf":        "[global]\nerror_log = /proc/self/fd/2\ninclude=etc/php-fpm.d/*.conf\n",
		"usr/local/etc/php-fpm.d/a.conf":    "[www]\nlisten = 9000\npm = dynamic\npm.max_children = 5\npm.status_path = /status\n",
		"usr/local/etc/php-fpm.d/b.conf":    "[b]\nlisten = /run/$pool.sock\npm = static\npm.max_children = 2\nlisten.backlog = 10\ninclude = /more/b.inc\n",
		"usr/local/etc/php-fpm.d/c.conf":    "[www]\npm.max_children = 7\n",
		"usr/local/etc/php-fpm.d/d.conf.no": "[d]\n",
		"more/b.inc":                        "slowlog = /var/log/$pool.slow\nrequest_slowlog_timeout = 5s\npm.status_listen = 127.0.0.1:9001\n",
		"loop.conf":                         "include = /loop.conf\n",
		"bad.conf":                          "[global]\ninclude = /bad/*.conf\n",
		"bad/x.conf":                        "\noops\n",
	})
	load := func(file string) (*config, error) {
		l := &loader{root: root, main: file}
		entries, err := l.load(file, "", 0)
		if err != nil {
			return nil, err
		}
		return newConfig(entries)
	}
	got, err := load("/usr/local/etc/php-fpm.conf")
	if err != nil {
		t.Fatal(err)
	}
	want := &config{errorLog: "/proc/self/fd/2", pools: []pool{
		{name: "www", listen: "9000", pm: "dynamic", maxChildren: 7, statusPath: "/status"},
		{name: "b", listen: "/run/b.sock", pm: "static", maxChildren: 2, backlog: 10, hasBacklog: true, slowTimeout: true, statusListen: "127.0.0.1:9001"},
	}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(config{}, pool{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for file, want := range map[string]string{
		"/loop.conf": "want at most 5 files inside each other",
		"/bad.conf":  `/bad.conf: line 2: include: parse /bad/x.conf: line 2: want key = value, got "oops"`,
		"/none":      "open /none: no such file or directory",
	} {
		if _, err := load(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want …%s…", file, err, want)
		}
	}
}

func TestListenAddress(t *testing.T) {
	for s, want := range map[string]string{
		"9000": "[::]:9000", "127.0.0.1:9000": "127.0.0.1:9000", "[::1]:9000": "[::1]:9000", "*:9000": "[::]:9000",
		"/run/php/x.sock": "unix:/run/php/x.sock", "localhost:9000": "127.0.0.1:9000", "0.0.0.0:9000": "0.0.0.0:9000",
	} {
		if got := listenAddress(s, true); got != want {
			t.Errorf("listenAddress(%q) = %q, want %q", s, got, want)
		}
	}
	if got := listenAddress("9000", false); got != "0.0.0.0:9000" {
		t.Errorf("without IPv6: %q", got)
	}
}

func TestBacklog(t *testing.T) {
	for name, c := range map[string]struct {
		pool    pool
		version int
		want    int
		ok      bool
	}{
		"given":                       {pool{backlog: 10, hasBacklog: true}, 8002000, 10, true},
		"default since 8.2":           {pool{}, 8002035, 4096, true},
		"default before 8.2":          {pool{}, 8001000, 511, true},
		"default, unknown version":    {pool{}, 0, 0, false},
		"-1":                          {pool{backlog: -1, hasBacklog: true}, 0, 4096, true},
		"ondemand before 8.2 raises":  {pool{pm: "ondemand", backlog: 10, hasBacklog: true}, 8001000, 511, true},
		"ondemand since 8.2 does not": {pool{pm: "ondemand", backlog: 10, hasBacklog: true}, 8002000, 10, true},
	} {
		if n, ok := c.pool.backlogIn(c.version, 4096); n != c.want || ok != c.ok {
			t.Errorf("%s: got %d %v, want %d %v", name, n, ok, c.want, c.ok)
		}
	}
	if v := parseVersion([]byte("x\x00X-Powered-By: PHP/8.2.35\x00")); v != 8002035 {
		t.Errorf("version %d", v)
	}
}

// The fixtures were recorded from PHP-FPM 8.2.35 with these faults made for real.
func TestLog(t *testing.T) {
	b, err := os.ReadFile("testdata/fpm.log")
	if err != nil {
		t.Fatal(err)
	}
	got := map[logLine]int{}
	for line := range bytes.Lines(b) {
		l, ok := parseLogLine(bytes.TrimSpace(line))
		if !ok {
			t.Errorf("not understood: %s", line)
		}
		got[l]++
	}
	want := map[logLine]int{
		{"www", "slow_request"}: 2, {"www", "max_children_reached"}: 1, {"onde", "max_children_reached"}: 1, {"www", "terminated"}: 2,
		{"", "listen_error"}: 1, {"", "other"}: 1, {"", ""}: 6, {"www", ""}: 1,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, line := range []string{"", "[x] y", "[21-Nov-2026 09:56:32", "[21-Nov-2026 09:56:32] WARNING", "[0x00007f] usleep() /x.php:1", "[21-Nov-2026 09:56:32]  [pool www] pid 1"} {
		if l, ok := parseLogLine([]byte(line)); ok {
			t.Errorf("%q was taken for %+v", line, l)
		}
	}
	if l, ok := parseLogLine([]byte("[21-Nov-2026 09:56:32.123456] WARNING: [pool a b] x")); !ok || l != (logLine{"a b", "other"}) {
		t.Errorf("with fractions of a second: %+v %v", l, ok)
	}
}

func TestStatusPages(t *testing.T) {
	for file, want := range map[string][4]float64{"testdata/status-tcp.fcgi": {1, 33, 0, 1}, "testdata/status-listen.fcgi": {0, 0, 2, 2}} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out, errs, err := readReply(bytes.NewReader(b))
		if err != nil || len(errs) > 0 {
			t.Fatalf("%s: %q %v", file, errs, err)
		}
		code, body, err := parseCGI(out)
		if err != nil || code != 200 {
			t.Fatalf("%s: %d %v", file, code, err)
		}
		s, err := parseStatus(body)
		if err != nil {
			t.Fatal(err)
		}
		if got := [4]float64{*s.AcceptedConn, *s.ListenQueueLen, *s.IdleProcesses, *s.TotalProcesses}; got != want {
			t.Errorf("%s: got %v, want %v", file, got, want)
		}
	}
}

func TestBadReplies(t *testing.T) {
	end := appendRecord(nil, endRequest, make([]byte, 8))
	for name, b := range map[string][]byte{
		"empty": nil, "HTTP": []byte("HTTP/1.1 400 Bad"), "cut off": end[:10], "short end": appendRecord(nil, endRequest, []byte{1}),
		"no end": appendRecord(nil, stdout, []byte("x")), "overloaded": appendRecord(nil, endRequest, []byte{0, 0, 0, 0, 2, 0, 0, 0}),
	} {
		if out, _, err := readReply(bytes.NewReader(b)); err == nil {
			t.Errorf("%s: was taken: %q", name, out)
		}
	}
	if _, err := statusRequest("/" + strings.Repeat("x", 200)); err == nil {
		t.Error("a path of 200 bytes was taken")
	}
	for _, page := range []string{"", "{}", "[]", `{"pool":"x"}`, "File not found."} {
		if _, err := parseStatus([]byte(page)); err == nil {
			t.Errorf("%q was taken", page)
		}
	}
	if code, _, err := parseCGI([]byte("Status: 404 Not Found\r\nContent-type: text/html\r\n\r\nFile not found.\n")); err != nil || code != 404 {
		t.Errorf("404: %d %v", code, err)
	}
}

func TestServicesOfTheSamePoolName(t *testing.T) {
	www := &config{pools: []pool{{name: "www"}}}
	list := []*service{
		{master: host.Proc{PID: 1, Comm: "php-fpm8.1"}, conf: www}, {master: host.Proc{PID: 2, Comm: "php-fpm8.2"}, conf: www},
		{master: host.Proc{PID: 3, Comm: "php-fpm8.2"}, conf: www}, {master: host.Proc{PID: 4, Comm: "php-fpm8.2"}, conf: &config{pools: []pool{{name: "other"}}}},
	}
	nameApart(list)
	var got []string
	for _, s := range list {
		got = append(got, s.label("www"))
	}
	if d := cmp.Diff([]string{"www@php-fpm8.1", "www@2", "www@3", "www"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func FuzzIni(f *testing.F) {
	f.Add([]byte("[www]\nlisten = \"127.0.0.1:9000\" ; x\npm.max_children = 5\nrequest_slowlog_timeout = 5s\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		entries, err := parseIni(src, "f")
		if err != nil && entries != nil {
			t.Error("both a value and an error")
		}
		c, err := newConfig(entries)
		if err != nil {
			return
		}
		for _, p := range c.pools {
			listenAddress(p.listen, true)
			if n, ok := p.backlogIn(8002000, 128); ok && n < 0 {
				t.Errorf("backlog %d", n)
			}
		}
	})
}

func FuzzReply(f *testing.F) {
	for _, file := range []string{"testdata/status-tcp.fcgi", "testdata/status-listen.fcgi"} {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		out, _, err := readReply(bytes.NewReader(b))
		if err != nil {
			return
		}
		if len(out) > len(b) {
			t.Errorf("%d bytes out of %d", len(out), len(b))
		}
		if _, body, err := parseCGI(out); err == nil {
			parseStatus(body)
		}
	})
}

func FuzzLogLine(f *testing.F) {
	f.Add([]byte("[21-Nov-2026 09:56:32] WARNING: [pool www] server reached pm.max_children setting (3), consider raising it"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, ok := parseLogLine(b); !ok && l != (logLine{}) {
			t.Errorf("%q: %+v although not understood", b, l)
		}
	})
}

// FuzzRequest checks that what we send has the lengths that it says.
func FuzzRequest(f *testing.F) {
	f.Add("/status")
	f.Fuzz(func(t *testing.T, uri string) {
		b, err := statusRequest(uri)
		if err != nil {
			return
		}
		for len(b) > 0 {
			size := int(binary.BigEndian.Uint16(b[4:]))
			if len(b) < 8+size {
				t.Fatalf("a record of %d bytes in %d", size, len(b))
			}
			b = b[8+size:]
		}
	})
}

// PHP joins the parts of a value and puts variables in; who includes what then is not known.
func TestIncludesThatAreDoubtful(t *testing.T) {
	root := t.TempDir()
	write(t, root, map[string]string{"/etc/a.conf": "[www]\nlisten = 9000\n"})
	for include, doubtful := range map[string]bool{
		"/etc/a.conf": false, `"/etc/a.conf" ; why`: false, "/etc/*.conf": false,
		"${D}/a.conf": true, `"/et" "c/a.conf"`: true, `"/etc/${X}a.conf"`: true, `/et"c/a.conf"`: true, "/etc/$pool.conf": true, "a.conf": true,
	} {
		write(t, root, map[string]string{"/etc/fpm.conf": "include = " + include + "\n"})
		l := &loader{root: root, main: "/etc/fpm.conf"}
		if _, err := l.load(l.main, "", 0); err == nil && (l.doubt != nil) != doubtful {
			t.Errorf("%s: %v", include, l.doubt)
		}
	}
}
