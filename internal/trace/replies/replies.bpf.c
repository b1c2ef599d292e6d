//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * What replies say of themselves: the status of HTTP, or what a broker's frame of AMQP
 * says of a message, which is in the first twelve bytes that a server writes, and the
 * response code of a name server, which is in the first four of its datagram, and how
 * long after the question it came. Nothing else is read, and these bytes are kept as a
 * number.
 */
#include "../tcp/socket.h"
#include "current.h"

#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_LRU_HASH 9
#define BPF_MAP_TYPE_SK_STORAGE 24
#define IPPROTO_UDP 17
#define SECOND 1000000000ULL
#define MAX_SAMPLE_SHIFT 12
#define STATUS_LINE 12 /* "HTTP/1.1 200" */
#define AMQP_BASIC 60000
#define AMQP_RETURN 50
#define AMQP_ACK 80
#define AMQP_NACK 120
#define UDP_HEADER 8
#define DNS_HEADER 12
#define DNS_PORT 53
#define MSG_PEEK 2
#define PF_IO_WORKER 0x00000010 /* reads for an io_uring */
#define X86_READ 0
#define X86_RECVFROM 45
#define ARM64_READ 63
#define ARM64_RECVFROM 207
#define LONGEST 60ULL /* seconds for which a question may have an answer; libraries give up before */
#define UNREAD 8 /* answers that a socket may hold; the C library asks for two addresses at once */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sk_buff_head___replies {
	struct sk_buff *prev;
};

struct sock___replies {
	struct sk_buff_head___replies sk_receive_queue;
	__u16 sk_protocol;
	__u32 sk_max_ack_backlog; /* 0 of a connection that was opened here */
};

struct pt_regs___x86 {
	unsigned long si, orig_ax;
};

struct pt_regs___arm64 {
	__u64 regs[31];
	__s32 syscallno;
};

struct sk_buff___replies {
	__u32 tail; /* from head: all our machines have 64 bits */
	__u32 len;
	unsigned char *data;
};

#pragma clang attribute pop

/* Replies that leave a port; of AMQP, the status is AMQP_BASIC and the method. */
struct reply {
	__u32 netns;
	__u16 port;
	__u16 status;
};

/* Replies that one command's processes read from whom they connected to. */
struct heard {
	__u32 netns;
	__u16 port;
	__u16 status;
	__u8 server[16]; /* IPv4 as ::ffff:a.b.c.d */
	__u8 comm[TASK_COMM_LEN];
};

/* A question that left, as its answer can be told. */
struct question {
	__u32 netns;
	__u16 port; /* of who asks, as on the wire */
	__u16 id;   /* as on the wire */
};

/* Answers of a name server to one command's processes. */
struct answer {
	__u32 netns;
	__u32 code;
	__u8 server[16]; /* IPv4 as ::ffff:a.b.c.d */
	__u8 comm[TASK_COMM_LEN];
};

/* The answers that a socket was given and nobody has read, in the order in which they
 * came, which is that in which they are read. */
struct come {
	__u32 came, read;
	struct {
		__u64 took; /* ns from its question on; 0 if that was not seen */
		__u32 code;
		__u8 server[16];
	} unread[UNREAD];
};

/* How many of the packets that leave are looked at, by CPU. */
struct looks {
	__u64 second_began;
	__u32 in_second;
	__u32 sample_shift; /* one packet in so many powers of two */
};

/* Given by the loader: so many packets a second are looked at on a CPU, about. */
const volatile __u32 most = 1000;

volatile __u64 lost_replies; /* of ports and statuses beyond the bound */
volatile __u64 lost_heard; /* of whom was asked, commands and statuses beyond the bound */
volatile __u64 lost_answers; /* of name servers and commands beyond the bound */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct reply);
	__type(value, __u64);
} replies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct answer);
	__type(value, __u64);
} answers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct heard);
	__type(value, __u64);
} heards SEC(".maps");

