package symbol

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
)

func TestUserOurselves(t *testing.T) {
	r := New()
	defer r.Close()
	pc := reflect.ValueOf(TestUserOurselves).Pointer()
	f := r.User(os.Getpid(), uint64(pc)+1)
	if !strings.HasSuffix(f.Function, "symbol.TestUserOurselves") {
		t.Errorf("%+v", f)
	}
	want, line := runtime.FuncForPC(pc).FileLine(pc)
	if f.File != want || f.Line < line || f.Line > line+1 {
		t.Errorf("%s:%d, want %s:%d", f.File, f.Line, want, line)
	}
}

// The kernel's answers are those of its list, which names the first of several
// functions at one address.
func TestKernelNames(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the kernel shows its addresses to root alone")
	}
	list := readKernel()
	if list.err != nil {
		t.Skip(list.err)
	}
	asks, err := newAsker()
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, ebpf.ErrNotSupported) { // or before Linux 5.14
		t.Skip("the kernel cannot be asked here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer asks.ask.Close()
	r, told := New(), New()
	defer r.Close()
	told.kernel = &kernelNames{list: list}
	if err := errors.Join(r.KernelErr(), told.KernelErr()); err != nil {
		t.Fatal(err)
	}
	asked := 0
	for i := 0; i+1 < len(list.list); i += 97 {
		addr := list.list[i].addr() + 1
		if _, module := list.find(addr); addr >= list.list[i+1].addr() || module == "[bpf]" { // which come and go
			continue
		}
		name, module := asks.find(addr)
		if want, in := list.find(addr); name != want || module != in {
			t.Errorf("%x is %q in %q, in the list %q in %q", addr, name, module, want, in)
		}
		if a, b := r.Kernel(addr), told.Kernel(addr); a != b || !a.Kernel {
			t.Errorf("%+v and %+v", a, b)
		}
		asked++
	}
	if asked < 300 {
		t.Errorf("%d functions were looked at", asked)
	}
	for _, nowhere := range []uint64{0, 1, 1 << 40} {
		if name, module := asks.find(nowhere); name+module != "" {
			t.Errorf("%x is %q in %q, want nothing", nowhere, name, module)
		}
	}
}

func TestParseKernelName(t *testing.T) {
	for text, want := range map[string]kernelName{
		"tcp_sendmsg": {"tcp_sendmsg", ""}, "nf_confirm [nf_conntrack]": {"nf_confirm", "[nf_conntrack]"},
		"bpf_prog_ccdc82592dbb8e6e_add_failure": {"bpf_prog_ccdc82592dbb8e6e_add_failure", "[bpf]"}, "bpf_prog_alloc": {"bpf_prog_alloc", ""}, "0xffffffffc1000000": {}, "": {},
	} {
		if got := parseKernelName(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

const program = `
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int counter_of_things[4] = {1, 2, 3, 4};
int zeros_of_things[4096];
static int __attribute__((noinline)) hidden_one(int x) { return x * 3; }
int __attribute__((noinline)) shown_one(int x) { return hidden_one(x) + 1; }
namespace outer { struct thing { int __attribute__((noinline)) method(int x, char *) { return x * 7; } }; }
int main() {
	outer::thing t;
	int (outer::thing::*m)(int, char *) = &outer::thing::method;
	printf("%p %p %p %p %p\n", (void *)hidden_one, (void *)shown_one, *(void **)&m, (void *)&counter_of_things[2], (void *)&zeros_of_things[4000]);
	fflush(stdout);
	getchar();
	return shown_one(t.method(2, 0));
}
`

// built compiles the program; skipped where there is no compiler.
func built(t *testing.T, flags ...string) string {
	t.Helper()
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("no C++ compiler")
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "p.cc")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "p")
	if out, err := exec.Command("g++", append(flags, "-O1", "-o", path, source)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// running starts it and returns its addresses.
func running(t *testing.T, path string) (pid int, addrs []uint64) {
	t.Helper()
	c := exec.Command(path)
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = c.Wait() // its exit code is a number that it worked out
	})
	line := make([]byte, 200)
	n, _ := stdout.Read(line)
	for _, word := range strings.Fields(string(line[:n])) {
		addr, err := strconv.ParseUint(strings.TrimPrefix(word, "0x"), 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		addrs = append(addrs, addr)
	}
	if len(addrs) != 5 {
		t.Fatalf("it says %q", line[:n])
	}
	return c.Process.Pid, addrs
}

func names(r *Resolver, pid int, addrs []uint64) string {
	var all []string
	for _, addr := range addrs[:3] {
		all = append(all, r.User(pid, addr).Function)
	}
	for _, addr := range addrs[3:] {
		all = append(all, r.Data(pid, addr).Function)
	}
	return strings.Join(all, " ")
}

const allNames = "hidden_one shown_one outer::thing::method counter_of_things zeros_of_things"

func TestProgramWithSymbols(t *testing.T) {
	for _, flag := range []string{"-pie", "-no-pie", "-static"} {
		t.Run(flag, func(t *testing.T) {
			path := built(t, flag, "-Wl,--build-id=0xabcdef01")
			pid, addrs := running(t, path)
			r := New()
			defer r.Close()
			if got := names(r, pid, addrs); got != allNames {
				t.Errorf("%q", got)
			}
			if f := r.User(pid, addrs[1]); f.BuildID != "abcdef01" || f.Module != path || f.Kernel {
				t.Errorf("%+v", f)
			}
			if f := r.User(pid, addrs[3]); flag == "-pie" && f.Module != "" {
				t.Errorf("data is no code: %+v", f)
			}
		})
	}
}

// Stripped, only exported functions have names, and what is between them none.
func TestStrippedProgram(t *testing.T) {
	path := built(t, "-s", "-rdynamic")
	pid, addrs := running(t, path)
	r := New()
	defer r.Close()
	if got, want := names(r, pid, addrs), " shown_one outer::thing::method counter_of_things zeros_of_things"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	inside, begin := r.User(pid, addrs[0]+2), r.User(pid, addrs[0])
	if got := inside.Name(); got != begin.Name() || got != fmt.Sprintf("p+%#x", begin.Address) {
		t.Errorf("%q, %q", got, begin.Name())
	}
}

// MiniDebugInfo: the symbols of a stripped program, compressed, in a section of it.
func TestMiniDebugInfo(t *testing.T) {
	path := built(t)
	steps := "objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbol=_Z10hidden_onei --keep-symbol=hidden_one " +
		"--keep-symbol=_ZL10hidden_onei $0 $0.mini && xz $0.mini && strip $0 && objcopy --add-section .gnu_debugdata=$0.mini.xz $0"
	if out, err := exec.Command("sh", "-c", steps, path).CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	pid, addrs := running(t, path)
	r := New()
	defer r.Close()
	if got := r.User(pid, addrs[0]).Function; got != "hidden_one" {
		t.Errorf("%q", got)
	}
}

// A program that was replaced or deleted while it runs still has its names.
func TestDeletedProgram(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("map_files needs root")
	}
	path := built(t)
	pid, addrs := running(t, path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	r := New()
	defer r.Close()
	if got := names(r, pid, addrs); got != allNames {
		t.Errorf("%q", got)
	}
}

func TestStackEndsWhereChanceBegins(t *testing.T) {
	path := built(t)
	pid, addrs := running(t, path)
	r := New()
	defer r.Close()
	got := r.UserStack(pid, []uint64{addrs[0], addrs[1] + 1, 0xdeadbeef, addrs[1] + 1})
	if len(got) != 2 || got[0].Function != "hidden_one" || got[1].Function != "shown_one" {
		t.Errorf("%+v", got)
	}
}

func TestGoneProcess(t *testing.T) {
	r := New()
	defer r.Close()
	const nobody = 1 << 30
	if f := r.User(nobody, 0x1234); f != (Frame{Address: 0x1234}) || f.Name() != "[unknown]" {
		t.Errorf("%+v", f)
	}
	if got := r.UserStack(nobody, []uint64{1, 2, 3}); len(got) != 1 || got[0] != (Frame{}) {
		t.Errorf("%+v", got)
	}
}

// What a JIT compiler leaves in /tmp names code that is in no file.
func TestPerfMap(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("no node")
	}
	c := exec.Command("node", "--perf-basic-prof", "-e", `
function spinning_in_script(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i ^ s); return s }
let x = 0; for (let k = 0; k < 100; k++) x += spinning_in_script(1e5); console.log("ready"); setInterval(() => {}, 1000)`)
	c.Dir = t.TempDir() // it leaves a log where it stands
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	pid := c.Process.Pid
	perf := "/tmp/perf-" + strconv.Itoa(pid) + ".map"
	defer os.Remove(perf)
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
	}()
	if _, err := stdout.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(perf)
	if err != nil {
		t.Fatal(err)
	}
	r := New()
	defer r.Close()
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) > 2 && strings.Contains(line, "spinning_in_script") && !strings.Contains(line, "~") { // that is code of its interpreter
			addr, _ := strconv.ParseUint(f[0], 16, 64)
			if got := r.User(pid, addr+1); got.Module != jitModule || !strings.Contains(got.Function, "spinning_in_script") {
				t.Errorf("%s: %+v", line, got)
			}
			return
		}
	}
	t.Errorf("the map of node says nothing of it:\n%.2000s", text)
}

