//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * How long tasks that could run wait for a CPU, who takes it from whom, and how
 * often they are woken and moved.
 *
 * One program, at every switch, and it must be cheap. The kernel itself adds up
 * how long each task waited (sched_info.run_delay), and how often it switched and
 * moved; so it is enough to compare these sums, without a look at the clock or at
 * the wake-ups. Of each task its group's number is remembered, so that no name is
 * copied or looked up.
 */
#include "plimsoll.h"

#define BPF_MAP_TYPE_PERCPU_ARRAY 6

#define WAIT_SLOTS 26 /* under 1 µs, 2 µs, … 16.8 s, more */
#define MAX_GROUPS 512
#define NO_GROUP 0
#define NO_ROOM 0xffffffff /* beyond the bound; in no array */

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

struct name {
	__u32 netns;
	__u8 comm[TASK_COMM_LEN]; /* of the process, not of the thread */
};

struct group {
	__u64 waits;
	__u64 wait_ns;
	__u64 voluntary;   /* switches away because there was nothing to do */
	__u64 involuntary; /* switches away although there was */
	__u64 wakeups;
	__u64 migrations;
	__u64 wait[WAIT_SLOTS];
};

struct pair {
	__u32 victim; /* numbers of groups */
	__u32 by;
};

/* What is remembered of a task: the kernel's sums as of when it left its CPU.
 * Only differences of them count, and no events: on Linux 6.18 a program was seen
 * not to run for one switch in a thousand, and so the next one makes up for it. */
struct known {
	__u64 resumed; /* the value of resumed_at then; of another one the rest is stale */
	__u64 run_delay;
	__u64 voluntary;
	__u64 involuntary;
	__u64 slept;      /* voluntary and */
	__u64 migrations; /* as of when it got its CPU */
	__u64 nsproxy;    /* from which its group was found */
	__u32 renamed;    /* the value of renamed then */
	__u32 group;
	bool half_seen; /* the wait before its present turn does not count */
};

volatile __u64 lost_groups; /* events of groups beyond the bound */
volatile __u64 lost_pairs;  /* preemptions of pairs beyond the bound */
volatile __u64 lost_tasks;  /* switches to tasks that could not be remembered */

volatile __u32 group_count; /* numbers given away, from 1 on */
volatile __u32 renamed; /* how often a process with several threads changed its name */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_GROUPS);
	__type(key, struct name);
	__type(value, __u32);
} names SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_GROUPS + 1);
	__type(key, __u32);
	__type(value, struct group);
} groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct pair);
	__type(value, __u64);
} pairs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct known);
} tasks SEC(".maps");

/* The number of a task's group; a new one gets the next. */
static __always_inline __u32 find_group(struct task_struct *t)
{
	struct name n = {.netns = netns_of(t)};
	__u32 *there, next;

	group_name(n.comm, t);
	there = bpf_map_lookup_elem(&names, &n);
	if (there)
		return *there;
	if (group_count >= MAX_GROUPS)
		return NO_ROOM;
	next = __sync_fetch_and_add(&group_count, 1) + 1;
	if (next > MAX_GROUPS)
		return NO_ROOM;
	bpf_map_update_elem(&names, &n, &next, BPF_NOEXIST); /* may lose to another CPU, which is well */
	there = bpf_map_lookup_elem(&names, &n);
	return there ? *there : NO_ROOM;
}

/* learn begins with a task: what it did before is not ours to count, but all of
 * a new one is. */
static __always_inline void learn(struct known *k, struct task_struct *next)
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

/* arrive counts a task that gets a CPU and returns its group's number. */
static __always_inline __u32 arrive(struct task_struct *next)
{
	struct task_struct___runqueue *t = (struct task_struct___runqueue *)next;
	__u64 nsproxy = (__u64)next->nsproxy;
	struct known *k;
	struct group *g;

	if (!wanted(next->tgid))
		return NO_GROUP;
	k = bpf_task_storage_get(&tasks, next, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!k) {
		count(&lost_tasks);
		return NO_GROUP;
	}
	if (k->resumed != resumed_at)
		learn(k, next);
	/* One that ends has given its namespaces up: it stays where it was. */
	if (k->group == NO_GROUP || k->renamed != renamed || (k->nsproxy != nsproxy && nsproxy)) {
		k->renamed = renamed;
		k->nsproxy = nsproxy;
		k->group = find_group(next);
	}
	g = bpf_map_lookup_elem(&groups, &k->group);
	if (!g) {
		count(&lost_groups);
		return NO_GROUP;
	}
	g->wakeups += t->nvcsw - k->slept;
	k->slept = t->nvcsw;
	g->migrations += t->se.nr_migrations - k->migrations;
	k->migrations = t->se.nr_migrations;
	return k->group;
}

static __always_inline void count_pair(__u32 victim, __u32 by)
{
	struct pair p = {.victim = victim, .by = by};
	__u64 *n = bpf_map_lookup_elem(&pairs, &p), one = 1;

	if (!n && !bpf_map_update_elem(&pairs, &p, &one, BPF_NOEXIST))
		return;
	n = n ? n : bpf_map_lookup_elem(&pairs, &p);
	count(n ? n : &lost_pairs);
}

/* leave counts the turn on the CPU that ends, with the wait before it. */
static __always_inline void leave(struct task_struct *prev, __u32 by)
{
	struct task_struct___runqueue *t = (struct task_struct___runqueue *)prev;
	struct known *k;
	struct group *g;

	if (!wanted(prev->tgid))
		return;
	k = bpf_task_storage_get(&tasks, prev, 0, 0);
	if (!k || k->resumed != resumed_at) /* it was on the CPU before we looked */
		return;
	g = bpf_map_lookup_elem(&groups, &k->group);
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
	if (forced && by != NO_GROUP)
		count_pair(k->group, by);
}

SEC("tp_btf/sched_switch")
int rq_switch(__u64 *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1];
	struct task_struct *next = (struct task_struct *)ctx[2];
	__u32 by = NO_GROUP;

	if (next->pid) /* not the idle task */
		by = arrive(next);
	if (prev->pid)
		leave(prev, by);
	return 0;
}

/* A process goes by its first thread's name; the others remember their group, and
 * have to look again when it changes. */
SEC("tp_btf/task_rename")
int rq_rename(__u64 *ctx)
{
	struct task_struct *t = (struct task_struct *)ctx[0];
	struct known *k;

	if (t != t->group_leader)
		return 0;
	if (((struct signal_struct___threads *)t->signal)->nr_threads > 1)
		__sync_fetch_and_add(&renamed, 1);
	k = bpf_task_storage_get(&tasks, t, 0, 0);
	if (k)
		k->nsproxy = 1; /* nobody's */
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
