package tasks

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/trace"
	"plimsoll/internal/trace/symbol"
	"plimsoll/internal/trace/syscalls/sysname"
)

// Group is what the threads of one command's processes were doing. Times are
// added up over all of them: divided by the time watched they are mean numbers.
type Group struct {
	NetNS uint32 `json:"netns"`
	Name  string `json:"groupname"`
	// States is the time in each state, Now the number of threads at the last look.
	States map[string]time.Duration `json:"states_ns"`
	Now    map[string]int           `json:"now"`

	runnable, uninterruptible time.Duration
}

// Wait is one way in which threads slept uninterruptibly.
type Wait struct {
	NetNS uint32 `json:"netns"`
	Name  string `json:"groupname"`
	// Function is where they waited, Stack the whole way there, the caller last.
	Function string   `json:"function"`
	Stack    []string `json:"stack"`
	Syscall  string   `json:"syscall"`
	// Time is added up over all threads; Looks saw one of them each.
	Time  time.Duration `json:"time_ns"`
	Looks uint64        `json:"looks"`
	// PID is the process that was seen so last.
	PID uint32 `json:"pid"`
}

// Thread is what all threads of a name switched, in processes with several threads.
type Thread struct {
	NetNS       uint32 `json:"netns"`
	Name        string `json:"groupname"`
	Thread      string `json:"thread"`
	Role        string `json:"role"` // main or other
	Voluntary   uint64 `json:"voluntary"`
	Involuntary uint64 `json:"involuntary"`
}

// Parent is a process that does not reap its children.
type Parent struct {
	NetNS   uint32        `json:"netns"`
	Name    string        `json:"groupname"`
	PID     uint32        `json:"pid"`
	Zombies int           `json:"zombies"`
	Oldest  time.Duration `json:"oldest_ns"` // at least
}

// Snapshot is everything since the start, the most of each first.
type Snapshot struct {
	Groups  []Group           `json:"groups"`
	Waits   []Wait            `json:"waits"`
	Threads []Thread          `json:"threads"`
	Parents []Parent          `json:"parents"`
	Looks   uint64            `json:"looks"`
	Every   time.Duration     `json:"every_ns"` // between looks, at last
	Lost    map[string]uint64 `json:"lost"`
}

// Snapshot looks once more, if need be, and returns everything since the start.
func (t *Trace) Snapshot() (Snapshot, error) {
	if err := t.look(fresh); err != nil {
		return Snapshot{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.sums.snapshot(t.symbols)
	s.Every = t.every
	return s, nil
}

// namer names the functions of a kernel stack.
type namer interface {
	KernelStack(addrs []uint64) []symbol.Frame
}

func (s *sums) snapshot(names namer) Snapshot {
	shot := Snapshot{Looks: s.looks, Lost: map[string]uint64{}}
	for what, n := range s.lost {
		shot.Lost[what] = n
	}
	for _, g := range s.groups {
		shot.Groups = append(shot.Groups, g.snapshot())
		for key, n := range g.threads {
			if n.voluntary+n.forced > 0 {
				shot.Threads = append(shot.Threads, Thread{g.netns, g.name, key.name, role(key.main), n.voluntary, n.forced})
			}
		}
	}
	for key, w := range s.waits {
		shot.Waits = append(shot.Waits, waitOf(&key, w, names))
	}
	for _, p := range s.parents {
		shot.Parents = append(shot.Parents, Parent{p.netns, p.name, p.pid, p.count, s.last - p.oldest})
	}
	slices.SortFunc(shot.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.runnable+b.uninterruptible, a.runnable+a.uninterruptible), cmp.Compare(b.notable(), a.notable()),
			strings.Compare(a.Name, b.Name), cmp.Compare(a.NetNS, b.NetNS))
	})
	slices.SortFunc(shot.Threads, func(a, b Thread) int {
		return cmp.Or(cmp.Compare(b.Voluntary+b.Involuntary, a.Voluntary+a.Involuntary), strings.Compare(a.Name, b.Name), strings.Compare(a.Thread, b.Thread))
	})
	slices.SortFunc(shot.Waits, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.Name, b.Name), slices.Compare(a.Stack, b.Stack))
	})
	slices.SortFunc(shot.Parents, func(a, b Parent) int {
		return cmp.Or(cmp.Compare(b.Zombies, a.Zombies), cmp.Compare(a.PID, b.PID))
	})
	return shot
}

