// Package softirq is the tracer of interrupt work: how long each CPU spends in
// softirqs, by kind, and in the handlers of hardware interrupts, by name. On
// kernels that do not account interrupt time (CONFIG_IRQ_TIME_ACCOUNTING),
// /proc/stat knows it only by samples at the clock tick.
package softirq

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

// since is the oldest kernel on which all of it was seen to work.
var since = trace.Kernel{Major: 5, Minor: 10}

// Tracer declares it.
func Tracer() trace.Tracer {
	return trace.Tracer{
		Name:        "softirq",
		Short:       "time in softirqs and interrupt handlers, by CPU",
		About:       "how long each CPU spends in softirqs, by kind, and in hardware interrupt handlers, by name",
		Long:        long,
		Level:       trace.Full,
		Signals:     signals,
		Programs:    loadBpf,
		Needs:       needs,
		Tracepoints: []string{"softirq_entry", "softirq_exit"},
		FirstKernel: since,
		Cost:        cost,
		Paired:      trace.Paired{Pairs: 8, Replies: "0.959 (0.952–0.977)", CPU: "1.047 (1.029–1.072)"},
		Blind:       blind,
		ByHand:      "softirqs-bpfcc and hardirqs-bpfcc; mpstat -I SCPU 1 for how often",
		Start:       func() (trace.Running, error) { return Start() },
	}
}

const cost = "0.33 µs a softirq, which on loopback is one packet: a datagram of 3.0 µs took 3.4 (Linux 6.18, 2 CPUs, a shared machine). That " +
	"is 0.6 µs a request on loopback, too expensive for all the time, so a run switches it on in bursts; a network card's interrupts " +
	"have many packets each"

var blind = []string{
	"a handler that a hardware interrupt stops for a while has that interrupt's time in it too",
	"the clock's own interrupt, those between CPUs and non-maskable ones do not pass through the tracepoints",
	"on loopback and veth the receiver's work runs in the sender's softirq: it belongs to no process, and to the sender's CPU",
	"the CPUs from 64 on are added up under cpu=\"64+\"",
	"whose work it is is not told, so leaving out or singling out processes does not apply; the tracer cpu shows what a softirq does",
}

const long = `Watches the work that interrupts a process and that no process is charged for by
name: softirqs (NET_RX is the receiving of packets, and on loopback the whole way
from sender to receiver) and the handlers of hardware interrupts. "wait" is how
long a softirq was pending before it ran: milliseconds mean that a CPU has more of
it than it gets done, and has left it to its ksoftirqd thread.`

// Slot is one kind of interrupt work on one CPU.
type Slot struct {
	CPU int `json:"cpu"`
	// Kind is the softirq as /proc/softirqs names it, or the name of the handler
	// as in /proc/interrupts.
	Kind string        `json:"kind"`
	Runs uint64        `json:"runs"`
	Took time.Duration `json:"took_ns"`
}

// Wait is how long softirqs of one kind were pending, on all CPUs.
type Wait struct {
	Vector    string          `json:"vector"`
	Sum       time.Duration   `json:"sum_ns"`
	Histogram trace.Histogram `json:"histogram"`
}

// Snapshot is everything since the start, the largest first.
type Snapshot struct {
	Soft  []Slot `json:"softirqs"`
	Hard  []Slot `json:"hardirqs"`
	Waits []Wait `json:"waits"`
	// Lost counts what found no room, by what it was.
	Lost map[string]uint64 `json:"lost"`
}

// Trace is the tracer at work. It is not safe for concurrent use.
type Trace struct {
	*trace.Set
	names []string
}

// Start attaches the programs. The caller closes it.
func Start() (*Trace, error) {
	names, err := readNames()
	if err != nil {
		return nil, err
	}
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	set, err := trace.Load(spec, since, needs)
	if err != nil {
		return nil, err
	}
	return &Trace{set, names}, nil
}

func readNames() ([]string, error) {
	const path = "/proc/softirqs"
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("ask for the names of the softirqs: %w", err)
	}
	defer f.Close()
	names, err := parseNames(f)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	return names, nil
}

