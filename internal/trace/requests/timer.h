/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * Which timer a thread's work follows from: the one that ended its last sleep, or the one
 * after which it asked the question whose answer it has just read.
 */
#ifndef PLIMSOLL_TIMER_H
#define PLIMSOLL_TIMER_H

#include "turn.h"

#define LARGEST_STACK 65536 /* of a thread in the kernel, on arm64 with large pages */
#define SLEEPS 3 /* TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE: gone to sleep, and not woken yet */

static long (*bpf_kallsyms_lookup_name)(const char *name, int size, int flags, __u64 *address) = (void *)179;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hrtimer {
	int (*function)(struct hrtimer *);
};

/* What every call that sleeps until a time has on its stack: nanosleep, futex, poll, select,
 * epoll and the like. */
struct hrtimer_sleeper {
	struct task_struct *task;
};

struct task_struct___timer {
	void *stack;
	unsigned long nvcsw;
};

#pragma clang attribute pop

/* Until the thread sleeps again, which its voluntary switches tell, what it does follows
 * from the timer that ended then. */
struct follows {
	__u64 at;
	__u64 switches;
	__u32 tid;
	__u32 then;
};

/* By the thread, a part of its number: two that share a place do little harm. */
volatile struct follows followed_timer[4096];

static __always_inline volatile struct follows *follows_of(__u32 tid)
{
	return &followed_timer[tid & 4095];
}

/* timer_before is when the timer ended from which follows what this thread does; 0 if it
 * does not follow from one. */
static __always_inline __u64 timer_before(void)
{
	struct task_struct *t = bpf_get_current_task_btf();
	volatile struct follows *f = follows_of(t->pid);

	return f->tid == t->pid && f->switches == ((struct task_struct___timer *)t)->nvcsw ? f->at : 0;
}

/* follow_answer lets what this thread does follow from the timer that had ended before it asked
 * for what it reads now, or from none. */
static __always_inline void follow_answer(__u64 at)
{
	struct task_struct *t = bpf_get_current_task_btf();
	volatile struct follows *f = follows_of(t->pid);

	f->at = at;
	f->switches = ((struct task_struct___timer *)t)->nvcsw;
	f->then = ASKED_ON;
	f->tid = t->pid;
}

/* What ends such a sleep, hrtimer_wakeup; 0 where the kernel does not tell its address, as
 * before Linux 5.16. */
volatile __u64 wakeup_at;

/* Attached to nothing: user space runs it once. */
SEC("syscall")
int requests_wakeup(void *ctx)
{
	static const char name[] = "hrtimer_wakeup";
	__u64 at = 0;

	bpf_kallsyms_lookup_name(name, sizeof(name), 0, &at);
	wakeup_at = at;
	return 0;
}

/* sleeps says whether a thread has gone to sleep and nobody has woken it: one that only waits
 * for a CPU was woken by something else than the timer that ends now. */
static __always_inline bool sleeps(struct task_struct *t)
{
	unsigned int state = 0;

	if (bpf_core_field_exists(t->__state))
		bpf_probe_read_kernel(&state, sizeof(state), &t->__state);
	else
		bpf_probe_read_kernel(&state, sizeof(state), &((struct task_struct___old *)t)->state);
	return state & SLEEPS;
}

/* Called when a timer ends, in the interrupt. Whether it is one that ends a thread's sleep
 * is told by its function, and by where it lies: on the stack of the thread that it names. */
SEC("tp_btf/hrtimer_expire_entry")
int requests_timer(__u64 *ctx)
{
	struct hrtimer_sleeper *sleeper = 0;
	struct task_struct *t = 0;
	void *stack = 0;
	__u64 switches = 0;
	__u32 tid = 0;

	count_call();
	if (wakeup_at && (__u64)((struct hrtimer *)ctx[0])->function != wakeup_at)
		return 0;
	bpf_probe_read_kernel(&sleeper, sizeof(sleeper), ctx); /* as a number: the verifier lets nobody reckon with the other */
	bpf_probe_read_kernel(&t, sizeof(t), &sleeper->task);
	bpf_probe_read_kernel(&stack, sizeof(stack), &((struct task_struct___timer *)t)->stack);
	if ((__u64)sleeper - (__u64)stack >= LARGEST_STACK || !sleeps(t))
		return 0;
	bpf_probe_read_kernel(&tid, sizeof(tid), &t->pid);
	bpf_probe_read_kernel(&switches, sizeof(switches), &((struct task_struct___timer *)t)->nvcsw);
	volatile struct follows *f = follows_of(tid);
	f->at = bpf_ktime_get_ns();
	f->switches = switches;
	f->then = REPLIED;
	f->tid = tid;
	return 0;
}

#endif