/* When questions left that have no answer yet; the oldest make room. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct question);
	__type(value, __u64);
} questions SEC(".maps");

/* How many of the answers are to questions that were seen to leave, and how long these
 * took together, in ns. Their code is 0. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct answer);
	__type(value, __u64);
} timed SEC(".maps"), took SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct looks);
} looked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct come);
} come SEC(".maps");

static void *(*bpf_sk_storage_get)(void *map, void *sk, void *value, __u64 flags) = (void *)107;
static struct pt_regs *(*bpf_task_pt_regs)(struct task_struct *task) = (void *)175;

volatile bool finishing; /* set by user space: nothing new is counted */

/* How often the programs were called. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} calls SEC(".maps");

static __always_inline void count_call(void)
{
	__u32 only = 0;
	__u64 *n = bpf_map_lookup_elem(&calls, &only);

	if (n)
		++*n;
}

static __always_inline void add(void *map, void *key, __u64 weight, volatile __u64 *lost)
{
	__u64 *n = bpf_map_lookup_elem(map, key);

	if (!n) {
		if (!bpf_map_update_elem(map, key, &weight, BPF_NOEXIST))
			return;
		n = bpf_map_lookup_elem(map, key); /* another CPU was quicker */
	}
	if (n)
		*n += weight;
	else
		count(lost);
}

/* decay looks at more again when a second was over and few were seen in it: before the
 * draw, for after a rush there may be nobody to draw for long. */
static __always_inline void decay(struct looks *l)
{
	__u64 now = bpf_ktime_get_ns();

	if ((__s64)(now - l->second_began) <= (__s64)SECOND)
		return;
#pragma unroll
	for (int i = 0; i < MAX_SAMPLE_SHIFT; i++) {
		if (l->sample_shift && l->in_second < most / 4) {
			l->sample_shift--;
			l->in_second *= 2; /* as many would have been looked at */
		}
	}
	l->second_began = now;
	l->in_second = 0;
}

/* mixed is a number of 32 bits that is the same for a segment on each of its devices. */
static __always_inline __u32 mixed(__u64 ports_and_seq)
{
	__u64 h = ports_and_seq * 0x9E3779B97F4A7C15ULL;

	h = (h ^ h >> 32) * 0x9E3779B97F4A7C15ULL;
	return h >> 32;
}

/* drawn is for how many segments this one stands, 0 if it is passed over. It is the same on
 * each device that a segment passes, or more devices would draw it more often. */
static __always_inline __u32 drawn(__u64 ports_and_seq)
{
	__u32 only = 0;
	struct looks *l = bpf_map_lookup_elem(&looked, &only);

	if (!l)
		return 0;
	decay(l);
	__u32 shift = l->sample_shift & 15;
	if (mixed(ports_and_seq) & ((1U << shift) - 1))
		return 0;
	if (++l->in_second > most && l->sample_shift < MAX_SAMPLE_SHIFT) {
		l->sample_shift++; /* fewer at once when they are many */
		l->in_second = most / 2;
	}
	return 1U << shift;
}

/* The skb as a helper can read it, whose bytes may lie in pages: since Linux 6.12 at a tracepoint. */
struct bpf_dynptr {
	__u64 opaque[2];
} __attribute__((aligned(8)));

extern int bpf_dynptr_from_skb(struct sk_buff *skb, __u64 flags, struct bpf_dynptr *ptr) __attribute__((section(".ksyms")));
static long (*bpf_dynptr_read)(void *dst, __u32 len, const struct bpf_dynptr *src, __u32 offset, __u64 flags) = (void *)201;

/* Where the segment began that was counted last, of a connection found by its ports: a
 * packet leaves by several devices one after the other, and may be sent again. */
volatile __u32 counted[4096];

