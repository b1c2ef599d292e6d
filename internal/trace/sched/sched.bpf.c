//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * What happens at a switch between two threads, for the tracers of the wait for a
 * CPU (queue.h) and of other waits (blocked.h). It is one program, for being called
 * costs more than what it does for most switches: 0.12 µs on a virtual machine.
 */
#include "plimsoll.h"
#include "reason.h"

#define BPF_MAP_TYPE_PERCPU_ARRAY 6

#define WAIT_SLOTS 26 /* under 1 µs, 2 µs, … 16.8 s, more */
#define NO_ROOM 0xffffffff /* beyond the bound; in no array */

#include "queue.h"
#include "blocked.h"

/* Which of the two are on. Written by user space at any time. */
volatile bool queue_on;
volatile bool blocked_on;

struct thread {
	struct turn turn;
	struct blocked blocked;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

static __always_inline bool has_queue(void)
{
	return queue_on && bpf_core_field_exists(((struct task_struct___runqueue *)0)->sched_info.run_delay);
}

static __always_inline bool has_waits(struct task_struct *t)
{
	return blocked_on && !(t->flags & PF_KTHREAD);
}

SEC("tp_btf/sched_switch")
int sched_switch(__u64 *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1];
	struct task_struct *next = (struct task_struct *)ctx[2];
	bool leaves = prev->pid && wanted(prev->tgid), comes = next->pid && wanted(next->tgid);
	struct thread *known;
	__u32 by = NO_COMMAND;

	if (!leaves && !comes) /* as a load engine of ours and the idle task, in turns */
		return 0;
	__u64 now = bpf_ktime_get_ns();
	if (comes) {
		known = bpf_task_storage_get(&threads, next, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (!known)
			count(&queue_lost_tasks);
		if (known && has_queue())
			by = arrive(&known->turn, next);
		if (known && known->blocked.since)
			known->blocked.ran = now;
	}
	if (!leaves)
		return 0;
	__u32 state = state_of(ctx, prev);
	known = bpf_task_storage_get(&threads, prev, 0, state ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (!known && state)
		count(&blocked_lost_tasks);
	if (known && has_queue())
		depart(&known->turn, prev, by);
	if (known && has_waits(prev))
		leave(&known->blocked, prev, state, now);
	return 0;
}

/* A process goes by its first thread's name; the others remember their command, and
 * have to look again when it changes. */
SEC("tp_btf/task_rename")
int sched_rename(__u64 *ctx)
{
	struct task_struct *t = (struct task_struct *)ctx[0];
	struct thread *known;

	if (t->pid != t->tgid)
		return 0;
	if (((struct signal_struct___threads *)untrusted(t)->signal)->nr_threads > 1)
		__sync_fetch_and_add(&renamed, 1);
	known = bpf_task_storage_get(&threads, t, 0, 0);
	if (known)
		known->turn.nsproxy = 1; /* nobody's */
	return 0;
}

struct bpf_iter__task {
	void *meta;
	struct task_struct *task;
};

/* Looks at the waits that still last. */
SEC("iter/task")
int sched_look(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;

	if (!t || !has_waits(t) || !wanted(t->tgid))
		return 0;
	bool sleeps = asleep(t);
	struct thread *known = bpf_task_storage_get(&threads, t, 0, sleeps ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (known)
		look(&known->blocked, t, sleeps);
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
