/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * Which end of a TCP connection a socket is: the side of a service that listens,
 * known by its port, or the side of a client, known by where it went.
 */
#ifndef PLIMSOLL_ENDPOINT_H
#define PLIMSOLL_ENDPOINT_H

#include "socket.h"

/* field reads a member that is a bit field in some kernels. */
#define field(s, member)                                                                                             \
	({                                                                                                           \
		__u64 v = 0;                                                                                         \
		bpf_probe_read_kernel(&v, __builtin_preserve_field_info((s)->member, 1),                             \
				      (void *)(s) + __builtin_preserve_field_info((s)->member, 0));                  \
		v <<= __builtin_preserve_field_info((s)->member, 4);                                                 \
		v >>= __builtin_preserve_field_info((s)->member, 5);                                                 \
		v;                                                                                                   \
	})

/* An end of TCP connections. */
struct endpoint {
	__u32 netns;
	__u16 port;	/* the listener's, or the destination's */
	__u8 is_client;
	__u8 unused;
	__u8 addr[16];	/* the destination's; IPv4 as ::ffff:a.b.c.d. All 0 on the server side */
};

struct local_port {
	__u32 netns;
	__u32 port;
};

/* The ports that were seen to be listened on: a socket that is closed no longer
 * knows how it came by its port. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct local_port);
	__type(value, __u8);
} services SEC(".maps");

static __always_inline bool is_service(__u32 netns, __u16 port)
{
	struct local_port p = {.netns = netns, .port = port};

	return bpf_map_lookup_elem(&services, &p);
}

static __always_inline void note_service(__u32 netns, __u16 port)
{
	struct local_port p = {.netns = netns, .port = port};
	__u8 yes = 1;

	if (!bpf_map_lookup_elem(&services, &p))
		bpf_map_update_elem(&services, &p, &yes, 0);
}

static __always_inline void set_v4(__u8 *addr, __u32 v4)
{
	addr[10] = addr[11] = 0xff;
	__builtin_memcpy(addr + 12, &v4, 4);
}

/* set_remote makes the endpoint the destination of a client's socket. */
static __always_inline void set_remote(struct endpoint *e, struct sock *sk)
{
	e->is_client = 1;
	e->port = swap16(sk->__sk_common.skc_dport);
	if (sk->__sk_common.skc_family == AF_INET)
		set_v4(e->addr, sk->__sk_common.skc_daddr);
	else if (bpf_core_field_exists(sk->__sk_common.skc_v6_daddr))
		bpf_probe_read_kernel(e->addr, 16, &sk->__sk_common.skc_v6_daddr);
}

/* serves tells the side of a connected or closed socket. A port that connect()
 * chose is marked; on others there is a listener, or the process chose it for
 * this one socket, which is then locked to it. */
static __always_inline bool serves(struct tcp_sock *tp, __u32 netns, __u16 port)
{
	struct inet_bind_bucket *b = untrusted(tp)->inet_conn.icsk_bind_hash;

	if (!b)
		return is_service(netns, port);
	if (b->fastreuse < 0)
		return false;
	struct sock *sk = (struct sock *)tp;
	if (field(sk, sk_userlocks) & SOCK_BINDPORT_LOCK)
		return false;
	note_service(netns, port);
	return true;
}

/* set_endpoint says which end a whole socket (no request, no TIME_WAIT) is. */
static __always_inline void set_endpoint(struct endpoint *e, struct sock *sk, struct tcp_sock *tp)
{
	__u8 state = sk->__sk_common.skc_state;
	__u16 port = swap16(tp->inet_conn.icsk_inet.inet_sport);

	e->netns = netns_of_socket(sk);
	if (state != TCP_SYN_SENT && (state == TCP_LISTEN || serves(tp, e->netns, port)))
		e->port = port;
	else
		set_remote(e, sk);
}

#endif
