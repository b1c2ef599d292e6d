// Package runqueue is the tracer of the wait for a CPU: how long threads that
// could run stood in the queue, by process, and who took the CPU from whom.
package runqueue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"

	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

// Tracer declares it.
func Tracer() trace.Tracer {
	return trace.Tracer{
		Name:        "runqueue",
		Short:       "the wait for a CPU, and who takes it from whom",
		About:       "how long threads that could run wait for a CPU, by process, and who takes it from whom",
		Long:        long,
		Signals:     signals,
		Tracepoints: []string{"sched_wakeup", "sched_wakeup_new", "sched_switch"},
		FirstKernel: trace.Kernel{Major: 5, Minor: 13},
		Cost:        cost,
		Blind:       blind,
		ByHand:      "perf sched record, then perf sched timehist --summary; or runqlat-bpfcc",
		Start:       func() (trace.Running, error) { return Start() },
	}
}

const long = `Watches how long threads that could run wait for a CPU, by process, how often
they leave it because there is nothing to do (own) or although there is (forced),
and who takes the CPU from whom. "waiting" is how many of the threads waited at
once, on average. Times are counted by powers of two: 99 % < 4 ms means that it
lies between 2 and 4.`

const cost = "0.28 µs a switch and 0.16 µs a wake-up: 0.3 % of 2 CPUs at 16,000 switches/s (Linux 6.18); nginx under wrk " +
	"served 0.97 to 0.99 of the requests, at 1.01 to 1.03 of the CPU time each, which the spread (± 6 %) does not " +
	"resolve"

var blind = []string{
	"a thread that was waiting already when the tracer started is seen from its next wait on",
	"a wait is counted when it ends; one that still lasts is not in it",
	"a virtual machine whose host gives it no CPU waits without knowing: that is steal time (node_cpu_seconds_total{mode=\"steal\"})",
	"time taken by interrupts is not waiting; it counts as running",
	"threads are told apart by the command of their process, not one by one; kernel threads by what stands before the slash in their name",
	"in a PID namespace of our own (a container), our own process is not recognised, and is counted with the others",
}

// Group is what is known of all threads of one command's processes since the start.
type Group struct {
	Name string `json:"groupname"`
	// Waits counts the waits for a CPU that ended, Waited their sum.
	Waits     uint64          `json:"waits"`
	Waited    time.Duration   `json:"waited_ns"`
	Histogram trace.Histogram `json:"histogram"`
	// Voluntary and Involuntary count how often a thread left a CPU.
	Voluntary   uint64 `json:"voluntary"`
	Involuntary uint64 `json:"involuntary"`
}

// Pair counts how often threads of By took the CPU from threads of Victim.
type Pair struct {
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
type Trace struct{ *trace.Set }

// Start attaches the programs. The caller closes it.
func Start() (*Trace, error) {
	kernel, err := trace.KernelTypes()
	if err != nil {
		return nil, err
	}
	n, err := trace.Arguments(kernel, "sched_switch")
	if err != nil {
		return nil, err
	}
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	return start(spec, n > 3)
}

// start says by hasPrevState whether sched_switch tells the state of who leaves.
func start(spec *ebpf.CollectionSpec, hasPrevState bool) (*Trace, error) {
	if err := trace.SetConstant(spec, bpfVarHasPrevState, hasPrevState); err != nil {
		return nil, err
	}
	set, err := trace.Load(spec, needs)
	if err != nil {
		return nil, err
	}
	return &Trace{set}, nil
}

// Snapshot reads everything since the start.
func (t *Trace) Snapshot() (Snapshot, error) {
	var s Snapshot
	var name bpfName
	var cpus []bpfGroup
	each := t.Maps.Maps[bpfMapGroups].Iterate()
	for each.Next(&name, &cpus) {
		s.Groups = append(s.Groups, sum(trace.Comm(name.Comm[:]), cpus))
	}
	if err := each.Err(); err != nil {
		return Snapshot{}, fmt.Errorf("read the groups of threads: %w", err)
	}
	slices.SortFunc(s.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Waited, a.Waited), strings.Compare(a.Name, b.Name))
	})
	var pair bpfPair
	var n uint64
	each = t.Maps.Maps[bpfMapPairs].Iterate()
	for each.Next(&pair, &n) {
		s.Pairs = append(s.Pairs, Pair{trace.Comm(pair.Victim.Comm[:]), trace.Comm(pair.By.Comm[:]), n})
	}
	if err := each.Err(); err != nil {
		return Snapshot{}, fmt.Errorf("read who took the CPU from whom: %w", err)
	}
	slices.SortFunc(s.Pairs, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Victim, b.Victim), strings.Compare(a.By, b.By))
	})
	var err error
	s.Lost, err = t.Lost()
	return s, err
}

// sum adds up what each CPU counted.
func sum(name string, cpus []bpfGroup) Group {
	g := Group{Name: name, Histogram: make(trace.Histogram, len(bpfGroup{}.Wait))}
	for i := range cpus {
		c := &cpus[i]
		g.Waits += c.Waits
		g.Waited += time.Duration(c.WaitNs)
		g.Voluntary += c.Voluntary
		g.Involuntary += c.Involuntary
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
	put := func(signal *model.Signal, v float64, labels ...string) {
		if v > 0 && t.Has(signal) {
			out.Put(signal, v, labels...)
		}
	}
	for _, g := range s.Groups {
		if g.Waits > 0 && t.Has(waitSum) {
			out.Put(waitSum, g.Waited.Seconds(), g.Name)
			out.Put(waitCount, float64(g.Waits), g.Name)
			g.Histogram.Put(out, waitBucket, g.Name)
		}
		put(switches, float64(g.Voluntary), g.Name, "voluntary")
		put(switches, float64(g.Involuntary), g.Name, "involuntary")
	}
	for _, p := range s.Pairs {
		put(preemptions, float64(p.Count), p.Victim, p.By)
	}
	for what, n := range s.Lost {
		out.Put(lost, float64(n), what)
	}
	return nil
}
