/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * How long threads were blocked, by what they waited for and towards whom.
 */
#ifndef PLIMSOLL_BLOCKED_H
#define PLIMSOLL_BLOCKED_H

#define MAX_SUMS 1536
#define MAX_TARGETS 512 /* of them, those towards somebody */
#define MAX_STUCK 64
#define LONG_WRITE 1000000000ull /* a reader that takes something now and then does so more often */

/* Whose waits, and what for. */
struct group {
	__u32 netns;
	__u8 comm[TASK_COMM_LEN]; /* of the process, not of the thread */
	struct cause cause;
};

struct sum {
	__u64 ns;
	__u64 blocks;
	__u64 length[WAIT_SLOTS];
};

/* A wait ends at a wake-up. But on Linux 6.18 programs were seen not to run for one
 * event in a thousand, of wake-ups by a timer up to three in a hundred. So we rely on
 * the kernel's own sums: the end is when the thread got its CPU, which its CPU time
 * tells also where it was not seen, less its wait for that. */
struct blocked {
	__u64 since;    /* what was not counted yet; 0 once it was */
	__u64 began;    /* 0 if that was not seen */
	__u64 ran;      /* when it got a CPU again; 0 before */
	__u64 known;    /* when it began, or was first looked at */
	__u64 queued;   /* the kernel's sums, when it left its CPU */
	__u64 cpu;
	__u64 switches;
	__u64 resumed;  /* the value of resumed_at then */
	struct group group;
	__u32 number;   /* of its sum; 0 before the first wait */
	bool no_target; /* it found no room */
};

/* Kept for bpf2go, so that a test can hold their order against Go's. */
const enum reason *unused_reason __attribute__((unused));
const enum call *unused_call __attribute__((unused));
const enum peer *unused_peer __attribute__((unused));

/* Given by the loader, who asks the kernel's BTF: sched_switch has a fourth
 * argument, the state of who leaves, since Linux 5.18. */
const volatile bool has_prev_state = false;

volatile __u64 blocked_lost_groups;  /* waits of groups beyond the bound */
volatile __u64 blocked_lost_targets; /* waits towards targets beyond the bound */
volatile __u64 blocked_lost_tasks;   /* waits of threads that could not be remembered */
volatile __u64 blocked_lost_writers; /* threads in writes to full pipes beyond the bound, at each look */
volatile __u64 blocked_lost_switches; /* waits whose beginning was not seen */

volatile __u32 sum_count;    /* numbers given away, from 1 on */
volatile __u32 target_count; /* of them, those towards somebody */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_SUMS);
	__type(key, struct group);
	__type(value, __u32);
} numbers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_SUMS + 1);
	__type(key, __u32);
	__type(value, struct sum);
} sums SEC(".maps");

/* Whose threads stand in one write to a full pipe for long, by the thread, as of the
 * last look; user space looks who has the other end, and empties it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_STUCK);
	__type(key, __u32);
	__type(value, struct group);
} stuck SEC(".maps");

/* number_of returns the number of a group's sum; a new one gets the next. */
static __always_inline __u32 number_of(struct group *g)
{
	__u32 *there = bpf_map_lookup_elem(&numbers, g), next;

	if (there)
		return *there;
	if (sum_count >= MAX_SUMS)
		return NO_ROOM;
	if (g->cause.peer != PEER_NONE && g->cause.peer != PEER_OTHER &&
	    (target_count >= MAX_TARGETS || __sync_fetch_and_add(&target_count, 1) >= MAX_TARGETS))
		return NO_ROOM;
	next = __sync_fetch_and_add(&sum_count, 1) + 1;
	if (next > MAX_SUMS)
		return NO_ROOM;
	bpf_map_update_elem(&numbers, g, &next, BPF_NOEXIST); /* may lose to another CPU, which is well */
	there = bpf_map_lookup_elem(&numbers, g);
	return there ? *there : NO_ROOM;
}

static __always_inline bool same(struct group *a, struct group *b)
{
	__u32 differ = 0, *x = (__u32 *)a, *y = (__u32 *)b;

#pragma unroll
	for (int i = 0; i < sizeof(*a) / sizeof(*x); i++)
		differ |= x[i] ^ y[i];
	return !differ;
}

/* number_of_other is for a group whose target found no room. */
static __always_inline __u32 number_of_other(struct group *g)
{
	struct group other = {.netns = g->netns, .cause = {.reason = g->cause.reason, .peer = PEER_OTHER}};

	__builtin_memcpy(other.comm, g->comm, sizeof(other.comm));
	return number_of(&other);
}

/* set_group notes whose wait it is and what for. Mostly it is the same as the last
 * time, and then no look-up is needed. */
