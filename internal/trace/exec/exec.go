// Package exec is the tracer of process starts and ends, by command and
// ancestors: what no top catches, since it is gone before the next look.
package exec

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/model"
	"plimsoll/internal/secret"
	"plimsoll/internal/trace"
)

// since is the oldest kernel on which all of it was seen to work.
var since = trace.Kernel{Major: 5, Minor: 15}

// Tracer declares it.
func Tracer() trace.Tracer {
	return trace.Tracer{
		Name:        "exec",
		Short:       "process starts and ends, by command and ancestors",
		About:       "every process start and end: by whom, how often, how it ended, how long it lived, its CPU time",
		Long:        long,
		Signals:     signals,
		Programs:    programs,
		Needs:       needs,
		Tracepoints: []string{"sched_process_fork", "sched_process_exec", "sched_process_exit", "sched_process_free"},
		FirstKernel: since,
		Cost:        cost,
		Paired:      trace.Paired{Pairs: 7, Replies: "1.003 (0.980–1.007)", CPU: "0.997 (0.993–1.023)"},
		Blind:       blind,
		ByHand:      "execsnoop-bpfcc and exitsnoop-bpfcc, or perf trace -e 'sched:sched_process_*' -a",
		Start:       func() (trace.Running, error) { return Start() },
	}
}

const long = `Watches every process start and end on this machine, by command and ancestors:
how often, by whom, how it ended, how long it lived, and its CPU time. That finds
what is gone before top looks: a helper started for each request, one that fails
each time, a fork that never executes anything.

CPU time is that of processes that ended, as a share of all the machine's CPUs.
The arguments of the first process of each kind are shown, with what looks like a
password or a key masked; what does not look like one is not.`

const cost = "2.9 µs of BPF run time a process (fork 0.8, exec 1.0, exit 0.6, free 0.5; at 700 processes/s, Linux 6.18, 2 " +
	"CPUs); a fork+exec+exit of 690 µs took 8 µs longer, which the spread (−34 to +28) does not resolve; a " +
	"keep-alive request costs nothing"

var blind = []string{
	"an execve that fails (no such file, no permission) starts nothing and is not seen; the fork before it is, as one that ended without executing anything",
	"CPU time is known once a process has ended and its parent has waited for it; what still runs, and zombies, are not in it",
	"now and then (up to one process in a hundred, on Linux 6.18) the freeing of a process is not seen; its CPU time then comes late, lacks the work of taking it down, and is counted by lost_total{what=\"frees\"}",
	"a command's name is the first 15 bytes of its program's; a process may also call itself something else",
	"of a process that was there before, the ancestors are those that it has when it ends",
	"in a PID namespace of our own (a container), our own process is not recognised, and is counted with the others",
}

// Chain is a command and what stands above it: its parent, that one's parent,
// and so on; "" where there is nobody. NetNS is the network namespace that it began in.
type Chain struct {
	NetNS   uint32    `json:"netns"`
	Command string    `json:"command"`
	Above   [3]string `json:"above"`
}

// String writes the chain from the top, equal neighbours once: "php-fpm → sh → stress".
func (c Chain) String() string {
	var names []string
	for i := len(c.Above) - 1; i >= 0; i-- {
		if c.Above[i] != "" {
			names = append(names, c.Above[i])
		}
	}
	return strings.Join(slices.Compact(append(names, c.Command)), " → ")
}

// Group is what is known of all processes of one chain since the start.
type Group struct {
	Chain Chain `json:"chain"`
	// Starts counts successful calls of execve, Forks the processes forked.
	Starts uint64 `json:"starts"`
	Forks  uint64 `json:"forks"`
	// Ends counts processes that ended; ForksOnly those of them that had never
	// executed anything; Reaped those of them that CPU speaks of.
	Ends      uint64 `json:"ends"`
	ForksOnly uint64 `json:"forks_only"`
	Reaped    uint64 `json:"reaped"`
	// CPU and Lifetime are sums.
	CPU       time.Duration   `json:"cpu_ns"`
	Lifetime  time.Duration   `json:"lifetime_ns"`
	Lifetimes trace.Histogram `json:"lifetimes"`
	// Exits counts the ends by exit code ("0" … "255") or signal ("SIGKILL").
	Exits map[string]uint64 `json:"exits"`
	// First is the first of its starts that was seen, nil if none was.
	First *Example `json:"first,omitempty"`
}

