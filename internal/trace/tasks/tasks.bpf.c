//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * Every thread there is, a row each: its state, its switches, and of one that
 * sleeps uninterruptibly the kernel's stack.
 */
#include "plimsoll.h"

#define FRAMES 24

#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_NOLOAD 0x400

struct seq_file;
struct pt_regs;

static long (*bpf_seq_write)(struct seq_file *m, const void *data, __u32 len) = (void *)127;
static long (*bpf_get_task_stack)(struct task_struct *task, void *buf, __u32 size, __u64 flags) = (void *)141;
static struct pt_regs *(*bpf_task_pt_regs)(struct task_struct *task) = (void *)175;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct task_struct___tasks {
	unsigned int exit_state;
	unsigned long nvcsw;
	unsigned long nivcsw;
	__u8 on_cpu; /* an int before Linux 7.2, of which this is the lowest byte; missing from kernels for one CPU only */
};

struct signal_struct___tasks {
	int nr_threads;
};

/* The number of the system call that a thread is in; each architecture keeps
 * it under a name of its own, -1 when there is none. */
struct pt_regs___amd64 {
	unsigned long orig_ax;
};

struct pt_regs___arm64 {
	__s32 syscallno;
};

#pragma clang attribute pop

struct row {
	__u64 start; /* CLOCK_MONOTONIC; with tid it names a thread for good */
	__u64 ran; /* nanoseconds on a CPU */
	__u64 voluntary;
	__u64 forced;
	__u32 tid;
	__u32 tgid;
	__u32 parent; /* the parent's tgid */
	__u32 netns;  /* 0 of a thread that has ended */
	__u32 state;
	__u32 exit_state;
	__s32 syscall;
	__u32 frames; /* so many addresses follow this row */
	__u8 comm[TASK_COMM_LEN];
	__u8 group[TASK_COMM_LEN];
	__u32 threads; /* of its process */
	__u32 kernel;
};

const struct row *unused_row __attribute__((unused));

/* Sleeping uninterruptibly, and not as kernel threads do that have no work. */
static __always_inline bool blocked(__u32 state)
{
	return (state & TASK_UNINTERRUPTIBLE) && !(state & TASK_NOLOAD);
}

/* Whether a task that slept when its switches were counted has run meanwhile:
 * then its stack tells nothing. */
static __always_inline bool has_run(struct task_struct *t, __u64 voluntary)
{
	struct task_struct___tasks *more = (struct task_struct___tasks *)t;

	if (bpf_core_field_exists(more->on_cpu) && more->on_cpu)
		return true;
	return more->nvcsw != voluntary;
}

static __always_inline __s32 syscall_of(struct task_struct *t)
{
	struct pt_regs *regs = bpf_task_pt_regs(t);

	if (!regs)
		return -1;
	if (bpf_core_field_exists(((struct pt_regs___amd64 *)0)->orig_ax))
		return (__s32)((struct pt_regs___amd64 *)regs)->orig_ax;
	if (bpf_core_field_exists(((struct pt_regs___arm64 *)0)->syscallno))
		return ((struct pt_regs___arm64 *)regs)->syscallno;
	return -1;
}

static __always_inline void describe(struct row *r, struct task_struct *t)
{
	struct task_struct___tasks *more = (struct task_struct___tasks *)t;

	r->start = t->start_time;
	r->ran = t->se.sum_exec_runtime;
	r->voluntary = more->nvcsw;
	r->forced = more->nivcsw;
	r->tid = t->pid;
	r->tgid = t->tgid;
	r->parent = untrusted(t)->real_parent->tgid;
	r->netns = netns_of(t);
	r->state = t->__state;
	r->exit_state = more->exit_state;
	r->syscall = -1;
	r->kernel = !!(t->flags & PF_KTHREAD);
	r->threads = ((struct signal_struct___tasks *)untrusted(t)->signal)->nr_threads;
	bpf_probe_read_kernel(r->comm, TASK_COMM_LEN, t->comm);
	group_name(r->group, t);
}

SEC("iter/task")
int each_task(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *t = ctx->task;
	struct row r = {};
	__u64 stack[FRAMES];
	long bytes = 0;

	if (!t || !wanted(t->tgid))
		return 0;
	describe(&r, t);
	if (blocked(r.state)) {
		bytes = bpf_get_task_stack(t, stack, sizeof(stack), 0);
		if (bytes < 0 || bytes > sizeof(stack) || has_run(t, r.voluntary))
			bytes = 0;
		if (!r.kernel)
			r.syscall = syscall_of(t);
	}
	r.frames = bytes / sizeof(stack[0]);
	bpf_seq_write(seq, &r, sizeof(r));
	if (bytes > 0)
		bpf_seq_write(seq, stack, bytes);
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