// notable is the time in which its threads did something else than sleep.
func (g *Group) notable() time.Duration {
	return g.runnable + g.uninterruptible + g.States[stateNames[stopped]] + g.States[stateNames[zombie]]
}

func (g *group) snapshot() Group {
	shot := Group{NetNS: g.netns, Name: g.name, States: map[string]time.Duration{}, Now: map[string]int{},
		runnable: g.time[runnable], uninterruptible: g.time[uninterruptible]}
	for i, name := range stateNames {
		if g.time[i] > 0 {
			shot.States[name] = g.time[i]
		}
		if g.now[i] > 0 {
			shot.Now[name] = g.now[i]
		}
	}
	return shot
}

func role(main bool) string {
	if main {
		return "main"
	}
	return "other"
}

func waitOf(key *wait, w *waited, names namer) Wait {
	shot := Wait{NetNS: key.group.netns, Name: key.group.name, Syscall: "none", Time: w.time, Looks: w.samples, PID: w.pid}
	if w.stack == nil { // its names stay what they are
		w.stack = []string{}
		for _, f := range names.KernelStack(key.stack[:key.frames]) {
			w.stack = append(w.stack, f.Name())
		}
	}
	shot.Stack, shot.Function = w.stack, waitsIn(w.stack)
	if key.syscall >= 0 {
		shot.Syscall = sysname.Call(uint32(key.syscall))
	}
	return shot
}

// generic are beginnings of the names of functions that only say that something
// is waited for: the scheduler's, and those of locks, bits and completions.
var generic = []string{
	"schedule", "__schedule", "io_schedule", "preempt_schedule", "blk_io_schedule", "rt_mutex_schedule", "context_switch",
	"wait_for_completion", "__wait_for_common", "do_wait_for_common", "submit_bio_wait", "wait_on_bit", "__wait_on_bit", "out_of_line_wait_on_bit", "bit_wait",
	"folio_wait_", "__folio_lock", "wait_on_page_bit", "__lock_page", "wait_on_buffer", "__wait_on_buffer",
	"__mutex_lock", "mutex_lock", "rwsem_down_", "down_read", "down_write", "__down", "down_", "percpu_rwsem_wait", "__percpu_down_read", "percpu_down_",
}

// waitsIn is the first function of a stack that tells what is waited for.
func waitsIn(stack []string) string {
	for _, f := range stack {
		if !slices.ContainsFunc(generic, func(beginning string) bool { return strings.HasPrefix(f, beginning) }) {
			return f
		}
	}
	return "unknown"
}

// Read puts what was seen since the start; what was never seen is left out, the
// counters start at zero.
func (t *Trace) Read(out trace.Out) error {
	s, err := t.Snapshot()
	if err != nil {
		return err
	}
	s.put(out)
	return nil
}

func (s *Snapshot) put(out trace.Out) {
	for i := range s.Groups {
		g := &s.Groups[i]
		for _, state := range []int{runnable, uninterruptible, stopped} {
			if d := g.States[stateNames[state]]; d > 0 {
				out.In(g.NetNS).Put(stateSeconds, d.Seconds(), g.Name, stateNames[state])
			}
		}
	}
	for key, d := range s.byFunction() {
		out.In(key.netns).Put(blockedSeconds, d.Seconds(), key.name, key.function, key.syscall)
	}
	for _, th := range s.Threads {
		to := out.In(th.NetNS)
		if th.Voluntary > 0 {
			to.Put(switches, float64(th.Voluntary), th.Name, th.Thread, th.Role, "voluntary")
		}
		if th.Involuntary > 0 {
			to.Put(switches, float64(th.Involuntary), th.Name, th.Thread, th.Role, "involuntary")
		}
	}
	for _, p := range s.Parents {
		pid := strconv.Itoa(int(p.PID))
		out.In(p.NetNS).Put(zombies, float64(p.Zombies), p.Name, pid)
		out.In(p.NetNS).Put(oldestZombie, p.Oldest.Seconds(), p.Name, pid)
	}
	out.Put(samples, float64(s.Looks))
	trace.PutLost(out, lost, s.Lost)
}

type functionKey struct {
	netns                   uint32
	name, function, syscall string
}

// byFunction joins the stacks that wait in the same function.
func (s *Snapshot) byFunction() map[functionKey]time.Duration {
	times := map[functionKey]time.Duration{}
	for _, w := range s.Waits {
		if w.Time > 0 {
			times[functionKey{w.NetNS, w.Name, w.Function, w.Syscall}] += w.Time
		}
	}
	return times
}