static __always_inline bool is_counted(__u64 ports_and_seq)
{
	volatile __u32 *last = &counted[mixed((__u32)ports_and_seq) & 4095];
	__u32 seq = ports_and_seq >> 32;

	if (*last == seq)
		return true;
	*last = seq;
	return false;
}

/* status_of is the number in "HTTP/1.1 200"; 0 if that is not how it begins. */
static __always_inline __u32 status_of(const __u8 *line)
{
	__u32 status = 0;

	if (*(const __u64 *)line << 8 != 0x2e312f5054544800ULL || line[8] != ' ') /* "HTTP/1." */
		return 0;
#pragma unroll
	for (int i = 9; i < STATUS_LINE; i++) {
		__u32 digit = line[i] - '0';

		if (digit > 9)
			return 0;
		status = status * 10 + digit;
	}
	return status;
}

/* confirmed_of is what a frame of AMQP 0-9-1 says of a message that was published, as a status
 * above all that HTTP has: AMQP_BASIC and the method; 0 if it says nothing of one. */
static __always_inline __u32 confirmed_of(const __u8 *line)
{
	/* a method's frame of less than 256 bytes, class 60 (basic), a method below 256 */
	if (line[0] != 1 || line[3] || line[4] || line[5] || line[7] || line[8] != 60 || line[9])
		return 0;
	if (line[10] != AMQP_ACK && line[10] != AMQP_NACK && line[10] != AMQP_RETURN)
		return 0;
	return AMQP_BASIC + line[10];
}

/* payload is where what TCP carries begins, from the packet's data on; 0 if there is not
 * as much as a status line. */
static __always_inline __u32 payload(struct sk_buff *skb, void *header)
{
	struct sk_buff___replies *more = (struct sk_buff___replies *)skb;
	__u8 words = 0;

	bpf_probe_read_kernel(&words, 1, header + 12);
	__u32 at = header - (void *)more->data + (words >> 4) * 4;
	return at < 256 && at + STATUS_LINE <= more->len ? at : 0;
}

/* dns_header is where a datagram's DNS header begins; 0 if it is not in the part that lies in one piece. */
static __always_inline void *dns_header(struct sk_buff *skb)
{
	if (((struct sk_buff___replies *)skb)->tail < (__u32)skb->transport_header + UDP_HEADER + DNS_HEADER)
		return 0;
	return skb->head + skb->transport_header + UDP_HEADER;
}

/* ask remembers when a question left. One that is asked again is as old as it was. */
static __always_inline void ask(struct sk_buff *skb, struct sock *sk)
{
	struct port_pair p = {};
	struct question q = {};
	__u8 flags = 0;
	__u64 now = bpf_ktime_get_ns();

	bpf_probe_read_kernel(&p, sizeof(p), skb->head + skb->transport_header);
	if (p.dest != swap16(DNS_PORT))
		return;
	void *header = dns_header(skb);
	if (!header)
		return;
	bpf_probe_read_kernel(&flags, 1, header + 2);
	if (flags & 0x80) /* an answer */
		return;
	bpf_probe_read_kernel(&q.id, sizeof(q.id), header);
	q.netns = netns_of_socket(sk);
	q.port = p.source;
	bpf_map_update_elem(&questions, &q, &now, BPF_NOEXIST);
}

/* took_since is how long ago the question of an answer left, in ns; 0 if that was not seen,
 * or so long ago that it was another one. */
static __always_inline __u64 took_since(struct sock *sk, __u16 port, void *header)
{
	struct question q = {};

	bpf_probe_read_kernel(&q.id, sizeof(q.id), header);
	q.netns = netns_of_socket(sk);
	q.port = port;
	__u64 *asked = bpf_map_lookup_elem(&questions, &q);
	if (!asked)
		return 0;
	__u64 since = bpf_ktime_get_ns() - *asked;
	bpf_map_delete_elem(&questions, &q);
	return since < LONGEST * SECOND ? since : 0;
}

