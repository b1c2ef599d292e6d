package deepcpu

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/ebpf-profiler/interpreter/interpreterconfig"

	"plimsoll/internal/host"
)

func TestLanguageOf(t *testing.T) {
	for executable, want := range map[string]string{
		"/usr/bin/python3.11": "Python", "/usr/sbin/php-fpm8.2": "PHP", "/usr/bin/php8.2": "PHP", "/usr/bin/node": "Node", "/opt/jdk/bin/java": "Java", "/usr/bin/ruby3.1": "Ruby",
		"/usr/bin/perl": "Perl", "/usr/share/dotnet/dotnet": ".NET", "/usr/lib/erlang/erts-13.1/bin/beam.smp": "Erlang", "/usr/bin/python3.11 (deleted)": "Python",
		"/usr/sbin/nginx": "", "/usr/bin/phpdismod": "", "/usr/bin/nodeinfo": "", "": "",
	} {
		if got := languageOf(executable); got != want {
			t.Errorf("%s: %q, want %q", executable, got, want)
		}
	}
}

func TestLanguagesIn(t *testing.T) {
	const maps = "55d0-55d1 r-xp 00000000 08:01 12 /usr/sbin/apache2\n7f00-7f01 r-xp 00000000 08:01 13 /usr/lib/apache2/modules/libphp8.2.so\n" +
		"7f02-7f03 r-xp 00000000 08:01 14 /usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2\n7f04-7f05 r-xp 00000000 08:01 15 /usr/lib/notlibpython3.11.so\n"
	if got := languagesIn([]byte(maps)); !slices.Equal(got, []string{"PHP", "Ruby"}) {
		t.Errorf("%v, want PHP and Ruby", got)
	}
}

// proc writes what /proc has of one.
func proc(t *testing.T, root, pid, executable, maps string) {
	t.Helper()
	dir := filepath.Join(root, "proc", pid)
	stat := pid + " (name) S 1 " + strings.Repeat("0 ", 48)
	for name, text := range map[string]string{"stat": stat, "cmdline": executable + "\x00", "maps": maps} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(executable, filepath.Join(dir, "exe")); err != nil {
		t.Fatal(err)
	}
}

func TestLanguagesOn(t *testing.T) {
	root := t.TempDir()
	proc(t, root, "7", "/usr/sbin/nginx", "7f00-7f01 r-xp 00000000 08:01 13 /usr/lib/libc.so.6\n")
	h := host.Recorded("server", root)
	if got, err := languagesOn([]*host.Host{h}); err != nil || len(got) > 0 {
		t.Errorf("nginx alone: %v, %v", got, err)
	}
	proc(t, root, "8", "/usr/bin/python3.11", "")
	proc(t, root, "9", "/usr/sbin/apache2", "7f00-7f01 r-xp 00000000 08:01 13 /usr/lib/apache2/modules/libphp8.2.so\n")
	h = host.Recorded("server", root)
	if got, err := languagesOn([]*host.Host{h}); err != nil || !slices.Equal(got, []string{"PHP", "Python"}) {
		t.Errorf("%v, %v, want PHP and Python", got, err)
	}
}

func TestReading(t *testing.T) {
	if c, err := reading(nil); err != nil || c != interpreterconfig.AllInterpreters() {
		t.Errorf("none named: %+v, %v, want all", c, err)
	}
	if c, err := reading([]string{"PHP"}); err != nil || c.PHP.IsDisabled() || !c.Python.IsDisabled() || !c.Go.IsLabelsDisabled() {
		t.Errorf("PHP: %+v, %v, want it alone", c, err)
	}
	if _, err := reading([]string{"COBOL"}); err == nil {
		t.Error("a language that is not known is taken")
	}
}

// Where nothing runs that it could name, it says so and starts nothing.
func TestStartFor(t *testing.T) {
	_, err := startFor(nil, []*host.Host{host.Recorded("server", t.TempDir())}, false)
	if err == nil {
		t.Fatal("started")
	}
	root := t.TempDir()
	proc(t, root, "7", "/usr/sbin/nginx", "")
	_, err = startFor(nil, []*host.Host{host.Recorded("server", root)}, false)
	if st := host.StatusOf(err); st.State != "absent" || !strings.HasPrefix(st.Why, "no PHP, Python, Node, Java, Ruby, Perl, .NET or Erlang ran when the tracers were started") {
		t.Errorf("%+v", st)
	}
}
