//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * Process starts and ends, grouped by the command and its ancestors.
 */
#include "plimsoll.h"

#define ANCESTORS 3
#define LIFETIME_SLOTS 28 /* 1 µs, 2 µs, … 67 s, more */
#define ARGS_LEN 256

/* A group: where it runs, what runs, and the names above it, the parent first. */
struct chain {
	__u32 netns;
	__u8 command[TASK_COMM_LEN];
	__u8 above[ANCESTORS][TASK_COMM_LEN];
};

struct group {
	__u64 execs;
	__u64 forks;
	__u64 forks_only; /* ended without ever having executed anything */
	__u64 ends;
	__u64 reaped; /* of the ended, those whose CPU time is known */
	__u64 cpu_ns;
	__u64 lifetime_ns;
	__u64 lifetime[LIFETIME_SLOTS];
	__u64 sampled; /* an example of its arguments was sent */
};

struct end_key {
	struct chain chain;
	__s32 status; /* as wait(2) gives it */
};

/* The first start of a group, with its arguments. */
struct example {
	struct chain chain;
	__u32 pid;
	__u32 parent_pid;
	__u32 args_len;  /* of args, what is filled */
	__u32 args_more; /* bytes that had no room */
	__u8 args[ARGS_LEN];
};

/* What is remembered of a process from its start until its last task is freed. */
struct process {
	struct chain chain;
	__u64 ended;
	__u64 cpu_ns; /* up to its end, without taking its address space down */
};

/* Given by the loader, who asks the kernel's BTF: sched_process_exit has a second
 * argument, "the whole group is dead", since Linux 6.16. */
const volatile bool has_group_dead = false;

/* What found no room, by what it was. */
volatile __u64 lost_groups;   /* events of groups beyond the bound */
volatile __u64 lost_ends;     /* ends whose exit status found no room */
volatile __u64 lost_examples; /* first starts that were not sent */
volatile __u64 lost_tasks;    /* processes that could not be remembered */
volatile __u64 lost_frees;    /* ended processes whose CPU time lacks its last bit */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct chain);
	__type(value, struct group);
} groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct end_key);
	__type(value, __u64);
} ends SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} examples SEC(".maps");

/* By the address of the leader's task_struct, which is nobody else's before the
 * task is freed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct process);
} processes SEC(".maps");

/* The types that only travel through the ring buffer, kept for bpf2go. */
const struct example *unused_example __attribute__((unused));

static __always_inline void set_chain(struct chain *c, struct task_struct *t)
{
	struct task_struct *up = untrusted(t)->real_parent;

	c->netns = netns_of(t);
	bpf_probe_read_kernel_str(c->command, TASK_COMM_LEN, t->comm);
	for (int i = 0; i < ANCESTORS; i++) {
		if (!up || !up->pid) /* the idle task is above pid 1 */
			break;
		up = up->group_leader;
		bpf_probe_read_kernel_str(c->above[i], TASK_COMM_LEN, up->comm);
		up = up->real_parent;
	}
}

static __always_inline struct group *group_of(struct chain *c)
{
	static const struct group nothing;
	struct group *g = bpf_map_lookup_elem(&groups, c);

	if (g)
		return g;
	bpf_map_update_elem(&groups, c, &nothing, BPF_NOEXIST); /* may lose to another CPU, which is well */
	g = bpf_map_lookup_elem(&groups, c);
	if (!g)
		count(&lost_groups);
	return g;
}

/* remember notes the chain of a process as it stands now. */
static __always_inline struct process *remember(struct task_struct *leader)
{
	__u64 key = (__u64)leader;
	struct process now = {};

	set_chain(&now.chain, leader);
	bpf_map_update_elem(&processes, &key, &now, 0);
	struct process *p = bpf_map_lookup_elem(&processes, &key);
	if (!p)
		count(&lost_tasks);
	return p;
}

static __always_inline void reap(struct process *p, __u64 cpu_ns)
{
	struct chain c = p->chain;
	struct group *g = bpf_map_lookup_elem(&groups, &c);

	if (!g)
		return;
	count(&g->reaped);
	__sync_fetch_and_add(&g->cpu_ns, cpu_ns);
}

