/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * What is under way at a moment, and who has it: sockets are looked at one by one, all of a map, or, where the kernel
 * refuses that, those in the open files of all processes.
 */
#ifndef PLIMSOLL_WALK_H
#define PLIMSOLL_WALK_H

#include "turn.h"

#define EEXIST 17
#define IPPROTO_MPTCP 262
#define LONGEST_QUEUE 65536 /* net.core.somaxconn may be as much */

/* Turns that are under way, as the iterator finds them. */
struct at {
	__u32 place;
	__u32 group;
};

struct under_way {
	__u64 unread;
	__u64 in_hand;
	__u64 age_ns; /* since they began, added up */
};

/* A server's thread that read a request which is not answered, or a client's that asked. */
struct holder {
	__u32 tid;
	__u32 group;
	__u32 asks; /* 1 of a client's */
};

volatile __u64 lost_threads; /* holders beyond the bound, at each walk */
volatile __u64 remembered; /* sockets, counted by the iterator */
volatile __u64 walk; /* its number */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct at);
	__type(value, struct under_way);
} open SEC(".maps");

/* As the iterator finds them, and how many requests one of theirs stands for. A socket has one at
 * most, and there is room for one of each that is remembered: so nobody takes another's place. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct holder);
	__type(value, __u64);
} holders SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct file;
struct bpf_iter_meta;

struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct sock *sk;
	void *value;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct file *file;
};

struct request_sock {
	struct request_sock *dl_next;
	struct sock *sk;
};

struct request_sock_queue {
	struct request_sock *rskq_accept_head;
};

struct inet_connection_sock___queue {
	struct request_sock_queue icsk_accept_queue;
};

struct tcp_sock___queue {
	struct inet_connection_sock___queue inet_conn;
};

struct mptcp_sock {
	struct sock *first;
};

#pragma clang attribute pop

static struct socket *(*bpf_sock_from_file)(struct file *file) = (void *)162;
static struct unix_sock *(*bpf_skc_to_unix_sock)(void *sk) = (void *)178;
static long (*bpf_loop)(__u32 times, void *function, void *with, __u64 flags) = (void *)181;

static __always_inline struct under_way *under_way_at(struct at *of)
{
	static const struct under_way nothing;
	struct at at = *of;
	struct under_way *u = bpf_map_lookup_elem(&open, &at);

	if (u)
		return u;
	bpf_map_update_elem(&open, &at, &nothing, BPF_NOEXIST);
	return bpf_map_lookup_elem(&open, &at);
}

/* add_under_way adds up what is under way on a socket. */
SEPARATE int add_under_way(struct turn *t, bool all_read)
{
	struct under_way *u;
	struct at at = {};
	__u64 now;

	if (!t)
		return 0;
	remembered++;
	if (t->began <= resumed_at || t->one_way || (t->state != ARRIVED && t->state != READ && t->state != ASKED))
		return 0;
	bool unread = t->state == ARRIVED && !all_read;
	at.place = t->place;
	at.group = unread ? 0 : t->group;
	u = under_way_at(&at);
	if (!u)
		return 0;
	now = bpf_ktime_get_ns();
	if (now > t->began)
		u->age_ns += (now - t->began) * t->weight;
	if (unread)
		u->unread += t->weight;
	else
		u->in_hand += t->weight;
	if (t->state != ARRIVED && t->tid) {
		struct holder holder = {.tid = t->tid, .group = t->group, .asks = t->state == ASKED};
		__u64 weight = t->weight;
		long failed = bpf_map_update_elem(&holders, &holder, &weight, BPF_NOEXIST);

		if (failed && failed != -EEXIST) /* of an event loop's many there is one */
			count(&lost_threads);
	}
	return 0;
}

/* Called for every socket that is remembered. */
SEC("iter/bpf_sk_storage_map")
int requests_open(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct sock *sk = ctx->sk;

	if (ctx->value && sk)
		add_under_way(ctx->value, is_unix(sk) && is_read(sk));
	return 0;
}

/* walk_to looks at a socket, unless this walk has: processes share sockets. */
static __always_inline void walk_to(struct sock *sk)
{
	struct turn *t = bpf_sk_storage_get(&turns, sk, 0, 0);

	if (!t || t->walk == walk)
		return;
	t->walk = walk;
	add_under_way(t, is_unix(sk) && is_read(sk));
}

