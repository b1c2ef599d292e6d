package varnish

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/host"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/livetest"
)

const recorded = "testdata/vsm-7.1.1"

// What a Varnish 7.1.1 with 1 MB of malloc storage had counted after 60 pages of 30 KB, one of them three times more, and
// three requests each that VCL passes on, answers itself, and whose reply sets a cookie.
func TestRead(t *testing.T) {
	var m memory
	defer func() { m.close() }()
	if err := m.look(recorded); err != nil {
		t.Fatal(err)
	}
	list, err := m.values()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, v := range list {
		got[v.signal.Name+"{"+v.label+"}"] = v.number
	}
	want := map[string]float64{
		"varnish_main_client_req{}": 72, "varnish_main_cache_hit{}": 3, "varnish_main_cache_miss{}": 63, "varnish_main_cache_hitmiss{}": 2, "varnish_main_s_pass{}": 3, "varnish_main_s_synth{}": 3,
		"varnish_main_n_lru_nuked{}": 26, "varnish_main_backend_req{}": 66, "varnish_main_threads{}": 200, "varnish_main_threads_limited{}": 0, "varnish_main_thread_queue_len{}": 0,
		"varnish_sma_g_bytes{s0}": 1028160, "varnish_sma_g_space{s0}": 1<<20 - 1028160, "varnish_sma_c_fail{s0}": 52, "varnish_sma_g_space{Transient}": 0,
		"varnish_backend_req{boot.app}": 66, "varnish_backend_conn{boot.app}": 0, "varnish_backend_busy{boot.app}": 0,
	}
	has := map[string]float64{}
	for series := range want {
		if v, ok := got[series]; ok {
			has[series] = v
		}
	}
	if diff := cmp.Diff(want, has); diff != "" {
		t.Error(diff)
	}
	if len(got) != len(classes["MAIN"])+2*len(classes["SMA"])+len(classes["VBE"]) {
		t.Errorf("%d values: %v", len(got), got)
	}
}

