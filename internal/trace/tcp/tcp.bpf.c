//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * What happens to TCP connections besides carrying data: how they begin, what is
 * sent again, what is reset. Nothing here runs for a request on a connection that
 * stands.
 */
#include "endpoint.h"

#define CONNECT_SLOTS 28 /* 1 µs, 2 µs, … 67 s, more */
#define SETUP_SLOTS 20	 /* 1 µs, 2 µs, … 131 ms, more */
#define GIVEN_UP (-1)
#define EAGAIN 11
#define ENOMEM 12
#define EBUSY 16
#define EINVAL 22
#define EADDRNOTAVAIL 99
#define EHOSTUNREACH 113

enum kind { CHANGE, RETRANSMIT, RESET_SENT, RESET_RECEIVED, AHEAD };
enum retransmit { SYN, SYNACK, DATA };

/* Something that is counted, and where. */
struct event {
	struct endpoint at;
	__u32 kind;
	__u32 detail; /* a change's states, from in the upper 16 bits; a retransmit; a reset's reason, or the state it found */
};

/* Connects of one command to one destination. */
struct route {
	struct endpoint to;
	__u8 comm[TASK_COMM_LEN];
};

struct connects {
	__u64 ns;
	__u64 connected[CONNECT_SLOTS];
	__u64 setup_ns;
	__u64 setup[SETUP_SLOTS];
};

struct failure {
	struct route route;
	__s32 error; /* or GIVEN_UP */
};

/* A connect() that has no answer yet. */
struct opening {
	__u64 since;
	struct route route;
};

/* Given by the loader, who asks the kernel's BTF. */
const volatile bool has_reset_reason = false;	/* tcp_send_reset, since Linux 6.10 */
const volatile bool has_retransmit_error = false; /* tcp_retransmit_skb, of late */

/* What found no room, by what it was. */
volatile __u64 lost_events;   /* at endpoints beyond the bound */
volatile __u64 lost_connects; /* of routes beyond the bound, or too many at once */
volatile __u64 lost_failures;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 8192);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct event);
	__type(value, __u64);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 256);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct route);
	__type(value, struct connects);
} routes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct failure);
	__type(value, __u64);
} failures SEC(".maps");

/* By the address of the socket. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct opening);
} openings SEC(".maps");

/* Types of keys that hold only their numbers, kept for bpf2go. */
const enum kind *unused_kind __attribute__((unused));
const enum retransmit *unused_retransmit __attribute__((unused));

static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;

static __always_inline void add(struct event *e, __u64 n)
{
	__u64 *v = bpf_map_lookup_elem(&events, e);

	if (v) {
		*v += n;
		return;
	}
	if (!bpf_map_update_elem(&events, e, &n, BPF_NOEXIST))
		return;
	v = bpf_map_lookup_elem(&events, e); /* another CPU was quicker */
	if (v)
		*v += n;
	else
		count(&lost_events);
}

/* Runs in the context of the process that calls connect(), before a local port is
 * looked for. */
static __always_inline void begin(struct sock *sk)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct opening o = {};
	__u64 key = (__u64)sk;

	if (!wanted(t->tgid))
		return;
	group_name(o.route.comm, t);
	o.route.to.netns = netns_of_socket(sk);
	set_remote(&o.route.to, sk);
	o.since = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&openings, &key, &o, 0))
		count(&lost_connects);
}

static __always_inline void fail(struct route *r, struct tcp_sock *tp)
{
	struct failure f = {.route = *r};
	__u64 *n, one = 1;
	int error = ((struct sock *)tp)->sk_err;

	if (error)
		f.error = error;
	else
		f.error = tp->segs_out ? GIVEN_UP : EADDRNOTAVAIL;
	n = bpf_map_lookup_elem(&failures, &f);
	if (!n && !bpf_map_update_elem(&failures, &f, &one, BPF_NOEXIST))
		return;
	n = n ? n : bpf_map_lookup_elem(&failures, &f);
	count(n ? n : &lost_failures);
}

static __always_inline struct connects *connects_of(struct route *r)
{
	static const struct connects nothing;
	struct connects *c = bpf_map_lookup_elem(&routes, r);

	if (c)
		return c;
	bpf_map_update_elem(&routes, r, &nothing, BPF_NOEXIST); /* may lose to another CPU, which is well */
	c = bpf_map_lookup_elem(&routes, r);
	if (!c)
		count(&lost_connects);
	return c;
}

/* The SYN carries the time at which it was made, and the socket keeps that until
 * it sends again; without a SYN, all the time went into the search for a port. */
static __always_inline void count_setup(struct connects *c, struct tcp_sock *tp, __u64 since, __u64 now)
{
	__u64 until = tp->segs_out ? tp->tcp_wstamp_ns : now;

	if (tp->total_retrans || until < since)
		return;
	c->setup_ns += until - since;
	c->setup[log2_slot(until - since, SETUP_SLOTS)]++;
}

static __always_inline void end(struct sock *sk, struct tcp_sock *tp, bool connected)
{
	__u64 now = bpf_ktime_get_ns(), key = (__u64)sk;
	struct opening *o = bpf_map_lookup_elem(&openings, &key);

	if (!o)
		return;
	struct route r = o->route;
	__u64 since = o->since;
	bpf_map_delete_elem(&openings, &key);
	if (since <= resumed_at)
		return;
	if (!connected)
		fail(&r, tp);
	struct connects *c = connects_of(&r);
	if (!c)
		return;
	count_setup(c, tp, since, now);
	if (!connected)
		return;
	c->ns += now - since;
	c->connected[log2_slot(now - since, CONNECT_SLOTS)]++;
}