/* What waits to be accepted at a listener. */
struct queue {
	struct request_sock *next;
	struct at at;
	__u64 now;
};

/* add_next adds up the next of a queue if it has asked. All is read as numbers, for who accepts it meanwhile may free it. */
static long add_next(__u32 i, struct queue *q)
{
	struct tcp_sock *tp = 0;
	struct under_way *u;
	__u32 received = 0, read = 0;
	__u64 at = 0;
	__u8 state = 0;

	bpf_probe_read_kernel(&tp, sizeof(tp), &q->next->sk);
	bpf_probe_read_kernel(&q->next, sizeof(q->next), &q->next->dl_next);
	bpf_probe_read_kernel(&received, sizeof(received), &tp->rcv_nxt);
	bpf_probe_read_kernel(&read, sizeof(read), &more_of_tcp(tp)->copied_seq);
	bpf_probe_read_kernel(&at, sizeof(at), &more_of_tcp(tp)->tcp_mstamp);
	bpf_probe_read_kernel(&state, sizeof(state), (const void *)&((struct sock *)tp)->__sk_common.skc_state);
	if (state == TCP_CLOSE_WAIT)
		received--; /* the end has a number, too */
	if (received != read && (state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT)) { /* else it was reset */
		u = under_way_at(&q->at);
		if (u) {
			u->unread++;
			if (at && q->now > at * 1000)
				u->age_ns += q->now - at * 1000;
		}
	}
	return !q->next;
}

/* is_tcp_listener leaves out sockets of other kinds that listen: theirs is other memory. */
static __always_inline bool is_tcp_listener(struct sock *sk)
{
	__u16 family = sk->__sk_common.skc_family, protocol = more_of(sk)->sk_protocol;

	return sk->__sk_common.skc_state == TCP_LISTEN && (family == AF_INET || family == AF_INET6) && (protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP);
}

/* walk_queue looks at what waits at a TCP listener, which an MPTCP socket (Go's, by default) has within it. */
static __always_inline void walk_queue(struct sock *sk)
{
	struct place p = {.family = AF_INET, .role = SERVER, .port = sk->__sk_common.skc_num};
	struct noted *n = bpf_sk_storage_get(&noted, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct queue q = {.now = bpf_ktime_get_ns()};
	struct sock *tcp = sk;
	struct address a = {};

	if (!n || n->walk == walk)
		return;
	n->walk = walk;
	if (more_of(sk)->sk_protocol == IPPROTO_MPTCP && bpf_core_field_exists(((struct mptcp_sock *)sk)->first))
		bpf_probe_read_kernel(&tcp, sizeof(tcp), &((struct mptcp_sock *)sk)->first);
	bpf_probe_read_kernel(&q.next, sizeof(q.next), &((struct tcp_sock___queue *)tcp)->inet_conn.icsk_accept_queue.rskq_accept_head);
	if (!q.next)
		return;
	set_local(&a, sk, p.port);
	p.netns = a.netns;
	__builtin_memcpy(p.name, a.addr, 16);
	q.at.place = number_of_place(&p);
	if (q.at.place)
		bpf_loop(LONGEST_QUEUE, add_next, &q, 0);
}

/* Called for every open file of every process, where the kernel does not let a program look at all sockets of a map. What waits to
 * be accepted is in no file: it is found in its listener's queue, or over a Unix socket by its client, which holds on to it. */
SEC("iter/task_file")
int requests_open_by_file(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct socket *socket = file ? bpf_sock_from_file(file) : 0;
	struct sock *sk = socket ? socket->sk : 0;
	struct unix_sock *u;

	if (!sk)
		return 0;
	walk_to(sk);
	u = bpf_skc_to_unix_sock(sk);
	if (is_tcp_listener(sk))
		walk_queue(sk);
	if (u && u->peer && more_of(sk)->sk_type != SOCK_DGRAM)
		walk_to(u->peer);
	return 0;
}

/* Called for every open file of every process when the tracer starts: listeners
 * that were there before it. */
SEC("iter/task_file")
int requests_listeners(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct socket *socket;
	struct sock *sk;

	if (!file)
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket)
		return 0;
	sk = socket->sk;
	if (sk && is_tcp_listener(sk))
		note_listener(sk);
	return 0;
}

#endif
