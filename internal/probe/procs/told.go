package procs

import (
	"bytes"
	"debug/buildinfo"
	"slices"
	"strconv"
	"strings"
)

// told is how many CPUs a program's runtime was told to use at once, and by which
// setting; the zero value says that it was told nothing. interprets is the setting
// by which it was told to compile none of its code, "" for none, and codeCache the
// bytes of memory for compiled code that it was told to take at most, 0 for none.
type told struct {
	cpus       int
	setting    string
	interprets string
	codeCache  uint64
}

// tellers are the variables by which runtimes are told how many threads may run code at once.
// Those that size the pools of a library (OMP_NUM_THREADS, RAYON_NUM_THREADS) are none: what serves
// requests need not be in them.
//
// https://pkg.go.dev/runtime#hdr-Environment_Variables,
// https://docs.rs/tokio/latest/tokio/runtime/struct.Builder.html#method.worker_threads
var tellers = []string{goProcs, "TOKIO_WORKER_THREADS="}

const (
	goProcs = "GOMAXPROCS="
	// activeProcessors is an argument of the JVM's, or a word of one of its variables:
	// https://docs.oracle.com/en/java/javase/17/docs/specs/man/java.html
	activeProcessors = "-XX:ActiveProcessorCount="
	mostTold         = 1 << 16
)

// readTold reads what the process was told: from its environment, of which nothing is
// kept but these, and from its command line. Where they may not be read, or the
// process is gone, nothing is known, and nothing is claimed.
func (r *reader) readTold(p *process) told {
	var t told
	if text, err := r.tree.readLong(p.name + "/environ"); err == nil {
		t = parseTold(text, true)
	}
	if text, err := r.tree.readLong(p.name + "/cmdline"); err == nil {
		if found := parseTold(text, false); found.cpus > 0 {
			t = found // an argument outweighs a variable
		}
	}
	if t.setting+"=" == goProcs && !isGo(r.tree.dir+"/"+p.name+"/exe") {
		t.cpus, t.setting = 0, "" // a pod's variables are there for all that runs in it
	}
	t.interprets, t.codeCache = r.readCompiler(p)
	return t
}

// readCompiler reads the setting by which a runtime was told to compile nothing, and how much memory what it compiles may take.
func (r *reader) readCompiler(p *process) (interprets string, codeCache uint64) {
	rt, ok := compilers[p.comm]
	if !ok {
		return "", 0
	}
	var environ, cmdline []byte
	if text, err := r.tree.readLong(p.name + "/environ"); err == nil {
		environ = text
	}
	if text, err := r.tree.readLong(p.name + "/cmdline"); err == nil {
		cmdline = text
	}
	return rt.interprets(environ, cmdline), rt.codeCache(environ, cmdline)
}

// compiler is a runtime that compiles a program while it runs: which variables it reads before its arguments and which
// after them, what tells it not to compile, and after which options another word follows that is none.
type compiler struct {
	before, after []string
	switches      []compilerSwitch
	cache         string // what stands before the size of the memory for compiled code; "" where there is no such option
	pairs         []string
}

// compilerSwitch is one of the ways to tell it. The last word counts, of off and of those in on that take it back; one that ends in "="
// is a beginning. A switch takes nothing of another back: what is interpreted by -Xint is so at any TieredStopAtLevel.
type compilerSwitch struct {
	off string
	on  []string
}

// compilers are known by the names of their processes. The JVM reads _JAVA_OPTIONS last, and its launcher puts JDK_JAVA_OPTIONS before the arguments.
//
// https://docs.oracle.com/en/java/javase/17/docs/specs/man/java.html, Arguments::parse in OpenJDK's src/hotspot/share/runtime/arguments.cpp,
// https://nodejs.org/api/cli.html#--jitless
var compilers = map[string]compiler{
	"java": {
		before: []string{"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"}, after: []string{"_JAVA_OPTIONS"},
		switches: []compilerSwitch{
			{"-Xint", []string{"-Xmixed", "-Xcomp"}},
			{"-XX:TieredStopAtLevel=0", []string{"-XX:TieredStopAtLevel="}},
			{"-XX:-UseCompiler", []string{"-XX:+UseCompiler", "-Xmixed", "-Xcomp"}},
		},
		cache: "-XX:ReservedCodeCacheSize=",
		pairs: []string{"-cp", "-classpath", "--class-path", "-p", "--module-path"},
	},
	"node": {
		before:   []string{"NODE_OPTIONS"},
		switches: []compilerSwitch{{"--jitless", []string{"--no-jitless"}}},
		pairs:    []string{"-r", "--require", "--import"},
	},
}

