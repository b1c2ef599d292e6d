//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * How long received bytes lie unread. The socket itself knows when it received
 * last, so only reads are watched, not segments.
 */
#include "../tcp/endpoint.h"

#define BPF_MAP_TYPE_SK_STORAGE 24
#define SLOTS 28 /* 1 µs, 2 µs, … 67 s, more */

/* Reads of one command's processes at one end of connections. */
struct reader {
	struct endpoint at;
	__u8 comm[TASK_COMM_LEN];
};

struct waits {
	__u64 ns;
	__u64 histogram[SLOTS];
	__u64 first_ns; /* of the first read of each connection */
	__u64 first[SLOTS];
};

/* Given by the loader: how long a jiffy is. */
const volatile __u64 tick_ns = 4000000;

volatile __u64 lost_readers; /* reads by readers beyond the bound */
volatile __u64 lost_sockets; /* reads from sockets that could not be remembered */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 256);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct reader);
	__type(value, struct waits);
} readers SEC(".maps");

/* When a socket was last read from, and what had come by then. */
struct last {
	__u64 at;
	__u32 rcv_nxt;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct last);
} sockets SEC(".maps");

static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;
static void *(*bpf_sk_storage_get)(void *map, void *sk, void *value, __u64 flags) = (void *)107;
static __u64 (*bpf_jiffies64)(void) = (void *)118;

/* waited says how long ago the last bytes came. What a socket does after that, as
 * the late sending of an ACK, sets its clock anew; then the time at which data
 * came, which it keeps in jiffies, is the better one. */
static __always_inline __u64 waited(struct tcp_sock *tp, __u64 now, __u64 last_read)
{
	__u64 came = tp->tcp_clock_cache;
	__u64 exact = now > came ? now - came : 0; /* two clocks of the kernel's, nanoseconds apart */
	__u64 coarse = (__u32)((__u32)bpf_jiffies64() - tp->inet_conn.icsk_ack.lrcvtime) * tick_ns;

	if (coarse <= exact + 2 * tick_ns)
		return exact;
	return coarse < now - last_read ? coarse : now - last_read; /* they came after it */
}

/* is_first says whether the bytes being read are the first of their connection;
 * the segment that they came in is still in the queue. */
static __always_inline bool is_first(struct sock *sk, struct tcp_sock *tp)
{
	struct sk_buff *skb = untrusted(sk)->sk_receive_queue.next;
	struct tcp_skb_cb *cb = (struct tcp_skb_cb *)skb->cb;
	__u32 seq = 0;

	bpf_probe_read_kernel(&seq, sizeof(seq), &cb->seq);
	return seq == tp->rcv_nxt - (__u32)tp->bytes_received;
}

static __always_inline struct waits *waits_of(struct reader *r)
{
	static const struct waits nothing;
	struct waits *w = bpf_map_lookup_elem(&readers, r);

	if (w)
		return w;
	bpf_map_update_elem(&readers, r, &nothing, BPF_NOEXIST);
	w = bpf_map_lookup_elem(&readers, r);
	if (!w)
		count(&lost_readers);
	return w;
}

/* Called for every segment from which a process has just read. */
SEC("tp_btf/tcp_rcv_space_adjust")
int unread_read(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	struct task_struct *t = bpf_get_current_task_btf();
	struct reader r = {};

	if (!wanted(t->tgid))
		return 0;
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	__u64 now = bpf_ktime_get_ns();
	if (!tp)
		return 0;
	struct last *last = bpf_sk_storage_get(&sockets, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!last) {
		count(&lost_sockets);
		return 0;
	}
	bool anew = !last->at || last->rcv_nxt != tp->rcv_nxt;
	__u64 ns = waited(tp, now, last->at);
	last->at = now;
	last->rcv_nxt = tp->rcv_nxt;
	if (!anew) /* the rest of what could be read then */
		return 0;
	group_name(r.comm, t);
	set_endpoint(&r.at, sk, tp);
	struct waits *w = waits_of(&r);
	if (!w)
		return 0;
	w->ns += ns;
	w->histogram[log2_slot(ns, SLOTS)]++;
	if (r.at.is_client || !is_first(sk, tp))
		return 0;
	w->first_ns += ns;
	w->first[log2_slot(ns, SLOTS)]++;
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
