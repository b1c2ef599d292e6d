package layout

import (
	"slices"
	"strconv"
	"strings"
)

// Script is a function of a script, or of what else an interpreter or a virtual machine runs.
type Script struct {
	Name string
	// File is where it stands; "" of what the interpreter brings along itself.
	File string
	// Line is where it begins there, 0 if that is not known.
	Line int
}

// libraries are parts of the paths under which languages and their packages keep what others wrote.
var libraries = []string{
	"/lib/python", "/lib64/python", "/lib/pypy", "/site-packages/", "/dist-packages/", "<frozen ", "<string>",
	"/node_modules/", "node:", "/vendor/", "/usr/share/php/", "/gems/", "/lib/ruby/", "<internal:", "/perl5/", "/share/perl/", "-linux-gnu/perl", "/lib/erlang/",
}

// libraryPackages are how the names of such functions begin where files have no paths.
var libraryPackages = []string{
	"java.", "javax.", "jakarta.", "jdk.", "sun.", "com.sun.", "kotlin.", "scala.", "groovy.", "org.springframework.", "org.apache.", "org.eclipse.jetty.", "org.hibernate.",
	"com.fasterxml.", "com.google.", "io.netty.", "reactor.", "System.", "Microsoft.",
}

// runners are files whose functions run what they were handed: a server, a pool of threads, a loop of events.
// Who started one did not ask for what it is doing now.
var runners = []string{
	"/asyncio/", "/uvicorn/", "/gunicorn/", "/hypercorn/", "/daphne/", "/waitress/", "/cheroot/", "/tornado/", "/twisted/", "/eventlet/", "/gevent/", "/aiohttp/web", "/werkzeug/serving.py",
	"/socketserver.py", "/http/server.py", "/wsgiref/", "/threading.py", "/concurrent/futures/", "/multiprocessing/", "/celery/", "/billiard/",
	"/puma", "/unicorn", "/webrick", "/sidekiq", "/revolt/event-loop/", "/react/event-loop/", "/workerman/",
}

// Library says whether a function is of a library, the language's own among them, and not of the program.
func (s Script) Library() bool {
	if s.File == "" || within(s.File, libraries) {
		return true
	}
	name := s.bare()
	return !strings.Contains(s.File, "/") && slices.ContainsFunc(libraryPackages, func(p string) bool { return strings.HasPrefix(name, p) })
}

func within(file string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(file, p) })
}

// Runs says whether it is of a file that runs what it was handed.
func (s Script) Runs() bool { return within(s.File, runners) }

// OwnScript is which of a stack's functions of scripts, from the innermost out, its time is best told for: the
// innermost one of the program itself, which did it or called the library that does. Where a server or a loop of
// events called that library, or there is none of the program, it is the innermost one.
func OwnScript(stack []Script) int {
	for i, s := range stack {
		switch {
		case !s.Library():
			return i
		case s.Runs():
			return 0
		}
	}
	return 0
}

// InScripts names what a stack's time is told for: that function, and before it the one of a library that it called.
func InScripts(stack []Script) string {
	own := OwnScript(stack)
	if own == 0 {
		return stack[0].String()
	}
	return stack[own-1].String() + " in " + stack[own].String()
}

// String names it with its file and line: "list (app/shop.py:12)". Of the file the folder stands too: every package has an
// __init__.py.
func (s Script) String() string {
	if s.File == "" || s.ofVM() && s.Line == 0 {
		return s.bare()
	}
	file := s.File
	if i := strings.LastIndexByte(file, '/'); i > 0 {
		file = file[strings.LastIndexByte(file[:i], '/')+1:]
	}
	if s.Line > 0 {
		file += ":" + strconv.Itoa(s.Line)
	}
	return s.bare() + " (" + file + ")"
}

// ofVM says whether it is of Java's virtual machine, where a class says all that its file does.
func (s Script) ofVM() bool {
	return slices.ContainsFunc([]string{".java", ".kt", ".scala", ".groovy"}, func(end string) bool { return strings.HasSuffix(s.File, end) })
}

// bare is its name without what it takes and returns, as Java's are given.
func (s Script) bare() string {
	head, _, has := strings.Cut(s.Name, "(")
	if !has || !s.ofVM() {
		return s.Name
	}
	return head[strings.LastIndexByte(head, ' ')+1:]
}

// loops are how the names of interpreters' functions begin that run whatever a script says; rules/records.yaml has them, too.
var loops = []string{"_PyEval_EvalFrame", "PyEval_EvalFrame", "execute_ex", "vm_exec", "rb_vm_exec", "luaV_execute", "Perl_runops", "Builtins_InterpreterEntryTrampoline"}

// RunsScripts says whether a function of a binary is an interpreter's loop, of which all scripts' time is.
func RunsScripts(function string) bool {
	if rest, is := strings.CutPrefix(function, "Builtins_"); is && strings.HasSuffix(rest, "Handler") {
		return true
	}
	return slices.ContainsFunc(loops, func(l string) bool { return strings.HasPrefix(function, l) })
}
