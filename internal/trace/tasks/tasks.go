// Package tasks is the tracer of what threads are doing: their states, what
// those in uninterruptible sleep wait for, who switches, and who does not reap
// its children.
package tasks

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"plimsoll/internal/host"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/symbol"
)

// Looks take at most one part in looksWorth of one core, and are at least
// oftenest and at most seldomest apart.
const (
	looksWorth = 1000
	oftenest   = 250 * time.Millisecond
	seldomest  = 5 * time.Second
)

// since is the oldest kernel on which all of it was seen to work.
var since = trace.Kernel{Major: 5, Minor: 15}

// Tracer declares it.
func Tracer() trace.Tracer {
	return trace.Tracer{
		Name:        "tasks",
		Short:       "states of threads, what D state waits for, zombies",
		About:       "what threads are doing: how many are runnable or in uninterruptible sleep, where in the kernel those wait, which threads switch, and who does not reap its children",
		Long:        long,
		Signals:     signals,
		Programs:    loadBpf,
		Needs:       needs,
		FirstKernel: since,
		Cost:        cost,
		Paired:      trace.Paired{Pairs: 7, Replies: "1.029 (0.993–1.052)", CPU: "0.970 (0.950–1.010)"},
		Blind:       blind,
		ByHand:      "ps -eLo state,wchan:32,comm; cat /proc/PID/stack; pidstat -wt 1",
		Start:       func() (trace.Running, error) { return Start() },
	}
}

const long = `Looks at every thread a few times a second: how many run or could run, how many
are in uninterruptible sleep (D), in which kernel function and system call those
wait, how often the threads of a process switch, and which processes have ended
without being reaped (zombies), by the parent that does not.

That tells why a load average is high: it counts the runnable threads and those
in uninterruptible sleep. Numbers of threads are means over all looks.`

const cost = "0.5 ms of CPU time a look with 1,200 threads (0.36 µs of BPF run time each; Linux 6.18), four looks a second, fewer where " +
	"they would use more than 0.1 % of one core; nothing runs in between"

var blind = []string{
	"states are samples: a sleep shorter than the time between two looks (0.25 s, longer with very many threads) is seen only now and then, in proportion to its length",
	"the switches that a thread makes between its last look and its end are not seen; nor is a thread that lives from one look to the next",
	"how long a process has been a zombie is known from the first look that saw it",
	"a kernel stack tells where a thread waits, not who holds what it waits for",
	"in a PID namespace of our own (a container), only the threads in it are seen",
}

// Trace is the tracer at work.
type Trace struct {
	*trace.Set
	stop chan struct{}
	done chan struct{}

	mu      sync.Mutex // of all that follows
	iter    *link.Iter // nil while paused
	sums    *sums
	every   time.Duration // between looks
	buf     []byte
	failed  error          // of the last look
	marks   map[int]uint64 // of the last look, nil if it made none
	ours    []int          // processes that are left out, besides ourselves
	symbols *symbol.Resolver
}

// Start begins to look. The caller closes it.
func Start() (*Trace, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	now, err := monotonic()
	if err != nil {
		return nil, err
	}
	t := &Trace{stop: make(chan struct{}), done: make(chan struct{}), sums: newSums(now), every: oftenest, buf: make([]byte, 64<<10), symbols: symbol.New()}
	t.Set, err = trace.LoadWith(spec, since, needs, map[string]trace.Attach{atTask: t.attach})
	if err != nil {
		return nil, errors.Join(err, t.symbols.Close())
	}
	if err := t.look(0); err != nil { // from here on threads are known
		return nil, errors.Join(err, t.Set.Close(), t.symbols.Close())
	}
	go t.watch()
	return t, nil
}

// attach makes the iterator; time that passed without one counts for nothing.
func (t *Trace) attach(p *ebpf.Program) (io.Closer, error) {
	iter, err := link.AttachIter(link.IterOptions{Program: p})
	if err != nil {
		return nil, err
	}
	now, err := monotonic()
	if err != nil {
		return nil, errors.Join(err, iter.Close())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.iter, t.sums.last = iter, now
	return closer(func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.iter = nil
		return iter.Close()
	}), nil
}

type closer func() error

func (c closer) Close() error { return c() }

// Close ends it.
func (t *Trace) Close() error {
	close(t.stop)
	<-t.done
	return errors.Join(t.Set.Close(), t.symbols.Close())
}

// watch looks again and again.
func (t *Trace) watch() {
	defer close(t.done)
	for {
		t.mu.Lock()
		every := t.every
		t.mu.Unlock()
		select {
		case <-t.stop:
			return
		case <-time.After(every):
		}
		t.look(every / 2)
	}
}

