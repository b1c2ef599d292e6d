//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * System calls by process: how many, how long, how they failed.
 */
#include "current.h"

#define TIME_SLOTS 26 /* under 1 µs, 2 µs, … 16.8 s, more */
#define MAX_ERRNO 4095

struct call {
	__u32 netns;
	__u32 nr;
	__u8 comm[TASK_COMM_LEN]; /* of the process, not of the thread */
};

struct calls {
	__u64 count;
	__u64 ns;
	__u64 time[TIME_SLOTS];
};

struct failure {
	struct call call;
	__u32 error;
};

/* The call that a thread is in. */
struct entered {
	__u64 at; /* nanoseconds; 0 outside */
	__u32 nr;
};

/* Given by the loader, as it differs between architectures: what this call returns
 * is no result but a register of what was interrupted. */
const volatile __u32 rt_sigreturn = 0;

volatile __u64 lost_calls;  /* calls of pairs of process and call beyond the bound */
volatile __u64 lost_errors; /* failures of kinds beyond the bound */
volatile __u64 lost_tasks;  /* calls whose begin could not be remembered */
volatile __u64 lost_compat; /* calls of 32-bit programs, whose numbers mean others */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 2048);
	__type(key, struct call);
	__type(value, struct calls);
} pairs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct failure);
	__type(value, __u64);
} failures SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct entered);
} tasks SEC(".maps");

SEC("tp_btf/sys_enter")
int call_enter(__u64 *ctx)
{
	struct task_struct *t = bpf_get_current_task_btf();

	if (!wanted(t->tgid))
		return 0;
	__u32 nr = ctx[1];
	if (is_32bit(t, nr)) {
		count(&lost_compat);
		return 0;
	}
	struct entered *e = bpf_task_storage_get(&tasks, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!e) {
		count(&lost_tasks);
		return 0;
	}
	e->nr = nr;
	e->at = bpf_ktime_get_ns();
	return 0;
}

static __always_inline struct calls *calls_of(struct call *c)
{
	static const struct calls nothing;
	struct calls *found = bpf_map_lookup_elem(&pairs, c);

	if (found)
		return found;
	bpf_map_update_elem(&pairs, c, &nothing, BPF_NOEXIST);
	found = bpf_map_lookup_elem(&pairs, c);
	if (!found)
		count(&lost_calls);
	return found;
}

static __always_inline void count_failure(struct call *c, __u32 error)
{
	static const __u64 nothing;
	struct failure f = {.call = *c, .error = error};
	__u64 *n = bpf_map_lookup_elem(&failures, &f);

	if (!n) {
		bpf_map_update_elem(&failures, &f, &nothing, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&failures, &f);
	}
	if (n)
		(*n)++;
	else
		count(&lost_errors);
}

SEC("tp_btf/sys_exit")
int call_exit(__u64 *ctx)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct entered *e = bpf_task_storage_get(&tasks, t, 0, 0);

	if (!e || !e->at) /* not wanted, or it was in the call before we looked */
		return 0;
	__u64 at = e->at, now = bpf_ktime_get_ns(); /* before our own work */
	__s64 result = ctx[1];
	struct call c = {.netns = netns_of(t), .nr = e->nr};
	e->at = 0;
	if (at < resumed_at)
		return 0;
	current_group((struct name *)c.comm);
	struct calls *sum = calls_of(&c);
	if (!sum)
		return 0;
	__u64 took = now - at;
	sum->count++;
	sum->ns += took;
	sum->time[log2_slot(took, TIME_SLOTS)]++;
	if (result < 0 && result >= -MAX_ERRNO && c.nr != rt_sigreturn)
		count_failure(&c, -result);
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