// Example is one process with its arguments, as it was started.
type Example struct {
	PID       int      `json:"pid"`
	ParentPID int      `json:"parent_pid"`
	Arguments []string `json:"arguments"`
	// Cut says that the arguments were longer than what is kept (256 bytes).
	Cut bool `json:"cut,omitempty"`
}

// Snapshot is everything since the start, the busiest group first.
type Snapshot struct {
	Groups []Group `json:"groups"`
	// Lost counts what found no room, by what it was.
	Lost map[string]uint64 `json:"lost"`
}

// Trace is the tracer at work. It is not safe for concurrent use.
type Trace struct {
	*trace.Set
	ring  *ringbuf.Reader
	first map[bpfChain]*Example
	looks looks
}

// programs are fit for this kernel.
func programs() (*ebpf.CollectionSpec, error) {
	kernel, err := trace.KernelTypes()
	if err != nil {
		return nil, err
	}
	n, err := trace.Arguments(kernel, "sched_process_exit")
	if err != nil {
		return nil, err
	}
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	return spec, trace.SetConstant(spec, bpfVarHasGroupDead, n > 1) // whether it tells the last thread apart
}

// Start attaches the programs. The caller closes it.
func Start() (*Trace, error) {
	spec, err := programs()
	if err != nil {
		return nil, err
	}
	return start(spec)
}

func start(spec *ebpf.CollectionSpec) (*Trace, error) {
	set, err := trace.Load(spec, since, needs)
	if err != nil {
		return nil, err
	}
	ring, err := ringbuf.NewReader(set.Maps.Maps[bpfMapExamples])
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the ring buffer of examples: %w", err), set.Close())
	}
	return &Trace{Set: set, ring: ring, first: map[bpfChain]*Example{}}, nil
}

// Close detaches the programs.
func (t *Trace) Close() error { return errors.Join(t.ring.Close(), t.Set.Close()) }

// Snapshot reads everything since the start.
func (t *Trace) Snapshot() (Snapshot, error) {
	if err := t.drain(); err != nil {
		return Snapshot{}, err
	}
	exits, err := t.exits()
	if err != nil {
		return Snapshot{}, err
	}
	var s Snapshot
	err = trace.Each(t.Maps.Maps[bpfMapGroups], func(key *bpfChain, g *bpfGroup) {
		s.Groups = append(s.Groups, Group{
			Chain: chainOf(key), Starts: g.Execs, Forks: g.Forks, Ends: g.Ends, ForksOnly: g.ForksOnly, Reaped: g.Reaped,
			CPU: time.Duration(g.CpuNs), Lifetime: time.Duration(g.LifetimeNs), Lifetimes: slices.Clone(g.Lifetime[:]),
			Exits: exits[*key], First: t.first[*key],
		})
	})
	if err != nil {
		return Snapshot{}, fmt.Errorf("read the groups of processes: %w", err)
	}
	slices.SortFunc(s.Groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Starts, a.Starts), cmp.Compare(b.Ends, a.Ends),
			strings.Compare(a.Chain.String(), b.Chain.String()), cmp.Compare(a.Chain.NetNS, b.Chain.NetNS))
	})
	s.Lost, err = t.Lost()
	return s, err
}

func (t *Trace) exits() (map[bpfChain]map[string]uint64, error) {
	exits := map[bpfChain]map[string]uint64{}
	err := trace.Each(t.Maps.Maps[bpfMapEnds], func(key *bpfEndKey, n *uint64) {
		of := exits[key.Chain]
		if of == nil {
			of = map[string]uint64{}
			exits[key.Chain] = of
		}
		of[exitWord(key.Status)] += *n // with and without a core dump are one
	})
	if err != nil {
		return nil, fmt.Errorf("read the ends of processes: %w", err)
	}
	return exits, nil
}

