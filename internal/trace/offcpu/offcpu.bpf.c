//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * How long threads were blocked, with the stacks that they slept on, and who
 * woke them.
 */
#include "plimsoll.h"
#include "reason.h"

#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_F_USER_STACK 256
#define MAX_FRAMES 64

struct wait_key {
	__u32 netns;
	__u32 tgid;
	__u64 kernel; /* stacks, by their hashes; 0 if there is none */
	__u64 user;
	__u32 reason;
	__u32 unused;
	__u8 comm[TASK_COMM_LEN];  /* of the process, not of the thread */
	__u8 waker[TASK_COMM_LEN]; /* a process, or interrupt; empty while it is still asleep */
};

struct wait {
	__u64 ns;
	__u64 waits;
};

/* A futex word, as the process sees it. */
struct lock_key {
	__u64 address;
	__u32 tgid;
	__u32 unused;
};

/* A wait that still lasts. */
struct lasting {
	struct wait_key key;
	__u64 ns;
};

/* How a wait's end is found stands in the wait tracer, for a program on the wake-up
 * is not reliable enough. */
struct blocked {
	__u64 since;  /* 0 once it was counted */
	__u64 ran;    /* when it got a CPU again; 0 before */
	__u64 queued; /* the kernel's sums, when it left its CPU */
	__u64 cpu;
	__u64 lock;   /* the futex that it waits for */
	__u64 kernel;
	__u64 user;
	__u32 reason;
	__u32 unused;
	__u8 waker[TASK_COMM_LEN];
	__u8 early[TASK_COMM_LEN]; /* who woke it before it had left its CPU */
};

/* Given by the loader, who asks the kernel's BTF: sched_switch has a fourth
 * argument, the state of who leaves, since Linux 5.18. */
const volatile bool has_prev_state = false;

/* What lasts shorter is left out. Given by the loader. */
const volatile __u64 shortest_ns = 0;

volatile __u64 lost_waits;  /* waits of stacks and wakers beyond the bound */
volatile __u64 lost_stacks; /* waits whose stack found no room */
volatile __u64 lost_tasks;  /* waits of threads that could not be remembered */
volatile __u64 lost_locks;  /* waits for locks beyond the bound */

/* The type that only travels through the iterator, kept for bpf2go. */
const struct lasting *unused_lasting __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct wait_key);
	__type(value, struct wait);
} waits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct lock_key);
	__type(value, struct wait);
} locks SEC(".maps");

struct frames {
	__u64 at[MAX_FRAMES];
};

/* Not BPF_MAP_TYPE_STACK_TRACE, where a stack has one place only, which another may
 * have taken: then it would be missing for good. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct frames);
} kernel_stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, struct frames);
} user_stacks SEC(".maps");

/* Where a stack is looked at. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct frames);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct blocked);
} tasks SEC(".maps");

static long (*bpf_get_stack)(void *ctx, void *buf, __u32 size, __u64 flags) = (void *)67;
static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;
static long (*bpf_seq_write)(void *seq, const void *data, __u32 len) = (void *)127;

/* The functions through which interrupts come in; 0 where the kernel's addresses
 * are hidden. */
extern void __irqentry_text_start __attribute__((section(".ksyms"), weak));
extern void __irqentry_text_end __attribute__((section(".ksyms"), weak));

/* stack_of keeps a stack of the current task, and returns its hash. */
static __always_inline __u64 stack_of(void *ctx, void *stacks, __u64 flags)
{
	__u64 hash = 14695981039346656037ULL; /* as FNV-1a, but word by word */
	__u32 zero = 0;
	struct frames *f = bpf_map_lookup_elem(&scratch, &zero);

	if (!f)
		return 0;
	long bytes = bpf_get_stack(ctx, f, sizeof(*f), flags); /* the rest becomes 0 */
	if (bytes <= 0)
		return 0;
	for (int i = 0; i < MAX_FRAMES; i++) {
		if (i * (long)sizeof(f->at[0]) >= bytes)
			break;
		hash = (hash ^ f->at[i]) * 1099511628211ULL;
		hash ^= hash >> 32;
	}
	if (bpf_map_lookup_elem(stacks, &hash))
		return hash;
	bpf_map_update_elem(stacks, &hash, f, BPF_NOEXIST);
	if (bpf_map_lookup_elem(stacks, &hash))
		return hash;
	count(&lost_stacks);
	return 0;
}

static __always_inline void add(struct wait *w, __u64 ns)
{
	__sync_fetch_and_add(&w->ns, ns);
	count(&w->waits);
}

static __always_inline void key_of(struct wait_key *k, struct blocked *b, struct task_struct *t)
{
	k->netns = netns_of(t);
	k->tgid = t->tgid;
	k->kernel = b->kernel;
	k->user = b->user;
	k->reason = b->reason;
	group_name(k->comm, t);
}

static __always_inline void add_wait(struct wait_key *k, __u64 ns)
{
	static const struct wait nothing;
	struct wait *w = bpf_map_lookup_elem(&waits, k);

	if (!w) {
		bpf_map_update_elem(&waits, k, &nothing, BPF_NOEXIST);
		w = bpf_map_lookup_elem(&waits, k);
	}
	if (w)
		add(w, ns);
	else
		count(&lost_waits);
}

