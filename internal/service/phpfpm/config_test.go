package phpfpm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseIni(t *testing.T) {
	src := "; comment\n[global]\nerror_log = /x.log ; why\n# old comment\n\n[www]\nlisten=127.0.0.1:9000\nuser = \"a;b\"\nenv[X] = 'q'\nphp_admin_flag[log_errors] = on\nempty =\n"
	got, err := Parse([]byte(src), "f")
	if err != nil {
		t.Fatal(err)
	}
	type entry struct {
		section, key, value string
		line                int
		text, whole         string // what stands there
	}
	var read []entry
	for _, e := range got {
		if e.File != "f" || e.Joined || e.doubtful || !e.StandsIn([]byte(src)) {
			t.Errorf("%+v", e)
		}
		read = append(read, entry{e.Section, e.Key, e.Value, e.Line, src[e.Text.Begin:e.Text.End], src[e.Whole.Begin:e.Whole.End]})
	}
	want := []entry{
		{"global", "", "", 2, "", "[global]\n"}, {"global", "error_log", "/x.log", 3, "/x.log", "error_log = /x.log ; why\n"},
		{"www", "", "", 6, "", "[www]\n"}, {"www", "listen", "127.0.0.1:9000", 7, "127.0.0.1:9000", "listen=127.0.0.1:9000\n"},
		{"www", "user", "a;b", 8, `"a;b"`, "user = \"a;b\"\n"}, {"www", "env[X]", "q", 9, "'q'", "env[X] = 'q'\n"},
		{"www", "php_admin_flag[log_errors]", "on", 10, "on", "php_admin_flag[log_errors] = on\n"}, {"www", "empty", "", 11, "", "empty =\n"},
	}
	if d := cmp.Diff(want, read, cmp.AllowUnexported(entry{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for src, want := range map[string]string{
		"a=1\n[x":   `parse f: line 2: want [section], got "[x"`,
		"[x] y":     `parse f: line 1: want [section], got "[x] y"`,
		"\nnothing": `parse f: line 2: want key = value, got "nothing"`,
		"= 1":       `parse f: line 1: want key = value, got "= 1"`,
	} {
		if _, err := Parse([]byte(src), "f"); err == nil || err.Error() != want {
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
	load := func(file string) (*Config, error) {
		l := &loader{root: root, main: file}
		entries, err := l.load(file, "", 0)
		if err != nil {
			return nil, err
		}
		return NewConfig(entries)
	}
	got, err := load("/usr/local/etc/php-fpm.conf")
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{ErrorLog: "/proc/self/fd/2", Pools: []Pool{
		{Name: "www", Listen: "9000", PM: "dynamic", MaxChildren: 7, StatusPath: "/status"},
		{Name: "b", Listen: "/run/b.sock", PM: "static", MaxChildren: 2, backlog: 10, hasBacklog: true, SlowTimeout: true, StatusListen: "127.0.0.1:9001"},
	}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(Pool{})); d != "" {
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
		if got := ListenAddress(s, true); got != want {
			t.Errorf("ListenAddress(%q) = %q, want %q", s, got, want)
		}
	}
	if got := ListenAddress("9000", false); got != "0.0.0.0:9000" {
		t.Errorf("without IPv6: %q", got)
	}
}

func TestBacklog(t *testing.T) {
	for name, c := range map[string]struct {
		pool    Pool
		version int
		want    int
		ok      bool
	}{
		"given":                       {Pool{backlog: 10, hasBacklog: true}, 8002000, 10, true},
		"default since 8.2":           {Pool{}, 8002035, 4096, true},
		"default before 8.2":          {Pool{}, 8001000, 511, true},
		"default, unknown version":    {Pool{}, 0, 0, false},
		"-1":                          {Pool{backlog: -1, hasBacklog: true}, 0, 4096, true},
		"ondemand before 8.2 raises":  {Pool{PM: "ondemand", backlog: 10, hasBacklog: true}, 8001000, 511, true},
		"ondemand since 8.2 does not": {Pool{PM: "ondemand", backlog: 10, hasBacklog: true}, 8002000, 10, true},
	} {
		if n, ok := c.pool.BacklogIn(c.version, 4096); n != c.want || ok != c.ok {
			t.Errorf("%s: got %d %v, want %d %v", name, n, ok, c.want, c.ok)
		}
	}
	if v := parseVersion([]byte("x\x00X-Powered-By: PHP/8.2.35\x00")); v != 8002035 {
		t.Errorf("version %d", v)
	}
}

// The fixtures were recorded from PHP-FPM 8.2.35 with these faults made for real.
func FuzzIni(f *testing.F) {
	f.Add([]byte("[www]\nlisten = \"127.0.0.1:9000\" ; x\npm.max_children = 5\nrequest_slowlog_timeout = 5s\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		entries, err := Parse(src, "f")
		if err != nil && entries != nil {
			t.Error("both a value and an error")
		}
		for _, e := range entries {
			if !e.StandsIn(src) {
				t.Errorf("%+v does not stand there", e)
			}
		}
		c, err := NewConfig(entries)
		if err != nil {
			return
		}
		for _, p := range c.Pools {
			ListenAddress(p.Listen, true)
			if n, ok := p.BacklogIn(8002000, 128); ok && n < 0 {
				t.Errorf("backlog %d", n)
			}
		}
	})
}

// A value that the environment gives cannot be tested without it.
func TestValuesOfTheEnvironmentAreDoubtful(t *testing.T) {
	root := t.TempDir()
	for value, doubtful := range map[string]bool{"5": false, "$pool": false, "${KIDS}": true, `"${KIDS}"`: true} {
		write(t, root, map[string]string{"/etc/fpm.conf": "[www]\npm.max_children = " + value + "\n"})
		l := &loader{root: root, main: "/etc/fpm.conf"}
		if _, err := l.load(l.main, "", 0); err != nil || (l.doubt != nil) != doubtful {
			t.Errorf("%s: %v, %v", value, l.doubt, err)
		}
	}
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
