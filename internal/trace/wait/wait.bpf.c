//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * How long threads were blocked, by what they waited for and towards whom.
 */
#include "plimsoll.h"
#include "reason.h"

#define WAIT_SLOTS 26 /* under 1 µs, 2 µs, … 16.8 s, more */

struct group_key {
	__u32 netns;
	__u8 comm[TASK_COMM_LEN]; /* of the process, not of the thread */
	__u32 reason;
};

struct group {
	__u64 ns;     /* where there is no target */
	__u64 blocks;
	__u64 other_ns; /* where the target found no room */
	__u64 other_blocks;
	__u64 length[WAIT_SLOTS]; /* of all */
};

struct target_key {
	__u32 netns;
	__u8 comm[TASK_COMM_LEN];
	struct cause cause;
};

struct target {
	__u64 ns;
	__u64 blocks;
};

/* A wait ends at a wake-up. But on Linux 6.18 programs were seen not to run for one
 * event in a thousand, of wake-ups by a timer up to three in a hundred. So we rely on
 * the kernel's own sums: the end is when the thread got its CPU, which its CPU time
 * tells also where it was not seen, less its wait for that. */
struct blocked {
	__u64 since;    /* what was not counted yet; 0 once it was */
	__u64 began;    /* 0 if that was not seen */
	__u64 ran;      /* when it got a CPU again; 0 before */
	__u64 queued;   /* the kernel's sums, when it left its CPU */
	__u64 cpu;
	__u64 switches;
	__u64 resumed;  /* the value of resumed_at then */
	struct cause cause;
};

/* Kept for bpf2go, so that a test can hold their order against Go's. */
const enum reason *unused_reason __attribute__((unused));
const enum call *unused_call __attribute__((unused));
const enum peer *unused_peer __attribute__((unused));

/* Given by the loader, who asks the kernel's BTF: sched_switch has a fourth
 * argument, the state of who leaves, since Linux 5.18. */
const volatile bool has_prev_state = false;

volatile __u64 lost_groups;  /* waits of groups beyond the bound */
volatile __u64 lost_targets; /* waits towards targets beyond the bound */
volatile __u64 lost_tasks;   /* waits of threads that could not be remembered */
volatile __u64 lost_switches; /* waits whose beginning was not seen */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct group_key);
	__type(value, struct group);
} groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 512);
	__type(key, struct target_key);
	__type(value, struct target);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct blocked);
} tasks SEC(".maps");

static __always_inline struct group *group_of(struct target_key *t)
{
	static const struct group nothing;
	struct group_key k = {.netns = t->netns, .reason = t->cause.reason};

	__builtin_memcpy(k.comm, t->comm, sizeof(k.comm));
	struct group *g = bpf_map_lookup_elem(&groups, &k);
	if (g)
		return g;
	bpf_map_update_elem(&groups, &k, &nothing, BPF_NOEXIST);
	g = bpf_map_lookup_elem(&groups, &k);
	if (!g)
		count(&lost_groups);
	return g;
}

static __always_inline struct target *target_of(struct target_key *k)
{
	static const struct target nothing;
	struct target *t = bpf_map_lookup_elem(&targets, k);

	if (t)
		return t;
	bpf_map_update_elem(&targets, k, &nothing, BPF_NOEXIST);
	t = bpf_map_lookup_elem(&targets, k);
	if (!t)
		count(&lost_targets);
	return t;
}

/* add counts a part of a thread's wait; whole is the length of all of it once it
 * has ended, else 0. Atomic, since a wake-up may interrupt the look. */
static __always_inline void add(struct task_struct *t, struct cause *c, __u64 part, __u64 whole)
{
	struct target_key k = {.cause = *c};

	k.netns = netns_of(t);
	group_name(k.comm, t);
	struct group *g = group_of(&k);
	if (!g)
		return;
	__u64 *ns = &g->ns, *blocks = &g->blocks;
	if (c->peer != PEER_NONE) {
		struct target *to = target_of(&k);
		ns = to ? &to->ns : &g->other_ns;
		blocks = to ? &to->blocks : &g->other_blocks;
	}
	__sync_fetch_and_add(ns, part);
	if (!whole)
		return;
	count(blocks);
	count(&g->length[log2_slot(whole, WAIT_SLOTS)]);
}