static __always_inline void add_lock(__u32 tgid, __u64 address, __u64 ns)
{
	static const struct wait nothing;
	struct lock_key k = {.address = address, .tgid = tgid};
	struct wait *w = bpf_map_lookup_elem(&locks, &k);

	if (!w) {
		bpf_map_update_elem(&locks, &k, &nothing, BPF_NOEXIST);
		w = bpf_map_lookup_elem(&locks, &k);
	}
	if (w)
		add(w, ns);
	else
		count(&lost_locks);
}

static __always_inline __u32 state_of(__u64 *ctx, struct task_struct *prev)
{
	if ((bool)ctx[0]) /* preempted */
		return 0;
	return has_prev_state ? (__u32)ctx[3] : prev->__state;
}

static __always_inline void finish(struct task_struct *t, struct blocked *b, __u64 now)
{
	__u64 ran = arrived(b->ran, now, t->se.sum_exec_runtime - b->cpu);
	__u64 ns = ran - b->since, in_queue = queued(t) - b->queued;

	if (b->since <= resumed_at || ran < b->since || ns < in_queue || ns - in_queue < shortest_ns)
		return; /* half seen, or too short */
	ns -= in_queue;
	struct wait_key k = {};
	key_of(&k, b, t);
	__builtin_memcpy(k.waker, b->waker, sizeof(k.waker));
	add_wait(&k, ns);
	if (b->lock)
		add_lock(k.tgid, b->lock, ns);
}

static __always_inline void begin(__u64 *ctx, struct blocked *b, struct task_struct *t, __u32 state, __u64 now)
{
	struct call_at at = {};
	struct cause c = {};

	why(&c, &at, t, state, true);
	b->reason = c.reason;
	b->lock = c.reason == REASON_LOCK ? at.args[0] : 0;
	b->kernel = stack_of(ctx, &kernel_stacks, 0);
	b->user = stack_of(ctx, &user_stacks, BPF_F_USER_STACK);
	b->queued = queued(t);
	b->cpu = t->se.sum_exec_runtime;
	b->ran = 0;
	__builtin_memcpy(b->waker, b->early, sizeof(b->waker));
	__builtin_memset(b->early, 0, sizeof(b->early));
	b->since = now;
}

static __always_inline void leave(__u64 *ctx, struct task_struct *t, __u64 now)
{
	__u32 state = state_of(ctx, t);
	bool blocks = state && !(state & TASK_EXITING) && wanted(t->tgid);
	struct blocked *b = bpf_task_storage_get(&tasks, t, 0, blocks ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);

	if (!b) {
		if (blocks)
			count(&lost_tasks);
		return;
	}
	if (b->since)
		finish(t, b, now);
	b->since = 0;
	if (blocks)
		begin(ctx, b, t, state, now);
}

SEC("tp_btf/sched_switch")
int offcpu_switch(__u64 *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx[1];
	struct task_struct *next = (struct task_struct *)ctx[2];
	__u64 now = bpf_ktime_get_ns();

	if (!(prev->flags & PF_KTHREAD))
		leave(ctx, prev, now);
	if (next->flags & PF_KTHREAD)
		return 0;
	struct blocked *b = bpf_task_storage_get(&tasks, next, 0, 0);
	if (b && b->since)
		b->ran = now;
	return 0;
}

/* in_interrupt says whether the current task was only running when an interrupt
 * came. A soft interrupt that runs at the end of a system call is none: the call is
 * its cause, as of who sends to a socket on the same machine. */
static __always_inline bool in_interrupt(void *ctx, struct task_struct *current)
{
	__u64 start = (__u64)&__irqentry_text_start, end = (__u64)&__irqentry_text_end;
	__u32 zero = 0;
	struct frames *f = bpf_map_lookup_elem(&scratch, &zero);

	if (!current->pid) /* the idle task wakes nobody by itself */
		return true;
	if (!f || !start)
		return false;
	long bytes = bpf_get_stack(ctx, f, sizeof(*f), 0);
	for (int i = 0; i < MAX_FRAMES; i++) {
		if (i * (long)sizeof(f->at[0]) >= bytes)
			return false;
		if (f->at[i] >= start && f->at[i] < end)
			return true;
	}
	return false; /* deeper than we look */
}

/* Here the current task is who wakes; maybe while the other is still leaving its CPU. */
SEC("tp_btf/sched_waking")
int offcpu_waking(__u64 *ctx)
{
	struct task_struct *t = (struct task_struct *)ctx[0];
	struct task_struct *by = bpf_get_current_task_btf();

	if (t->flags & PF_KTHREAD)
		return 0;
	struct blocked *b = bpf_task_storage_get(&tasks, t, 0, 0);
	if (!b)
		return 0;
	__u8 *waker = b->ran ? b->early : b->waker;
	if (in_interrupt(ctx, by))
		__builtin_memcpy(waker, "interrupt", sizeof("interrupt"));
	else
		group_name(waker, by);
	return 0;
}

struct bpf_iter_meta {
	void *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

/* Tells of the waits that still last; it counts nothing. */
SEC("iter/task")
int offcpu_look(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;

	if (!t || t->flags & PF_KTHREAD || !asleep(t))
		return 0;
	struct blocked *b = bpf_task_storage_get(&tasks, t, 0, 0);
	if (!b || b->ran || b->since <= resumed_at)
		return 0;
	struct lasting l = {};
	__u64 now = bpf_ktime_get_ns(), since = b->since;
	if (!since || now < since + shortest_ns)
		return 0;
	key_of(&l.key, b, t);
	l.ns = now - since;
	bpf_seq_write(ctx->meta->seq, &l, sizeof(l));
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
