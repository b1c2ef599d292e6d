//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * Packets that the kernel throws away, why and where.
 */
#include "../tcp/socket.h"

#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_LRU_PERCPU_HASH 10
#define PLACES (1 << 16)
#define USUAL_BITS 256 /* more than there are reasons */
#define SENT_AGAIN_NS 3000000000ULL /* a second SYN comes after 1 s, a third after 3 */
#define IPPROTO_UDP 17
#define swap32(x) __builtin_bswap32(x)
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

/* Who opens a connection, as its SYN tells and the socket that comes of it: address
 * (IPv4 as ::ffff:a.b.c.d) and port, as on the wire. */
struct opener {
	union {
		__u8 addr[16];
		__u64 words[2];
	};
	__u64 port;
};

/* Where nobody listens: an address of this host as above, and a port. */
struct unserved {
	__u8 addr[16];
	__u32 netns;
	__u32 port;
};

/* A SYN that was thrown away; it is sent again with the same number. */
struct thrown {
	struct opener by;
	__u64 since; /* when it was for the first time; 0 where none is, and once its connection stands */
	__u32 seq;   /* as on the wire */
	struct port_fate fate;
};

/* Connections that stood in the end, and how long after their first SYN was thrown away. */
struct delayed {
	__u64 connections;
	__u64 ns;
};

/* Given by the loader, who asks the kernel's BTF how many arguments there are. */
const volatile bool has_reason = false;	     /* since Linux 5.17 */
const volatile bool has_receiver = false; /* the socket that would have received it, since Linux 6.11 */
const volatile __u32 no_socket = 0; /* the number of that reason; 0 where the kernel has none */
const volatile __u32 last_place = PLACES - 1; /* a test has few */
const volatile __u64 usual[USUAL_BITS / 64] = {}; /* reasons that are no fault, a bit each */

volatile __u64 lost_fates; /* drops of reasons and locations beyond the bound */
volatile __u64 lost_ports; /* drops that were counted without their port */
volatile __u64 lost_syns;  /* forgotten before they could have been sent again */
volatile __u64 lost_late;  /* connections whose SYN had been thrown away, of ports and reasons beyond the bound */

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

/* SYNs of which nothing has come yet, each in the place that its opener has; who has the
 * same place makes it be forgotten. A map of the kernel's own that makes room (LRU) would
 * cost several times as much for each packet of a flood. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PLACES);
	__type(key, __u32);
	__type(value, struct thrown);
} thrown SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct port_fate);
	__type(value, struct delayed);
} late SEC(".maps");

/* Whom nobody asked for longest makes room: a scan of a thousand ports must not keep those out that users ask for. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct unserved);
	__type(value, __u64);
} refused SEC(".maps");

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

/* What a packet's headers tell: 0 where they do not. */
struct headers {
	void *ip, *transport;
	struct port_pair ports; /* of TCP and UDP */
	bool is_v4;
	bool is_tcp;
	__u8 flags; /* of TCP */
};

/* read_headers finds the header behind that of IP, if it is TCP or UDP. Early on the
 * way in only the place of the IP header is known. */
static __always_inline void read_headers(struct headers *h, struct sk_buff *skb)
{
	void *ip = skb->head + skb->network_header;
	__u8 first = 0, protocol = 0;
	__u16 fragment = 0;
	__u32 length = 40;

	if (!skb->network_header || skb->network_header == (__u16)~0)
		return;
	bpf_probe_read_kernel(&first, 1, ip);
	h->is_v4 = first >> 4 == 4;
	if (h->is_v4) {
		bpf_probe_read_kernel(&fragment, sizeof(fragment), ip + 6);
		if (swap16(fragment) & IP_FRAGMENT) /* only the first of them has the header */
			return;
		bpf_probe_read_kernel(&protocol, 1, ip + 9);
		length = (first & 15) * 4;
	} else if (first >> 4 == 6) {
		bpf_probe_read_kernel(&protocol, 1, ip + 6);
	}
	h->is_tcp = protocol == IPPROTO_TCP;
	if (!h->is_tcp && protocol != IPPROTO_UDP)
		return;
	h->ip = ip;
	h->transport = ip + length;
	bpf_probe_read_kernel(&h->ports, sizeof(h->ports), h->transport);
	if (h->is_tcp)
		bpf_probe_read_kernel(&h->flags, 1, h->transport + 13);
}

static __always_inline __u16 lower(__u16 a, __u16 b)
{
	return a < b ? a : b;
}

static __always_inline bool is_syn(struct headers *h)
{
	return (h->flags & 0x12) == 0x02; /* without ACK */
}

/* port_of tells the service's port: that of a listener, that to which a SYN goes
 * or from which its answer comes, else the lower one of the two. */
