package wait

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/sched"
	"plimsoll/internal/trace/wait/reason"
)

const (
	// scanEvery is how often all processes are searched for who has the other ends of pipes, at most; the same pipe
	// in vain ever later, up to scanLast.
	scanEvery = 5 * time.Second
	scanLast  = 5 * time.Minute
	// scanShare is the part of the time that these searches may take: anybody can have us search.
	scanShare = 0.01
	// maxDescriptors bounds what of one process is looked through.
	maxDescriptors = 256
	// maxEnds bounds the processes with one pipe's reading end that are told apart.
	maxEnds = 64
	// maxAncestors bounds how far up a writer's parents are followed.
	maxAncestors = 32
	// maxThreads bounds the threads of readers that are looked at in a round, maxReader those of one.
	maxThreads, maxReader = 256, 64
	// maxWriters bounds the kinds of those who stand so.
	maxWriters = 64
	// maxScript and maxArgs bound a script's name and the arguments that it is looked for in, in bytes.
	maxScript, maxArgs = 64, 32 << 10
	// unseen stands for who has the other end, or what he does, where that is not seen.
	unseen = "-"
)

// writer is whose threads stand in writes to full pipes, and who has the other end.
type writer struct {
	netns                       uint32
	group, script, reader, does string
}

// others are all that are of more kinds than are told apart. What they wait for has no name, so no rule blames them.
var others = writer{group: "other", script: "other", reader: unseen, does: reason.Other.String()}

// end is a process that has the reading end of a pipe, and its descriptor there.
type end struct{ pid, fd int }

// sought is what is known of one pipe's reading end.
type sought struct {
	end                 // pid is 0 where it was not found
	again time.Time     // when to look again
	wait  time.Duration // until the time after that
}

// writers knows who stands in writes to full pipes, from look to look.
type writers struct {
	readers map[string]*sought // by pipe
	again   time.Time          // when processes may be searched again
	seen    map[writer]bool
}

// Look looks at the waits that last. Who stood in a write before does not count any more.
func (t *Trace) Look() error {
	m := t.Maps.Maps[sched.Stuck]
	var old []uint32
	if err := trace.Each(m, func(tid *uint32, _ *sched.Group) { old = append(old, *tid) }); err != nil {
		return fmt.Errorf("read who stood in writes to pipes: %w", err)
	}
	if err := trace.Remove(m, old); err != nil {
		return err
	}
	return t.View.Look()
}

// stuck counts the threads that stood in one write to a full pipe for a second or longer when the waits were looked at last.
func (t *Trace) stuck() (map[writer]int, error) {
	found := map[uint32]sched.Group{}
	if err := trace.Each(t.Maps.Maps[sched.Stuck], func(tid *uint32, g *sched.Group) { found[*tid] = *g }); err != nil {
		return nil, fmt.Errorf("read who stands in writes to pipes: %w", err)
	}
	pipes := map[uint32]string{}
	for tid := range found {
		pipe, stands, err := pipeOf(int(tid))
		if err != nil {
			return nil, fmt.Errorf("look at who stands in a write to a pipe, which takes CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: %w", err)
		}
		if stands { // else it goes on
			pipes[tid] = pipe
		}
	}
	t.writers.find(pipes, time.Now())
	readers := t.writers.look()
	now := map[writer]int{}
	for tid, pipe := range pipes {
		g := found[tid]
		w := writer{g.Netns, trace.Comm(g.Comm[:]), script(int(tid)), unseen, unseen}
		if s := t.writers.readers[pipe]; s != nil && s.pid > 0 {
			w.reader, w.does = readers[s.pid][0], readers[s.pid][1]
		}
		now[w]++
	}
	return now, nil
}

// gone says whether an error is that a thread, or its descriptor, is there no more.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// pipeOf is the pipe that a thread writes to at the moment, as the link of its descriptor tells it: "" of one that
// has a name. stands says that it still writes to a pipe.
func pipeOf(tid int) (pipe string, stands bool, err error) {
	dir := "/proc/" + strconv.Itoa(tid)
	line, err := host.ReadFile(dir + "/syscall")
	if gone(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	path := ""
	r, _ := reason.OfCall(string(line), func(fd uint64) string {
		path = dir + "/fd/" + strconv.FormatUint(fd, 10)
		return "pipe:" // as the kernel's side saw
	})
	if r != reason.PipeWrite {
		return "", false, nil
	}
	link, err := os.Readlink(path)
	if err == nil && strings.HasPrefix(link, "pipe:") {
		return link, true, nil
	}
	var st unix.Statx_t
	if err == nil { // not synced: this may be a file of a server's that does not answer
		err = unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_TYPE, &st)
	}
	if gone(err) { // another thread has closed it
		return "", true, nil
	}
	return "", st.Mode&unix.S_IFMT == unix.S_IFIFO, err
}

// find looks who has the reading ends; of those that were found before only whether they still have them.
func (w *writers) find(pipes map[uint32]string, now time.Time) {
	next, due := map[string]*sought{}, map[string][]end{}
	for _, pipe := range pipes {
		if pipe == "" || next[pipe] != nil {
			continue
		}
		s := w.readers[pipe]
		if s == nil || s.pid > 0 && !reads(s.end, pipe) {
			s = &sought{wait: scanEvery}
		}
		if next[pipe] = s; s.pid == 0 && !now.Before(s.again) {
			due[pipe] = nil
		}
	}
	w.readers = next
	if len(due) == 0 || now.Before(w.again) {
		return
	}
	start := time.Now()
	search(due)
	for pipe, ends := range due {
		s := next[pipe]
		s.end = choose(ends, pipe, pipes)
		s.again, s.wait = now.Add(s.wait), min(2*s.wait, scanLast)
	}
	w.again = now.Add(max(scanEvery, time.Duration(float64(time.Since(start))/scanShare)))
}

