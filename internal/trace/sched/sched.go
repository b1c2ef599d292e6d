// Package sched is the BPF program at every switch between two threads, on which
// two tracers rest: runqueue and wait. It is one program because being called is the
// expensive part of it, and a service whose threads take turns switches often
// (bench/switchcost). Who lists the tracers gives both the same Programs.
package sched

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"plimsoll/internal/model"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/wait/reason"
)

// Part is what the program does for one of the tracers.
type Part string

const (
	// Queue is the wait for a CPU.
	Queue Part = "queue"
	// Blocked is every other wait.
	Blocked Part = "blocked"
)

// The names of the programs, for what signals rest on.
const (
	AtSwitch = "sched_switch"
	AtRename = "sched_rename"
	AtRead   = "sched_look"
)

// The names of maps and variables in sched.bpf.c, which the tracers read.
const (
	Commands     = bpfMapCommands     // whose numbers, by Command
	CommandCount = bpfVarCommandCount // how many of them
	Queues       = bpfMapQueues       // Queued, by a Command's number
	Pairs        = bpfMapPairs        // how often, by Pair
	Numbers      = bpfMapNumbers      // whose numbers, by Group
	NumberCount  = bpfVarSumCount     // how many of them
	Sums         = bpfMapSums         // Sum, by a Group's number
	Stuck        = bpfMapStuck        // Group, by the thread that stands in one write to a full pipe for a second or longer
	Paths        = bpfMapPaths        // Path, by the number that stands for it in a Cause
	HasPrevState = bpfVarHasPrevState // a constant: does sched_switch tell the state of who leaves
)

type (
	// Command is the processes of one command in a network namespace.
	Command = bpfCommand
	// Queued is what one CPU counted of their waits for it: times in nanoseconds.
	Queued = bpfQueued
	// Pair is the numbers of two Commands, of which one took the CPU from the other.
	Pair = bpfPair
	// Group is the processes of one command that waited for one thing.
	Group = bpfGroup
	// Sum is what one CPU counted of their waits: times in nanoseconds.
	Sum = bpfSum
	// Cause is what they waited for, and towards whom.
	Cause = bpfCause
	// Path is the name of a Unix socket.
	Path = bpfPath
)

// FirstKernel is the first Linux that has all that the program needs.
var FirstKernel = trace.Kernel{Major: 5, Minor: 15}

// Programs is the programs as tracers share them: the kernel calls each set of them
// anew at every switch. They are loaded with the first view and detached with the last.
// The zero value is ready for use, by several goroutines.
type Programs struct {
	mu    sync.Mutex
	set   *trace.Set // nil while there are no views
	tasks *link.Iter // nil where it is not attached
	views int
	on    map[Part]bool
}

// View is one tracer's share of the programs. What is said of processes to one
// (Ignore, Only) holds for the other, too.
type View struct {
	*trace.Set
	part Part
	of   *Programs
}

// Spec is the programs before they are loaded, fit for this kernel.
func Spec() (*ebpf.CollectionSpec, error) {
	kernel, err := trace.KernelTypes()
	if err != nil {
		return nil, err
	}
	arguments, err := trace.Arguments(kernel, "sched_switch")
	if err != nil {
		return nil, err
	}
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	// The fourth is the state of who leaves, since Linux 5.18.
	return spec, errors.Join(trace.SetConstant(spec, HasPrevState, arguments > 3), trace.SetConstant(spec, bpfVarCalls, reason.Calls()))
}

// AddsUpWaits returns nil if the kernel adds up how long its threads wait for a CPU.
func AddsUpWaits() error {
	kernel, err := trace.KernelTypes()
	if err != nil {
		return err
	}
	var info *btf.Struct
	if kernel.TypeByName("sched_info", &info) == nil && slices.ContainsFunc(info.Members, func(m btf.Member) bool { return m.Name == "run_delay" }) {
		return nil
	}
	return fmt.Errorf("this kernel does not add up how long its threads wait for a CPU (CONFIG_SCHED_INFO): %w", fs.ErrNotExist)
}

// Use returns a tracer's view. needs says which programs each of its signals rests on.
// The caller closes it.
func (p *Programs) Use(part Part, needs map[*model.Signal][]string) (*View, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.set == nil {
		spec, err := Spec()
		if err != nil {
			return nil, err
		}
		if err := p.load(spec); err != nil {
			return nil, err
		}
	}
	return p.view(part, needs)
}

// UseOf is Use of programs that may differ from Spec, and that no other tracer shares.
func UseOf(spec *ebpf.CollectionSpec, part Part, needs map[*model.Signal][]string) (*View, error) {
	p := &Programs{}
	if err := p.load(spec); err != nil {
		return nil, err
	}
	return p.view(part, needs)
}

func (p *Programs) load(spec *ebpf.CollectionSpec) (err error) {
	p.on = map[Part]bool{}
	p.set, err = trace.LoadWith(spec, FirstKernel, nil, map[string]trace.Attach{AtRead: p.attachLook})
	return err
}

func (p *Programs) attachLook(program *ebpf.Program) (io.Closer, error) {
	tasks, err := link.AttachIter(link.IterOptions{Program: program})
	p.tasks = tasks
	return tasks, err
}

// view adds one, and switches its part on.
func (p *Programs) view(part Part, needs map[*model.Signal][]string) (*View, error) {
	v := &View{p.set.With(needs), part, p}
	p.views++
	if err := p.turn(part, true); err != nil {
		return nil, errors.Join(err, v.close())
	}
	return v, nil
}

// turn switches a part on or off, and with the last one the programs themselves.
func (p *Programs) turn(part Part, on bool) error {
	p.on[part] = on
	flag := p.set.Maps.Variables[string(part)+"_on"]
	switch {
	case on: // what began before was half seen
		return errors.Join(p.set.Resume(), flag.Set(true))
	case p.on[Queue] || p.on[Blocked]:
		return flag.Set(false)
	}
	p.tasks = nil
	return errors.Join(flag.Set(false), p.set.Pause())
}

// Pause switches its part off; counts stay.
func (v *View) Pause() error {
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	return v.of.turn(v.part, false)
}

// Resume switches it on again.
func (v *View) Resume() error {
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	return v.of.turn(v.part, true)
}

// Close gives its share back; the last one detaches the programs.
func (v *View) Close() error {
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	return v.close()
}

func (v *View) close() error {
	err := v.of.turn(v.part, false)
	if v.of.views--; v.of.views > 0 {
		return err
	}
	err = errors.Join(err, v.of.set.Close())
	v.of.set = nil
	return err
}

// Look counts what has passed of the waits that still last, and begins those that
// began before. While its part is off it does nothing, as where the kernel cannot.
func (v *View) Look() error {
	v.of.mu.Lock()
	defer v.of.mu.Unlock()
	if v.of.tasks == nil || !v.of.on[v.part] {
		return nil
	}
	r, err := v.of.tasks.Open()
	if err != nil {
		return fmt.Errorf("look at the waits that still last: %w", err)
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, r); err != nil {
		return fmt.Errorf("look at the waits that still last: %w", err)
	}
	return nil
}

// Lost counts what found no room, by what it was.
func (v *View) Lost() (map[string]uint64, error) { return v.LostOf(string(v.part) + "_lost_") }
