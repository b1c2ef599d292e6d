/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * Which timer a thread's work follows from: the one that ended its last sleep, or the one
 * after which it asked the question whose answer it has just read.
 */
#ifndef PLIMSOLL_TIMER_H
#define PLIMSOLL_TIMER_H

#include "turn.h"

#define LARGEST_STACK 65536 /* of a thread in the kernel, on arm64 with large pages */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

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

/* Called when a timer ends, in the interrupt. Whether it is one that ends a thread's sleep
 * is told by where it lies: on the stack of the thread that it names. */
SEC("tp_btf/hrtimer_expire_entry")
int requests_timer(__u64 *ctx)
{
	struct hrtimer_sleeper *sleeper = 0;
	struct task_struct *t = 0;
	void *stack = 0;
	__u64 switches = 0;
	__u32 tid = 0;

	bpf_probe_read_kernel(&sleeper, sizeof(sleeper), ctx); /* as a number: the verifier lets nobody reckon with the other */
	bpf_probe_read_kernel(&t, sizeof(t), &sleeper->task);
	bpf_probe_read_kernel(&stack, sizeof(stack), &((struct task_struct___timer *)t)->stack);
	if ((__u64)sleeper - (__u64)stack >= LARGEST_STACK)
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