/* Called for every packet that is handed to a device. */
SEC("tp_btf/net_dev_queue")
int replies_http(__u64 *ctx)
{
	struct sk_buff *skb = untrusted((struct sk_buff *)ctx[0]);
	struct sock *sk = skb->sk;
	struct bpf_dynptr bytes = {};
	__u64 line[2] = {};
	__u64 ports_and_seq = 0;
	struct reply r = {};

	count_call();
	if (finishing || !sk)
		return 0;
	__u16 protocol = ((struct sock___replies *)sk)->sk_protocol;
	if (protocol == IPPROTO_UDP)
		ask(skb, sk);
	if (protocol != IPPROTO_TCP)
		return 0;
	void *header = skb->head + skb->transport_header;
	__u32 at = payload(skb, header);
	if (!at)
		return 0;
	bpf_probe_read_kernel(&ports_and_seq, sizeof(ports_and_seq), header);
	__u32 weight = drawn(ports_and_seq);
	if (!weight)
		return 0;
	long failed = bpf_dynptr_from_skb((struct sk_buff *)ctx[0], 0, &bytes);
	if (!failed)
		failed = bpf_dynptr_read(line, STATUS_LINE, &bytes, at, 0);
	r.status = failed ? 0 : status_of((__u8 *)line);
	/* a broker's: who takes messages confirms them, too, on a connection that he opened */
	if (!r.status && !failed && ((struct sock___replies *)sk)->sk_max_ack_backlog)
		r.status = confirmed_of((__u8 *)line);
	if (r.status < 200 || (r.status > 599 && r.status < AMQP_BASIC)) /* none, or one before the one that counts */
		return 0;
	if (is_counted(ports_and_seq) || !wanted(bpf_get_current_task_btf()->tgid))
		return 0;
	r.netns = netns_of_socket(sk);
	r.port = sk->__sk_common.skc_num;
	add(&replies, &r, weight, &lost_replies);
	return 0;
}

/* set_sender is where a datagram came from. */
static __always_inline void set_sender(__u8 *addr, struct sk_buff *skb)
{
	void *ip = skb->head + skb->network_header;
	__u8 first = 0;
	__u32 v4 = 0;

	bpf_probe_read_kernel(&first, 1, ip);
	if (first >> 4 == 4) {
		bpf_probe_read_kernel(&v4, sizeof(v4), ip + 12);
		addr[10] = addr[11] = 0xff;
		__builtin_memcpy(addr + 12, &v4, 4);
	} else {
		bpf_probe_read_kernel(addr, 16, ip + 8);
	}
}

/* newest is the datagram that a socket has just been given; 0 if it was taken already. */
static __always_inline struct sk_buff *newest(struct sock *sk)
{
	struct sk_buff_head___replies *queue = &((struct sock___replies *)untrusted(sk))->sk_receive_queue;
	struct sk_buff *skb = queue->prev;

	return (void *)skb == (void *)queue ? 0 : skb;
}

/* Called when a socket was given something. Who will read it is not known yet. */
SEC("tp_btf/sk_data_ready")
int replies_came(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct port_pair p = {};
	__u8 flags[2] = {};

	count_call();
	if (finishing || ((struct sock___replies *)sk)->sk_protocol != IPPROTO_UDP)
		return 0;
	struct sk_buff *skb = newest(sk);
	if (!skb)
		return 0;
	void *header = skb->head + skb->transport_header;
	bpf_probe_read_kernel(&p, sizeof(p), header);
	if (p.source != swap16(DNS_PORT))
		return 0;
	void *dns = dns_header(skb);
	if (!dns)
		return 0;
	bpf_probe_read_kernel(flags, sizeof(flags), dns + 2);
	if (!(flags[0] & 0x80)) /* a question */
		return 0;
	struct come *c = bpf_sk_storage_get(&come, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!c) {
		count(&lost_answers);
		return 0;
	}
	if (c->came - c->read >= UNREAD) { /* the oldest makes room */
		c->read = c->came - UNREAD + 1;
		count(&lost_answers);
	}
	__u32 at = c->came++ & (UNREAD - 1);
	c->unread[at].code = flags[1] & 15;
	c->unread[at].took = took_since(sk, p.dest, dns);
	set_sender(c->unread[at].server, skb);
	return 0;
}

