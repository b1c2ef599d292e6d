/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * How long tasks that could run wait for a CPU, who takes it from whom, and how
 * often they are woken and moved.
 *
 * It is done at every switch, and must be cheap. The kernel itself adds up how long
 * each task waited (sched_info.run_delay), and how often it switched and moved; so it
 * is enough to compare these sums, without a look at the clock or at the wake-ups. Of
 * each task its command's number is remembered, so that no name is copied or looked up.
 */
#ifndef PLIMSOLL_QUEUE_H
#define PLIMSOLL_QUEUE_H

#define MAX_COMMANDS 512
#define NO_COMMAND 0

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_info {
	unsigned long long run_delay; /* nanoseconds of waiting, all that has ended */
};

struct sched_entity___moves {
	__u64 nr_migrations;
};

struct signal_struct___threads {
	int nr_threads;
};

struct task_struct___runqueue {
	unsigned long nvcsw, nivcsw;
	struct sched_entity___moves se;
	struct sched_info sched_info;
};

#pragma clang attribute pop

struct command {
	__u32 netns;
	__u8 comm[TASK_COMM_LEN]; /* of the process, not of the thread */
};

struct queued {
	__u64 waits;
	__u64 wait_ns;
	__u64 voluntary;   /* switches away because there was nothing to do */
	__u64 involuntary; /* switches away although there was */
	__u64 wakeups;
	__u64 migrations;
	__u64 wait[WAIT_SLOTS];
};

struct pair {
	__u32 victim; /* numbers of commands */
	__u32 by;
};

/* What is remembered of a task: the kernel's sums as of when it left its CPU.
 * Only differences of them count, and no events: on Linux 6.18 a program was seen
 * not to run for one switch in a thousand, and so the next one makes up for it. */
struct turn {
	__u64 resumed; /* the value of resumed_at then; of another one the rest is stale */
	__u64 run_delay;
	__u64 voluntary;
	__u64 involuntary;
	__u64 slept;      /* voluntary and */
	__u64 migrations; /* as of when it got its CPU */
	__u64 nsproxy;    /* from which its command was found */
	__u32 renamed;    /* the value of renamed then */
	__u32 command;
	bool half_seen; /* the wait before its present turn does not count */
};

volatile __u64 queue_lost_groups; /* events of commands beyond the bound */
volatile __u64 queue_lost_pairs;  /* preemptions of pairs beyond the bound */
volatile __u64 queue_lost_tasks;  /* switches to tasks that could not be remembered */

volatile __u32 command_count; /* numbers given away, from 1 on */
volatile __u32 renamed; /* how often a process with several threads changed its name */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_COMMANDS);
	__type(key, struct command);
	__type(value, __u32);
} commands SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_COMMANDS + 1);
	__type(key, __u32);
	__type(value, struct queued);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct pair);
	__type(value, __u64);
} pairs SEC(".maps");

/* The number of a task's command; a new one gets the next. */
static __always_inline __u32 find_command(struct task_struct *t)
{
	struct command n = {.netns = netns_of(t)};
	__u32 *there, next;

	group_name(n.comm, t);
	there = bpf_map_lookup_elem(&commands, &n);
	if (there)
		return *there;
	if (command_count >= MAX_COMMANDS)
		return NO_ROOM;
	next = __sync_fetch_and_add(&command_count, 1) + 1;
	if (next > MAX_COMMANDS)
		return NO_ROOM;
	bpf_map_update_elem(&commands, &n, &next, BPF_NOEXIST); /* may lose to another CPU, which is well */
	there = bpf_map_lookup_elem(&commands, &n);
	return there ? *there : NO_ROOM;
}

/* learn begins with a task: what it did before is not ours to count, but all of
 * a new one is. */
static __always_inline void learn(struct turn *k, struct task_struct *next)
{
	struct task_struct___runqueue *t = (struct task_struct___runqueue *)next;
	bool isnew = next->start_time >= resumed_at;

	k->resumed = resumed_at;
	k->run_delay = 0;
	k->voluntary = t->nvcsw;
	k->involuntary = t->nivcsw;
	k->slept = t->nvcsw - isnew; /* a new one was woken, too */
	k->migrations = t->se.nr_migrations;
	k->half_seen = !isnew; /* its wait may have begun before us */
}

/* arrive counts a task that gets a CPU and returns its command's number. */
static __always_inline __u32 arrive(struct turn *k, struct task_struct *next)
{
	struct task_struct___runqueue *t = (struct task_struct___runqueue *)next;
	__u64 nsproxy = (__u64)untrusted(next)->nsproxy;
	struct queued *g;

	if (k->resumed != resumed_at)
		learn(k, next);
	/* One that ends has given its namespaces up: it stays where it was. */
	if (k->command == NO_COMMAND || k->renamed != renamed || (k->nsproxy != nsproxy && nsproxy)) {
		k->renamed = renamed;
		k->nsproxy = nsproxy;
		k->command = find_command(next);
	}
	g = bpf_map_lookup_elem(&queues, &k->command);
	if (!g) {
		count(&queue_lost_groups);
		return NO_COMMAND;
	}
	g->wakeups += t->nvcsw - k->slept;
	k->slept = t->nvcsw;
	g->migrations += t->se.nr_migrations - k->migrations;
	k->migrations = t->se.nr_migrations;
	return k->command;
}

static __always_inline void count_pair(__u32 victim, __u32 by)
{
	struct pair p = {.victim = victim, .by = by};
	__u64 *n = bpf_map_lookup_elem(&pairs, &p), one = 1;

	if (!n && !bpf_map_update_elem(&pairs, &p, &one, BPF_NOEXIST))
		return;
	n = n ? n : bpf_map_lookup_elem(&pairs, &p);
	count(n ? n : &queue_lost_pairs);
}

/* depart counts the turn on the CPU that ends, with the wait before it. */
static __always_inline void depart(struct turn *k, struct task_struct *prev, __u32 by)
{
	struct task_struct___runqueue *t = (struct task_struct___runqueue *)prev;
	struct queued *g;

	if (k->resumed != resumed_at) /* it was on the CPU before we looked */
		return;
	g = bpf_map_lookup_elem(&queues, &k->command);
	if (!g)
		return;
	__u64 waited = t->sched_info.run_delay - k->run_delay;
	__u64 forced = t->nivcsw - k->involuntary;
	if (!k->half_seen) {
		g->waits++;
		g->wait_ns += waited;
		g->wait[log2_slot(waited, WAIT_SLOTS)]++;
	}
	g->voluntary += t->nvcsw - k->voluntary;
	g->involuntary += forced;
	k->run_delay = t->sched_info.run_delay;
	k->voluntary = t->nvcsw;
	k->involuntary = t->nivcsw;
	k->half_seen = false;
	if (forced && by != NO_COMMAND)
		count_pair(k->command, by);
}

#endif
