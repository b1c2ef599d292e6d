// Package offcpu is the tracer of blocked threads with their stacks: where they
// slept, how long, and who woke them.
package offcpu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/google/pprof/profile"

	"plimsoll/internal/model"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/stacks"
	"plimsoll/internal/trace/wait/reason"
)

// Shortest is the shortest wait that counts: what is shorter costs more to watch
// than it can be worth.
const Shortest = time.Microsecond

// firstKernel is the oldest kernel on which all of it was seen to work.
var firstKernel = trace.Kernel{Major: 5, Minor: 15}

// Tracer declares it.
func Tracer() trace.Tracer {
	return trace.Tracer{
		Name:        "offcpu",
		Short:       "where threads sleep, how long, and who wakes them",
		About:       "where threads sleep (stacks), how long, what they wait for, and who wakes them",
		Long:        long,
		Level:       trace.Full,
		Profile:     "offcpu",
		Signals:     signals,
		Programs:    programs,
		Needs:       needs,
		Tracepoints: []string{"sched_switch", "sched_waking"},
		FirstKernel: firstKernel,
		Cost:        cost,
		Paired:      trace.Paired{Pairs: 8, Replies: "0.967 (0.952–0.995)", CPU: "1.044 (1.031–1.063)"},
		Blind:       blind,
		ByHand:      "offcputime-bpfcc -p PID 10, offwaketime-bpfcc 10; perf trace -s; of one thread /proc/PID/task/TID/wchan and stack, a few times",
		Start:       func() (trace.Running, error) { return Start() },
	}
}

// Trace is the tracer at work. It is not safe for concurrent use.
type Trace struct {
	*trace.Set
	tasks *link.Iter
	since time.Time
	taken *taken
}

// Start attaches the programs. The caller closes it.
func Start() (*Trace, error) {
	spec, err := programs()
	if err != nil {
		return nil, err
	}
	return start(spec)
}

// programs are fit for this kernel.
func programs() (*ebpf.CollectionSpec, error) {
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
	return spec, errors.Join(
		trace.SetConstant(spec, bpfVarHasPrevState, n > 3), // whether it tells the state of who leaves
		trace.SetConstant(spec, bpfVarCalls, reason.Calls()),
		trace.SetConstant(spec, bpfVarShortestNs, uint64(Shortest)),
	)
}

func start(spec *ebpf.CollectionSpec) (*Trace, error) {
	t := &Trace{since: time.Now()}
	var err error
	t.Set, err = trace.LoadWith(spec, firstKernel, needs, map[string]trace.Attach{atRead: t.attachIter})
	if err != nil {
		return nil, err
	}
	t.taken = newTaken(t.Maps.Maps)
	return t, nil
}

func (t *Trace) attachIter(p *ebpf.Program) (io.Closer, error) {
	it, err := link.AttachIter(link.IterOptions{Program: p})
	t.tasks = it
	return it, err
}

// Close detaches the programs.
func (t *Trace) Close() error { return errors.Join(t.taken.names.Close(), t.Set.Close()) }

// Pause detaches the programs. Waits count as far as they have come.
func (t *Trace) Pause() error {
	if t.tasks == nil { // paused, or this kernel cannot
		return t.Set.Pause()
	}
	// What is opened before still works after; and what is read only when nothing
	// is counted any more is counted once.
	r, err := t.tasks.Open()
	if err != nil {
		return errors.Join(fmt.Errorf("look at the waits that still last: %w", err), t.Set.Pause())
	}
	defer r.Close()
	t.tasks = nil
	if err := t.Set.Pause(); err != nil {
		return err
	}
	cut, err := readLasting(r)
	if err != nil {
		return err
	}
	for _, l := range cut {
		t.taken.add(l.Key, bpfWait{Ns: l.Ns})
	}
	return nil
}

// readLasting reads the waits that still last, as the iterator writes them.
func readLasting(r io.Reader) ([]bpfLasting, error) {
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read the waits that still last: %w", err)
	}
	return parseLasting(raw)
}