/* Steps that follow by themselves from those beside them say nothing new, and are
 * not counted. */
static __always_inline bool is_plain(int from, int to)
{
	if (to == TCP_CLOSE)
		return from == TCP_FIN_WAIT2 || from == TCP_LAST_ACK || from == TCP_CLOSING || from == TCP_TIME_WAIT;
	return (from == TCP_LISTEN && to == TCP_SYN_RECV) || (from == TCP_FIN_WAIT1 && to == TCP_FIN_WAIT2);
}

SEC("tp_btf/inet_sock_set_state")
int tcp_state(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	int from = (int)ctx[1], to = (int)ctx[2];
	struct event e = {.kind = CHANGE, .detail = from << 16 | to};

	if (is_plain(from, to))
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	if (to == TCP_SYN_SENT) {
		begin(sk);
		return 0;
	}
	if (from == TCP_SYN_SENT) {
		end(sk, tp, to == TCP_ESTABLISHED);
		e.at.netns = netns_of_socket(sk);
		set_remote(&e.at, sk);
	} else {
		set_endpoint(&e.at, sk, tp);
	}
	add(&e, 1);
	if (from != TCP_SYN_RECV || to != TCP_ESTABLISHED)
		return 0;
	e.kind = AHEAD; /* the child is a copy of its listener, with the length of the queue at that moment */
	e.detail = 0;
	__u32 ahead = sk->sk_ack_backlog;
	if (ahead)
		add(&e, ahead);
	return 0;
}

/* was_sent says whether the kernel counts a retransmit; these errors come before
 * it tries. */
static __always_inline bool was_sent(int error)
{
	return error != -EBUSY && error != -EAGAIN && error != -ENOMEM && error != -EHOSTUNREACH && error != -EINVAL;
}

SEC("tp_btf/tcp_retransmit_skb")
int tcp_again(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct sk_buff *skb = (struct sk_buff *)ctx[1];
	struct event e = {.kind = RETRANSMIT};
	__u16 segments = 1;

	if (has_retransmit_error && !was_sent((int)ctx[2]))
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	set_endpoint(&e.at, sk, tp);
	e.detail = sk->__sk_common.skc_state == TCP_SYN_SENT ? SYN : DATA;
	struct tcp_skb_cb *cb = (struct tcp_skb_cb *)skb->cb;
	bpf_probe_read_kernel(&segments, sizeof(segments), &cb->tcp_gso_segs);
	add(&e, segments);
	return 0;
}

SEC("tp_btf/tcp_retransmit_synack")
int tcp_again_synack(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0]; /* the listener */
	struct event e = {.kind = RETRANSMIT, .detail = SYNACK};

	e.at.netns = netns_of_socket(sk);
	e.at.port = sk->__sk_common.skc_num;
	add(&e, 1);
	return 0;
}

/* answered_packet finds the endpoint of a reset that no socket sends, by the
 * packet that it answers: a SYN, or one for a port known to be served, was for a
 * service; the rest is for a client that is gone. */
static __always_inline void answered_packet(struct endpoint *e, struct sk_buff *skb)
{
	void *head = untrusted(skb)->head, *tcp = head + skb->transport_header, *ip = head + skb->network_header;
	struct port_pair p = {};
	__u8 flags = 0, version = 0;
	__u32 v4;

	e->netns = untrusted(skb)->dev->nd_net.net->ns.inum;
	bpf_probe_read_kernel(&p, sizeof(p), tcp);
	bpf_probe_read_kernel(&flags, 1, tcp + 13);
	if ((flags & 0x12) == 0x02 || is_service(e->netns, swap16(p.dest))) { /* SYN without ACK */
		e->port = swap16(p.dest);
		return;
	}
	e->is_client = 1;
	e->port = swap16(p.source);
	bpf_probe_read_kernel(&version, 1, ip);
	if (version >> 4 == 6) {
		bpf_probe_read_kernel(e->addr, 16, ip + 8);
	} else {
		bpf_probe_read_kernel(&v4, 4, ip + 12);
		set_v4(e->addr, v4);
	}
}

SEC("tp_btf/tcp_send_reset")
int tcp_reset_sent(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct sk_buff *skb = (struct sk_buff *)ctx[1];
	struct event e = {.kind = RESET_SENT};

	if (has_reset_reason)
		e.detail = (__u32)ctx[2];
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : 0;
	if (tp) {
		set_endpoint(&e.at, sk, tp);
	} else if (sk) { /* TIME_WAIT, or a connection that is half open */
		e.at.netns = netns_of_socket(sk);
		__u16 port = sk->__sk_common.skc_num;
		if (sk->__sk_common.skc_state == TCP_NEW_SYN_RECV || is_service(e.at.netns, port))
			e.at.port = port;
		else
			set_remote(&e.at, sk);
	} else if (skb) {
		answered_packet(&e.at, skb);
	}
	add(&e, 1);
	return 0;
}

SEC("tp_btf/tcp_receive_reset")
int tcp_reset_recvd(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	struct event e = {.kind = RESET_RECEIVED};

	if (!tp)
		return 0;
	set_endpoint(&e.at, sk, tp);
	e.detail = sk->__sk_common.skc_state;
	add(&e, 1);
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
