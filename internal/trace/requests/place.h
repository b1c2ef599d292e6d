/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * Where turns take place: a listener, named as it listens, or what a client
 * connects to; and the command that takes part in them.
 */
#ifndef PLIMSOLL_PLACE_H
#define PLIMSOLL_PLACE_H

#include "../tcp/endpoint.h"

#define BPF_MAP_TYPE_SK_STORAGE 24

#define AF_UNIX 1
#define AF_INET6 10
#define SOCK_DGRAM 2
#define RCV_SHUTDOWN 1
#define SHUTDOWN_MASK 3
#define PATH_LEN 108
#define TCP_CLOSE_WAIT 8

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock_common___place {
	__u32 skc_rcv_saddr;
	struct in6_addr skc_v6_rcv_saddr;
	unsigned int skc_hash;
};

struct refcount_struct {
	atomic_t refs;
};

struct sk_buff_head___place {
	__u32 qlen;
};

struct sock___place {
	struct sock_common___place __sk_common;
	struct sk_buff_head___place sk_receive_queue;
	__u16 sk_type;
	__u16 sk_protocol;
	__u8 sk_shutdown;
	struct refcount_struct sk_wmem_alloc;
	struct socket *sk_socket;
};

struct socket {
	struct sock *sk;
};

struct sockaddr_un {
	unsigned short sun_family;
	char sun_path[PATH_LEN];
};

struct unix_address {
	int len;
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

struct tcp_sock___place {
	__u32 copied_seq, write_seq, snd_una;
	__u32 data_segs_in;
	__u64 bytes_acked;
	__u64 tcp_mstamp;
	struct tcp_rack {
		__u64 mstamp; /* when the segment that was acknowledged last was sent, µs */
		__u32 rtt_us; /* how long that took */
	} rack;
};

#pragma clang attribute pop

enum role { SERVER = 1, CLIENT };

/* What is listened on, or connected to. */
struct place {
	__u32 netns;
	__u16 port;
	__u8 role;
	__u8 family;	      /* AF_UNIX, or AF_INET for all of TCP */
	__u8 name[PATH_LEN]; /* an address, IPv4 as ::ffff:a.b.c.d; or a path */
};

/* A command's processes at a place; without a name, those not yet known. */
struct group {
	__u32 place;
	__u8 comm[TASK_COMM_LEN];
};

struct address {
	__u32 netns;
	__u16 port;
	__u16 unused;
	__u8 addr[16];
};

volatile __u64 lost_places; /* turns at places, or of commands, beyond the bound */

volatile __u32 last_place;
volatile __u32 last_group;

/* Each has a number, by which its sums are found. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct place);
	__type(value, __u32);
} places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct group);
	__type(value, __u32);
} groups SEC(".maps");

/* How many sockets listen on an address. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct address);
	__type(value, __u32);
} listeners SEC(".maps");

struct noted {
	__u64 walk; /* the last that looked at its queue */
	__u8 counted;
};

/* Listeners: whether they are counted there. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct noted);
} noted SEC(".maps");

static void *(*bpf_sk_storage_get)(void *map, void *sk, void *value, __u64 flags) = (void *)107;

static __always_inline struct sock___place *more_of(struct sock *sk)
{
	return (struct sock___place *)sk;
}

static __always_inline struct tcp_sock___place *more_of_tcp(struct tcp_sock *tp)
{
	return (struct tcp_sock___place *)tp;
}

static __always_inline bool is_unix(struct sock *sk)
{
	return sk->__sk_common.skc_family == AF_UNIX;
}

/* is_read says of a Unix socket to which bytes came whether all are read. */
static __always_inline bool is_read(struct sock *sk)
{
	return !more_of(sk)->sk_receive_queue.qlen;
}

/* set_local is a socket's own address, as a listener's is written. */
static __always_inline void set_local(struct address *a, struct sock *sk, __u16 port)
{
	struct sock_common___place *c = (struct sock_common___place *)sk;

	a->netns = netns_of_socket(sk);
	a->port = port;
	if (sk->__sk_common.skc_family == AF_INET)
		set_v4(a->addr, more_of(sk)->__sk_common.skc_rcv_saddr);
	else if (bpf_core_field_exists(c->skc_v6_rcv_saddr))
		bpf_probe_read_kernel(a->addr, 16, &more_of(sk)->__sk_common.skc_v6_rcv_saddr);
}

static __always_inline void note_listener(struct sock *sk)
{
	struct address a = {};
	__u32 one = 1, *n;
	struct noted *known = bpf_sk_storage_get(&noted, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!known || known->counted)
		return;
	known->counted = 1;
	set_local(&a, sk, sk->__sk_common.skc_num);
	note_service(a.netns, a.port);
	n = bpf_map_lookup_elem(&listeners, &a);
	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&listeners, &a, &one, 0);
}