// interprets finds what the runtime was told; "" where it compiles.
func (c compiler) interprets(environ, cmdline []byte) string {
	settings := make([]string, len(c.switches))
	c.options(environ, cmdline, func(where, option string) { c.take(settings, where, option) })
	for _, setting := range settings {
		if setting != "" {
			return setting
		}
	}
	return ""
}

// codeCache finds how many bytes of compiled code the runtime was told to keep at most; 0 where it was not told.
func (c compiler) codeCache(environ, cmdline []byte) (size uint64) {
	if c.cache == "" {
		return 0
	}
	c.options(environ, cmdline, func(_, option string) {
		if value, ok := strings.CutPrefix(option, c.cache); ok {
			size = parseJVMBytes(value)
		}
	})
	return size
}

// parseJVMBytes reads a size as the JVM takes it: a number, and k, m or g for powers of 1,024. What is no such thing is 0.
func parseJVMBytes(value string) uint64 {
	digits := strings.TrimRight(value, "kKmMgG")
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || len(value) > len(digits)+1 {
		return 0
	}
	return n << (10 * (1 + strings.Index("kmg", strings.ToLower(value[len(digits):]))) * (len(value) - len(digits)))
}

// options calls take for each option, in the order in which the runtime reads them; where is "" for an argument, else the
// variable and "=".
func (c compiler) options(environ, cmdline []byte, take func(where, option string)) {
	inVariables(environ, c.before, take)
	c.inArguments(cmdline, take)
	inVariables(environ, c.after, take)
}

func inVariables(environ []byte, names []string, take func(where, option string)) {
	for _, name := range names {
		for word := range bytes.SplitSeq(environ, []byte{0}) {
			value, ok := bytes.CutPrefix(word, []byte(name+"="))
			if !ok {
				continue
			}
			for option := range bytes.FieldsSeq(value) {
				take(name+"=", string(option))
			}
		}
	}
}

// inArguments reads a command line; what stands behind the program that is run (a class, a file) is that program's.
func (c compiler) inArguments(cmdline []byte, take func(where, option string)) {
	words := strings.Split(strings.TrimRight(string(cmdline), "\x00"), "\x00")[1:]
	for i := 0; i < len(words) && strings.HasPrefix(words[i], "-") && words[i] != "-jar"; i++ {
		take("", words[i])
		if slices.Contains(c.pairs, words[i]) {
			i++
		}
	}
}

func (c compiler) take(settings []string, where, option string) {
	for i, s := range c.switches {
		switch {
		case option == s.off:
			settings[i] = where + option
		case slices.ContainsFunc(s.on, func(on string) bool {
			return option == on || strings.HasSuffix(on, "=") && strings.HasPrefix(option, on)
		}):
			settings[i] = ""
		}
	}
}

// isGo says whether a program was built by Go.
func isGo(exe string) bool {
	_, err := buildinfo.ReadFile(exe)
	return err == nil
}

// parseTold finds a teller in strings that end with a NUL each: variables, or arguments. The last one counts.
func parseTold(text []byte, variables bool) (t told) {
	for word := range bytes.SplitSeq(text, []byte{0}) {
		if variables {
			for _, name := range tellers {
				if value, ok := bytes.CutPrefix(word, []byte(name)); ok {
					t.take(name, value)
				}
			}
		}
		if !variables && bytes.HasPrefix(word, []byte(activeProcessors)) || variables && isJVMOptions(word) {
			_, value, _ := bytes.Cut(word, []byte(activeProcessors))
			value, _, _ = bytes.Cut(value, []byte(" "))
			t.take(activeProcessors, value)
		}
	}
	return t
}

// take takes over a setting, if it is a number of CPUs.
func (t *told) take(name string, value []byte) {
	if n, err := strconv.Atoi(string(value)); err == nil && n > 0 && n <= mostTold {
		t.cpus, t.setting = n, name[:len(name)-1]
	}
}

// isJVMOptions says that a variable holds arguments for a JVM.
func isJVMOptions(word []byte) bool {
	return bytes.HasPrefix(word, []byte("JAVA_TOOL_OPTIONS=")) || bytes.HasPrefix(word, []byte("JDK_JAVA_OPTIONS="))
}
