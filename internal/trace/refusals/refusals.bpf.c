//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * System calls that the kernel refused because something had run out or was taken.
 */
#include "current.h"

#define MAX_ERRNO 4095
#define EAGAIN 11

struct refusal {
	__u32 netns;
	__u32 nr;
	__u32 error;
	__u8 comm[TASK_COMM_LEN]; /* of the process, not of the thread */
};

/* Given by the loader, as numbers of calls differ between architectures: calls that
 * say EAGAIN when there is no room (and not, as others do, when there is nothing yet),
 * and the one that returns no result but a register of what was interrupted. */
const volatile __u32 creating[16] = {};
const volatile __u32 rt_sigreturn = 0;

volatile __u64 lost_refusals; /* of kinds beyond the bound */
volatile __u64 lost_compat;   /* of 32-bit programs, whose numbers mean other calls */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct refusal);
	__type(value, __u64);
} refusals SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Where the number of a call is, on x86 and on arm64. */
struct pt_regs___x86 {
	unsigned long orig_ax;
};

struct pt_regs___arm64 {
	__s32 syscallno;
};

#pragma clang attribute pop

static __always_inline __u32 call_of(void *regs)
{
	struct pt_regs___x86 *x86 = regs;
	struct pt_regs___arm64 *arm64 = regs;

	if (bpf_core_field_exists(x86->orig_ax))
		return x86->orig_ax;
	return arm64->syscallno;
}

/* Numbers of errors are those of asm-generic, which x86 and arm64 share. */
static __always_inline bool has_run_out(__u32 error)
{
	switch (error) {
	case 12:  /* ENOMEM */
	case 23:  /* ENFILE */
	case 24:  /* EMFILE */
	case 28:  /* ENOSPC */
	case 30:  /* EROFS */
	case 37:  /* ENOLCK */
	case 98:  /* EADDRINUSE */
	case 99:  /* EADDRNOTAVAIL */
	case 105: /* ENOBUFS */
	case 122: /* EDQUOT */
		return true;
	}
	return false;
}

static __always_inline bool creates(__u32 nr)
{
#pragma unroll
	for (int i = 0; i < 16; i++)
		if (creating[i] == nr)
			return true;
	return false;
}

SEC("tp_btf/sys_exit")
int call_refused(__u64 *ctx)
{
	static const __u64 nothing;
	__s64 result = ctx[1];

	if (result >= 0 || result < -MAX_ERRNO) /* nearly all */
		return 0;
	struct refusal r = {.error = -result};
	if (!has_run_out(r.error) && r.error != EAGAIN)
		return 0;
	struct task_struct *t = bpf_get_current_task_btf();
	if (!wanted(t->tgid))
		return 0;
	r.nr = call_of((void *)ctx[0]);
	if (is_32bit(t, r.nr)) {
		count(&lost_compat);
		return 0;
	}
	if (r.nr == rt_sigreturn || (r.error == EAGAIN && !creates(r.nr)))
		return 0;
	r.netns = netns_of(t);
	current_group((struct name *)r.comm);
	__u64 *n = bpf_map_lookup_elem(&refusals, &r);
	if (!n) {
		bpf_map_update_elem(&refusals, &r, &nothing, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&refusals, &r);
	}
	if (n)
		(*n)++;
	else
		count(&lost_refusals);
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
