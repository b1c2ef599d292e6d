/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * The few kernel types that our programs look at, and of each the few fields.
 * preserve_access_index makes the loader find every field by its name in the
 * running kernel's BTF, so order, offsets and what is left out do not matter.
 * A field that some kernels lack is asked for with bpf_core_field_exists.
 */
#ifndef PLIMSOLL_VMLINUX_H
#define PLIMSOLL_VMLINUX_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;
typedef _Bool bool;
#define true 1
#define false 0

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

#define BPF_NOEXIST 1
#define BPF_F_NO_PREALLOC 1
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1

#define TASK_COMM_LEN 16
#define PF_FORKNOEXEC 0x00000040 /* forked, and has executed nothing since */
#define PF_KTHREAD 0x00200000
#define SIGNAL_GROUP_EXIT 0x00000004 /* the whole group ends with group_exit_code */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct sched_entity {
	__u64 sum_exec_runtime; /* nanoseconds on a CPU, exact */
};

struct signal_struct {
	atomic_t live; /* threads that have not begun to end */
	int group_exit_code;
	unsigned int flags;
	unsigned long long sum_sched_runtime; /* nanoseconds of the threads that ended */
};

struct mm_struct {
	unsigned long arg_start, arg_end;
};

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

struct nsproxy {
	struct net *net_ns;
};

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	struct sched_entity se;
	struct mm_struct *mm;
	int exit_code;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	__u64 start_time; /* CLOCK_MONOTONIC, nanoseconds */
	struct signal_struct *signal;
	struct nsproxy *nsproxy;
	char comm[TASK_COMM_LEN];
};

/* Before Linux 5.14 the state had no underscores, and was signed. */
struct task_struct___old {
	long state;
};

#pragma clang attribute pop

#endif