static __always_inline void forget_listener(struct sock *sk, __u16 port)
{
	struct address a = {};
	struct noted *known = bpf_sk_storage_get(&noted, sk, 0, 0);

	if (!known || !known->counted)
		return;
	known->counted = 0;
	set_local(&a, sk, port);
	__u32 *n = bpf_map_lookup_elem(&listeners, &a);
	if (n && *n > 1)
		__sync_fetch_and_add(n, -1);
	else
		bpf_map_delete_elem(&listeners, &a);
}

/* set_listener turns the address at which a connection was accepted into the one
 * that is listened on: that, or all addresses. Where neither was seen, as of a
 * listener that is closed, it stays. */
SEPARATE int set_listener(struct address *a)
{
	struct address all;

	if (!a)
		return 0;
	all = *a;
	if (bpf_map_lookup_elem(&listeners, &all))
		return 0;
	__builtin_memset(&all, 0, sizeof(all));
	all.netns = a->netns;
	all.port = a->port;
	set_v4(all.addr, 0);
	if (!bpf_map_lookup_elem(&listeners, &all)) {
		all.addr[10] = all.addr[11] = 0;
		if (!bpf_map_lookup_elem(&listeners, &all))
			return 0;
	}
	*a = all;
	return 0;
}

/* place_of_tcp says where a connection's turns take place. */
static __always_inline void place_of_tcp(struct place *p, struct sock *sk, struct tcp_sock *tp)
{
	struct endpoint e = {};
	struct address a = {};

	set_endpoint(&e, sk, tp);
	p->netns = e.netns;
	p->family = AF_INET;
	p->port = e.port;
	p->role = e.is_client ? CLIENT : SERVER;
	if (e.is_client) {
		__builtin_memcpy(p->name, e.addr, 16);
		return;
	}
	set_local(&a, sk, e.port);
	set_listener(&a);
	__builtin_memcpy(p->name, a.addr, 16);
}

/* set_path reads by a helper: before Linux 6.2 the verifier takes the socket for no more
 * than a struct sock. */
static __always_inline bool set_path(struct place *p, struct unix_sock *u)
{
	struct unix_address *a = 0;
	__u32 len = 0;

	bpf_probe_read_kernel(&a, sizeof(a), &u->addr); /* not at all where there is no peer */
	if (!a)
		return false;
	bpf_probe_read_kernel(&len, sizeof(len), &a->len);
	len -= 2;
	if (len == 0 || len > PATH_LEN)
		return false;
	bpf_probe_read_kernel(p->name, len, &a->name[0].sun_path);
	return true;
}

/* place_of_unix: a socket that was accepted has its listener's address; that of
 * a client has none as a rule, and its peer has. */
static __always_inline bool place_of_unix(struct place *p, struct sock *sk)
{
	struct unix_sock *u = (struct unix_sock *)sk, *peer = 0;

	if (!bpf_core_field_exists(u->peer) || more_of(sk)->sk_type == SOCK_DGRAM)
		return false;
	p->netns = netns_of_socket(sk);
	p->family = AF_UNIX;
	p->role = SERVER;
	if (set_path(p, u))
		return true;
	p->role = CLIENT;
	bpf_probe_read_kernel(&peer, sizeof(peer), &u->peer);
	return set_path(p, peer);
}

/* number_of finds or gives a number; 0 if there is no room. Keys of maps are copies, for
 * before Linux 6.2 a separate function may not have them where its arguments point. */
SEPARATE __u32 number_of_place(struct place *of)
{
	__u32 *n, next;

	if (!of)
		return 0;
	struct place p = *of;
	n = bpf_map_lookup_elem(&places, &p);
	if (n)
		return *n;
	next = __sync_fetch_and_add(&last_place, 1) + 1;
	bpf_map_update_elem(&places, &p, &next, BPF_NOEXIST);
	n = bpf_map_lookup_elem(&places, &p); /* another CPU may have been quicker */
	return n ? *n : 0;
}

SEPARATE __u32 number_of_group(struct group *of)
{
	__u32 *n, next;

	if (!of)
		return 0;
	struct group c = *of;
	n = bpf_map_lookup_elem(&groups, &c);
	if (n)
		return *n;
	next = __sync_fetch_and_add(&last_group, 1) + 1;
	bpf_map_update_elem(&groups, &c, &next, BPF_NOEXIST);
	n = bpf_map_lookup_elem(&groups, &c);
	return n ? *n : 0;
}

#endif
