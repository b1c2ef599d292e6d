package flame

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
)

// made builds a profile of stacks "process;root;…;leaf" in milliseconds.
func made(seconds int64, stacks map[string]int64) *profile.Profile {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType: &profile.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 1, DurationNanos: seconds * 1e9}
	at := map[string]*profile.Location{}
	for stack, ms := range stacks {
		names := strings.Split(stack, ";")
		s := &profile.Sample{Value: []int64{1, ms * 1e6}, Label: map[string][]string{"groupname": {names[0]}}}
		for i := len(names) - 1; i > 0; i-- {
			if at[names[i]] == nil {
				fn := &profile.Function{ID: uint64(len(p.Function) + 1), Name: names[i]}
				at[names[i]] = &profile.Location{ID: fn.ID, Line: []profile.Line{{Function: fn}}}
				p.Function, p.Location = append(p.Function, fn), append(p.Location, at[names[i]])
			}
			s.Location = append(s.Location, at[names[i]])
		}
		p.Sample = append(p.Sample, s)
	}
	return p
}

func tree(t *testing.T, p *profile.Profile) *Tree {
	t.Helper()
	tr, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestText(t *testing.T) {
	tr := tree(t, made(10, map[string]int64{
		"php-fpm;main;execute_ex;busy;sqrt": 600, "php-fpm;main;execute_ex;busy": 200, "nginx;main;epoll\x1b[2J": 195, "sh;x": 5,
	}))
	want := `1 s in 10 s
  80.0 %  php-fpm
  80.0 %    main > execute_ex > busy
  60.0 %      sqrt
  19.5 %  nginx
  19.5 %    main > epoll\u001b[2J
`
	if d := cmp.Diff(want, tr.Text(80)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// From their ends stacks tell which functions had the time themselves, wherever these were called from.
func TestInverted(t *testing.T) {
	ends, err := tree(t, made(10, map[string]int64{"php;main;busy;sqrt": 600, "php;main;busy": 200, "nginx;main;sqrt": 100})).Inverted()
	if err != nil {
		t.Fatal(err)
	}
	want := `900 ms in 10 s
  77.8 %  sqrt
  66.7 %    busy > main > php
  11.1 %    main > nginx
  22.2 %  busy
  22.2 %    main > php
`
	if d := cmp.Diff(want, ends.Text(80)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestComparison(t *testing.T) {
	now := tree(t, made(10, map[string]int64{"nginx;a": 600, "nginx;new": 300}))
	before := tree(t, made(5, map[string]int64{"nginx;a": 300, "nginx;gone": 100}))
	if err := now.Compare(before); err != nil {
		t.Fatal(err)
	}
	want := `900 ms in 10 s, before 800 ms
 100.0 %  +11.1  nginx
  66.7 %   +0.0    a
  33.3 %  +33.3    new
   0.0 %  -22.2    gone
`
	if d := cmp.Diff(want, now.Text(80)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if err := now.Compare(&Tree{Root: &Node{}, Unit: "bytes"}); err == nil {
		t.Error("seconds were compared with bytes")
	}
}

func TestLinesFit(t *testing.T) {
	deep := "php-fpm"
	for range 40 {
		deep += ";a_function_with_a_name_that_is_rather_long"
	}
	tr := tree(t, made(1, map[string]int64{deep: 10, deep + ";x": 10}))
	for line := range strings.SplitSeq(tr.Text(80), "\n") {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(line), line)
		}
	}
}

// Whatever functions are called, the file is well-formed, and nothing in it is a
// name turned into a tag.
func TestGraphIsWellFormed(t *testing.T) {
	tr := tree(t, made(1, map[string]int64{`p;std::map<a&b>::"x"` + "\x01\xff": 10, "p;</svg><script>alert(1)</script>;]]>": 20}))
	for name, write := range map[string]func(io.Writer, string) error{"svg": tr.SVG, "html": tr.HTML} {
		var b bytes.Buffer
		if err := write(&b, "a <title> & more"); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "<script>"); n != 1 {
			t.Errorf("%s has %d scripts, want 1", name, n)
		}
		if name == "html" {
			continue
		}
		frames := 0
		for d := xml.NewDecoder(&b); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if start, ok := token.(xml.StartElement); ok && start.Name.Local == "rect" {
				frames++
			}
		}
		if frames != 1+5 { // the background, all, p and the three functions
			t.Errorf("%d rectangles, want 6", frames)
		}
	}
}

func TestNothingIsAlsoATree(t *testing.T) {
	tr := tree(t, made(1, nil))
	if got := tr.Text(80); got != "0 µs in 1 s\n" {
		t.Errorf("%q", got)
	}
	if err := tr.SVG(io.Discard, ""); err != nil {
		t.Error(err)
	}
	if _, err := New(&profile.Profile{}); err == nil {
		t.Error("a profile without values made a tree")
	}
}