// search adds to each pipe the processes that have its reading end.
func search(wanted map[string][]end) {
	dirs, _ := filepath.Glob("/proc/[0-9]*") // an error is one of the pattern
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		_, _ = host.EachDescriptor(dir, maxDescriptors, func(fd int, link []byte, err error) {
			ends, is := wanted[string(link)]
			if err != nil || !is || len(ends) == maxEnds || len(ends) > 0 && ends[len(ends)-1].pid == pid {
				return
			}
			if info, err := host.ReadFile(dir + "/fdinfo/" + strconv.Itoa(fd)); err == nil && forReading(info) {
				wanted[string(link)] = append(ends, end{pid, fd})
			}
		})
	}
}

// choose is the one process that should read a pipe. A writer, and who started it, may have its reading end only
// because nobody closed it there: they count where nobody else has it, the writer last. Of several none is known.
func choose(ends []end, pipe string, pipes map[uint32]string) end {
	var by [3][]end
	for _, e := range ends {
		rank := 0
		for tid, p := range pipes {
			if p == pipe {
				rank = max(rank, kin(e.pid, int(tid)))
			}
		}
		by[rank] = append(by[rank], e)
	}
	for _, list := range by {
		if len(list) == 1 {
			return list[0]
		}
		if len(list) > 1 {
			break
		}
	}
	return end{}
}

// kin is 2 for a thread's own process, 1 for an ancestor of that, else 0.
func kin(pid, tid int) int {
	if _, err := os.Lstat("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid)); err == nil {
		return 2
	}
	for range maxAncestors {
		st, err := host.StatOf(tid)
		if err != nil || st.PPID == 0 {
			return 0
		}
		if st.PPID == pid {
			return 1
		}
		tid = st.PPID
	}
	return 0
}

// look is the program of each reader that was found, and what it does.
func (w *writers) look() map[int][2]string {
	by := map[int][2]string{}
	for _, s := range w.readers {
		if s.pid > 0 {
			by[s.pid] = [2]string{}
		}
	}
	for pid := range by {
		by[pid] = [2]string{script(pid), does(pid, min(maxReader, maxThreads/len(by)))}
	}
	return by
}

// reads says whether a process still has a pipe open for reading where it had.
func reads(e end, pipe string) bool {
	dir, fd := "/proc/"+strconv.Itoa(e.pid), strconv.Itoa(e.fd)
	if link, err := os.Readlink(dir + "/fd/" + fd); err != nil || link != pipe {
		return false
	}
	info, err := host.ReadFile(dir + "/fdinfo/" + fd)
	return err == nil && forReading(info)
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

// does says what most threads of a process do, of so many.
func does(pid, most int) string {
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/[0-9]*")
	count := map[string]int{}
	for _, task := range tasks[:min(len(tasks), most)] {
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
var interpreters = map[string]struct {
	end  string
	code string // the options whose argument is the program itself, or none in a file: what stands there may be a secret
}{
	"python": {".py", "cm"}, "ruby": {".rb", "e"}, "perl": {".pl", "eE"}, "node": {".js", "ep"}, "php": {".php", "rBRE"},
	"sh": {".sh", "c"}, "bash": {".sh", "c"}, "dash": {".sh", "c"},
}

// script is the name of a process' program: of the script where it is one that an interpreter runs.
func script(pid int) string {
	dir := "/proc/" + strconv.Itoa(pid)
	comm, err := host.ReadFile(dir + "/comm")
	if err != nil {
		return unseen
	}
	name := string(bytes.TrimSuffix(comm, []byte("\n")))
	args, _ := host.ReadHead(dir+"/cmdline", maxArgs) // without them it goes by its own name
	if file := scriptIn(name, string(args)); file != "" {
		name = file
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

// scriptIn is the file that an interpreter runs by its arguments, each ended by a zero; "" where none is seen for sure.
func scriptIn(interpreter, args string) string {
	by, is := interpreters[strings.TrimRight(interpreter, "0123456789.")]
	_, args, _ = strings.Cut(args, "\x00")
	for arg := range strings.SplitSeq(args, "\x00") {
		switch {
		case !is || strings.HasPrefix(arg, "--eval") || strings.HasPrefix(arg, "--print") || strings.HasPrefix(arg, "--run"):
			return ""
		case strings.HasPrefix(arg, "--"):
		case strings.HasPrefix(arg, "-"):
			if strings.ContainsAny(arg, by.code) {
				return ""
			}
		case filepath.Ext(arg) == by.end && !strings.ContainsFunc(arg, odd):
			file := filepath.Base(arg)
			return file[:min(len(file), maxScript)]
		}
	}
	return ""
}

// odd says whether a character is none that names of scripts have, as a rule: in a command or in code it would be.
func odd(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+@", r)
}

// putStuck puts how many stand so, and zero for those that did before.
func (t *Trace) putStuck(out trace.Out) error {
	now, err := t.stuck()
	if err != nil {
		return err
	}
	for w, n := range t.writers.bounded(now) {
		out.In(w.netns).Put(stuckWriters, float64(n), w.group, w.script, w.reader, w.does)
	}
	return nil
}

// bounded is how many there are of each kind that was seen, zero of those that went on; others stands for the kinds
// beyond the bound.
func (w *writers) bounded(now map[writer]int) map[writer]int {
	sums := map[writer]int{}
	for kind, n := range now {
		if !w.seen[kind] && len(w.seen) >= maxWriters {
			kind = others
		}
		w.seen[kind] = true
		sums[kind] += n
	}
	for kind := range w.seen {
		sums[kind] += 0
	}
	return sums
}
