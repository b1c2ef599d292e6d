//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * The name of the kernel's function that holds an address, as the kernel prints it.
 */
#include "vmlinux.h"

#define SEC(name) __attribute__((section(name), used))
#define LONGEST 640 /* KSYM_NAME_LEN, and a module's name in brackets */

static long (*bpf_snprintf)(char *into, __u32 size, const char *format, __u64 *data, __u32 length) = (void *)165;

struct question {
	__u64 address;
};

char answer[LONGEST];

/* Attached to nothing: user space runs it. */
SEC("syscall")
int name_function(struct question *q)
{
	static const char format[] = "%ps";
	__u64 address = q->address;

	bpf_snprintf(answer, sizeof(answer), format, &address, sizeof(address));
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
