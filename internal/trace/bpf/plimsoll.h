/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * What our programs need of libbpf's headers, and what they share. The helpers'
 * numbers are the kernel's stable interface (include/uapi/linux/bpf.h).
 */
#ifndef PLIMSOLL_BPF_H
#define PLIMSOLL_BPF_H

#include "vmlinux.h"

#define SEC(name) __attribute__((section(name), used))
#define __always_inline inline __attribute__((always_inline))
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, __u64 flags) = (void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static __u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static long (*bpf_probe_read_user)(void *dst, __u32 size, const void *unsafe_ptr) = (void *)112;
static long (*bpf_probe_read_kernel)(void *dst, __u32 size, const void *unsafe_ptr) = (void *)113;
static long (*bpf_probe_read_kernel_str)(void *dst, __u32 size, const void *unsafe_ptr) = (void *)115;
static void *(*bpf_ringbuf_reserve)(void *ringbuf, __u64 size, __u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *data, __u64 flags) = (void *)132;
static void *(*bpf_task_storage_get)(void *map, struct task_struct *task, void *value, __u64 flags) = (void *)156;

#define bpf_core_field_exists(field) __builtin_preserve_field_info(field, 2)

/* For a pointer that is read from one that it trusts (a tracepoint's argument, the
 * current task), the verifier goes through the names of all the kernel's types, up to
 * four times on each way to it: two thirds of all the time it took. From one that it
 * does not trust it just reads; helpers want the trusted one. Since Linux 6.2, and it
 * becomes no more than a move; before, the verifier trusted no pointers. */
extern void *bpf_rdonly_cast(const void *object, __u32 type) __attribute__((section(".ksyms"), weak));
#define untrusted(p) \
	(&bpf_rdonly_cast ? (typeof(p))bpf_rdonly_cast(p, __builtin_btf_type_id(*(typeof(*(p)) *)0, 1)) : (p))

#define PLIMSOLL_IGNORED 4

/* Processes of our own (tgid), which are left out of everything; 0 is none.
 * Written by user space at any time. */
volatile __u32 ignored[PLIMSOLL_IGNORED];

static __always_inline bool is_ours(__u32 tgid)
{
	return tgid == ignored[0] || tgid == ignored[1] || tgid == ignored[2] || tgid == ignored[3];
}

/* Where some processes are singled out, only these are of interest. Written by
 * user space at any time, the map before the flag. */
volatile bool only_some;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u32); /* tgid */
	__type(value, __u8);
} only SEC(".maps");

static __always_inline bool wanted(__u32 tgid)
{
	if (is_ours(tgid))
		return false;
	return !only_some || bpf_map_lookup_elem(&only, &tgid);
}

/* When the programs were attached last (bpf_ktime_get_ns): what began before is
 * half seen, and does not count. */
volatile __u64 resumed_at;

/* The inode of a task's network namespace; 0 of a task that has given it up. */
static __always_inline __u32 netns_of(struct task_struct *t)
{
	return untrusted(t)->nsproxy->net_ns->ns.inum;
}

/* Functions of their own, and not inline: the verifier looks at each once, and not
 * at all that follows for each of the ways through it. */
#define SEPARATE __attribute__((noinline))

/* slashes_in marks the slashes among eight letters: of the marks the lowest is right,
 * those above it need not be. */
static __always_inline __u64 slashes_in(__u64 letters)
{
	__u64 differ = letters ^ 0x2f2f2f2f2f2f2f2fULL; /* a slash becomes 0 */

	return (differ - 0x0101010101010101ULL) & ~differ & 0x8080808080808080ULL;
}

/* cut_at_slash keeps the letters before the first slash, and none where there was one
 * already. It is given numbers: pointers to separate functions came with Linux 5.12. */
SEPARATE __u64 cut_at_slash(__u64 letters, __u64 earlier)
{
	__u64 marks = slashes_in(letters);

	if (slashes_in(earlier))
		return 0;
	return letters & (((marks & -marks) >> 7) - 1); /* all, where there is no mark */
}

/* Kernel threads are told apart by what follows a slash (kworker/0:1,
 * ksoftirqd/3); as a group they are what stands before it. */
static __always_inline void group_name(__u8 *into, struct task_struct *t)
{
	struct task_struct *leader = untrusted(t)->group_leader;
	__u64 *from = (__u64 *)leader->comm, half[2] = {from[0], from[1]};

	/* Two loads and no helper's call, for this is on the way of every switch. */
	if (t->flags & PF_KTHREAD) {
		half[1] = cut_at_slash(half[1], half[0]);
		half[0] = cut_at_slash(half[0], 0);
	}
	__builtin_memcpy(into, half, sizeof(half));
}

/* One more, seen by all CPUs. */
static __always_inline void count(volatile __u64 *n)
{
	__sync_fetch_and_add(n, 1);
}

/* How many bits a number has. */
SEPARATE __u32 bits_of(__u64 n)
{
	__u32 bits = 0;

#pragma unroll
	for (int shift = 32; shift > 0; shift /= 2) {
		if (n >> shift) {
			n >>= shift;
			bits += shift;
		}
	}
	return n ? bits + 1 : bits;
}

/* The slot of a time in a histogram by powers of two: slot 0 holds what is
 * under 1 µs, slot n what is in [2^(n-1), 2^n) µs, the last one all the rest. */
static __always_inline __u32 log2_slot(__u64 ns, __u32 slots)
{
	__u32 slot = bits_of(ns / 1000);

	return slot < slots ? slot : slots - 1;
}

#endif