func TestVDSO(t *testing.T) {
	b := readVDSO()
	if len(b.functions) == 0 || len(b.functions[0].list) == 0 {
		t.Skip("no vdso")
	}
	s := b.functions[0].list[0]
	if name, _, _ := b.function(s.addr); name == "" {
		t.Errorf("%+v", b)
	}
}

func TestBoundsHold(t *testing.T) {
	r := New()
	defer r.Close()
	for i := range maxProcesses + 10 {
		r.processes[i] = &process{used: uint64(i)}
	}
	r.trimProcesses()
	if len(r.processes) != maxProcesses || r.processes[0] != nil {
		t.Errorf("%d processes", len(r.processes))
	}
	r.processes = map[int]*process{1: {used: 1, perfMap: perfMap{bytes: maxJIT}}, 2: {used: 2, perfMap: perfMap{bytes: 1}}}
	r.trimProcesses()
	if len(r.processes) != 1 || r.processes[2] == nil {
		t.Errorf("%v", r.processes)
	}
	for i := range maxBinaries + 10 {
		r.binaries[fileID{inode: strconv.Itoa(i)}] = &object{used: uint64(i), entries: 1}
	}
	r.trimBinaries()
	if len(r.binaries) != maxBinaries {
		t.Errorf("%d binaries", len(r.binaries))
	}
}

// PHP's functions are static, and Debian's PHP has no symbols; scripts call them by names.
func TestFunctionsOfPHP(t *testing.T) {
	program, err := exec.LookPath("php")
	if err != nil {
		t.Skip("no php")
	}
	c := exec.Command(program, "-r", "echo getmypid(), PHP_EOL; fgets(STDIN);")
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer stdin.Close()
	if _, err := stdout.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	r := New()
	defer r.Close()
	m := r.Module(c.Process.Pid, func(path string) bool { return strings.HasPrefix(filepath.Base(path), "php") })
	if m == nil {
		t.Fatal("no module")
	}
	found := map[string]bool{}
	for _, table := range r.binaries[m.mapping.file].functions {
		for _, e := range table.list {
			found[stringAt(table.names, int64(e.name))] = true
		}
	}
	for _, want := range []string{"zif_sqrt", "zif_strlen", "zif_implode", "zif_preg_replace", "zif_md5"} {
		if !found[want] && !found[want[4:]] {
			t.Errorf("%s has no name", want)
		}
	}
}
