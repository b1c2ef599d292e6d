package procs

import (
	"bytes"
	"strconv"
)

// told is how many CPUs a program's runtime was told to use at once, and by which
// setting; the zero value says that it was told nothing.
type told struct {
	cpus    int
	setting string
}

// tellers are the settings by which runtimes are told how many threads may run
// code at once. Those that begin with a dash are the JVM's options, which are
// arguments or words of one of its variables.
//
// https://pkg.go.dev/runtime#hdr-Environment_Variables,
// https://docs.rs/tokio/latest/tokio/runtime/struct.Builder.html#method.worker_threads,
// https://docs.rs/rayon/latest/rayon/struct.ThreadPoolBuilder.html,
// https://www.openmp.org/spec-html/5.0/openmpse50.html,
// https://docs.oracle.com/en/java/javase/17/docs/specs/man/java.html
var tellers = []string{"GOMAXPROCS=", "TOKIO_WORKER_THREADS=", "RAYON_NUM_THREADS=", "OMP_NUM_THREADS=", activeProcessors}

const (
	activeProcessors = "-XX:ActiveProcessorCount="
	mostTold         = 1 << 16
)

// readTold reads what the process was told: from its environment, of which nothing is
// kept but these, and from its command line. Where they may not be read, or the
// process is gone, nothing is known, and nothing is claimed.
func (r *reader) readTold(p *process) told {
	var t told
	for _, name := range []string{"/environ", "/cmdline"} {
		text, err := r.tree.readLong(p.name + name)
		if err != nil {
			continue
		}
		if found := parseTold(text); found.cpus > 0 {
			t = found // an argument outweighs a variable
		}
	}
	return t
}

// parseTold finds a teller in strings that end with a NUL each. The last one counts.
func parseTold(text []byte) (t told) {
	for word := range bytes.SplitSeq(text, []byte{0}) {
		for _, name := range tellers {
			value, ok := bytes.CutPrefix(word, []byte(name))
			if !ok && name == activeProcessors && isJVMOptions(word) {
				_, value, ok = bytes.Cut(word, []byte(name))
				value, _, _ = bytes.Cut(value, []byte(" "))
			}
			n, err := strconv.Atoi(string(value))
			if ok && err == nil && n > 0 && n <= mostTold {
				t = told{n, name[:len(name)-1]}
			}
		}
	}
	return t
}

// isJVMOptions says that a variable holds arguments for a JVM.
func isJVMOptions(word []byte) bool {
	return bytes.HasPrefix(word, []byte("JAVA_TOOL_OPTIONS=")) || bytes.HasPrefix(word, []byte("JDK_JAVA_OPTIONS="))
}