// parseLasting reads what the iterator wrote.
func parseLasting(raw []byte) ([]bpfLasting, error) {
	var one bpfLasting
	size := binary.Size(one)
	if len(raw)%size != 0 {
		return nil, fmt.Errorf("read the waits that still last: got %d bytes, want a multiple of %d", len(raw), size)
	}
	list := make([]bpfLasting, len(raw)/size)
	if err := binary.Read(bytes.NewReader(raw), binary.NativeEndian, list); err != nil {
		return nil, fmt.Errorf("read the waits that still last: %w", err)
	}
	return list, nil
}

// lasting returns the waits that still last; none while the tracer is paused.
func (t *Trace) lasting() ([]bpfLasting, error) {
	if t.tasks == nil {
		return nil, nil
	}
	r, err := t.tasks.Open()
	if err != nil {
		return nil, fmt.Errorf("look at the waits that still last: %w", err)
	}
	defer r.Close()
	return readLasting(r)
}

// Lost counts what found no room, by what it was.
func (t *Trace) Lost() (map[string]uint64, error) {
	lost, err := t.Set.Lost()
	if err == nil {
		lost["waits"] += t.taken.lostWaits
		lost["stacks"] += t.taken.lostStacks
	}
	return lost, err
}

// Read puts the sums since the start. What has not happened yet is left out;
// the signals start at zero.
func (t *Trace) Read(out trace.Out) error {
	if err := t.taken.fetch(); err != nil {
		return err
	}
	type series struct {
		netns                uint32
		group, reason, waker string
	}
	sums := map[series]bpfWait{}
	for key, w := range t.taken.sums {
		at := series{key.netns, key.group, key.reason, key.waker}
		sum := sums[at]
		sums[at] = bpfWait{Ns: sum.Ns + w.Ns, Waits: sum.Waits + w.Waits}
	}
	for at, sum := range sums {
		put := func(signal *model.Signal, v float64) {
			if v > 0 && t.Has(signal) {
				out.In(at.netns).Put(signal, v, at.group, at.reason, at.waker)
			}
		}
		put(seconds, trace.Seconds(sum.Ns))
		put(blocks, float64(sum.Waits))
	}
	counts, err := t.Lost()
	trace.PutLost(out, lost, counts)
	return err
}

// slept returns all waits since the start, with those that still last.
func (t *Trace) slept() ([]slept, error) {
	if err := t.taken.fetch(); err != nil {
		return nil, err
	}
	lasting, err := t.lasting()
	if err != nil {
		return nil, err
	}
	sums := maps.Clone(t.taken.sums)
	for _, l := range lasting {
		key := t.taken.key(l.Key)
		sum := sums[key]
		sums[key] = bpfWait{Ns: sum.Ns + l.Ns, Waits: sum.Waits}
	}
	list := make([]slept, 0, len(sums))
	for key, w := range sums {
		list = append(list, t.taken.slept(key, w))
	}
	return list, nil
}

// Profile returns all stacks since the start, with the waits that still last.
func (t *Trace) Profile() (*profile.Profile, error) {
	all, err := t.slept()
	if err != nil {
		return nil, err
	}
	samples := make([]stacks.Sample, 0, len(all))
	for _, s := range all {
		samples = append(samples, s.Sample)
	}
	p := stacks.Profile([]profile.ValueType{{Type: "offcpu", Unit: "nanoseconds"}, {Type: "waits", Unit: "count"}}, samples)
	p.DefaultSampleType = "offcpu"
	p.PeriodType, p.Period = &profile.ValueType{Type: "offcpu", Unit: "nanoseconds"}, 1
	p.TimeNanos, p.DurationNanos = t.since.UnixNano(), int64(time.Since(t.since))
	return p, nil
}

// locks returns the futexes that threads slept for. It looks at the processes'
// memory maps: those that are gone have no names.
func (t *Trace) locks() ([]Lock, error) {
	list := []Lock{}
	var key bpfLockKey
	var w bpfWait
	each := t.Maps.Maps[bpfMapLocks].Iterate()
	for each.Next(&key, &w) {
		name := t.taken.names.Data(int(key.Tgid), key.Address)
		list = append(list, Lock{int(key.Tgid), name.Function, name.Module, key.Address, time.Duration(w.Ns), w.Waits})
	}
	if err := each.Err(); err != nil {
		return nil, fmt.Errorf("read the locks: %w", err)
	}
	return list, nil
}