// copied is the recording in a directory that may be changed.
func copied(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "v")
	if err := os.CopyFS(dir, os.DirFS(recorded)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReadRefuses(t *testing.T) {
	index, err := os.ReadFile(recorded + folder + "_.index")
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(outside, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(dir string) error{
		"is older than 6.0": func(dir string) error { return os.Remove(dir + folder + "_.index") },
		"no such file":      func(dir string) error { return os.Remove(dir + folder + "_.Stat.d5e3b58ff4c4bb46") },
		// a link out of it leads to a name within it, where there is none
		"no such file or directory": func(dir string) error {
			at := dir + folder + "_.Stat.d5e3b58ff4c4bb46"
			return errors.Join(os.Remove(at), os.Symlink(outside, at))
		},
		"is not ready":      func(dir string) error { return os.Truncate(dir+folder+"_.Stat.d5e3b58ff4c4bb46", 100) },
		"nothing describes": func(dir string) error { return replace(dir, index, "StatDoc 55cfb1ff4060", "StatDoc 1") },
		"lists no counters": func(dir string) error { return replace(dir, index, "Stat MAIN", "Stat MEMPOOL.x") },
		"in the same directory": func(dir string) error {
			return replace(dir, index, "_.Stat.d5e3b58ff4c4bb46", "../x")
		},
		"bytes, want at most": func(dir string) error {
			line := "+ _.StatDoc.e5c679194209f709 %d 36864 StatDoc %x\n"
			var many strings.Builder
			for i := range 60 {
				fmt.Fprintf(&many, line, 8*i, i)
			}
			return os.WriteFile(dir+folder+"_.index", append(slices.Clone(index), many.String()...), 0o600)
		},
		"same directory": func(dir string) error {
			return replace(dir, index, "_.Stat.d5e3b58ff4c4bb46", strings.Repeat("x", 1<<12))
		},
		"want a length": func(dir string) error { return replace(dir, index, " 0 1176 Stat", " 0 999999999 Stat") },
		"before the":    func(dir string) error { return replace(dir, index, " 0 1176 Stat", " -8 1176 Stat") },
	} {
		dir := copied(t)
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		var m memory
		err := m.look(dir)
		if err == nil {
			_, err = m.values()
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
		if name == "is older than 6.0" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v: want it absent", err)
		}
		m.close()
	}
}

func replace(dir string, index []byte, old, new string) error {
	return os.WriteFile(dir+folder+"_.index", []byte(strings.ReplaceAll(string(index), old, new)), 0o600)
}

// What comes and goes (a backend of new VCL) is found when the index says so, and files are not opened again while it does not.
func TestLookFollowsTheIndex(t *testing.T) {
	dir := copied(t)
	var m memory
	defer func() { m.close() }()
	count := func() (n int) {
		t.Helper()
		if err := m.look(dir); err != nil {
			t.Fatal(err)
		}
		list, err := m.values()
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	all := count()
	before := m.files["_.Stat.d5e3b58ff4c4bb46"]
	if count() != all || m.files["_.Stat.d5e3b58ff4c4bb46"] != before {
		t.Error("it was opened again")
	}
	f, err := os.OpenFile(dir+folder+"_.index", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("- _.VSC_cluster.7da051fc10b1720f 16 184 Stat VBE.boot.app\n"); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != all-len(classes["VBE"]) {
		t.Errorf("%d values without the backend, %d with it", n, all)
	}
}

// Before 6.1 lines had no sign.
func TestParseIndex(t *testing.T) {
	got, err := parseIndex([]byte("# 1 2\n_.Stat.1 16 184 Stat VBE.boot.app\n+ _.Log.1 0 83886080 Log Log\n_.VSC_cluster.1 0 4096  \n"))
	if diff := cmp.Diff([]place{{"_.Stat.1", 16, 184, "Stat", "VBE.boot.app"}}, got, cmp.AllowUnexported(place{})); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestServing(t *testing.T) {
	proc := func(pid, parent int, name string) host.Proc { return host.Proc{PID: pid, PPID: parent, Comm: name} }
	for want, procs := range map[int][]host.Proc{
		11: {proc(10, 1, "varnishd"), proc(11, 10, "cache-main"), proc(12, 10, "varnishd")},
		21: {proc(20, 1, "varnishd"), proc(21, 20, "varnishd")},
		30: {proc(30, 1, "varnishd"), proc(31, 30, "gcc")},
	} {
		list := serving(procs)
		if len(list) != 1 || list[0].proc.PID != want || (list[0].alone != nil) != (want == 30) {
			t.Errorf("%+v, want process %d", list, want)
		}
	}
	if list := serving([]host.Proc{proc(1, 0, "cache-main")}); len(list) > 0 {
		t.Errorf("%+v: nobody manages it", list)
	}
}

func FuzzIndex(f *testing.F) {
	text, err := os.ReadFile(recorded + folder + "_.index")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("- a 0 24 Stat MAIN\n+ a 0 24 Stat MAIN\n+ a 0 24 Stat MAIN\n- a 0 24 Stat MAIN\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseIndex(text)
		if err != nil {
			return
		}
		for _, p := range list {
			if p.offset < 0 || p.length < headBytes || p.length > maxDoc || strings.Contains(p.file, "/") {
				t.Errorf("%+v", p)
			}
		}
	})
}

func FuzzSegment(f *testing.F) {
	for _, pair := range [][2]string{{"_.Stat.d5e3b58ff4c4bb46", "_.StatDoc.e5c679194209f709"}, {"_.Stat.469874335ae76ac1", "_.StatDoc.0296870fb51305c0"}} {
		stat, err := os.ReadFile(recorded + folder + pair[0])
		if err != nil {
			f.Fatal(err)
		}
		doc, err := os.ReadFile(recorded + folder + pair[1])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(stat, doc)
	}
	f.Fuzz(func(t *testing.T, stat, doc []byte) {
		counters, _, err := body(stat)
		described, _, docErr := body(doc)
		if err != nil || docErr != nil {
			return
		}
		at, err := parseDoc(described)
		if err != nil {
			return
		}
		for ident := range classes {
			for _, v := range values(ident+".x", counters, at) {
				if v.number < 0 {
					t.Errorf("%+v", v)
				}
			}
		}
	})
}

const liveVCL = `vcl 4.1;
backend app { .host = "127.0.0.1"; .port = "9"; .max_connections = 1; }
sub vcl_recv { return (synth(404)); }
`

func TestLive(t *testing.T) {
	s := livetest.Start(t, map[string]string{"site.vcl": liveVCL}, "varnishd", "-F", "-j", "none", "-n", "DIR/v", "-a", "127.0.0.1:8099", "-f", "DIR/site.vcl", "-s", "mine=malloc,4m")
	s.Until("Varnish listens", func() bool {
		c, err := s.Dial("tcp", "127.0.0.1:8099")
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	s.Sample(All())
	s.Sees("varnish_up{127.0.0.1:8099}", 1)
	s.Sees("varnish_main_s_synth{127.0.0.1:8099}", 0)
	s.Sees("varnish_sma_g_space{127.0.0.1:8099,mine}", 4<<20)
	s.Sees("varnish_backend_req{127.0.0.1:8099,boot.app}", 0)
	c, err := s.Dial("tcp", "127.0.0.1:8099")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	s.Sees("varnish_main_s_synth{127.0.0.1:8099}", 1)
}

func TestNone(t *testing.T) { livetest.CheckNone(t, All()) }

// BenchmarkRead is a reading of a Varnish that was found.
func BenchmarkRead(b *testing.B) {
	var m memory
	defer func() { m.close() }()
	rec := livetest.NewRecord()
	for b.Loop() {
		if err := m.look(recorded); err != nil {
			b.Fatal(err)
		}
		list, err := m.values()
		if err != nil {
			b.Fatal(err)
		}
		s := service{listen: "x", values: list, fresh: true}
		s.report(probe.NewOut(rec, "web", time.Unix(1, 0), time.Second))
	}
}
