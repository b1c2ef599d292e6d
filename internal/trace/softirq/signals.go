package softirq

import (
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

const (
	atRaise    = "sirq_raise"
	atEnter    = "sirq_enter"
	atLeave    = "sirq_leave"
	atIRQEnter = "irq_enter"
	atIRQLeave = "irq_leave"
)

const (
	fromSoftirq = "BPF on the tracepoints softirq_entry and softirq_exit"
	fromRaise   = "BPF on the tracepoints softirq_raise and softirq_entry"
	fromHardirq = "BPF on the tracepoints irq_handler_entry and irq_handler_exit"
)

var (
	seconds = &model.Signal{
		Name: "plimsoll_softirq_seconds_total", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "Time that a CPU spent in the handlers of one kind of softirq; cpu is its number, 64+ those from 64 on together.",
		Labels: []string{"cpu", "vector"}, Source: fromSoftirq, ByHand: "softirqs-bpfcc 1 1",
	}
	runs = &model.Signal{
		Name: "plimsoll_softirq_runs_total", Kind: model.Counter, Unit: "runs", StartsAtZero: true,
		Help:   "How often a CPU ran the handlers of one kind of softirq.",
		Labels: []string{"cpu", "vector"}, Source: fromSoftirq, ByHand: "cat /proc/softirqs",
	}
	waitSum = &model.Signal{
		Name: "plimsoll_softirq_wait_seconds_sum", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "How long softirqs were pending before their handlers ran.",
		Labels: []string{"vector"}, Source: fromRaise, ByHand: "perf record -a -e irq:softirq_raise -e irq:softirq_entry; perf script",
	}
	waitCount = &model.Signal{
		Name: "plimsoll_softirq_wait_seconds_count", Kind: model.Counter, Unit: "waits", StartsAtZero: true,
		Help:   "How many softirqs were pending before their handlers ran, and were seen from the start.",
		Labels: []string{"vector"}, Source: fromRaise, ByHand: "perf record -a -e irq:softirq_raise -e irq:softirq_entry; perf script",
	}
	waitBucket = &model.Signal{
		Name: "plimsoll_softirq_wait_seconds_bucket", Kind: model.Counter, Unit: "waits", StartsAtZero: true,
		Help:   "Softirqs that were pending for less than le seconds; the bounds are powers of two, in microseconds.",
		Labels: []string{"vector", "le"}, Source: fromRaise, ByHand: "perf record -a -e irq:softirq_raise -e irq:softirq_entry; perf script",
	}
	hardSeconds = &model.Signal{
		Name: "plimsoll_softirq_hardirq_seconds_total", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "Time that a CPU spent in the handler of a hardware interrupt, by the handler's name.",
		Labels: []string{"cpu", "irq"}, Source: fromHardirq, ByHand: "hardirqs-bpfcc 1 1",
	}
	hardRuns = &model.Signal{
		Name: "plimsoll_softirq_hardirq_runs_total", Kind: model.Counter, Unit: "runs", StartsAtZero: true,
		Help:   "How often a CPU ran the handler of a hardware interrupt, by the handler's name.",
		Labels: []string{"cpu", "irq"}, Source: fromHardirq, ByHand: "cat /proc/interrupts",
	}
	lost = trace.LostSignal("softirq", "events", "Events of the softirq tracer that found no room: more interrupt handlers than it can hold.")
)

var signals = []*model.Signal{seconds, runs, waitSum, waitCount, waitBucket, hardSeconds, hardRuns, lost}

// needs says which programs a signal rests on.
var needs = map[*model.Signal][]string{
	seconds:     {atEnter, atLeave},
	runs:        {atEnter, atLeave},
	waitSum:     {atRaise, atEnter},
	waitCount:   {atRaise, atEnter},
	waitBucket:  {atRaise, atEnter},
	hardSeconds: {atIRQEnter, atIRQLeave},
	hardRuns:    {atIRQEnter, atIRQLeave},
	lost:        nil,
}
