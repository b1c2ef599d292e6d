//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * How long tasks that could run wait for a CPU, and who takes it from whom.
 */
#include "plimsoll.h"

#define WAIT_SLOTS 26 /* under 1 µs, 2 µs, … 16.8 s, more */

struct name {
	__u8 comm[TASK_COMM_LEN]; /* of the process, not of the thread */
};

struct group {
	__u64 waits;
	__u64 wait_ns;
	__u64 voluntary;   /* switches away because there was nothing to do */
	__u64 involuntary; /* switches away although there was */
	__u64 wait[WAIT_SLOTS];
};

struct pair {
	struct name victim;
	struct name by;
};

struct waiting {
	__u64 since; /* nanoseconds; 0 while it runs or sleeps */
};

/* Given by the loader, who asks the kernel's BTF: sched_switch has a fourth
 * argument, the state of who leaves, since Linux 5.18. */
const volatile bool has_prev_state = false;

volatile __u64 lost_groups; /* events of groups beyond the bound */
volatile __u64 lost_pairs;  /* preemptions of pairs beyond the bound */
volatile __u64 lost_tasks;  /* tasks whose wait could not be begun */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 512);
	__type(key, struct name);
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
	__type(value, struct waiting);
} tasks SEC(".maps");

static __always_inline struct group *group_of(struct name *n)
{
	static const struct group nothing;
	struct group *g = bpf_map_lookup_elem(&groups, n);

	if (g)
		return g;
	bpf_map_update_elem(&groups, n, &nothing, BPF_NOEXIST);
	g = bpf_map_lookup_elem(&groups, n);
	if (!g)
		count(&lost_groups);
	return g;
}

/* begin starts a task's wait, unless it waits already. */
static __always_inline void begin(struct task_struct *t, __u64 now, bool anew)
{
	struct waiting *w = bpf_task_storage_get(&tasks, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!w)
		count(&lost_tasks);
	else if (anew || !w->since)
		w->since = now;
}

static __always_inline void end(struct task_struct *t, __u64 now)
{
	struct waiting *w = bpf_task_storage_get(&tasks, t, 0, 0);
	struct name n;

	if (!w || !w->since) /* it was waiting before we looked */
		return;
	__u64 waited = now - w->since;
	w->since = 0;
	if (is_ours(t->tgid))
		return;
	group_name(n.comm, t);
	struct group *g = group_of(&n);
	if (!g)
		return;
	g->waits++;
	g->wait_ns += waited;
	g->wait[log2_slot(waited, WAIT_SLOTS)]++;
}

static __always_inline void count_pair(struct name *victim, struct task_struct *by)
{
	struct pair p = {.victim = *victim};
	__u64 *n, one = 1;

	group_name(p.by.comm, by);
	n = bpf_map_lookup_elem(&pairs, &p);
	if (!n && !bpf_map_update_elem(&pairs, &p, &one, BPF_NOEXIST))
		return;
	n = n ? n : bpf_map_lookup_elem(&pairs, &p);
	count(n ? n : &lost_pairs);
}

/* A wake-up of a task that still runs starts a wait that never was; leaving the
 * CPU always sets it right. */
SEC("tp_btf/sched_wakeup")
int wakeup(__u64 *ctx)
{
	begin((struct task_struct *)ctx[0], bpf_ktime_get_ns(), false);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int wakeup_new(__u64 *ctx)
{
	begin((struct task_struct *)ctx[0], bpf_ktime_get_ns(), true);
	return 0;
}

static __always_inline bool runnable(__u64 *ctx, struct task_struct *prev)
{
	if ((bool)ctx[0]) /* preempted */
		return true;
	if (has_prev_state)
		return (__u32)ctx[3] == 0;
	if (bpf_core_field_exists(prev->__state))
		return prev->__state == 0;
	return ((struct task_struct___old *)prev)->state == 0;
}

static __always_inline void leave(__u64 *ctx, struct task_struct *prev, struct task_struct *next, __u64 now)
{
	bool still = runnable(ctx, prev);
	struct name n;

	if (still) {
		begin(prev, now, true);
	} else {
		struct waiting *w = bpf_task_storage_get(&tasks, prev, 0, 0);
		if (w)
			w->since = 0;
	}
	if (is_ours(prev->tgid))
		return;
	group_name(n.comm, prev);
	struct group *g = group_of(&n);
	if (!g)
		return;
	if (still)
		g->involuntary++;
	else
		g->voluntary++;
	if (still && next->pid)
		count_pair(&n, next);
}

SEC("tp_btf/sched_switch")
int task_switch(__u64 *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1];
	struct task_struct *next = (struct task_struct *)ctx[2];
	__u64 now = bpf_ktime_get_ns();

	if (prev->pid)
		leave(ctx, prev, next, now);
	if (next->pid)
		end(next, now);
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