/* read_into is where a thread's read() or recv() puts what it reads; 0 where it is in another call. Who reads for
 * an io_uring is in none, and has the registers of who made him. */
static __always_inline __u64 read_into(struct task_struct *t)
{
	struct pt_regs___x86 *x86 = (void *)bpf_task_pt_regs(t);
	struct pt_regs___arm64 *arm64 = (void *)x86;

	if (t->flags & PF_IO_WORKER)
		return 0;
	if (bpf_core_field_exists(x86->orig_ax)) {
		__u64 nr = x86->orig_ax;

		return (nr == X86_READ || nr == X86_RECVFROM) && !is_32bit(t, nr) ? x86->si : 0;
	}
	if (bpf_core_field_exists(arm64->syscallno)) {
		__s32 nr = arm64->syscallno;

		return (nr == ARM64_READ || nr == ARM64_RECVFROM) && !is_32bit(t, nr) ? arm64->regs[1] : 0;
	}
	return 0;
}

/* set_server is whom a connection was opened to. */
static __always_inline void set_server(struct heard *h, struct sock_common *k)
{
	h->port = swap16(k->skc_dport);
	if (k->skc_family == AF_INET) {
		__u32 v4 = k->skc_daddr;

		h->server[10] = h->server[11] = 0xff;
		__builtin_memcpy(h->server + 12, &v4, 4);
	} else {
		__builtin_memcpy(h->server, &k->skc_v6_daddr, 16);
	}
}

/* hear counts the reply that a process has begun to read, by what it has in its hands now. */
static __always_inline void hear(struct sock *sk, struct task_struct *t, int length)
{
	struct heard h = {};
	__u64 line[2] = {};

	if (finishing || length < STATUS_LINE || ((struct sock___replies *)sk)->sk_max_ack_backlog)
		return;
	__u64 from = read_into(t);
	if (!from || bpf_probe_read_user(line, STATUS_LINE, (void *)from))
		return;
	h.status = status_of((__u8 *)line);
	if (h.status < 200 || h.status > 599 || !wanted(t->tgid))
		return;
	h.netns = netns_of_socket(sk);
	set_server(&h, &sk->__sk_common);
	group_name(h.comm, t);
	add(&heards, &h, 1, &lost_heard);
}

/* Called when a process has read from a socket. */
SEC("tp_btf/sock_recv_length")
int replies_read(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct task_struct *t = bpf_get_current_task_btf();
	struct answer a = {};

	count_call();
	__u16 protocol = ((struct sock___replies *)sk)->sk_protocol;
	if ((int)ctx[2] & MSG_PEEK) /* it will be read again */
		return 0;
	if (protocol == IPPROTO_TCP)
		hear(sk, t, ctx[1]);
	if (protocol != IPPROTO_UDP || (int)ctx[1] < DNS_HEADER)
		return 0;
	struct come *c = bpf_sk_storage_get(&come, sk, 0, 0);
	if (!c || c->came == c->read)
		return 0;
	__u32 at = c->read++ & (UNREAD - 1);
	if (!wanted(t->tgid))
		return 0;
	a.netns = netns_of_socket(sk);
	a.code = c->unread[at].code;
	__builtin_memcpy(a.server, c->unread[at].server, sizeof(a.server));
	group_name(a.comm, t);
	add(&answers, &a, 1, &lost_answers);
	__u64 took_ns = c->unread[at].took;
	if (!took_ns)
		return 0;
	a.code = 0;
	add(&timed, &a, 1, &lost_answers);
	add(&took, &a, took_ns, &lost_answers);
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