SEC("tp_btf/sched_process_fork")
int process_fork(__u64 *ctx)
{
	struct task_struct *child = (struct task_struct *)ctx[1];

	/* On Linux 6.18 our program on sched_process_free was seen not to run for up to
	 * one process in a hundred, for a reason not known yet (no look-up failed, no
	 * recursion was counted). Then its task_struct comes back as another's: if that
	 * is a thread of some other process, its end would be taken for this one's. */
	__u64 key = (__u64)child;
	struct process *p = bpf_map_lookup_elem(&processes, &key);
	if (p && p->ended) {
		count(&lost_frees);
		reap(p, p->cpu_ns);
	}
	if (child->pid != child->tgid || is_ours(child->tgid)) { /* a thread */
		if (p)
			bpf_map_delete_elem(&processes, &key);
		return 0;
	}
	p = remember(child);
	if (!p)
		return 0;
	struct chain c = p->chain;
	struct group *g = group_of(&c);
	if (g)
		count(&g->forks);
	return 0;
}

static __always_inline void send_example(struct chain *c, struct task_struct *t, struct group *g)
{
	struct example *e = bpf_ringbuf_reserve(&examples, sizeof(*e), 0);

	if (!e) {
		count(&lost_examples);
		return;
	}
	g->sampled = 1;
	e->chain = *c;
	e->pid = t->tgid;
	e->parent_pid = untrusted(t)->real_parent->tgid;
	e->args_len = 0;
	e->args_more = 0;
	struct mm_struct *mm = untrusted(t)->mm;
	if (mm) {
		__u64 start = mm->arg_start, len = mm->arg_end - start;
		if (len > ARGS_LEN) {
			e->args_more = len - ARGS_LEN;
			len = ARGS_LEN;
		}
		if (!bpf_probe_read_user(e->args, (__u32)len, (void *)start))
			e->args_len = len;
	}
	bpf_ringbuf_submit(e, 0);
}

SEC("tp_btf/sched_process_exec")
int process_exec(__u64 *ctx)
{
	struct task_struct *t = (struct task_struct *)ctx[0];

	if (is_ours(t->tgid))
		return 0;
	struct process *p = remember(t);
	if (!p)
		return 0;
	struct chain c = p->chain;
	struct group *g = group_of(&c);
	if (!g)
		return 0;
	count(&g->execs);
	if (!g->sampled)
		send_example(&c, t, g);
	return 0;
}

static __always_inline void count_end(struct chain *c, struct task_struct *leader)
{
	struct end_key key = {};
	struct signal_struct *s = untrusted(leader)->signal;
	__u64 *n, one = 1;

	key.chain = *c;
	key.status = s->flags & SIGNAL_GROUP_EXIT ? s->group_exit_code : leader->exit_code;
	n = bpf_map_lookup_elem(&ends, &key);
	if (!n && !bpf_map_update_elem(&ends, &key, &one, BPF_NOEXIST))
		return;
	n = n ? n : bpf_map_lookup_elem(&ends, &key);
	count(n ? n : &lost_ends);
}

SEC("tp_btf/sched_process_exit")
int process_exit(__u64 *ctx)
{
	struct task_struct *t = untrusted((struct task_struct *)ctx[0]);
	struct task_struct *leader = t->group_leader;

	if (has_group_dead ? !(bool)ctx[1] : t->signal->live.counter != 0)
		return 0;
	if (is_ours(t->tgid))
		return 0;
	__u64 at = (__u64)leader;
	struct process *p = bpf_map_lookup_elem(&processes, &at);
	if (!p)
		p = remember(leader); /* it was there before us */
	if (!p)
		return 0;
	if (__sync_lock_test_and_set(&p->ended, 1)) /* two last threads, without group_dead */
		return 0;
	p->cpu_ns = t->signal->sum_sched_runtime + t->se.sum_exec_runtime;
	if (t != leader) /* which ended before, and is summed up last */
		p->cpu_ns += leader->se.sum_exec_runtime;
	struct chain c = p->chain;
	count_end(&c, leader);
	struct group *g = group_of(&c);
	if (!g)
		return 0;
	__u64 lived = bpf_ktime_get_ns() - leader->start_time;
	count(&g->ends);
	if (leader->flags & PF_FORKNOEXEC)
		count(&g->forks_only);
	__sync_fetch_and_add(&g->lifetime_ns, lived);
	count(&g->lifetime[log2_slot(lived, LIFETIME_SLOTS)]);
	return 0;
}

/* Only when the last task of a process is freed is all its CPU time summed up:
 * that of all threads, and of taking the address space down. */
SEC("tp_btf/sched_process_free")
int process_free(__u64 *ctx)
{
	struct task_struct *t = untrusted((struct task_struct *)ctx[0]);
	__u64 key = (__u64)t;
	struct process *p = bpf_map_lookup_elem(&processes, &key);

	if (!p) /* a thread */
		return 0;
	if (p->ended)
		reap(p, t->signal->sum_sched_runtime);
	bpf_map_delete_elem(&processes, &key);
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
