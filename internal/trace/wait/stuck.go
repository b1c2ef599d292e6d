package wait

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/sched"
	"plimsoll/internal/trace/wait/reason"
)

const (
	// scanEvery is how often all processes are searched for who has the other ends of pipes, at most.
	scanEvery = 5 * time.Second
	// maxDescriptors bounds what of one process is looked through.
	maxDescriptors = 256
	// maxReaders bounds the threads of a reader that are looked at.
	maxReaders = 64
	// maxWriters bounds who is told apart.
	maxWriters = 64
	// unseen stands for who has the other end, or what he does, where that is not seen.
	unseen = "-"
)

// writer is whose threads stand in writes to full pipes, and who has the other end.
type writer struct {
	netns                       uint32
	group, script, reader, does string
}

// writers knows who stands in writes to full pipes, from look to look.
type writers struct {
	readers map[string]int // the processes that have the reading ends, by pipe; 0 for none that was found
	scanned time.Time
	seen    map[writer]bool
}

// stuck counts the threads that stood in one write to a full pipe for a second or longer when the waits were looked at last.
func (t *Trace) stuck() (map[writer]int, error) {
	found := map[uint32]sched.Group{}
	m := t.Maps.Maps[sched.Stuck]
	if err := trace.Each(m, func(tid *uint32, g *sched.Group) { found[*tid] = *g }); err != nil {
		return nil, fmt.Errorf("read who stands in writes to pipes: %w", err)
	}
	if err := trace.Remove(m, slices.Collect(maps.Keys(found))); err != nil {
		return nil, err
	}
	pipes := map[uint32]string{}
	for tid := range found {
		if pipe := pipeOf(int(tid)); pipe != "" { // else it goes on
			pipes[tid] = pipe
		}
	}
	t.writers.find(pipes)
	now := map[writer]int{}
	for tid, pipe := range pipes {
		g := found[tid]
		w := writer{g.Netns, trace.Comm(g.Comm[:]), script(int(tid)), unseen, unseen}
		if pid := t.writers.readers[pipe]; pid > 0 {
			w.reader, w.does = script(pid), does(pid)
		}
		now[w]++
	}
	return now, nil
}

// pipeOf is the pipe that a thread writes to at the moment, as the link of its descriptor tells it.
func pipeOf(tid int) (pipe string) {
	dir := "/proc/" + strconv.Itoa(tid)
	line, err := host.ReadFile(dir + "/syscall")
	if err != nil {
		return ""
	}
	r, _ := reason.OfCall(string(line), func(fd uint64) string {
		pipe, _ = os.Readlink(dir + "/fd/" + strconv.FormatUint(fd, 10))
		return pipe
	})
	if r != reason.PipeWrite {
		return ""
	}
	return pipe
}

// find looks who has the reading ends, of those that were found before whether they still have them.
func (w *writers) find(pipes map[uint32]string) {
	wanted, missing := map[string]bool{}, false
	for _, pipe := range pipes {
		wanted[pipe] = true
		if pid, known := w.readers[pipe]; !known || pid > 0 && !reads(pid, pipe) {
			missing = true
		}
	}
	if !missing || time.Since(w.scanned) < scanEvery {
		maps.DeleteFunc(w.readers, func(pipe string, pid int) bool { return !wanted[pipe] || pid > 0 && !reads(pid, pipe) })
		return
	}
	w.readers, w.scanned = map[string]int{}, time.Now()
	for pipe := range wanted {
		w.readers[pipe] = 0
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*") // an error is one of the pattern
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		eachRead(dir, func(pipe string) {
			if wanted[pipe] && w.readers[pipe] == 0 {
				w.readers[pipe] = pid
			}
		})
	}
}

// reads says whether a process has a pipe open for reading.
func reads(pid int, pipe string) (is bool) {
	eachRead("/proc/"+strconv.Itoa(pid), func(p string) { is = is || p == pipe })
	return is
}

// eachRead calls do for the pipes that a process has open for reading alone.
func eachRead(dir string, do func(pipe string)) {
	_, _ = host.EachDescriptor(dir, maxDescriptors, func(fd int, link []byte, err error) {
		if err != nil || !bytes.HasPrefix(link, []byte("pipe:")) {
			return
		}
		info, err := host.ReadFile(dir + "/fdinfo/" + strconv.Itoa(fd))
		if err == nil && forReading(info) {
			do(string(link))
		}
	})
}

// forReading says whether an fdinfo is of a file that is open for reading alone.
func forReading(info []byte) bool {
	for line := range bytes.Lines(info) {
		if f := bytes.Fields(line); len(f) == 2 && string(f[0]) == "flags:" {
			flags, err := strconv.ParseUint(string(f[1]), 8, 64)
			return err == nil && flags&unix.O_ACCMODE == 0
		}
	}
	return false
}

// does says what most threads of a process do.
func does(pid int) string {
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/[0-9]*")
	count := map[string]int{}
	for _, task := range tasks[:min(len(tasks), maxReaders)] {
		tid, err := strconv.Atoi(filepath.Base(task))
		if err != nil {
			continue
		}
		if what, err := reason.OfThread(tid); err == nil {
			count[what]++
		}
	}
	if len(count) == 0 {
		return unseen
	}
	return slices.MaxFunc(slices.Sorted(maps.Keys(count)), func(a, b string) int { return cmp.Compare(count[a], count[b]) })
}

// interpreters run a program in a file, and the kernel knows it by their name.
var interpreters = map[string]string{"python": ".py", "ruby": ".rb", "perl": ".pl", "node": ".js", "php": ".php", "sh": ".sh", "bash": ".sh", "dash": ".sh"}

// script is the name of a process' program: of the script where it is one that an interpreter runs.
func script(pid int) string {
	dir := "/proc/" + strconv.Itoa(pid)
	comm, err := host.ReadFile(dir + "/comm")
	if err != nil {
		return unseen
	}
	name := string(bytes.TrimSuffix(comm, []byte("\n")))
	args, _ := host.ReadFile(dir + "/cmdline") // without them it goes by its own name
	if end := interpreters[strings.TrimRight(name, "0123456789.")]; end != "" {
		for arg := range strings.SplitSeq(string(args), "\x00") {
			if filepath.Ext(arg) == end {
				name = filepath.Base(arg)
				break
			}
		}
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

// putStuck puts how many stand so, and zero for those that did before.
func (t *Trace) putStuck(out trace.Out) error {
	now, err := t.stuck()
	if err != nil {
		return err
	}
	for w := range now {
		if len(t.writers.seen) < maxWriters {
			t.writers.seen[w] = true
		}
	}
	for w := range t.writers.seen {
		out.In(w.netns).Put(stuckWriters, float64(now[w]), w.group, w.script, w.reader, w.does)
	}
	return nil
}