// drain takes from the ring buffer what is there, and does not wait.
func (t *Trace) drain() error {
	t.ring.SetDeadline(time.Unix(1, 0))
	for {
		record, err := t.ring.Read()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read examples of processes: %w", err)
		}
		key, e, err := parseExample(record.RawSample)
		if err != nil {
			return err
		}
		if t.first[key] == nil {
			t.first[key] = e
		}
	}
}

// parseExample reads one record of the ring buffer.
func parseExample(raw []byte) (bpfChain, *Example, error) {
	var e bpfExample
	if want := int(unsafe.Sizeof(e)); len(raw) < want {
		return bpfChain{}, nil, fmt.Errorf("an example of a process has %d bytes, want %d", len(raw), want)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&e)), unsafe.Sizeof(e)), raw)
	args := e.Args[:min(int(e.ArgsLen), len(e.Args))]
	x := &Example{PID: int(e.Pid), ParentPID: int(e.ParentPid), Cut: e.ArgsMore > 0, Arguments: []string{}}
	if args = bytes.TrimSuffix(args, []byte{0}); len(args) > 0 {
		for _, a := range bytes.Split(args, []byte{0}) {
			x.Arguments = append(x.Arguments, strings.ToValidUTF8(string(a), "\uFFFD"))
		}
		x.Arguments = secret.Args(x.Arguments)
	}
	return e.Chain, x, nil
}

func chainOf(c *bpfChain) Chain {
	chain := Chain{NetNS: c.Netns, Command: trace.Comm(c.Command[:])}
	for i := range c.Above {
		chain.Above[i] = trace.Comm(c.Above[i][:])
	}
	return chain
}

// exitWord names how a process ended, from its status as wait(2) gives it.
func exitWord(status int32) string {
	killer := unix.Signal(status & 0x7f)
	if killer == 0 {
		return strconv.Itoa(int(status >> 8 & 0xff))
	}
	if name := unix.SignalName(killer); name != "" {
		return name
	}
	return "signal " + strconv.Itoa(int(killer))
}

// Read puts the sums since the start.
func (t *Trace) Read(out trace.Out) error {
	s, err := t.Snapshot()
	if err != nil {
		return err
	}
	sums := sums{out: out, has: t.Has, values: map[series]float64{}}
	for _, g := range s.Groups {
		ns, c, up := g.Chain.NetNS, g.Chain.Command, g.Chain.Above[0]
		sums.add(starts, float64(g.Starts), ns, c, up, g.Chain.Above[1])
		sums.add(forks, float64(g.Forks), ns, c, up, "")
		sums.add(forksOnly, float64(g.ForksOnly), ns, c, up, "")
		if g.Ends > 0 {
			sums.add(lifetimeSeconds, g.Lifetime.Seconds(), ns, c, up, "")
		}
		if g.Reaped > 0 {
			sums.add(cpuSeconds, g.CPU.Seconds(), ns, c, up, "")
		}
		for exit, n := range g.Exits {
			sums.add(ends, float64(n), ns, c, up, exit)
		}
	}
	sums.put()
	trace.PutLost(out, lost, s.Lost)
	return nil
}

// series is a signal with the values of its labels; "" after the last.
type series struct {
	signal *model.Signal
	netns  uint32
	labels [3]string
}

// sums adds up groups that differ in what a signal does not tell apart.
type sums struct {
	out    trace.Out
	has    func(*model.Signal) bool
	values map[series]float64
}

func (s *sums) add(signal *model.Signal, v float64, netns uint32, labels ...string) {
	if v > 0 && s.has(signal) { // those that are not there yet start at zero
		s.values[series{signal, netns, [3]string(labels)}] += v
	}
}

func (s *sums) put() {
	for key, v := range s.values {
		s.out.In(key.netns).Put(key.signal, v, key.labels[:len(key.signal.Labels)]...)
	}
}
