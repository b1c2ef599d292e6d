//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * Packets that the kernel throws away, why and where.
 */
#include "../tcp/socket.h"

#define IPPROTO_UDP 17
#define IP_FRAGMENT 0x3fff /* more follow, or some went before */

/* A packet's fate, and where in the kernel it met it. */
struct fate {
	__u64 location;
	__u32 netns; /* 0 if neither a device nor a socket tells it */
	__u32 reason;
};

/* The same by the port of the service. */
struct port_fate {
	__u32 netns;
	__u32 reason;
	__u32 port;
};

/* Given by the loader, who asks the kernel's BTF how many arguments there are. */
const volatile bool has_reason = false;	     /* since Linux 5.17 */
const volatile bool has_receiver = false; /* the socket that would have received it, since Linux 6.11 */

volatile __u64 lost_fates; /* drops of reasons and locations beyond the bound */
volatile __u64 lost_ports; /* drops that were counted without their port */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 2048);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct fate);
	__type(value, __u64);
} fates SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 2048);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct port_fate);
	__type(value, __u64);
} ports SEC(".maps");

static __always_inline bool add(void *map, void *key)
{
	__u64 *n = bpf_map_lookup_elem(map, key), one = 1;

	if (!n) {
		if (!bpf_map_update_elem(map, key, &one, BPF_NOEXIST))
			return true;
		n = bpf_map_lookup_elem(map, key); /* another CPU was quicker */
	}
	if (n)
		(*n)++;
	return n;
}

/* transport finds the header behind that of IP; 0 if it is not TCP or UDP. Early
 * on the way in only the place of the IP header is known. */
static __always_inline void *transport(struct sk_buff *skb, bool *is_tcp)
{
	void *ip = skb->head + skb->network_header;
	__u8 first = 0, protocol = 0;
	__u16 fragment = 0;
	__u32 length = 40;

	if (!skb->network_header || skb->network_header == (__u16)~0)
		return 0;
	bpf_probe_read_kernel(&first, 1, ip);
	if (first >> 4 == 4) {
		bpf_probe_read_kernel(&fragment, sizeof(fragment), ip + 6);
		if (swap16(fragment) & IP_FRAGMENT) /* only the first of them has the header */
			return 0;
		bpf_probe_read_kernel(&protocol, 1, ip + 9);
		length = (first & 15) * 4;
	} else if (first >> 4 == 6) {
		bpf_probe_read_kernel(&protocol, 1, ip + 6);
	}
	*is_tcp = protocol == IPPROTO_TCP;
	return *is_tcp || protocol == IPPROTO_UDP ? ip + length : 0;
}

static __always_inline __u16 lower(__u16 a, __u16 b)
{
	return a < b ? a : b;
}

/* port_of tells the service's port: that of a listener, that to which a SYN goes
 * or from which its answer comes, else the lower one of the two. */
static __always_inline __u16 port_of(struct sk_buff *skb, struct sock *sk)
{
	struct port_pair p = {};
	bool is_tcp = false;
	__u8 flags = 0;

	if (sk && sk->__sk_common.skc_state == TCP_LISTEN)
		return sk->__sk_common.skc_num;
	void *header = transport(skb, &is_tcp);
	if (!header)
		return 0;
	bpf_probe_read_kernel(&p, sizeof(p), header);
	__u16 source = swap16(p.source), dest = swap16(p.dest);
	if (is_tcp)
		bpf_probe_read_kernel(&flags, 1, header + 13);
	if ((flags & 0x12) == 0x02)
		return dest;
	if ((flags & 0x12) == 0x12)
		return source;
	return lower(source, dest);
}

SEC("tp_btf/kfree_skb")
int drops_kfree_skb(__u64 *ctx)
{
	struct sk_buff *skb = untrusted((struct sk_buff *)ctx[0]);
	struct sock *sk = has_receiver ? (struct sock *)ctx[3] : 0;
	struct fate f = {.location = ctx[1]};

	if (has_reason)
		f.reason = (__u32)ctx[2];
	if (!sk)
		sk = skb->sk;
	struct net_device *dev = skb->dev;
	if (sk)
		f.netns = netns_of_socket(sk);
	else if (dev)
		f.netns = dev->nd_net.net->ns.inum;
	if (!add(&fates, &f)) {
		count(&lost_fates);
		return 0;
	}
	struct port_fate p = {.netns = f.netns, .reason = f.reason, .port = port_of(skb, sk)};
	if (p.port && !add(&ports, &p))
		count(&lost_ports);
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