// fresh is for how long a look is good for others who want one.
const fresh = 50 * time.Millisecond

// Ignore leaves out these processes, besides our own.
func (t *Trace) Ignore(tgids ...int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ours, t.marks = slices.Clone(tgids), nil
	return t.Set.Ignore(tgids...)
}

// Marks returns a number for each process by its pid; while it stays the same, no
// thread of it has run. One that runs or could run has 0, which means nothing, and
// so have our own.
func (t *Trace) Marks() (map[int]uint64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.mayMark(); err != nil {
		return nil, err
	}
	if now, err := monotonic(); err != nil || t.marks != nil && now-t.sums.last < fresh {
		return t.marks, err
	}
	t.sums.marks = make(map[int]uint64, len(t.marks))
	err := t.lookNow()
	t.marks, t.sums.marks = t.sums.marks, nil
	if err != nil {
		t.marks = nil // some may be missing
		return nil, err
	}
	for _, pid := range append([]int{os.Getpid()}, t.ours...) {
		t.marks[pid] = running
	}
	return t.marks, nil
}

func (t *Trace) mayMark() error {
	if t.iter == nil {
		return fmt.Errorf("look at all threads: the tracer is paused: %w", fs.ErrClosed)
	}
	first, err := host.InFirstPIDs()
	if err != nil {
		return fmt.Errorf("find our PID namespace: %w", err)
	}
	if !first {
		return fmt.Errorf("we are in a PID namespace of our own, and the kernel tells other pids: %w", fs.ErrNotExist)
	}
	return nil
}

// look takes one sample of all threads, unless the last one is younger than so.
func (t *Trace) look(younger time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.iter == nil {
		return nil
	}
	if now, err := monotonic(); err != nil || t.sums.looks > 0 && now-t.sums.last < younger {
		return errors.Join(err, t.failed)
	}
	t.marks = nil // they are of an older look
	return t.lookNow()
}

func (t *Trace) lookNow() error {
	runtime.LockOSThread() // for the thread's CPU time
	defer runtime.UnlockOSThread()
	began := cpuTime()
	t.failed = t.sample()
	t.every = min(max(looksWorth*(cpuTime()-began), oftenest), seldomest)
	return t.failed
}

func (t *Trace) sample() error {
	now, err := monotonic()
	if err != nil {
		return err
	}
	span := now - t.sums.last
	rows, err := t.iter.Open()
	if err != nil {
		return fmt.Errorf("look at all threads: %w", err)
	}
	defer rows.Close()
	t.sums.begin()
	if err := t.readAll(rows, span); err != nil {
		return fmt.Errorf("look at all threads: %w", err)
	}
	t.sums.end(now, span)
	return nil
}

// readAll takes all rows; the kernel gives whole ones while the buffer is larger
// than its own.
func (t *Trace) readAll(rows io.Reader, span time.Duration) error {
	var stack []uint64
	have := 0
	for {
		n, err := rows.Read(t.buf[have:])
		have += n
		rest := t.buf[:have]
		for len(rest) > 0 {
			row, s, next, whole := parseRow(rest, stack[:0])
			if !whole {
				break
			}
			t.sums.add(&row, s, span)
			rest, stack = next, s
		}
		have = copy(t.buf, rest)
		if errors.Is(err, io.EOF) {
			if have > 0 {
				return fmt.Errorf("the last of the kernel's rows ends after %d bytes", have)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// maxFrames is how many addresses a stack has at most.
const maxFrames = 24

// parseRow takes one row and its stack off b; whole is false if b has only a part of it.
func parseRow(b []byte, into []uint64) (row bpfRow, stack []uint64, rest []byte, whole bool) {
	const size = int(unsafe.Sizeof(row))
	if len(b) < size {
		return row, nil, b, false
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&row)), size), b)
	row.Frames = min(row.Frames, maxFrames)
	end := size + 8*int(row.Frames)
	if len(b) < end {
		return row, nil, b, false
	}
	stack = append(into, make([]uint64, row.Frames)...)
	if len(stack) > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&stack[0])), 8*len(stack)), b[size:end])
	}
	return row, stack, b[end:], true
}

// monotonic is the clock of task_struct.start_time.
func monotonic() (time.Duration, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return time.Duration(now.Nano()), nil
}

// cpuTime is what the calling thread has used; 0 if the kernel does not say.
func cpuTime() time.Duration {
	var used unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used) != nil {
		return 0
	}
	return time.Duration(used.Nano())
}