static __always_inline __u32 state_of(__u64 *ctx, struct task_struct *prev)
{
	if ((bool)ctx[0]) /* preempted */
		return 0;
	return has_prev_state ? (__u32)ctx[3] : prev->__state;
}

/* finish counts a wait whose thread got a CPU at ran. The look may do so as well,
 * on another CPU: who takes since away counts. */
static __always_inline void finish(struct task_struct *t, struct blocked *b, __u64 ran)
{
	__u64 since = b->since, began = b->began;
	__u64 part = ran - since, whole = ran - began, in_queue = queued(t) - b->queued;
	struct cause c = b->cause;

	if (!since || ran < since || __sync_val_compare_and_swap(&b->since, since, 0) != since)
		return;
	if (since <= resumed_at)
		return;
	part = part > in_queue ? part - in_queue : 0;
	whole = whole > in_queue ? whole - in_queue : 1;
	add(t, &c, part, began ? whole : 0);
}

static __always_inline void begin(struct blocked *b, struct task_struct *t, __u32 state, bool current, __u64 now)
{
	struct call_at at = {};
	struct cause c = {};

	why(&c, &at, t, state, current);
	b->cause = c;
	b->queued = queued(t);
	b->cpu = t->se.sum_exec_runtime;
	b->ran = 0;
	b->began = current ? now : 0;
	b->since = now;
}

/* count_unseen counts the waits since the last one that began unseen. */
static __always_inline void count_unseen(struct blocked *b, struct task_struct *t)
{
	__u64 switches = ((struct task_struct___blocked *)t)->nvcsw;

	if (b->resumed == resumed_at && switches > b->switches + 1)
		__sync_fetch_and_add(&lost_switches, switches - b->switches - 1);
	b->switches = switches;
	b->resumed = resumed_at;
}

static __always_inline void leave(__u64 *ctx, struct task_struct *t, __u64 now)
{
	__u32 state = state_of(ctx, t);
	bool blocks = state && !(state & TASK_EXITING) && wanted(t->tgid);
	struct blocked *b = bpf_task_storage_get(&tasks, t, 0, blocks ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);

	if (!b) {
		if (blocks)
			count(&lost_tasks);
		return;
	}
	finish(t, b, arrived(b->ran, now, t->se.sum_exec_runtime - b->cpu));
	b->since = 0;
	if (!blocks)
		return;
	count_unseen(b, t);
	begin(b, t, state, true, now);
}

SEC("tp_btf/sched_switch")
int wait_switch(__u64 *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1];
	struct task_struct *next = (struct task_struct *)ctx[2];
	__u64 now = bpf_ktime_get_ns();

	if (!(prev->flags & PF_KTHREAD))
		leave(ctx, prev, now);
	if (next->flags & PF_KTHREAD)
		return 0;
	struct blocked *b = bpf_task_storage_get(&tasks, next, 0, 0);
	if (b && b->since)
		b->ran = now;
	return 0;
}

struct bpf_iter__task {
	void *meta;
	struct task_struct *task;
};

/* Counts what has passed of the waits that still last, and those of threads that
 * have run ever since. */
SEC("iter/task")
int wait_look(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;

	if (!t || t->flags & PF_KTHREAD || !wanted(t->tgid))
		return 0;
	bool sleeps = asleep(t);
	struct blocked *b = bpf_task_storage_get(&tasks, t, 0, sleeps ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (!b)
		return 0;
	struct cause c = b->cause;
	__u64 now = bpf_ktime_get_ns(), since = b->since;
	if (!sleeps)
		finish(t, b, b->ran);
	else if (since <= resumed_at) /* it slept before we looked */
		begin(b, t, t->__state, false, now);
	else if (now > since && !b->ran && __sync_val_compare_and_swap(&b->since, since, now) == since)
		add(t, &c, now - since, 0);
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
