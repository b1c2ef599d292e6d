package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// ban forbids something in all rooms but a few, or in a few rooms alone.
type ban struct {
	in      []string // rooms; none means all
	except  []string // rooms
	imports []string // packages, with all beneath them
	names   []string // "os.Exit": a name of a package
	text    []string // what no string literal may contain
	why     string   // the reason, and what to do instead
}

var writing = []string{
	"os.WriteFile", "os.Create", "os.CreateTemp", "os.Mkdir", "os.MkdirAll", "os.MkdirTemp", "os.Remove", "os.RemoveAll",
	"os.Rename", "os.Truncate", "os.Chmod", "os.Chown", "os.Link", "os.Symlink",
	"os.O_WRONLY", "os.O_RDWR", "os.O_CREATE", "os.O_TRUNC",
	"unix.O_WRONLY", "unix.O_RDWR", "unix.O_CREAT", "unix.O_TRUNC", "unix.Unlink", "unix.Mount", "unix.Unmount",
	"syscall.O_WRONLY", "syscall.O_RDWR", "syscall.O_CREAT", "syscall.O_TRUNC",
}

var bans = []ban{
	{in: []string{"internal/model"}, imports: []string{"os", "net", "io/fs", "bufio"}, names: []string{"time.Now", "time.Since"},
		why: "model does no I/O and reads no clock; the room that does hands values over"},
	{in: []string{"internal/query", "internal/ruleset", "internal/diagnose", "internal/breakdown", "internal/report", "internal/page", "internal/judge"}, names: []string{"time.Now", "time.Since"},
		why: "same inputs, same bytes out; take the time from the run"},
	{except: []string{"internal/record/writer", "internal/session/printed", "internal/change", "internal/lab", "bench", "cmd/plimsoll"}, names: writing,
		why: "only record/writer writes (the run directory), and only change changes what a host is set to (and lab, inside hosts that it made); printed opens a terminal for the user's command"},
	{except: []string{"internal/session", "internal/collect", "internal/ssh", "internal/change", "internal/lab", "bench", "cmd/plimsoll"}, imports: []string{"os/exec"},
		names: []string{"os.StartProcess", "syscall.StartProcess", "syscall.ForkExec", "syscall.Exec", "unix.Exec", "unix.SYS_EXECVE", "unix.SYS_EXECVEAT"},
		why:   "probes read the kernel and the services themselves; a child process costs and may change something"},
	{in: []string{"internal/load"}, text: []string{"/proc"},
		why: "load knows nothing of /proc; it measures itself with getrusage"},
	{except: []string{"bench", "cmd/plimsoll"}, names: []string{"os.Args", "os.Exit", "os.Stdin", "os.Stdout", "os.Stderr",
		"os.Getenv", "os.LookupEnv", "os.Environ", "os.Setenv", "flag.Parse", "log.Print", "log.Printf", "log.Println", "log.Fatal", "log.Fatalf"},
		why: "the world is an argument; cmd/plimsoll hands it down"},
	{imports: []string{"C"}, why: "one static binary, built without a C compiler"},
	{imports: []string{"github.com/prometheus/prometheus/promql/promqltest", "testing"}, why: "a test's helpers do not belong into the binary"},
	{in: []string{"internal/load"}, imports: []string{"net/http"}, why: "the hot path is our own; parse HTTP in internal/load"},
}

func (b ban) covers(s source) bool {
	hit := func(room string) bool { return s.inRoom(room) }
	if slices.ContainsFunc(b.except, hit) {
		return false
	}
	return len(b.in) == 0 || slices.ContainsFunc(b.in, hit)
}

func (b ban) importing(path string) bool {
	return slices.ContainsFunc(b.imports, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
}

// broken returns what in the node breaks the ban, "" for nothing.
func (b ban) broken(n ast.Node) string {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok && slices.Contains(b.names, x.Name+"."+n.Sel.Name) {
			return x.Name + "." + n.Sel.Name
		}
	case *ast.BasicLit:
		if n.Kind != token.STRING {
			return ""
		}
		for _, text := range b.text {
			if strings.Contains(n.Value, text) {
				return n.Value
			}
		}
	}
	return ""
}

func TestBans(t *testing.T) {
	used := map[string]bool{}
	files := product(t)
	for _, s := range files {
		for _, b := range bans {
			if !b.covers(s) {
				continue
			}
			for i, imp := range s.imports {
				if b.importing(imp) {
					t.Errorf("%s imports %s: %s", s.at(s.file.Imports[i]), imp, b.why)
				}
			}
			ast.Inspect(s.file, func(n ast.Node) bool {
				if what := b.broken(n); what != "" {
					t.Errorf("%s uses %s: %s", s.at(n), what, b.why)
				}
				return true
			})
		}
		for _, b := range bans {
			for _, r := range append(slices.Clone(b.in), b.except...) {
				used[r] = used[r] || s.inRoom(r)
			}
		}
	}
	for room, there := range used {
		if !there {
			t.Errorf("a ban names %s, and there is no such room", room)
		}
	}
}

func TestModelStartsNoGoroutine(t *testing.T) {
	for _, s := range product(t) {
		if !s.inRoom("internal/model") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine; model is values alone", s.at(n))
			}
			return true
		})
	}
}

func TestProductNeedsNoTestHelp(t *testing.T) {
	for _, s := range product(t) {
		for _, imp := range s.imports {
			if strings.HasPrefix(imp, module) && isTestHelp(imp) {
				t.Errorf("%s imports %s, which is there for tests", s.path, imp)
			}
		}
	}
}

func TestNoInit(t *testing.T) {
	for _, s := range product(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init: what the binary contains must not depend on who imports whom; list it where it is used", s.at(f))
			}
		}
	}
}

func TestNoRoomForEverything(t *testing.T) {
	for _, s := range sources(t) {
		switch s.file.Name.Name {
		case "util", "utils", "common", "helpers", "misc", "base":
			t.Errorf("%s is of package %s; name a package for what it is about", s.path, s.file.Name.Name)
		}
	}
}

// A ban that catches nothing holds nothing: each kind is tried on a file that breaks it.
func TestBansBite(t *testing.T) {
	const text = `package x
import "os"
func f() { os.Exit(1); _ = "/proc/stat"; _ = os.O_RDWR }`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "x.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	broken := map[string]bool{}
	s := source{path: "internal/load/x.go", folder: "internal/load", file: file, fset: fset}
	for _, b := range bans {
		if !b.covers(s) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			broken[b.broken(n)] = true
			return true
		})
	}
	for _, want := range []string{"os.Exit", `"/proc/stat"`, "os.O_RDWR"} {
		if !broken[want] {
			t.Errorf("%s was not caught", want)
		}
	}
	if b := (ban{imports: []string{"os"}}); !b.importing("os/exec") || b.importing("osx") {
		t.Error("a ban on a package covers what lies beneath it, and nothing else")
	}
}
