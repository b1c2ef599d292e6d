// Package runqueue is the tracer of the wait for a CPU: how long threads that
// could run stood in the queue, by process, and who took the CPU from whom.
package runqueue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/model"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/sched"
)

// Tracer declares it, as a view of programs that another tracer may share.
func Tracer(programs *sched.Programs) trace.Tracer {
	return trace.Tracer{
		Name:        "runqueue",
		Short:       "the wait for a CPU, and who takes it from whom",
		About:       "how long threads that could run wait for a CPU, by process, and who takes it from whom",
		Long:        long,
		Signals:     signals,
		Programs:    sched.Spec,
		Needs:       needs,
		Tracepoints: []string{"sched_switch", "task_rename"},
		FirstKernel: sched.FirstKernel,
		Cost:        cost,
		Paired:      trace.Paired{Pairs: 6, Replies: "1.004 (1.003–1.006)", CPU: "1.004 (0.993–1.006)"},
		Blind:       blind,
		ByHand:      "perf sched record, then perf sched timehist --summary; or runqlat-bpfcc",
		Start:       func() (trace.Running, error) { return start(programs) },
	}
}

const long = `Watches how long threads that could run wait for a CPU, by process, how often
they leave it because there is nothing to do (own) or although there is (forced),
how often they are woken and moved to another CPU, and who takes the CPU from
whom. "waiting" is how many of the threads waited at once, on average. Times are
counted by powers of two: 99 % < 4 ms means that it lies between 2 and 4.`

const cost = "0.34 µs of BPF run time a switch, 0.5 µs together with wait, whose program it shares; nothing a wake-up (Linux 6.18, 2 CPUs, threads on pipes)"

var blind = []string{
	"a thread that was waiting or running already when the tracer started is seen from its next wait on",
	"a wait is counted when the thread leaves the CPU that it waited for; one that still lasts, or still runs, is not in it",
	"a virtual machine whose host gives it no CPU waits without knowing: that is steal time (node_cpu_seconds_total{mode=\"steal\"})",
	"time taken by interrupts is not waiting; it counts as running",
	"threads are told apart by the command of their process, not one by one (the tracer tasks does that); kernel threads by what stands before the slash in their name",
	"a thread that is woken while it still runs is not counted as woken",
	"in a PID namespace of our own (a container), our own process is not recognised, and is counted with the others",
}

// Group is what is known of all threads of one command's processes in a network
// namespace since the start.
type Group struct {
	NetNS uint32 `json:"netns"`
	Name  string `json:"groupname"`
	// Waits counts the waits for a CPU that ended, Waited their sum.
	Waits     uint64          `json:"waits"`
	Waited    time.Duration   `json:"waited_ns"`
	Histogram trace.Histogram `json:"histogram"`
	// Voluntary and Involuntary count how often a thread left a CPU.
	Voluntary   uint64 `json:"voluntary"`
	Involuntary uint64 `json:"involuntary"`
	// Wakeups counts how often a thread got a CPU after it had slept or was new,
	// Migrations how often it was moved to another CPU.
	Wakeups    uint64 `json:"wakeups"`
	Migrations uint64 `json:"migrations"`
}

// Pair counts how often threads of By took the CPU from threads of Victim, which
// is in the network namespace NetNS.
type Pair struct {
	NetNS  uint32 `json:"netns"`
	Victim string `json:"victim"`
	By     string `json:"by"`
	Count  uint64 `json:"count"`
}

// Snapshot is everything since the start: the group that waited longest first,
// and the most frequent pair.
type Snapshot struct {
	Groups []Group `json:"groups"`
	Pairs  []Pair  `json:"pairs"`
	// Lost counts what found no room, by what it was.
	Lost map[string]uint64 `json:"lost"`
}

// Trace is the tracer at work. It is not safe for concurrent use.
type Trace struct {
	*sched.View
	names map[uint32]sched.Command // of groups, by number
}

func start(programs *sched.Programs) (*Trace, error) {
	if err := sched.AddsUpWaits(); err != nil {
		return nil, err
	}
	view, err := programs.Use(sched.Queue, needs)
	return begin(view, err)
}

func begin(view *sched.View, err error) (*Trace, error) {
	if err != nil {
		return nil, err
	}
	return &Trace{view, map[uint32]sched.Command{}}, nil
}

