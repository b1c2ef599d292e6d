package deepcpu

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/ebpf-profiler/libpf"
)

func byName(list []counted) map[string]uint64 {
	found := map[string]uint64{}
	for _, c := range list {
		found[c.Group+" "+c.Function] += c.Samples
	}
	return found
}

func TestFunctionsOfScriptsAreCounted(t *testing.T) {
	c := newCollector(Hertz)
	defer c.close()
	for range seldomest {
		sampled(c, nobody, "one", "busy", "<module>")
	}
	sampled(c, nobody, "one", "seldom", "<module>")
	want := map[string]uint64{"a-program-with- srv/x.php:busy": seldomest, "a-program-with- other": 1}
	if diff := cmp.Diff(want, byName(c.count())); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	sampled(c, nobody, "two", "busy", "<module>") // another stack
	sampled(c, nobody, "one", "busy", "<module>") // one that was counted
	sampled(c, nobody, "one")                     // no script
	want["a-program-with- srv/x.php:busy"] += 2
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
	frames.Append(&libpf.Frame{Type: libpf.PythonFrame, FunctionName: libpf.Intern("read"), SourceFile: libpf.Intern("/srv/app/shop.py"), SourceLine: 9})
	if got, want := scriptOf(frames), "json/__init__.py:loads in app/shop.py:read"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The files that bills know scripts by are those of the library.
func TestInterpretersHaveTheNamesThatBillsKnow(t *testing.T) {
	want := []string{"[beam]", "[cpython]", "[dotnet]", "[jvm]", "[luajit]", "[perl]", "[php]", "[ruby]", "[v8js]"}
	if got := slices.Sorted(slices.Values(interpreters)); !slices.Equal(got, want) {
		t.Errorf("%v, want %v, as in internal/bill/scripts.go", got, want)
	}
}
