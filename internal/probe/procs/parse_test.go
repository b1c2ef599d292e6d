package procs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// files are the recorded files whose names end in suffix.
func files(t testing.TB, suffix string) (all [][]byte) {
	t.Helper()
	a, err := txtar.ParseFile("testdata/first.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		if strings.HasSuffix(f.Name, suffix) {
			all = append(all, f.Data)
		}
	}
	if len(all) == 0 {
		t.Fatalf("no %s in the archive", suffix)
	}
	return all
}

func TestParseOthers(t *testing.T) {
	if got, err := parseSchedstat(files(t, "/schedstat")[1]); err != nil || got != (schedstat{33887506, 101717817}) {
		t.Errorf("schedstat %v, %v", got, err)
	}
	if got, err := parseStatus(files(t, "/status")[0]); err != nil || got != (switches{6, 24}) {
		t.Errorf("status %v, %v", got, err)
	}
	if got := parseAllowedCPUs(files(t, "/status")[0]); got != 2 {
		t.Errorf("may run on %d CPUs, want 2", got)
	}
	for mask, want := range map[string]int{"ff,00000001": 9, "0": 0, "x": 0, "": 0} {
		if got := parseAllowedCPUs([]byte("Cpus_allowed:\t" + mask + "\n")); got != want {
			t.Errorf("mask %q: %d CPUs, want %d", mask, got, want)
		}
	}
	if got, err := parseIO([]byte("rchar: 5\nwchar: 6\nsyscr: 2\nsyscw: 1\nread_bytes: 12288\nwrite_bytes: 4096\ncancelled_write_bytes: 7\n")); err != nil || got != (processIO{12288, 4096, 11, 3}) {
		t.Errorf("io %v, %v", got, err)
	}
	if got, err := parseLimit(files(t, "/limits")[0], limitFiles); err != nil || got != 20000 {
		t.Errorf("limits %v, %v", got, err)
	}
	if got, err := parseLimit([]byte("Max open files            unlimited            unlimited            files\n"), limitFiles); err != nil || got != 0 {
		t.Errorf("no limit: %v, %v; want 0", got, err)
	}
	if diff := cmp.Diff([]int{12, 34}, parsePIDs([]byte("12 34 \n"), nil)); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	for name, err := range map[string]error{
		"schedstat": second(parseSchedstat([]byte("1"))),
		"status":    second(parseStatus([]byte("voluntary_ctxt_switches:\t1\n"))),
		"io":        second(parseIO([]byte("read_bytes: x\nwrite_bytes: 1\n"))),
		"user":      second(parseUser([]byte("Uid:	x	0	0	0\n"))),
		"limits":    second(parseLimit([]byte("Max processes 1 1\n"), limitFiles)),
	} {
		if err == nil {
			t.Errorf("a broken %s was accepted", name)
		}
	}
}

func TestParseTold(t *testing.T) {
	for text, want := range map[string]told{
		"PATH=/bin\x00GOMAXPROCS=3\x00TERM=x\x00":                               {cpus: 3, setting: "GOMAXPROCS"},
		"TOKIO_WORKER_THREADS=4":                                                {cpus: 4, setting: "TOKIO_WORKER_THREADS"},
		"OMP_NUM_THREADS=1\x00RAYON_NUM_THREADS=1\x00":                          {},
		"JAVA_TOOL_OPTIONS=-Xmx1g -XX:ActiveProcessorCount=1 -Dx=y\x00":         {cpus: 1, setting: "-XX:ActiveProcessorCount"},
		"NOTES=-XX:ActiveProcessorCount=1\x00":                                  {},
		"GOMAXPROCS=0\x00TOKIO_WORKER_THREADS=-1\x00-XX:ActiveProcessorCount=2": {},
		"GOMAXPROCS=99999999999999999999\x00GOMAXPROCS=4,2\x00XGOMAXPROCS=1":    {},
		"": {},
	} {
		if got := parseTold([]byte(text), true); got != want {
			t.Errorf("the environment %q: told %+v, want %+v", text, got, want)
		}
	}
	for text, want := range map[string]told{
		"java\x00-XX:ActiveProcessorCount=2\x00-jar\x00a.jar\x00": {cpus: 2, setting: "-XX:ActiveProcessorCount"},
		"docker\x00run\x00-e\x00GOMAXPROCS=2\x00":                 {},
	} {
		if got := parseTold([]byte(text), false); got != want {
			t.Errorf("the arguments %q: told %+v, want %+v", text, got, want)
		}
	}
}

