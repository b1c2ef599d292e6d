package wait

import (
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/sched"
)

const source = "BPF on the tracepoint sched_switch, and over all tasks"

var (
	blockedSeconds = &model.Signal{
		Name: "plimsoll_wait_blocked_seconds_total", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help: "How long threads slept, from leaving the CPU until woken, by what they waited for and towards whom; " +
			"waits that still last are in it as far as they have come. Its rate is how many were blocked at once.",
		Labels: []string{"groupname", "reason", "towards"}, Source: source, ByHand: "offcputime-bpfcc 10",
	}
	blocks = &model.Signal{
		Name: "plimsoll_wait_blocks_total", Kind: model.Counter, Unit: "waits", StartsAtZero: true,
		Help:   "How often threads slept and were woken, by what they waited for and towards whom.",
		Labels: []string{"groupname", "reason", "towards"}, Source: source, ByHand: "pidstat -wt 1",
	}
	blockedBucket = &model.Signal{
		Name: "plimsoll_wait_blocked_seconds_bucket", Kind: model.Counter, Unit: "waits", StartsAtZero: true,
		Help:   "Waits, from leaving the CPU until woken, that were shorter than le seconds; the bounds are powers of two, in microseconds.",
		Labels: []string{"groupname", "reason", "le"}, Source: source, ByHand: "offcputime-bpfcc 10",
	}
	stuckWriters = &model.Signal{
		Name: "plimsoll_wait_stuck_writers", Kind: model.Gauge, Unit: "threads",
		Help: "Threads that stood in one and the same write to a full pipe for a second or longer, so that nobody reads what is in it: by the name of the program or script, " +
			"by who has the other end of the pipe, and by what most of his threads did: running, or a reason to wait; - where that is not seen, or several have it. Those of more than 64 kinds are other.",
		Labels: []string{"groupname", "writer", "reader", "doing"}, Source: source + "; /proc/TID/syscall, /proc/PID/fd and fdinfo while there are any",
		ByHand: "cat /proc/PID/syscall; ls -l /proc/*/fd | grep 'pipe:'",
	}
	lost = trace.LostSignal("wait", "waits", "Waits that found no room: of more groups or threads than the tracer can hold; of more targets, which count as towards=\"other\"; of switches, those whose beginning was not seen; of writers, at each look the threads beyond 64 that stood in writes to full pipes.")
)

var signals = []*model.Signal{blockedSeconds, blocks, blockedBucket, stuckWriters, lost}

// needs says which programs a signal rests on.
var needs = map[*model.Signal][]string{
	blockedSeconds: {sched.AtSwitch, sched.AtRead},
	blocks:         {sched.AtSwitch},
	blockedBucket:  {sched.AtSwitch},
	stuckWriters:   {sched.AtRead},
	lost:           nil,
}
