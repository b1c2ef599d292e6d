package deepcpu

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/ebpf-profiler/libpf"
	"go.opentelemetry.io/ebpf-profiler/reporter/samples"
	"go.opentelemetry.io/ebpf-profiler/times"
)

func byName(list []counted) map[string]uint64 {
	found := map[string]uint64{}
	for _, c := range list {
		found[c.Group+" "+c.Function] += c.Samples
	}
	return found
}

func TestFunctionsOfScriptsAreCounted(t *testing.T) {
	c := newCollector(Hertz, nil)
	defer c.close()
	for range seldomest {
		sampled(c, nobody, "one", "busy", "<module>")
	}
	sampled(c, nobody, "one", "seldom", "<module>")
	want := map[string]uint64{"a-program-with- busy (srv/x.php:1)": seldomest, "a-program-with- other": 1}
	if diff := cmp.Diff(want, byName(c.count())); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	sampled(c, nobody, "two", "busy", "<module>") // another stack
	sampled(c, nobody, "one", "busy", "<module>") // one that was counted
	sampled(c, nobody, "one")                     // no script
	want["a-program-with- busy (srv/x.php:1)"] += 2
	want["a-program-with- [native]"] = 1
	for range 2 { // nothing is counted twice
		if diff := cmp.Diff(want, byName(c.count())); diff != "" {
			t.Errorf("then (-want +got):\n%s", diff)
		}
	}
}

// What is found seldom stays among the others, and a counter never falls.
func TestFunctionsAreBounded(t *testing.T) {
	fs := newFunctions()
	last := map[string]uint64{}
	all := uint64(0)
	for round := range 2 * seldomest {
		for g := range maxGroups + 1 {
			for f := range 3 {
				fs.add(owner{group: fmt.Sprint("group", g)}, fmt.Sprint("f", f), 1)
				all++
			}
		}
		for f := range 2 * candidatesOfGroup {
			fs.add(owner{group: "group0"}, fmt.Sprint("g", f), 1)
			all++
		}
		now := byName(fs.list())
		for name, n := range last {
			if now[name] < n {
				t.Fatalf("round %d: %s fell from %d to %d", round, name, n, now[name])
			}
		}
		last = now
	}
	sum := fs.noRoom
	for n := range maps.Values(last) {
		sum += n
	}
	if sum != all || fs.noRoom != 3*2*seldomest {
		t.Errorf("%d samples are in series, %d have no room, of %d", sum-fs.noRoom, fs.noRoom, all)
	}
	if fs.series != functionsOfAll || len(fs.groups) != maxGroups || fs.groups[owner{group: "group0"}].series > functionsOfGroup {
		t.Errorf("%d series of %d groups, %d of one", fs.series, len(fs.groups), fs.groups[owner{group: "group0"}].series)
	}
}

func TestScriptOf(t *testing.T) {
	var frames libpf.Frames
	frames.Append(&libpf.Frame{Type: libpf.KernelFrame, FunctionName: libpf.Intern("do_syscall_64")})
	if got := scriptOf(frames); got != noScript {
		t.Errorf("the kernel alone: %s", got)
	}
	frames.Append(&libpf.Frame{Type: libpf.NativeFrame, AddressOrLineno: 7})
	frames.Append(&libpf.Frame{Type: libpf.PythonFrame, FunctionName: libpf.Intern("loads"), SourceFile: libpf.Intern("/usr/lib/python3.11/json/__init__.py"), SourceLine: 3})
	frames.Append(&libpf.Frame{Type: libpf.PythonFrame, FunctionName: libpf.Intern("read"), SourceFile: libpf.Intern("/srv/app/shop.py"), SourceLine: 9, FunctionOffset: 4})
	if got, want := scriptOf(frames), "loads (json/__init__.py:3) in read (app/shop.py:5)"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Where a language does not tell where a function begins, the line that is at work is none of its name.
func TestBeginning(t *testing.T) {
	for _, c := range []struct {
		of           libpf.FrameType
		line, offset int
		want         int
	}{{libpf.PHPFrame, 9, 4, 5}, {libpf.PythonFrame, 9, 0, 9}, {libpf.V8Frame, 0, 0, 0}, {libpf.HotSpotFrame, 3, 5, 0}, {libpf.RubyFrame, 9, 0, 0}, {libpf.DotnetFrame, 9, 4, 0}} {
		if got := beginning(libpf.Frame{Type: c.of, SourceLine: libpf.SourceLineno(c.line), FunctionOffset: uint32(c.offset)}); got != c.want {
			t.Errorf("%v, line %d, offset %d: %d, want %d", c.of, c.line, c.offset, got, c.want)
		}
	}
}

// Of an interpreter that is not read nothing is counted: that it was in no script would be wrong.
func TestWhatIsNotReadIsNotCounted(t *testing.T) {
	for executable, counts := range map[string]bool{"/usr/bin/python3.11": false, "/usr/sbin/php-fpm8.2": true, "/usr/sbin/nginx": true} {
		c := newCollector(Hertz, []string{"PHP"})
		meta := &samples.TraceEventMeta{PID: nobody, ExecutablePath: libpf.Intern(executable), Timestamp: libpf.UnixTime64(times.GetKTime().UnixNano())}
		if err := c.ReportTraceEvent(&libpf.Trace{}, meta); err != nil {
			t.Fatal(err)
		}
		if got := c.count(); len(got) > 0 != counts {
			t.Errorf("%s: %v", executable, got)
		}
		c.close()
	}
}

// The files that bills know scripts by are those of the library.
func TestInterpretersHaveTheNamesThatBillsKnow(t *testing.T) {
	want := []string{"[beam]", "[cpython]", "[dotnet]", "[jvm]", "[luajit]", "[perl]", "[php]", "[ruby]", "[v8js]"}
	if got := slices.Sorted(slices.Values(interpreters)); !slices.Equal(got, want) {
		t.Errorf("%v, want %v, as in internal/bill/scripts.go", got, want)
	}
}

// Names come from a process's memory: too long a one is cut where it is read.
func TestNamesOfScriptsAreBounded(t *testing.T) {
	for size, cut := range map[int]bool{1: false, longestName: false, longestName + 1: true, 100_000: true} {
		name, file := libpf.Intern("ü"+strings.Repeat("f", size-1)), libpf.Intern(strings.Repeat("d", size-1)+"ü")
		f := libpf.Frame{Type: libpf.PythonFrame, FunctionName: name, SourceFile: file}
		got := scriptFrame(f, "/usr/bin/python3")
		if n, m := utf8.RuneCountInString(got.Function), utf8.RuneCountInString(got.File); n != min(size, longestName) || m != n {
			t.Errorf("%d characters: %d of the function, %d of the file", size, n, m)
		}
		if strings.HasSuffix(got.Function, "…") != cut || strings.HasPrefix(got.File, "…") != cut {
			t.Errorf("%d characters: cut %t, want %t", size, !cut, cut)
		}
		if !strings.HasPrefix(got.Function, "ü") || !strings.HasSuffix(got.File, "ü") {
			t.Errorf("%d characters: the beginning of a function and the end of a file have to stay", size)
		}
		var frames libpf.Frames
		frames.Append(&f)
		if n := utf8.RuneCountInString(scriptOf(frames)); n > 2*longestName+len(" ()") {
			t.Errorf("%d characters: the function's series has %d in its name", size, n)
		}
	}
}