// Snapshot reads everything since the start.
func (t *Trace) Snapshot() (Snapshot, error) {
	if err := t.readNames(); err != nil {
		return Snapshot{}, err
	}
	var s Snapshot
	for number, name := range t.names {
		var cpus []sched.Queued
		if err := t.Maps.Maps[sched.Queues].Lookup(number, &cpus); err != nil {
			return Snapshot{}, fmt.Errorf("read a group of threads: %w", err)
		}
		s.Groups = append(s.Groups, sum(name, cpus))
	}
	slices.SortFunc(s.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Waited, a.Waited), strings.Compare(a.Name, b.Name), cmp.Compare(a.NetNS, b.NetNS))
	})
	var err error
	if s.Pairs, err = t.pairs(); err != nil {
		return Snapshot{}, err
	}
	s.Lost, err = t.Lost()
	return s, err
}

// readNames learns what the numbers of groups mean, which never changes.
func (t *Trace) readNames() error {
	var n uint32
	if err := t.Maps.Variables[sched.CommandCount].Get(&n); err != nil {
		return fmt.Errorf("count the groups of threads: %w", err)
	}
	if int(n) == len(t.names) {
		return nil
	}
	if err := trace.Each(t.Maps.Maps[sched.Commands], func(name *sched.Command, number *uint32) { t.names[*number] = *name }); err != nil {
		return fmt.Errorf("read the names of the groups of threads: %w", err)
	}
	return nil
}

// pairs reads who took the CPU from whom; by whom is told apart by name only.
func (t *Trace) pairs() ([]Pair, error) {
	counts := map[Pair]uint64{}
	err := trace.Each(t.Maps.Maps[sched.Pairs], func(pair *sched.Pair, n *uint64) {
		victim, known := t.names[pair.Victim]
		by, knownBy := t.names[pair.By]
		if known && knownBy { // else it is newer than the names: the next reading has it
			counts[Pair{NetNS: victim.Netns, Victim: trace.Comm(victim.Comm[:]), By: trace.Comm(by.Comm[:])}] += *n
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read who took the CPU from whom: %w", err)
	}
	var list []Pair
	for p, n := range counts {
		p.Count = n
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Victim, b.Victim), strings.Compare(a.By, b.By), cmp.Compare(a.NetNS, b.NetNS))
	})
	return list, nil
}

// sum adds up what each CPU counted.
func sum(name sched.Command, cpus []sched.Queued) Group {
	g := Group{NetNS: name.Netns, Name: trace.Comm(name.Comm[:]), Histogram: make(trace.Histogram, len(sched.Queued{}.Wait))}
	for i := range cpus {
		c := &cpus[i]
		g.Waits += c.Waits
		g.Waited += time.Duration(c.WaitNs)
		g.Voluntary += c.Voluntary
		g.Involuntary += c.Involuntary
		g.Wakeups += c.Wakeups
		g.Migrations += c.Migrations
		for slot, n := range c.Wait {
			g.Histogram[slot] += n
		}
	}
	return g
}

// Read puts the sums since the start. What has not happened yet is left out;
// the signals start at zero.
func (t *Trace) Read(out trace.Out) error {
	s, err := t.Snapshot()
	if err != nil {
		return err
	}
	if t.Has(waitSum) { // they all rest on the same programs
		for i := range s.Groups {
			s.Groups[i].put(out.In(s.Groups[i].NetNS))
		}
		for _, p := range s.Pairs {
			out.In(p.NetNS).Put(preemptions, float64(p.Count), p.Victim, p.By)
		}
	}
	trace.PutLost(out, lost, s.Lost)
	return nil
}

func (g *Group) put(to model.Sink) {
	put := func(signal *model.Signal, v float64, labels ...string) {
		if v > 0 {
			to.Put(signal, v, append([]string{g.Name}, labels...)...)
		}
	}
	put(waitSum, g.Waited.Seconds())
	put(waitCount, float64(g.Waits))
	g.Histogram.Put(to, waitBucket, g.Name)
	put(switches, float64(g.Voluntary), "voluntary")
	put(switches, float64(g.Involuntary), "involuntary")
	put(wakeups, float64(g.Wakeups))
	put(migrations, float64(g.Migrations))
}