static __always_inline __u16 port_of(struct headers *h, struct sock *sk)
{
	if (sk && sk->__sk_common.skc_state == TCP_LISTEN)
		return sk->__sk_common.skc_num;
	__u16 source = swap16(h->ports.source), dest = swap16(h->ports.dest);
	if (is_syn(h))
		return dest;
	if ((h->flags & 0x12) == 0x12)
		return source;
	return lower(source, dest);
}

static __always_inline void set_v4(__u8 *addr, __u32 v4)
{
	addr[10] = addr[11] = 0xff;
	__builtin_memcpy(addr + 12, &v4, 4);
}

static __always_inline struct thrown *place_of(struct opener *o)
{
	__u64 mixed = (o->words[0] ^ o->words[1] * 0x9e3779b97f4a7c15ULL ^ o->port << 32) * 0xff51afd7ed558ccdULL;
	__u32 place = mixed >> 48 & last_place;

	return bpf_map_lookup_elem(&thrown, &place);
}

static __always_inline bool is_by(struct thrown *t, struct opener *o)
{
	return t->by.words[0] == o->words[0] && t->by.words[1] == o->words[1] && t->by.port == o->port;
}

/* keep_syn remembers a SYN that came and was thrown away, until what it asks for stands. */
static __always_inline void keep_syn(struct headers *h, struct port_fate *fate)
{
	struct opener o = {.port = h->ports.source};
	__u32 v4 = 0, seq = 0;

	if (h->is_v4) {
		bpf_probe_read_kernel(&v4, 4, h->ip + 12);
		set_v4(o.addr, v4);
	} else {
		bpf_probe_read_kernel(o.addr, 16, h->ip + 8);
	}
	bpf_probe_read_kernel(&seq, 4, h->transport + 4);
	struct thrown *t = place_of(&o);
	if (!t)
		return;
	t->fate = *fate;
	if (t->since && is_by(t, &o) && t->seq == seq)
		return; /* again */
	__u64 now = bpf_ktime_get_ns();
	if (t->since && now - t->since < SENT_AGAIN_NS)
		count(&lost_syns);
	t->by = o;
	t->seq = seq;
	t->since = now;
}

/* count_refused counts a SYN that finds no listener: the kernel answers it with a reset. */
static __always_inline void count_refused(struct headers *h, __u32 netns)
{
	struct unserved u = {.netns = netns, .port = swap16(h->ports.dest)};
	__u32 v4 = 0;

	if (h->is_v4) {
		bpf_probe_read_kernel(&v4, 4, h->ip + 16);
		set_v4(u.addr, v4);
	} else {
		bpf_probe_read_kernel(u.addr, 16, h->ip + 24);
	}
	add(&refused, &u);
}

static __always_inline bool is_usual(__u32 reason)
{
	return reason < USUAL_BITS && usual[reason / 64 & (USUAL_BITS / 64 - 1)] >> reason % 64 & 1;
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
	struct headers h = {};
	read_headers(&h, skb);
	struct port_fate p = {.netns = f.netns, .reason = f.reason, .port = port_of(&h, sk)};
	if (p.port && !add(&ports, &p))
		count(&lost_ports);
	if (!has_reason || sk || !is_syn(&h)) /* one that leaves has a socket */
		return 0;
	if (no_socket && p.reason == no_socket)
		count_refused(&h, p.netns);
	else if (!is_usual(p.reason))
		keep_syn(&h, &p);
	return 0;
}

/* stands adds a connection whose SYN had been thrown away. */
static __always_inline void stands(struct thrown *t)
{
	static const struct delayed nothing;
	struct port_fate fate = t->fate;
	struct delayed *d = bpf_map_lookup_elem(&late, &fate);

	if (!d) {
		bpf_map_update_elem(&late, &fate, &nothing, BPF_NOEXIST); /* may lose to another CPU, which is well */
		d = bpf_map_lookup_elem(&late, &fate);
	}
	if (!d) {
		count(&lost_late);
		return;
	}
	d->connections++;
	d->ns += bpf_ktime_get_ns() - t->since;
}

/* A connection stands that somebody else opened. */
SEC("tp_btf/inet_sock_set_state")
int drops_stands(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct opener o = {};

	if ((int)ctx[1] != TCP_SYN_RECV || (int)ctx[2] != TCP_ESTABLISHED)
		return 0;
	o.port = sk->__sk_common.skc_dport;
	if (sk->__sk_common.skc_family == AF_INET)
		set_v4(o.addr, sk->__sk_common.skc_daddr);
	else if (bpf_core_field_exists(sk->__sk_common.skc_v6_daddr))
		bpf_probe_read_kernel(o.addr, 16, &sk->__sk_common.skc_v6_daddr);
	struct thrown *t = place_of(&o);
	if (!t || !t->since || !is_by(t, &o))
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (tp && tp->rcv_nxt == swap32(t->seq) + 1) {
		stands(t);
		t->since = 0;
	}
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