static __always_inline void set_group(struct blocked *b, struct group *now)
{
	if (!b->number || !same(&b->group, now)) {
		b->group = *now;
		b->number = number_of(now);
		b->no_target = b->number == NO_ROOM && now->cause.peer != PEER_NONE;
		if (b->no_target)
			b->number = number_of_other(now);
	}
	if (b->no_target)
		count(&blocked_lost_targets);
}

/* plus adds to a CPU's own sum. A switch may interrupt the look there, but not the
 * look a switch: so only the look must add in one step. */
static __always_inline void plus(__u64 *sum, __u64 n, bool look)
{
	if (look)
		__sync_fetch_and_add(sum, n);
	else
		*sum += n;
}

/* add counts a part of a thread's wait; whole is the length of all of it once it
 * has ended, else 0. */
static __always_inline void add(__u32 number, __u64 part, __u64 whole, bool look)
{
	struct sum *s = bpf_map_lookup_elem(&sums, &number);

	if (!s) {
		count(&blocked_lost_groups);
		return;
	}
	plus(&s->ns, part, look);
	if (!whole)
		return;
	plus(&s->blocks, 1, look);
	plus(&s->length[log2_slot(whole, WAIT_SLOTS)], 1, look);
}

/* state_of returns in what state a thread leaves its CPU to sleep; 0 if it could run
 * on, or ends. */
static __always_inline __u32 state_of(__u64 *ctx, struct task_struct *prev)
{
	__u32 state = has_prev_state ? (__u32)ctx[3] : prev->__state;
	bool preempted = ctx[0];

	return preempted || state & TASK_EXITING ? 0 : state;
}

/* finish counts a wait whose thread got a CPU at ran. The look may do so as well,
 * on another CPU: who takes since away counts. */
static __always_inline void finish(struct task_struct *t, struct blocked *b, __u64 ran, bool look)
{
	__u64 since = b->since, began = b->began;
	__u64 part = ran - since, whole = ran - began, in_queue = queued(t) - b->queued;
	__u32 number = b->number;

	if (!since || ran < since || __sync_val_compare_and_swap(&b->since, since, 0) != since)
		return;
	if (since <= resumed_at)
		return;
	part = part > in_queue ? part - in_queue : 0;
	whole = whole > in_queue ? whole - in_queue : 1;
	add(number, part, began ? whole : 0, look);
}

static __always_inline void begin(struct blocked *b, struct task_struct *t, __u32 state, bool current, __u64 now)
{
	struct call_at at = {};
	struct group g = {.netns = netns_of(t)};

	group_name(g.comm, t);
	why(&g.cause, &at, t, state, current);
	set_group(b, &g);
	b->queued = queued(t);
	b->cpu = t->se.sum_exec_runtime;
	b->ran = 0;
	b->began = current ? now : 0;
	b->known = now;
	b->since = now;
}

/* count_unseen counts the waits since the last one that began unseen. */
static __always_inline void count_unseen(struct blocked *b, struct task_struct *t)
{
	__u64 switches = ((struct task_struct___blocked *)t)->nvcsw;

	if (b->resumed == resumed_at && switches > b->switches + 1)
		__sync_fetch_and_add(&blocked_lost_switches, switches - b->switches - 1);
	b->switches = switches;
	b->resumed = resumed_at;
}

/* leave is for a thread that leaves its CPU in a state as state_of tells it. */
static __always_inline void leave(struct blocked *b, struct task_struct *t, __u32 state, __u64 now)
{
	finish(t, b, arrived(b->ran, now, t->se.sum_exec_runtime - b->cpu), false);
	b->since = 0;
	if (!state)
		return;
	count_unseen(b, t);
	begin(b, t, state, true, now);
}

/* note_stuck notes who stands in one write to a pipe for long. */
static __always_inline void note_stuck(struct blocked *b, struct task_struct *t, __u64 now)
{
	__u32 tid = t->pid;

	if (b->group.cause.reason == REASON_PIPE_WRITE && now - b->known >= LONG_WRITE &&
	    bpf_map_update_elem(&stuck, &tid, &b->group, 0))
		count(&blocked_lost_writers);
}

/* look counts what has passed of a wait that still lasts, or that of a thread that
 * has run ever since. */
static __always_inline void look(struct blocked *b, struct task_struct *t, bool sleeps)
{
	__u64 now = bpf_ktime_get_ns(), since = b->since;
	__u32 number = b->number;

	if (!sleeps)
		finish(t, b, b->ran, true);
	else if (since <= resumed_at) /* it slept before we looked */
		begin(b, t, t->__state, false, now);
	else if (now > since && !b->ran && __sync_val_compare_and_swap(&b->since, since, now) == since) {
		add(number, now - since, 0, true);
		note_stuck(b, t, now);
	}
}

#endif
