/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * The task that runs: its group's name, and whether its system call is a 32-bit one.
 */
#ifndef PLIMSOLL_CURRENT_H
#define PLIMSOLL_CURRENT_H

#include "plimsoll.h"

#define X86_TS_COMPAT 0x0002
#define X86_X32_SYSCALL_BIT 0x40000000
#define ARM64_TIF_32BIT (1UL << 22)

static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* What tells a 32-bit call from a 64-bit one lies in different places. Only x86 has
 * a status here. */
struct thread_info___current {
	unsigned long flags;
	__u32 status;
};

struct task_struct___current {
	struct thread_info___current thread_info;
};

#pragma clang attribute pop

static __always_inline bool is_32bit(struct task_struct *t, __u32 nr)
{
	struct task_struct___current *c = (struct task_struct___current *)t;

	if (bpf_core_field_exists(c->thread_info.status))
		return c->thread_info.status & X86_TS_COMPAT || nr & X86_X32_SYSCALL_BIT;
	return c->thread_info.flags & ARM64_TIF_32BIT;
}

struct name {
	__u8 comm[TASK_COMM_LEN];
};

/* The group of the task that runs. It is not inline, so that the verifier looks at
 * what follows once, and not anew for every place where a name may be cut. */
SEPARATE int current_group(struct name *into)
{
	if (into)
		group_name(into->comm, bpf_get_current_task_btf());
	return 0;
}

#endif
