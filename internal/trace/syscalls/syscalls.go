// Package syscalls is the tracer of system calls: how often each process made
// each, how long it took, and how it failed; strace -c without stopping anybody.
package syscalls

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/trace"
	"plimsoll/internal/trace/syscalls/sysname"
)

// since is the oldest kernel on which all of it was seen to work.
var since = trace.Kernel{Major: 5, Minor: 15}

// Tracer declares it.
func Tracer() trace.Tracer {
	return trace.Tracer{
		Name:        "syscalls",
		Short:       "system calls, their time and errors, as strace -c",
		About:       "every system call: by which process, how often, how long, with which error, without stopping anybody",
		Long:        long,
		Level:       trace.Full,
		Brief:       true,
		Busy:        callsTotal,
		Signals:     signals,
		Programs:    programs,
		Needs:       needs,
		Tracepoints: []string{"sys_enter", "sys_exit"},
		FirstKernel: since,
		Cost:        cost,
		Paired:      trace.Paired{Pairs: 8, Replies: "0.777 (0.773–0.784)", CPU: "1.292 (1.285–1.307)"},
		Blind:       blind,
		ByHand:      "strace -c -w -f -p PID (which stops the process at each call), or perf trace -s -a",
		Start:       func() (trace.Running, error) { return Start() },
	}
}

const long = `Counts the system calls of each process, as strace -c does, but of all
processes and without stopping them. Time is wall time inside the call, so what
a call sleeps is in it: a server that waits for work shows it in epoll_wait or
accept. Times are counted by powers of two: 99 % < 4 ms means that it lies
between 2 and 4.`

const cost = "0.13 µs of BPF run time when a call begins and 0.28 µs when it ends; a call of 0.13 µs (getppid) took 0.44 µs, and " +
	"0.31 µs where other processes are singled out (Linux 6.18, 2 CPUs, a shared machine): too expensive for all the time, so a " +
	"run switches it on in bursts"

var blind = []string{
	"time is wall time: whether a call computed, slept or waited for a CPU is not told apart",
	"a call is counted when it returns; exit and exit_group never do, and a call that was under way when the tracer was switched on or off is not counted",
	"calls of 32-bit programs have other numbers; they are only counted, by lost_total{what=\"compat\"}",
	"what the vDSO answers without the kernel (clock_gettime, gettimeofday) is no system call, and neither is what io_uring does; a call that a seccomp filter refuses is not seen",
	"processes are told apart by their command, and a call of execve counts for the command that it started",
	"a call that a signal interrupts and the kernel begins again counts each time, with the error ERESTARTSYS or its like, as in strace",
	"in a PID namespace of our own (a container), our own process is not recognised, and is counted with the others",
}

// maxBuckets is how many pairs of group and call have their histogram recorded.
const maxBuckets = 256

// Group is what is known of all processes of one command in one network
// namespace since the start, the call that took longest first.
type Group struct {
	Netns uint32 `json:"netns"`
	Name  string `json:"groupname"`
	// Count, Time and Failed are sums over its calls.
	Count  uint64        `json:"calls"`
	Time   time.Duration `json:"time_ns"`
	Failed uint64        `json:"failed"`
	Calls  []Call        `json:"syscalls"`
}

// Call is what is known of one system call of a group.
type Call struct {
	Name string `json:"syscall"`
	// Count counts the calls that returned, Time is the wall time inside them.
	Count     uint64          `json:"calls"`
	Time      time.Duration   `json:"time_ns"`
	Histogram trace.Histogram `json:"histogram"`
	// Failed counts those that returned an error, Errors by its name.
	Failed uint64            `json:"failed"`
	Errors map[string]uint64 `json:"errors,omitempty"`
}

// Snapshot is everything since the start, the group first that was in the
// kernel longest.
type Snapshot struct {
	Groups []Group `json:"groups"`
	// Lost counts what is missing, by why.
	Lost map[string]uint64 `json:"lost"`
}

// Trace is the tracer at work. It is not safe for concurrent use.
type Trace struct {
	*trace.Set
	// bucketed are the pairs whose histogram is recorded.
	bucketed map[pair]bool
}

// pair is a process group and a call of its.
type pair struct {
	netns         uint32
	group, called string
}

// Start attaches the programs. The caller closes it.
func Start() (*Trace, error) {
	spec, err := programs()
	if err != nil {
		return nil, err
	}
	return start(spec)
}

