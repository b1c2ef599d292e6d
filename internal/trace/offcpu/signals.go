package offcpu

import (
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
)

const (
	atSwitch = "offcpu_switch"
	atWaking = "offcpu_waking"
	atRead   = "offcpu_look"
)

const source = "BPF on the tracepoints sched_switch and sched_waking, and over all tasks"

var (
	seconds = &model.Signal{
		Name: "plimsoll_offcpu_seconds_total", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help: "How long threads slept, from leaving the CPU until woken, by what they waited for and who woke them: a process, or interrupt " +
			"(a device, the time); none for waits that the tracer did not see end.",
		Labels: []string{"groupname", "reason", "waker"}, Source: source, ByHand: "offwaketime-bpfcc 10",
	}
	blocks = &model.Signal{
		Name: "plimsoll_offcpu_blocks_total", Kind: model.Counter, Unit: "waits", StartsAtZero: true,
		Help:   "How often threads slept and were woken, by what they waited for and who woke them.",
		Labels: []string{"groupname", "reason", "waker"}, Source: source, ByHand: "offwaketime-bpfcc 10",
	}
	lost = trace.LostSignal("offcpu", "waits", "Waits that found no room, or whose stacks or locks found none.")
)

var signals = []*model.Signal{seconds, blocks, lost}

// needs says which programs a signal rests on.
var needs = map[*model.Signal][]string{
	seconds: {atSwitch, atWaking, atRead},
	blocks:  {atSwitch, atWaking},
	lost:    nil,
}
