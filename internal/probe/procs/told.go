package procs

import (
	"bytes"
	"debug/buildinfo"
	"strconv"
)

// told is how many CPUs a program's runtime was told to use at once, and by which
// setting; the zero value says that it was told nothing.
type told struct {
	cpus    int
	setting string
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
		return told{} // a pod's variables are there for all that runs in it
	}
	return t
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
		*t = told{n, name[:len(name)-1]}
	}
}

// isJVMOptions says that a variable holds arguments for a JVM.
func isJVMOptions(word []byte) bool {
	return bytes.HasPrefix(word, []byte("JAVA_TOOL_OPTIONS=")) || bytes.HasPrefix(word, []byte("JDK_JAVA_OPTIONS="))
}
