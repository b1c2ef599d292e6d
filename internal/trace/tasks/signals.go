package tasks

import "plimsoll/internal/model"

const atTask = "each_task"

const iterator = "a BPF iterator over all threads (iter/task)"

var (
	stateSeconds = &model.Signal{
		Name: "plimsoll_tasks_state_seconds_total", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help: "How long threads were in a state, added up over all of them; state is runnable, uninterruptible or stopped. " +
			"Its rate is how many were in it on average; the load average is made of the first two. An estimate, by sampling.",
		Labels: []string{"groupname", "state"}, Source: iterator, ByHand: "ps -eLo state,comm | sort | uniq -c",
	}
	blockedSeconds = &model.Signal{
		Name: "plimsoll_tasks_blocked_seconds_total", Kind: model.Counter, Unit: "seconds", StartsAtZero: true,
		Help: "How long threads slept uninterruptibly (state D), by the kernel function that they waited in and the system call (\"none\": a page fault or a kernel thread). " +
			"An estimate, by sampling.",
		Labels: []string{"groupname", "function", "syscall"}, Source: iterator + " and their kernel stacks", ByHand: "ps -eLo state,wchan:32,comm | grep ^D; cat /proc/PID/stack",
	}
	switches = &model.Signal{
		Name: "plimsoll_tasks_switches_total", Kind: model.Counter, Unit: "switches", StartsAtZero: true,
		Help: "Threads that left a CPU, of processes that have several threads, by the thread's own name; role is main (the process's first thread) or other; " +
			"kind is voluntary (nothing left to do) or involuntary (it could have run on).",
		Labels: []string{"groupname", "thread", "role", "kind"}, Source: iterator, ByHand: "pidstat -wt 1",
	}
	zombies = &model.Signal{
		Name: "plimsoll_tasks_zombies", Kind: model.Gauge, Unit: "processes",
		Help:   "Processes that have ended and that their parent does not reap, by the parent's name and pid.",
		Labels: []string{"groupname", "pid"}, Source: iterator, ByHand: "ps -eo state,ppid,comm | grep ^Z",
	}
	oldestZombie = &model.Signal{
		Name: "plimsoll_tasks_oldest_zombie_seconds", Kind: model.Gauge, Unit: "seconds",
		Help:   "For how long the oldest of them has been waiting, at least: since it was first seen to have ended.",
		Labels: []string{"groupname", "pid"}, Source: iterator, ByHand: "ps -eo state,ppid,etimes,comm | grep ^Z",
	}
	samples = &model.Signal{
		Name: "plimsoll_tasks_samples_total", Kind: model.Counter, Unit: "samples", StartsAtZero: true,
		Help:   "Looks at all threads. The time between two is what the estimates of the tasks tracer are uncertain by.",
		Source: iterator, ByHand: "bpftool prog show name each_task",
	}
	lost = &model.Signal{
		Name: "plimsoll_tasks_lost_total", Kind: model.Counter, Unit: "events", StartsAtZero: true,
		Help:   "What the tasks tracer saw and had no room for: threads of more groups, waits of more kinds, or zombies of more parents than it can hold, counted at each look.",
		Labels: []string{"what"}, Source: "the tracer itself", ByHand: "plimsoll trace tasks --json",
	}
)

var signals = []*model.Signal{stateSeconds, blockedSeconds, switches, zombies, oldestZombie, samples, lost}

// needs says which programs a signal rests on.
var needs = map[*model.Signal][]string{
	stateSeconds: {atTask}, blockedSeconds: {atTask}, switches: {atTask}, zombies: {atTask}, oldestZombie: {atTask}, samples: {atTask}, lost: nil,
}
