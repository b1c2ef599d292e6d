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
// by which it was told to compile none of its code, "" for none.
type told struct {
	cpus       int
	setting    string
	interprets string
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
	t.interprets = r.readInterprets(p)
	return t
}

// readInterprets reads the setting by which a runtime was told to compile nothing. Its variables are read first, as it does itself.
func (r *reader) readInterprets(p *process) (setting string) {
	rt, ok := compilers[p.comm]
	if !ok {
		return ""
	}
	if text, err := r.tree.readLong(p.name + "/environ"); err == nil {
		setting = rt.variables(text, setting)
	}
	if text, err := r.tree.readLong(p.name + "/cmdline"); err == nil {
		setting = rt.arguments(text, setting)
	}
	return setting
}

// compiler is a runtime that compiles a program while it runs: in which variables and by which options it is told not to,
// which take that back, and after which options another word follows that is none.
type compiler struct {
	in, off, on, pairs []string
}

// compilers are known by the names of their processes.
//
// https://docs.oracle.com/en/java/javase/17/docs/specs/man/java.html, https://nodejs.org/api/cli.html#--jitless
var compilers = map[string]compiler{
	"java": {
		in:  []string{"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"},
		off: []string{"-Xint", "-XX:TieredStopAtLevel=0", "-XX:-UseCompiler", "-Djava.compiler=NONE"},
		on:  []string{"-Xmixed", "-Xcomp"}, pairs: []string{"-cp", "-classpath", "--class-path", "-p", "--module-path"},
	},
	"node": {in: []string{"NODE_OPTIONS"}, off: []string{"--jitless"}, pairs: []string{"-r", "--require", "--import"}},
}

// variables finds the last option in an environment that says whether code is compiled.
func (c compiler) variables(text []byte, setting string) string {
	for word := range bytes.SplitSeq(text, []byte{0}) {
		name, value, _ := bytes.Cut(word, []byte("="))
		if !slices.Contains(c.in, string(name)) {
			continue
		}
		for option := range bytes.FieldsSeq(value) {
			setting = c.take(string(name)+"=", string(option), setting)
		}
	}
	return setting
}

// arguments does so on a command line; what stands behind the program that is run (a class, a file) is that program's.
func (c compiler) arguments(text []byte, setting string) string {
	words := strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")[1:]
	for i := 0; i < len(words) && strings.HasPrefix(words[i], "-") && words[i] != "-jar"; i++ {
		setting = c.take("", words[i], setting)
		if slices.Contains(c.pairs, words[i]) {
			i++
		}
	}
	return setting
}

func (c compiler) take(where, option, setting string) string {
	switch {
	case slices.Contains(c.off, option):
		return where + option
	case slices.Contains(c.on, option):
		return ""
	}
	return setting
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