// parseNames returns the kinds of softirq by their number: the kernel lists them
// in that order, a line each after the one of the CPUs.
func parseNames(r io.Reader) ([]string, error) {
	var names []string
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20) // a column for each CPU
	for first := true; lines.Scan(); first = false {
		name, _, found := strings.Cut(strings.TrimSpace(lines.Text()), ":")
		switch {
		case first:
		case !found || name == "":
			return nil, fmt.Errorf("want a line that begins with a softirq's name and a colon, got %q", lines.Text())
		default:
			names = append(names, name)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("want a line for each kind of softirq, got none")
	}
	return names, nil
}

// Snapshot reads everything since the start.
func (t *Trace) Snapshot() (Snapshot, error) {
	var s Snapshot
	for nr, name := range t.names {
		var cpus []bpfVector
		if err := t.Maps.Maps[bpfMapVectors].Lookup(uint32(nr), &cpus); err != nil {
			return Snapshot{}, fmt.Errorf("read the times of softirq %s: %w", name, err)
		}
		w := Wait{Vector: name, Histogram: make(trace.Histogram, len(bpfVector{}.Wait))}
		for cpu, c := range cpus {
			s.Soft = appendSlot(s.Soft, cpu, name, c.Runs, c.Ns)
			w.Sum += time.Duration(c.WaitNs)
			for slot, n := range c.Wait {
				w.Histogram[slot] += n
			}
		}
		if w.Histogram.Count() > 0 {
			s.Waits = append(s.Waits, w)
		}
	}
	var key bpfIrqName
	var cpus []bpfHandler
	each := t.Maps.Maps[bpfMapHandlers].Iterate()
	for each.Next(&key, &cpus) {
		for cpu, c := range cpus {
			s.Hard = appendSlot(s.Hard, cpu, trace.Comm(key.Name[:]), c.Runs, c.Ns)
		}
	}
	if err := each.Err(); err != nil {
		return Snapshot{}, fmt.Errorf("read the times of interrupt handlers: %w", err)
	}
	sortSlots(s.Soft)
	sortSlots(s.Hard)
	slices.SortFunc(s.Waits, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.Sum, a.Sum), strings.Compare(a.Vector, b.Vector))
	})
	var err error
	s.Lost, err = t.Lost()
	return s, err
}

func appendSlot(to []Slot, cpu int, kind string, runs, ns uint64) []Slot {
	if runs == 0 {
		return to
	}
	return append(to, Slot{cpu, kind, runs, time.Duration(ns)})
}

func sortSlots(s []Slot) {
	slices.SortFunc(s, func(a, b Slot) int {
		return cmp.Or(cmp.Compare(b.Took, a.Took), strings.Compare(a.Kind, b.Kind), cmp.Compare(a.CPU, b.CPU))
	})
}

// ownCPUs is how many CPUs have series of their own.
const ownCPUs = 64

// merge adds up the CPUs that share a label.
func merge(list []Slot) map[[2]string]Slot {
	sums := map[[2]string]Slot{}
	for _, s := range list {
		cpu := strconv.Itoa(ownCPUs) + "+"
		if s.CPU < ownCPUs {
			cpu = strconv.Itoa(s.CPU)
		}
		sum := sums[[2]string{cpu, s.Kind}]
		sum.Runs, sum.Took = sum.Runs+s.Runs, sum.Took+s.Took
		sums[[2]string{cpu, s.Kind}] = sum
	}
	return sums
}

// Read puts the sums since the start. What has not happened yet is left out;
// the signals start at zero.
func (t *Trace) Read(out trace.Out) error {
	s, err := t.Snapshot()
	if err != nil {
		return err
	}
	put := func(list []Slot, time, count *model.Signal) {
		if !t.Has(time) {
			return
		}
		for labels, sum := range merge(list) {
			out.Put(time, sum.Took.Seconds(), labels[:]...)
			out.Put(count, float64(sum.Runs), labels[:]...)
		}
	}
	put(s.Soft, seconds, runs)
	put(s.Hard, hardSeconds, hardRuns)
	if t.Has(waitSum) {
		for _, w := range s.Waits {
			out.Put(waitSum, w.Sum.Seconds(), w.Vector)
			out.Put(waitCount, float64(w.Histogram.Count()), w.Vector)
			w.Histogram.Put(out, waitBucket, w.Vector)
		}
	}
	trace.PutLost(out, lost, s.Lost)
	return nil
}
