package stacks

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"

	"plimsoll/internal/trace/symbol"
)

func made() []Sample {
	write := symbol.Frame{Function: "vfs_write", Module: symbol.KernelModule, Address: 0xffffffff81000010, Kernel: true}
	main := symbol.Frame{Function: "main", Module: "/usr/sbin/nginx", BuildID: "abcd", Address: 0x100}
	work := symbol.Frame{Function: "outer::work", Module: "/usr/sbin/nginx", BuildID: "abcd", Address: 0x200}
	unnamed := symbol.Frame{Module: "/usr/sbin/nginx", BuildID: "abcd", Address: 0x300}
	script := symbol.Frame{Function: "php:busy /srv/x.php:12", File: "/srv/x.php", Line: 12}
	nginx, php := map[string]string{"groupname": "nginx", "thread": "nginx"}, map[string]string{"groupname": "php-fpm"}
	return []Sample{
		{Frames: []symbol.Frame{write, work, main}, Labels: nginx, PID: 7, Values: []int64{30, 300}},
		{Frames: []symbol.Frame{work, main}, Labels: nginx, PID: 7, Values: []int64{10, 100}},
		{Frames: []symbol.Frame{unnamed, main}, Labels: nginx, PID: 8, Values: []int64{10, 100}},
		{Frames: []symbol.Frame{script}, Labels: php, Values: []int64{49, 490}},
		{Labels: map[string]string{"groupname": "a;b\nc"}, Values: []int64{1, 10}},
	}
}

var types = []profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}

func TestProfileIsWhatPprofReads(t *testing.T) {
	var b bytes.Buffer
	if err := Profile(types, made()).Write(&b); err != nil {
		t.Fatal(err)
	}
	p, err := profile.ParseData(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Sample) != 5 || len(p.Mapping) != 2 || len(p.Location) != 5 || len(p.Function) != 5 {
		t.Errorf("%s", p)
	}
	s := p.Sample[0]
	if s.Label["groupname"][0] != "nginx" || s.NumLabel["pid"][0] != 7 || s.Value[1] != 300 || len(s.Location) != 3 {
		t.Errorf("%+v", s)
	}
	if l := s.Location[1]; l.Mapping.BuildID != "abcd" || l.Mapping.File != "/usr/sbin/nginx" || l.Line[0].Function.Name != "outer::work" {
		t.Errorf("%+v", l)
	}
}

func TestGoToolPprof(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip(err)
	}
	var b bytes.Buffer
	if err := Profile(types, made()).Write(&b); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x.pb.gz")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(goTool, "tool", "pprof", "-top", "-sample_index=samples", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"php:busy /srv/x.php:12", "vfs_write", "nginx+0x300"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("pprof does not show %s:\n%s", want, out)
		}
	}
}

func TestFolded(t *testing.T) {
	want := `a:b c 1
nginx;main;nginx+0x300 10
nginx;main;outer::work 10
nginx;main;outer::work;vfs_write_[k] 30
php-fpm;php:busy /srv/x.php:12 49
`
	if d := cmp.Diff(want, Folded(made(), 0)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestTree(t *testing.T) {
	want := `  50.0 %  nginx
  50.0 %    main
  40.0 %      outer::work
  30.0 %        vfs_write [k]
  10.0 %      nginx+0x300
  49.0 %  php-fpm
  49.0 %    php:busy
            /srv/x.php:12
   1.0 %  a;b\nc
`
	if d := cmp.Diff(want, Tree(made(), 1, 20, 30)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if text := Tree(made(), 1, 3, 80); strings.Count(text, "\n") != 4 || !strings.Contains(text, "and more") {
		t.Errorf("%s", text)
	}
	if text := Tree(nil, 0, 3, 80); text != "" {
		t.Errorf("%q", text)
	}
}