// programs know this architecture's numbers.
func programs() (*ebpf.CollectionSpec, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	return spec, trace.SetConstant(spec, bpfVarRtSigreturn, uint32(unix.SYS_RT_SIGRETURN))
}

func start(spec *ebpf.CollectionSpec) (*Trace, error) {
	set, err := trace.Load(spec, since, needs)
	if err != nil {
		return nil, err
	}
	return &Trace{set, map[pair]bool{}}, nil
}

// Snapshot reads everything since the start.
func (t *Trace) Snapshot() (Snapshot, error) {
	failures, err := t.failures()
	if err != nil {
		return Snapshot{}, err
	}
	type groupKey struct {
		netns uint32
		comm  [16]uint8
	}
	groups := map[groupKey]*Group{}
	err = trace.EachPerCPU(t.Maps.Maps[bpfMapPairs], func(key *bpfCall, cpus []bpfCalls) {
		of := groupKey{key.Netns, key.Comm}
		if groups[of] == nil {
			groups[of] = &Group{Netns: key.Netns, Name: trace.Comm(key.Comm[:])}
		}
		groups[of].add(sum(key.Nr, cpus, failures[*key]))
	})
	if err != nil {
		return Snapshot{}, fmt.Errorf("read the system calls: %w", err)
	}
	var s Snapshot
	for _, g := range groups {
		slices.SortFunc(g.Calls, func(a, b Call) int {
			return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.Name, b.Name))
		})
		s.Groups = append(s.Groups, *g)
	}
	slices.SortFunc(s.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.Name, b.Name), cmp.Compare(a.Netns, b.Netns))
	})
	s.Lost, err = t.Lost()
	return s, err
}

// failures reads how the calls failed. It is read before the calls, so that no
// call has more failures than it was made.
func (t *Trace) failures() (map[bpfCall]map[string]uint64, error) {
	failures := map[bpfCall]map[string]uint64{}
	err := trace.EachPerCPU(t.Maps.Maps[bpfMapFailures], func(key *bpfFailure, cpus []uint64) {
		if failures[key.Call] == nil {
			failures[key.Call] = map[string]uint64{}
		}
		for _, n := range cpus {
			failures[key.Call][sysname.Error(key.Error)] += n
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read how system calls failed: %w", err)
	}
	return failures, nil
}

// sum adds up what each CPU counted.
func sum(nr uint32, cpus []bpfCalls, failures map[string]uint64) Call {
	c := Call{Name: sysname.Call(nr), Errors: failures, Histogram: make(trace.Histogram, len(bpfCalls{}.Time))}
	for i := range cpus {
		on := &cpus[i]
		c.Count += on.Count
		c.Time += time.Duration(on.Ns)
		for slot, n := range on.Time {
			c.Histogram[slot] += n
		}
	}
	for _, n := range failures {
		c.Failed += n
	}
	return c
}

func (g *Group) add(c Call) {
	g.Calls = append(g.Calls, c)
	g.Count += c.Count
	g.Time += c.Time
	g.Failed += c.Failed
}

// Read puts the sums since the start. What has not happened yet is left out;
// the signals start at zero.
func (t *Trace) Read(out trace.Out) error {
	s, err := t.Snapshot()
	if err != nil {
		return err
	}
	for _, g := range s.Groups {
		if !t.Has(callsTotal) { // all rest on the same programs
			break
		}
		in := out.In(g.Netns)
		for _, c := range g.Calls {
			in.Put(callsTotal, float64(c.Count), g.Name, c.Name)
			in.Put(secondsTotal, c.Time.Seconds(), g.Name, c.Name)
			for name, n := range c.Errors {
				in.Put(errorsTotal, float64(n), g.Name, c.Name, name)
			}
			if t.hasBuckets(pair{g.Netns, g.Name, c.Name}) {
				c.Histogram.Put(in, secondsBucket, g.Name, c.Name)
			} else {
				s.Lost["buckets"] += c.Count
			}
		}
	}
	trace.PutLost(out, lost, s.Lost)
	return nil
}

// hasBuckets lets the first pairs in, for good: a counter may not come and go.
func (t *Trace) hasBuckets(p pair) bool {
	if !t.bucketed[p] && len(t.bucketed) < maxBuckets {
		t.bucketed[p] = true
	}
	return t.bucketed[p]
}
