//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * The time in softirq and in hard interrupt handlers, by kind and CPU.
 */
#include "plimsoll.h"

#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define VECTORS 16 /* the kernel has 10 */
#define WAIT_SLOTS 20 /* 1 µs, 2 µs, … 262 ms, more */
#define IRQ_NAME_LEN 32

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct irqaction {
	const char *name;
};

#pragma clang attribute pop

/* One kind of softirq on one CPU. */
struct vector {
	__u64 runs;
	__u64 ns;
	__u64 wait_ns; /* from the first raise to the start */
	__u64 wait[WAIT_SLOTS];
	__u64 raised_at;
	__u64 entered_at;
};

struct irq_name {
	__u8 name[IRQ_NAME_LEN];
};

struct handler {
	__u64 runs;
	__u64 ns;
};

volatile __u64 lost_handlers; /* interrupts of handlers beyond the bound */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, VECTORS);
	__type(key, __u32);
	__type(value, struct vector);
} vectors SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 256);
	__type(key, struct irq_name);
	__type(value, struct handler);
} handlers SEC(".maps");

/* When the interrupt handler that runs on a CPU began; they do not nest. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} began SEC(".maps");

SEC("tp_btf/softirq_raise")
int sirq_raise(__u64 *ctx)
{
	__u32 nr = ctx[0];
	struct vector *v = bpf_map_lookup_elem(&vectors, &nr);

	if (v && v->raised_at <= resumed_at) /* not pending already */
		v->raised_at = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/softirq_entry")
int sirq_enter(__u64 *ctx)
{
	__u32 nr = ctx[0];
	struct vector *v = bpf_map_lookup_elem(&vectors, &nr);

	if (!v)
		return 0;
	__u64 now = bpf_ktime_get_ns(), raised = v->raised_at;
	v->entered_at = now;
	v->raised_at = 0;
	if (raised <= resumed_at)
		return 0;
	v->wait_ns += now - raised;
	v->wait[log2_slot(now - raised, WAIT_SLOTS)]++;
	return 0;
}

SEC("tp_btf/softirq_exit")
int sirq_leave(__u64 *ctx)
{
	__u32 nr = ctx[0];
	struct vector *v = bpf_map_lookup_elem(&vectors, &nr);

	if (!v || v->entered_at <= resumed_at)
		return 0;
	v->runs++;
	v->ns += bpf_ktime_get_ns() - v->entered_at;
	v->entered_at = 0;
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int irq_enter(__u64 *ctx)
{
	__u32 zero = 0;
	__u64 *at = bpf_map_lookup_elem(&began, &zero);

	if (at)
		*at = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int irq_leave(__u64 *ctx)
{
	struct irqaction *action = (struct irqaction *)ctx[1];
	static const struct handler nothing;
	struct irq_name name = {};
	__u32 zero = 0;
	__u64 *at = bpf_map_lookup_elem(&began, &zero);

	if (!at || *at <= resumed_at)
		return 0;
	__u64 took = bpf_ktime_get_ns() - *at;
	*at = 0;
	bpf_probe_read_kernel_str(name.name, sizeof(name.name), action->name);
	struct handler *h = bpf_map_lookup_elem(&handlers, &name);
	if (!h) {
		bpf_map_update_elem(&handlers, &name, &nothing, BPF_NOEXIST);
		h = bpf_map_lookup_elem(&handlers, &name);
	}
	if (!h) {
		count(&lost_handlers);
		return 0;
	}
	h->runs++;
	h->ns += took;
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
