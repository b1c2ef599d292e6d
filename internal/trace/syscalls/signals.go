package syscalls

import (
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

const (
	atEnter = "call_enter"
	atExit  = "call_exit"
)

const source = "BPF on the tracepoints sys_enter and sys_exit"

var (
	callsTotal = &model.Signal{
		Name: "plimsoll_syscalls_calls_total", Kind: model.Counter, Unit: "calls", StartsAtZero: true,
		Help:   "System calls that returned, by the command of their process.",
		Labels: []string{"groupname", "syscall"}, Source: source, ByHand: "strace -c -f -p PID",
	}
	secondsTotal = &model.Signal{
		Name: "plimsoll_syscalls_seconds_total", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "Time between the beginning of a system call and its return, the time that it slept or waited for a CPU included.",
		Labels: []string{"groupname", "syscall"}, Source: source, ByHand: "strace -c -w -f -p PID",
	}
	errorsTotal = &model.Signal{
		Name: "plimsoll_syscalls_errors_total", Kind: model.Counter, Unit: "calls", StartsAtZero: true,
		Help:   "System calls that failed, by the name of the error. ERESTART… is a call that a signal interrupted.",
		Labels: []string{"groupname", "syscall", "errno"}, Source: source, ByHand: "strace -c -f -p PID",
	}
	secondsBucket = &model.Signal{
		Name: "plimsoll_syscalls_seconds_bucket", Kind: model.Counter, Unit: "calls", StartsAtZero: true,
		Help:   "System calls that took less than le seconds; the bounds are powers of two, in microseconds. Only of the first 256 pairs of process and call.",
		Labels: []string{"groupname", "syscall", "le"}, Source: source, ByHand: "perf trace -s -p PID",
	}
	lost = trace.LostSignal("syscalls", "calls", "Calls that are missing: more pairs of process and call (calls), errors or tasks than there is room for, calls of 32-bit programs (compat); "+
		"and those whose time is in no bucket (buckets).")
)

var signals = []*model.Signal{callsTotal, secondsTotal, errorsTotal, secondsBucket, lost}

// needs says which programs a signal rests on.
var needs = map[*model.Signal][]string{
	callsTotal:    {atEnter, atExit},
	secondsTotal:  {atEnter, atExit},
	errorsTotal:   {atEnter, atExit},
	secondsBucket: {atEnter, atExit},
	lost:          nil,
}
