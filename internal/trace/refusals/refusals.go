// Package refusals is the tracer of system calls that the kernel refused because something had run out or was taken: the
// reason itself, whether or not the program logs it.
package refusals

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
		Name:        "refusals",
		Short:       "calls that fail for want of something, by error",
		About:       "system calls that the kernel refused for want of memory, descriptors, ports, room, locks or processes: whose, which, with which error",
		Long:        long,
		Level:       trace.Light,
		InBursts:    true,
		Brief:       true,
		Signals:     signals,
		Programs:    programs,
		Needs:       needs,
		Tracepoints: []string{"sys_exit"},
		FirstKernel: since,
		Cost:        cost,
		Paired:      trace.Paired{Pairs: 12, Replies: "0.967 (0.916–0.998)", CPU: "1.031 (1.008–1.093)"},
		Blind:       blind,
		ByHand:      "strace -f -Z -p PID (which stops the process at each call); the error's cause: man 2 of the call, under ERRORS",
		Start:       func() (trace.Running, error) { return Start() },
	}
}

const long = `Counts the system calls that fail because something had run out, or was taken:
memory or mappings (ENOMEM), descriptors (EMFILE, ENFILE), room (ENOSPC, EDQUOT,
EROFS), addresses and ports (EADDRINUSE, EADDRNOTAVAIL), buffers (ENOBUFS), locks
(ENOLCK), and processes, timers or locked memory (EAGAIN, of calls that make
them). Other failures are an answer like any other, and are not counted.`

const cost = "0.11 µs a call, whether it fails or not: getppid took 0.29 µs instead of 0.18 (Linux 6.18, 2 CPUs, a shared machine): too expensive for all the time, so a " +
	"run switches it on in bursts"

var blind = []string{
	"which of several limits a call ran into is not told: EAGAIN of clone is RLIMIT_NPROC, pids.max or kernel.threads-max",
	"a connect that fails later (the socket says so, and not the call) is not a refused call; neither is what io_uring does, or a page that cannot be had when it is touched",
	"calls of 32-bit programs have other numbers; they are only counted, by lost_total{what=\"compat\"}",
	"at most 1,024 kinds are kept, the first that come: who makes up names of processes can fill them, which lost_total tells",
	"many programs try one thing, are refused, and do another: that a call was refused is not yet harm",
	"in a run it watches for 100 ms in 2 s: what happens less often than once in a few seconds may be missed",
	"in a PID namespace of our own (a container), our own process is not recognised, and is counted with the others",
}

// creating are the calls that say EAGAIN where there is no room, besides those that only some architectures have (forks).
var creating = []uint32{unix.SYS_CLONE, unix.SYS_CLONE3, unix.SYS_TIMER_CREATE, unix.SYS_IO_SETUP, unix.SYS_MLOCK, unix.SYS_MLOCK2, unix.SYS_MLOCKALL, unix.SYS_SETUID}

// Refusal is what was refused to the processes of one command in one network namespace.
type Refusal struct {
	Netns uint32 `json:"netns"`
	Name  string `json:"groupname"`
	Call  string `json:"syscall"`
	Error string `json:"errno"`
	Count uint64 `json:"calls"`
}

// Snapshot is everything since the start, the commonest first.
type Snapshot struct {
	Refusals []Refusal `json:"refusals"`
	// Lost counts what is missing, by why.
	Lost map[string]uint64 `json:"lost"`
}

// Trace is the tracer at work. It is not safe for concurrent use.
type Trace struct{ *trace.Set }

// Start attaches the program. The caller closes it.
func Start() (*Trace, error) {
	spec, err := programs()
	if err != nil {
		return nil, err
	}
	set, err := trace.Load(spec, since, needs)
	if err != nil {
		return nil, err
	}
	return &Trace{set}, nil
}

// programs know this architecture's numbers.
func programs() (*ebpf.CollectionSpec, error) {
	spec, err := loadBpf()
	if err != nil {
		return nil, err
	}
	var calls [16]uint32
	for i := range calls {
		calls[i] = ^uint32(0) // 0 is a call, too
	}
	copy(calls[:], append(slices.Clone(creating), forks...))
	if err := trace.SetConstant(spec, bpfVarCreating, calls); err != nil {
		return nil, err
	}
	return spec, trace.SetConstant(spec, bpfVarRtSigreturn, uint32(unix.SYS_RT_SIGRETURN))
}

// Snapshot reads everything since the start.
func (t *Trace) Snapshot() (Snapshot, error) {
	var s Snapshot
	err := trace.EachPerCPU(t.Maps.Maps[bpfMapRefusals], func(key *bpfRefusal, cpus []uint64) {
		r := Refusal{Netns: key.Netns, Name: trace.Comm(key.Comm[:]), Call: sysname.Call(key.Nr), Error: sysname.Error(key.Error)}
		for _, n := range cpus {
			r.Count += n
		}
		s.Refusals = append(s.Refusals, r)
	})
	if err != nil {
		return Snapshot{}, fmt.Errorf("read the refused system calls: %w", err)
	}
	slices.SortFunc(s.Refusals, func(a, b Refusal) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Name, b.Name), strings.Compare(a.Call, b.Call), strings.Compare(a.Error, b.Error), cmp.Compare(a.Netns, b.Netns))
	})
	s.Lost, err = t.Lost()
	return s, err
}

// Read puts the sums since the start. What has not happened yet is left out;
// the signals start at zero.
func (t *Trace) Read(out trace.Out) error {
	s, err := t.Snapshot()
	if err != nil {
		return err
	}
	for _, r := range s.Refusals {
		if t.Has(total) {
			out.In(r.Netns).Put(total, float64(r.Count), r.Name, r.Call, r.Error)
		}
	}
	trace.PutLost(out, lost, s.Lost)
	return nil
}