func TestInterprets(t *testing.T) {
	for _, c := range []struct{ comm, environ, cmdline, want string }{
		{"java", "PATH=/bin\x00JAVA_TOOL_OPTIONS=-Xmx1g -Xint -Dx=y\x00", "java", "JAVA_TOOL_OPTIONS=-Xint"},
		{"java", "JAVA_TOOL_OPTIONS=-Xint\x00_JAVA_OPTIONS=-Xmixed\x00", "java", ""},
		{"java", "_JAVA_OPTIONS=-Xmixed\x00JAVA_TOOL_OPTIONS=-Xint\x00", "java", ""},
		{"java", "JDK_JAVA_OPTIONS=-Xmixed\x00JAVA_TOOL_OPTIONS=-Xint\x00", "java", ""},
		{"java", "JAVA_TOOL_OPTIONS=-XX:TieredStopAtLevel=1\x00NOTE=-Xint\x00", "java", ""},
		{"java", "JAVA_TOOL_OPTIONS=-XX:TieredStopAtLevel=0\x00", "java\x00-XX:TieredStopAtLevel=4\x00Main", ""},
		{"java", "JAVA_TOOL_OPTIONS=-Xint\x00", "java\x00-XX:TieredStopAtLevel=4\x00Main", "JAVA_TOOL_OPTIONS=-Xint"},
		{"java", "JDK_JAVA_OPTIONS=-XX:-UseCompiler", "java", "JDK_JAVA_OPTIONS=-XX:-UseCompiler"},
		{"java", "JDK_JAVA_OPTIONS=-XX:-UseCompiler", "java\x00-XX:+UseCompiler\x00Main", ""},
		{"java", "JAVA_TOOL_OPTIONS=-Xint", "java\x00-Xmixed\x00Main", ""},
		{"java", "_JAVA_OPTIONS=-Xint", "java\x00-Xmixed\x00Main", "_JAVA_OPTIONS=-Xint"},
		{"java", "", "java\x00-cp\x00-Xint\x00-Xmx1g\x00Main\x00", ""},
		{"java", "", "java\x00-cp\x00x.jar\x00-Xint\x00Main\x00", "-Xint"},
		{"java", "", "java\x00-jar\x00x.jar\x00-Xint\x00", ""},
		{"java", "", "java\x00Main\x00-Xint\x00", ""},
		{"java", "", "java\x00-Xint\x00-Xmixed\x00Main\x00", ""},
		{"java", "", "/bin/java\x00-Djava.compiler=NONE\x00-version", ""}, // since JDK 21 it does nothing
		{"java", "", "", ""},
		{"node", "", "node\x00-r\x00x\x00--jitless\x00app.js\x00--other", "--jitless"},
		{"node", "NODE_OPTIONS=--jitless\x00", "node\x00app.js", "NODE_OPTIONS=--jitless"},
		{"node", "NODE_OPTIONS=--jitless\x00", "node\x00--no-jitless\x00app.js", ""},
	} {
		if got := compilers[c.comm].interprets([]byte(c.environ), []byte(c.cmdline)); got != c.want {
			t.Errorf("%s with the environment %q and the arguments %q: %q, want %q", c.comm, c.environ, c.cmdline, got, c.want)
		}
	}
}

func TestCodeCache(t *testing.T) {
	for _, c := range []struct {
		comm, environ, cmdline string
		want                   uint64
	}{
		{"java", "", "java\x00-XX:ReservedCodeCacheSize=3m\x00Main\x00", 3 << 20},
		{"java", "", "java\x00Main\x00-XX:ReservedCodeCacheSize=3m\x00", 0},
		{"java", "JAVA_TOOL_OPTIONS=-Xmx1g -XX:ReservedCodeCacheSize=48M\x00", "java\x00Main", 48 << 20},
		{"java", "JAVA_TOOL_OPTIONS=-XX:ReservedCodeCacheSize=48M\x00", "java\x00-XX:ReservedCodeCacheSize=1G\x00Main", 1 << 30},
		{"java", "_JAVA_OPTIONS=-XX:ReservedCodeCacheSize=4096\x00", "java\x00-XX:ReservedCodeCacheSize=9k\x00Main", 4096},
		{"java", "", "java\x00-XX:ReservedCodeCacheSize=9k\x00Main", 9 << 10},
		{"java", "", "java\x00-XX:ReservedCodeCacheSize=3mm\x00Main", 0},
		{"java", "", "java\x00-XX:ReservedCodeCacheSize=m\x00Main", 0},
		{"java", "", "java\x00-XX:ReservedCodeCacheSize=99999999999g\x00Main", 0},
		{"java", "", "java", 0},
		{"node", "", "node\x00-XX:ReservedCodeCacheSize=3m\x00x.js", 0},
	} {
		if got := compilers[c.comm].codeCache([]byte(c.environ), []byte(c.cmdline)); got != c.want {
			t.Errorf("%s with the environment %q and the arguments %q: %d, want %d", c.comm, c.environ, c.cmdline, got, c.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func FuzzLabel(f *testing.F) {
	f.Add("a) (b c", byte('S'))
	f.Fuzz(func(t *testing.T, comm string, state byte) {
		_ = label(comm)
		_ = stateOf(state)
	})
}

func FuzzParseLines(f *testing.F) {
	for _, suffix := range []string{"/status", "/io", "/limits", "/schedstat", "/children"} {
		f.Add(files(f, suffix)[0])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = parseStatus(b)
		if parseAllowedCPUs(b) < 0 {
			t.Errorf("fewer than no CPUs of %q", b)
		}
		if got := parseTold(b, len(b)%2 == 0); got.cpus < 0 || (got.cpus == 0) != (got.setting == "") {
			t.Errorf("told %+v by %q", got, b)
		}
		for _, c := range compilers {
			for _, got := range []string{c.interprets(b, nil), c.interprets(nil, b)} {
				if len(got) > 64 {
					t.Errorf("the setting %q of %q is none that is looked for", got, b)
				}
			}
			_ = c.codeCache(b, b)
		}
		_ = codeBytes(b)
		_, _ = parseIO(b)
		_, _ = parseLimit(b, limitTasks)
		_, _ = parseUser(b)
		_, _ = parseSchedstat(b)
		for _, pid := range parsePIDs(b, nil) {
			if pid <= 0 {
				t.Errorf("process number %d of %q", pid, b)
			}
		}
	})
}
