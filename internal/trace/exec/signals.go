package exec

import (
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

const (
	atFork = "process_fork"
	atExec = "process_exec"
	atExit = "process_exit"
	atFree = "process_free"
)

var (
	starts = &model.Signal{
		Name: "plimsoll_exec_starts_total", Kind: model.Counter, Unit: "programs", StartsAtZero: true,
		Help:   "Programs started (successful calls of execve), by the command, its parent's and its grandparent's.",
		Labels: []string{"command", "parent", "grandparent"}, Source: "BPF on the tracepoint sched_process_exec", ByHand: "execsnoop-bpfcc",
	}
	forks = &model.Signal{
		Name: "plimsoll_exec_forks_total", Kind: model.Counter, Unit: "processes", StartsAtZero: true,
		Help:   "Processes forked, by the command that they begin with, which is their parent's, and that one's parent.",
		Labels: []string{"command", "parent"}, Source: "BPF on the tracepoint sched_process_fork", ByHand: "perf trace -e sched:sched_process_fork -a",
	}
	forksOnly = &model.Signal{
		Name: "plimsoll_exec_forks_only_total", Kind: model.Counter, Unit: "processes", StartsAtZero: true,
		Help:   "Processes that ended without ever having executed a program after their fork.",
		Labels: []string{"command", "parent"}, Source: "BPF on the tracepoint sched_process_exit", ByHand: "perf trace -e sched:sched_process_exit -a",
	}
	ends = &model.Signal{
		Name: "plimsoll_exec_ends_total", Kind: model.Counter, Unit: "processes", StartsAtZero: true,
		Help:   "Processes that ended, by their exit code or the name of the signal that killed them.",
		Labels: []string{"command", "parent", "exit"}, Source: "BPF on the tracepoint sched_process_exit", ByHand: "exitsnoop-bpfcc",
	}
	cpuSeconds = &model.Signal{
		Name: "plimsoll_exec_cpu_seconds_total", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help: "CPU time, over their whole lives, of processes that ended and were waited for. " +
			"It is the scheduler's own sum, so that a process shorter than a tick counts as well.",
		Labels: []string{"command", "parent"}, Source: "BPF on the tracepoint sched_process_free (signal_struct.sum_sched_runtime)", ByHand: "lastcomm",
	}
	lifetimeSeconds = &model.Signal{
		Name: "plimsoll_exec_lifetime_seconds_total", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "How long the processes that ended had lived, from their fork, added up.",
		Labels: []string{"command", "parent"}, Source: "BPF on the tracepoint sched_process_exit (task_struct.start_time)", ByHand: "exitsnoop-bpfcc",
	}
	lost = trace.LostSignal("exec", "events", "Events of the exec tracer that were lost: more groups, ends, examples or tasks than it can hold; and frees, processes whose CPU time lacks its last bit.")
)

var signals = []*model.Signal{starts, forks, forksOnly, ends, cpuSeconds, lifetimeSeconds, lost}

// needs says which programs a signal rests on. The chain of a process is noted
// when it starts, so what is told of its end rests on the start as well.
var needs = map[*model.Signal][]string{
	starts:          {atExec},
	forks:           {atFork},
	forksOnly:       {atFork, atExec, atExit},
	ends:            {atFork, atExec, atExit},
	cpuSeconds:      {atFork, atExec, atExit, atFree},
	lifetimeSeconds: {atFork, atExec, atExit},
	lost:            nil,
}
