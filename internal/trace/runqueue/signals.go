package runqueue

import (
	"plimsoll/internal/model"
	"plimsoll/internal/trace"
	"plimsoll/internal/trace/sched"
)

var (
	waitSum = &model.Signal{
		Name: "plimsoll_runqueue_wait_seconds_sum", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help:   "How long threads that could run waited for a CPU, by their process's command.",
		Labels: []string{"groupname"}, Source: "BPF on the tracepoint sched_switch (sched_info.run_delay)", ByHand: "perf sched timehist --summary",
	}
	waitCount = &model.Signal{
		Name: "plimsoll_runqueue_wait_seconds_count", Kind: model.Counter, Unit: "waits", StartsAtZero: true,
		Help:   "How often threads that could run waited for a CPU, however briefly.",
		Labels: []string{"groupname"}, Source: "BPF on the tracepoint sched_switch (sched_info.run_delay)", ByHand: "perf sched timehist --summary",
	}
	waitBucket = &model.Signal{
		Name: "plimsoll_runqueue_wait_seconds_bucket", Kind: model.Counter, Unit: "waits", StartsAtZero: true,
		Help:   "Waits for a CPU that were shorter than le seconds; the bounds are powers of two, in microseconds.",
		Labels: []string{"groupname", "le"}, Source: "BPF on the tracepoint sched_switch (sched_info.run_delay)", ByHand: "runqlat-bpfcc -P 1 1",
	}
	switches = &model.Signal{
		Name: "plimsoll_runqueue_switches_total", Kind: model.Counter, Unit: "switches", StartsAtZero: true,
		Help:   "Threads that left a CPU: kind is voluntary (nothing left to do) or involuntary (it could have run on).",
		Labels: []string{"groupname", "kind"}, Source: "BPF on the tracepoint sched_switch", ByHand: "pidstat -wt 1",
	}
	wakeups = &model.Signal{
		Name: "plimsoll_runqueue_wakeups_total", Kind: model.Counter, Unit: "wake-ups", StartsAtZero: true,
		Help:   "Threads that got a CPU after they had slept, or were new.",
		Labels: []string{"groupname"}, Source: "BPF on the tracepoint sched_switch", ByHand: "perf stat -e sched:sched_wakeup -a",
	}
	migrations = &model.Signal{
		Name: "plimsoll_runqueue_migrations_total", Kind: model.Counter, Unit: "migrations", StartsAtZero: true,
		Help:   "How often threads were moved to another CPU, counted when they get it.",
		Labels: []string{"groupname"}, Source: "BPF on the tracepoint sched_switch (se.nr_migrations)", ByHand: "perf stat -e migrations -a",
	}
	preemptions = &model.Signal{
		Name: "plimsoll_runqueue_preemptions_total", Kind: model.Counter, Unit: "switches", StartsAtZero: true,
		Help:   "Threads of groupname that left a CPU although they could have run on, by whose thread took their place.",
		Labels: []string{"groupname", "by"}, Source: "BPF on the tracepoint sched_switch", ByHand: "perf sched timehist --next",
	}
	lost = trace.LostSignal("runqueue", "events", "Events of the runqueue tracer that found no room: more groups, pairs or tasks than it can hold.")
)

var signals = []*model.Signal{waitSum, waitCount, waitBucket, switches, wakeups, migrations, preemptions, lost}

// needs says which programs a signal rests on: without the second, groups would
// keep a name that was changed.
var needs = map[*model.Signal][]string{
	waitSum:     {sched.AtSwitch, sched.AtRename},
	waitCount:   {sched.AtSwitch, sched.AtRename},
	waitBucket:  {sched.AtSwitch, sched.AtRename},
	switches:    {sched.AtSwitch, sched.AtRename},
	wakeups:     {sched.AtSwitch, sched.AtRename},
	migrations:  {sched.AtSwitch, sched.AtRename},
	preemptions: {sched.AtSwitch, sched.AtRename},
	lost:        nil,
}
