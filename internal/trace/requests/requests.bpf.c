//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * Requests and replies, by what sockets do: bytes come, are read, are written. Who
 * takes turns at that asks and answers; no byte of content is looked at.
 *
 * On loopback the next bytes may come before the tracepoint of the write that they
 * answer is reached, for that stands at the end of the call. TCP's sequence numbers
 * tell, and are believed before the order of events. A Unix socket has none, and its
 * peer may read what is in the queue before the tracepoint of the arrival is reached:
 * there an empty queue tells that what came was read.
 */
#include "timer.h"
#include "walk.h"

#define MSG_PEEK 2
#define EPIPE 32
#define ECONNREFUSED 111
#define ECONNRESET 104
#define FEW_SEGMENTS 6 /* in which a handshake of TLS is over: there both ends speak when they like */

/* Requests of one peer at one place. */
struct peer {
	__u32 place;
	__u8 addr[16];
};

struct asked {
	__u64 answered;
	__u64 unread_ns;
	__u64 in_hand_ns;
};

volatile __u64 lost_peers; /* turns of peers beyond the bound */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct peer);
	__type(value, struct asked);
} peers SEC(".maps");

/* Types of keys that hold only their numbers, kept for bpf2go. */
const enum role *unused_role __attribute__((unused));
const enum then *unused_then __attribute__((unused));
const enum failure *unused_failure __attribute__((unused));
const enum exclusion *unused_exclusion __attribute__((unused));

/* What a TCP socket says of its bytes; all 0 of a Unix socket. */
struct bytes {
	struct tcp_sock___place *more;
	__u64 sent_at; /* when it sent data last */
	__u32 written; /* so far, as a sequence number */
	__u32 unacked;
	__u32 received; /* likewise, without the end */
	__s32 unread;
	__u32 segments; /* with data, that came */
};

static __always_inline bool look(struct bytes *b, struct sock *sk)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	if (!tp)
		return false;
	struct tcp_sock___place *m = more_of_tcp(tp);
	b->more = m;
	b->sent_at = tp->tcp_wstamp_ns;
	b->written = m->write_seq;
	b->unacked = b->written - m->snd_una;
	b->received = tp->rcv_nxt - (more_of(sk)->sk_shutdown & RCV_SHUTDOWN ? 1 : 0);
	b->unread = b->received - m->copied_seq;
	b->segments = m->data_segs_in;
	return true;
}

/* add_begun counts a turn, and says by how much the next are thinned. */
SEPARATE __u32 add_begun(struct turn *t)
{
	__u32 place = t ? t->place : 0;
	struct arrivals *a = bpf_map_lookup_elem(&place_sums, &place);

	if (!t || !a)
		return 0;
	add(&a->begun, t->weight);
	add(&a->followed, 1);
	adapt(a, t->began);
	return a->sample_shift;
}

/* begin begins a turn that stands for so many. */
static __always_inline void begin(struct sock *sk, struct turn *t, __u8 state, __u64 at, struct bytes *b, __u32 weight)
{
	t->began = t->came = t->written = at;
	t->read = t->first = t->next = 0;
	t->left = sk->__sk_common.skc_state == TCP_CLOSE_WAIT ? at : 0; /* one segment brought its end, too */
	t->write_seq = b->written;
	t->received = b->received;
	t->weight = weight;
	t->bytes = 0;
	t->pending = t->pieces = t->one_way = t->streamed = t->farewell = 0;
	t->unanswered = 1;
	t->state = state;
	set_followed(sk, add_begun(t));
}

static __always_inline void idle(struct sock *sk, struct turn *t)
{
	t->state = IDLE;
	set_idle(sk);
}

SEPARATE int add_excluded(struct turn *t, __u32 why)
{
	struct sums *s = t ? sums_of(t->group) : 0;

	if (t && s && why < EXCLUSIONS)
		add(&s->excluded[why], t->weight);
	return 0;
}

SEPARATE int add_failure(struct turn *t, __u32 how)
{
	struct sums *s = t ? sums_of(t->group) : 0;

	if (!t || !s || how >= FAILURES)
		return 0;
	/* who left waited until then, whenever this end takes note of it */
	__u64 at = how == LEFT && t->left ? t->left : bpf_ktime_get_ns();
	__u64 age = at > t->began ? at - t->began : 0;
	if (how == LEFT && t->role == SERVER && t->left && age < NOTICED) {
		how = LEFT_EARLY;
		t->left_early = 1;
	}
	add(&s->failed[how], t->weight);
	add(&s->failed_ns[how], age * t->weight);
	return 0;
}

/* know_group notes whose turn it is. It is false if that is to be left out. */
SEPARATE int know_group(struct turn *t)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct group c = {};

	if (!t)
		return false;
	if (!wanted(task->tgid))
		return false;
	if (t->tgid == task->tgid)
		return true;
	c.place = t->place;
	group_name(c.comm, task);
	t->group = number_of_group(&c);
	t->tgid = task->tgid;
	return true;
}

/* know_nobody is for turns that end before anybody was seen to take part. */
SEPARATE int know_nobody(struct turn *t)
{
	struct group c = {};

	if (!t || t->group)
		return 0;
	c.place = t->place;
	t->group = number_of_group(&c);
	return 0;
}

static __always_inline void leave_alone(struct turn *t)
{
	know_nobody(t);
	add_excluded(t, OVERLAPPED);
	t->state = NO_TURNS;
}

SEPARATE int add_unread(struct turn *t, __u64 ns)
{
	struct sums *s = t ? sums_of(t->group) : 0;
	__u32 slot = slot_of(ns);

	if (!t || !s || slot >= SLOTS)
		return 0;
	add(&s->unread_ns, ns * t->weight);
	add(&s->unread[slot], t->weight);
	return 0;
}

SEPARATE int add_in_hand(struct turn *t, __u64 ns)
{
	struct sums *s = t ? sums_of(t->group) : 0;
	__u32 slot = slot_of(ns);

	if (!t || !s || slot >= SLOTS)
		return 0;
	add(&s->in_hand_ns, ns * t->weight);
	add(&s->in_hand[slot], t->weight);
	add(&s->followed, 1);
	if (t->pieces) {
		add(&s->receiving, t->weight);
		add(&s->receiving_ns, (t->read - t->first) * t->weight);
	}
	return 0;
}

/* add_timer counts a reply that follows from a timer which ended while the request stood. */
SEPARATE int add_timer(struct turn *t, __u64 read)
{
	__u64 at = timer_before();
	struct sums *s = t && at > t->began ? sums_of(t->group) : 0;

	if (!t || !s)
		return 0;
	__u32 then = follows_of(bpf_get_current_task_btf()->pid)->then;
	if (then >= THENS)
		return 0;
	add(&s->timers[then], t->weight);
	add(&s->timer_ns[then], (at - (read < at ? read : t->began)) * t->weight);
	return 0;
}

SEPARATE int add_reply(struct turn *t, __u64 ns)
{
	struct sums *s = t ? sums_of(t->group) : 0;

	if (!t || !s)
		return 0;
	if (ns < SECOND) {
		add(&s->reply_ns, ns * t->weight);
	} else if (!t->streamed) {
		t->streamed = 1;
		add(&s->excluded[STREAMED], t->weight);
	}
	return 0;
}

SEPARATE int add_served(struct turn *t, __u64 ns)
{
	struct sums *s = t && !t->streamed ? sums_of(t->group) : 0;
	__u32 slot = slot_of(ns);

	if (!s || !t || slot >= SLOTS)
		return 0;
	add(&s->served_ns, ns * t->weight);
	add(&s->served[slot], t->weight);
	return 0;
}

/* add_acknowledged counts how long a reply was under way until it was acknowledged; what
 * the next request acknowledged may have been there long before. */
SEPARATE int add_acknowledged(struct turn *t, __u64 acknowledged, __u64 by_this)
{
	struct sums *s = t ? sums_of(t->group) : 0;
	__u64 ns = t && acknowledged > t->written ? acknowledged - t->written : 0;
	__u32 slot = slot_of(ns);

	if (!t || !s || slot >= SLOTS)
		return 0;
	if (by_this) {
		add(&s->with_next, t->weight);
		return 0;
	}
	add(&s->acknowledged_ns, ns * t->weight);
	add(&s->acknowledged[slot], t->weight);
	return 0;
}

SEPARATE int add_peer(struct peer *of, struct turn *t, __u64 in_hand)
{
	static const struct asked nothing;
	struct asked *a;

	if (!of || !t)
		return 0;
	struct peer p = *of;
	a = bpf_map_lookup_elem(&peers, &p);
	if (!a) {
		bpf_map_update_elem(&peers, &p, &nothing, BPF_NOEXIST);
		a = bpf_map_lookup_elem(&peers, &p);
	}
	if (!a) {
		count(&lost_peers);
		return 0;
	}
	add(&a->answered, t->weight);
	add(&a->unread_ns, (t->first - t->began) * t->weight);
	add(&a->in_hand_ns, in_hand * t->weight);
	return 0;
}

static __always_inline void set_peer(struct peer *p, struct sock *sk)
{
	if (sk->__sk_common.skc_family == AF_INET)
		set_v4(p->addr, sk->__sk_common.skc_daddr);
	else if (bpf_core_field_exists(sk->__sk_common.skc_v6_daddr))
		bpf_probe_read_kernel(p->addr, 16, &sk->__sk_common.skc_v6_daddr);
}

/* acknowledged adds the way of a reply that was written, if all of it is there. */
static __always_inline void acknowledged(struct turn *t, struct bytes *b, bool is_next)
{
	if (!b->more || b->unacked)
		return;
	__u64 at = b->more->rack.mstamp + b->more->rack.rtt_us;
	add_acknowledged(t, at * 1000, is_next && at >= b->more->tcp_mstamp);
}

static __always_inline bool find_place(struct place *p, struct sock *sk)
{
	struct tcp_sock *tp;

	if (is_unix(sk))
		return place_of_unix(p, sk);
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return false;
	place_of_tcp(p, sk, tp);
	return true;
}

/* first_sight remembers a socket, when bytes came or left. Of a client to which bytes
 * come that it did not ask for, as of one that is left out, only that it is one. */
static __always_inline struct turn *first_sight(struct sock *sk, bool came)
{
	struct place p = {};
	struct turn *t;
	__u32 place = 0;

	if (!find_place(&p, sk) || (!came && p.role == SERVER))
		return 0;
	if (!came || p.role == SERVER) {
		place = number_of_place(&p);
		if (!place) {
			count(&lost_places);
			return 0;
		}
	}
	t = no_more_sockets ? 0 : bpf_sk_storage_get(&turns, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t) {
		count(&lost_sockets);
		return 0;
	}
	t->place = place;
	t->role = p.role;
	t->fresh = 1;
	return t;
}

/* has_place finds the place of a client that was remembered without. */
static __always_inline bool has_place(struct sock *sk, struct turn *t)
{
	struct place p = {};

	if (!t->place && find_place(&p, sk))
		t->place = number_of_place(&p);
	if (!t->place)
		count(&lost_places);
	return t->place;
}

/* forget_old lets go of a turn that was half seen. */
static __always_inline void forget_old(struct turn *t)
{
	if (t->state != NO_TURNS && t->began <= resumed_at)
		t->state = IDLE;
}

/* ------------------------------------------------------------------ the server */

/* is_finished says whether a turn's bytes are as many as those by which a client ends
 * its part of a TLS handshake: of TLS 1.3 with and without the record for old
 * middleboxes, of 1.2 with either curve, anew and resumed. */
static __always_inline bool is_finished(__u32 n)
{
	return n == 64 || n == 80 || n == 58 || n == 74 || n == 93 || n == 126 || n == 51;
}

/* handshake says whether the turn that is answered is of TLS and not a request. */
static __always_inline bool handshake(struct turn *t)
{
	if (t->tls < 2)
		return false;
	return --t->tls == 2 || is_finished(t->bytes);
}

/* answer: the first bytes of the reply are written. Another CPU may come to the same conclusion
 * from the arrival of the next request: one counts, and the other waits for it. Only who writes
 * them himself knows from which timer that follows; an arrival is told in anybody's thread. */
static __always_inline void answer(struct sock *sk, struct turn *t, struct bytes *b, __u64 now, bool writes)
{
	__u64 read = t->read ? t->read : t->began, at = b->sent_at > read && b->sent_at < now ? b->sent_at : now;
	struct peer p = {.place = t->place};
	bool asked = false;

	if (!take(&t->unanswered, 0)) {
		for (int i = 0; i < 100 && *(volatile __u8 *)&t->state == READ; i++)
			; /* some 100 ns */
		return;
	}
	t->early = 0;
	if (handshake(t)) {
		add_excluded(t, TLS);
		t->weight = 0; /* for what is still to come of it */
		/* The first request may have come with the handshake's end: OpenSSL since 3.2 reads record by record, and leaves it there. */
		asked = !is_unix(sk) && b->unread > 0;
	} else {
		add_in_hand(t, at - read);
		if (writes)
			add_timer(t, read);
		if (b->more) {
			set_peer(&p, sk);
			add_peer(&p, t, at - read);
		}
	}
	t->state = REPLYING;
	take(&t->written, at); /* before it looks at what came: see came_unread */
	if ((asked || t->came > read) && *(volatile __u8 *)&t->state == REPLYING)
		t->pending = 1;
}

/* finish_server counts what is known of a turn when it is over: another one begins, or none. */
static __always_inline void finish_server(struct turn *t, struct bytes *b, bool is_next)
{
	add_served(t, t->written - t->read);
	acknowledged(t, b, is_next);
	t->fresh = 0;
}

/* overlaps says whether the client asks on though it has not got all of the reply,
 * or asked on before that was written. A Unix socket is charged for what its peer
 * has not read. */
static __always_inline bool overlaps(struct sock *sk, struct turn *t, struct bytes *b)
{
	if (b->more)
		return (b->unacked || t->pending) && b->segments > FEW_SEGMENTS;
	return more_of(sk)->sk_wmem_alloc.refs.counter > 1 && !is_read(sk); /* or that may be the reply to this */
}

/* answer_early: what has come to a Unix socket was read and answered before that was told. */
static __always_inline void answer_early(struct sock *sk, struct turn *t, struct bytes *b, __u64 early)
{
	__u64 written = is_unix(sk) ? take(&t->early_written, 0) : 0;

	if (!written || t->state != ARRIVED)
		return;
	t->state = READ;
	t->first = t->read = t->came = early;
	add_unread(t, 0);
	answer(sk, t, b, written, 0);
}

/* write_on: more of the reply is written. */
static __always_inline void write_on(struct turn *t, __u64 now)
{
	add_reply(t, now - t->written);
	t->written = now;
}

/* came_unread notes that more came. If the reply was written meanwhile, it is of the next turn. */
static __always_inline void came_unread(struct turn *t, __u64 now)
{
	take(&t->came, now);
	if (*(volatile __u8 *)&t->state == REPLYING)
		t->pending = 1;
}

/* read_more: a further piece of the request was read. */
static __always_inline void read_more(struct turn *t, __u64 now)
{
	t->read = now;
	if (t->pieces < 255)
		t->pieces++;
	if (t->one_way || t->pieces < 8 || now - t->first < SECOND)
		return;
	t->one_way = 1;
	add_excluded(t, ONE_WAY);
}

static __always_inline void came_to_server(struct sock *sk, struct turn *t, struct bytes *b, __s32 drawn, __u64 now)
{
	__u64 since = now, early;

	if (t->state == READ && b->more && b->written != t->write_seq) {
		answer(sk, t, b, now, 0);
		if (*(volatile __u8 *)&t->state == READ && !b->unacked) {
			t->next = now; /* another CPU still counts the reply: the read begins this turn */
			return;
		}
		drawn = chance(*glance_of(sk));
	}
	switch (t->state) {
	case READ:
		if (is_unix(sk) && is_read(sk)) {
			read_more(t, now);
			return;
		}
		came_unread(t, now);
		return;
	case ARRIVED:
		t->came = now;
		return;
	case CLOSING:
		return;
	case REPLYING:
		if (overlaps(sk, t, b)) {
			leave_alone(t);
			return;
		}
		if (t->early_written && is_read(sk))
			since = t->early;
		else if (t->early_written) /* it had read the rest of its request, and replied on */
			write_on(t, take(&t->early_written, 0));
		if (t->pending)
			since = t->came;
		finish_server(t, b, true);
	}
	if (!is_unix(sk) && sk->__sk_common.skc_state != TCP_ESTABLISHED && sk->__sk_common.skc_state != TCP_CLOSE_WAIT) {
		t->state = IDLE;
		return; /* what a server reads that has shut its half, it does not answer */
	}
	if (!drawn) {
		idle(sk, t);
		return;
	}
	early = t->early;
	begin(sk, t, ARRIVED, since, b, drawn);
	answer_early(sk, t, b, early);
}

static __always_inline void take_up(struct turn *t, __u64 now, __u32 bytes)
{
	if (!know_group(t)) {
		t->state = NO_TURNS;
		return;
	}
	t->first = t->read = now; /* before the state says so: another CPU may answer it then */
	*(volatile __u8 *)&t->state = READ;
	t->tid = bytes ? bpf_get_current_task_btf()->pid : 0;
	t->bytes = bytes;
	add_unread(t, now > t->began ? now - t->began : 0);
}

static __always_inline void read_on(struct turn *t, __u64 now, __u32 bytes)
{
	t->bytes += bytes;
	t->tid = bpf_get_current_task_btf()->pid;
	if (t->came > t->read)
		read_more(t, now);
}

static __always_inline void read_by_server(struct sock *sk, struct turn *t, __u32 bytes, bool peek, __u64 now)
{
	struct bytes b = {};

	if (peek) {
		if (t->fresh && t->state == ARRIVED && bytes == 1) /* nginx looks whether it is TLS */
			t->tls = 3;
		return;
	}
	switch (t->state) {
	case ARRIVED:
		take_up(t, now, bytes);
		if (t->fresh && bytes == 5 && !is_unix(sk) && look(&b, sk) && b.unread > 0)
			t->tls = 3; /* the header of a record, as OpenSSL reads it */
		return;
	case READ:
		read_on(t, now, bytes);
		return;
	case REPLYING:
		break;
	default:
		return;
	}
	if (!t->pending && !t->next) {
		if (is_unix(sk))
			t->early = now;
		return;
	}
	if (!is_unix(sk)) {
		if (!look(&b, sk))
			return;
		if (t->pending && b.segments > FEW_SEGMENTS) {
			leave_alone(t);
			return;
		}
	}
	__u64 since = t->next ? t->next : t->came;
	finish_server(t, &b, true);
	__s32 drawn = chance(*glance_of(sk));
	if (!drawn) {
		idle(sk, t);
		return;
	}
	begin(sk, t, ARRIVED, since, &b, drawn);
	take_up(t, now, bytes);
}

static __always_inline void written_by_server(struct sock *sk, struct turn *t, __u64 now)
{
	struct bytes b = {};

	if (t->state == REPLYING && !t->early) {
		write_on(t, now);
		return;
	}
	if (t->state == REPLYING && !t->early_written) {
		take(&t->early_written, now);
		/* Has the arrival been told meanwhile, and did it not see this? */
		if (*(volatile __u8 *)&t->state != ARRIVED || !take(&t->early_written, 0))
			return;
	}
	if (t->state != READ && t->state != ARRIVED)
		return;
	if (is_unix(sk)) {
		/* It was read before its arrival was told; nothing else can be answered on a
		 * connection's first turn, though some of it may lie there still. */
		if (t->state == ARRIVED && (is_read(sk) || t->fresh))
			take_up(t, t->came, 0);
		if (t->state == READ)
			answer(sk, t, &b, now, 1);
		return;
	}
	if (!look(&b, sk) || b.written == t->write_seq) /* of the turn before */
		return;
	if (t->state == ARRIVED) {
		if (b.unread > 0) { /* it still answers what was asked before */
			if (b.segments > FEW_SEGMENTS)
				leave_alone(t);
			return;
		}
		take_up(t, t->came, 0); /* a read that no tracepoint tells, as splice's */
	}
	if (t->state == READ)
		answer(sk, t, &b, now, 1);
}

/* ------------------------------------------------------------------ the client */

static __always_inline void get(struct turn *t, __u64 waited, __u64 now)
{
	t->state = COMING;
	t->came = t->first = now;
	t->read = 0;
	add_in_hand(t, waited);
}

static __always_inline void finish_client(struct turn *t)
{
	add_reply(t, t->came - t->first);
	add_served(t, t->came - t->written);
	t->timer = 0;
	t->state = IDLE;
}

static __always_inline void came_to_client(struct sock *sk, struct turn *t, struct bytes *b, __u64 now)
{
	if (t->state == ASKED) {
		get(t, now - t->written, now);
		return;
	}
	if (t->state != COMING || (is_unix(sk) && is_read(sk)))
		return;
	if (b->more && b->written != t->write_seq) { /* the answer to what is being written */
		finish_client(t);
		__s32 drawn = chance(*glance_of(sk));
		if (!drawn) {
			idle(sk, t);
			return;
		}
		begin(sk, t, ASKED, b->sent_at < now ? b->sent_at : now, b, drawn);
		get(t, now - t->written, now);
		return;
	}
	t->came = now;
}

static __always_inline void read_by_client(struct turn *t, __u64 now)
{
	if (t->state == ASKED) /* it came before the tracepoint of the write was reached */
		get(t, now - t->written, now);
	if (t->state != COMING)
		return;
	if (!t->read) {
		t->read = now;
		add_unread(t, now > t->first ? now - t->first : 0);
		if (t->timer || t->came > timer_before()) /* else it lay there until the timer ended */
			follow_answer(t->timer);
	}
	add_reply(t, t->came - t->first);
	t->first = t->came;
}

/* ask: a client begins a turn. The reply may be there already. */
static __always_inline void ask(struct sock *sk, struct turn *t, struct bytes *b, __s32 drawn, __u64 now)
{
	__u64 at = b->sent_at > t->came && b->sent_at < now ? b->sent_at : now;

	if (!wanted(bpf_get_current_task_btf()->tgid)) {
		t->state = NO_TURNS;
		return;
	}
	if (!has_place(sk, t) || !know_group(t))
		return;
	begin(sk, t, ASKED, at, b, drawn);
	t->tid = bpf_get_current_task_btf()->pid;
	__u64 timer = timer_before();
	if (timer || !t->fresh) /* of the first question it may be the one after which it connected */
		t->timer = timer;
	t->fresh = 0;
	if (b->more && b->unread > 0 && !b->unacked)
		get(t, b->more->rack.rtt_us * 1000, now);
}

static __always_inline void written_by_client(struct sock *sk, struct turn *t, __s32 drawn, __u64 now)
{
	struct bytes b = {};
	__u64 came = 0;

	if (!is_unix(sk) && (!look(&b, sk) || (b.written == t->write_seq && t->state != IDLE)))
		return;
	switch (t->state) {
	case ASKED: /* more of it */
		t->written = now;
		t->tid = bpf_get_current_task_btf()->pid;
		t->write_seq = b.written;
		return;
	case COMING:
		if (b.unread > 0 && b.segments > FEW_SEGMENTS) {
			leave_alone(t);
			return;
		}
		if (!b.more && t->read && t->came > t->read) { /* that is the answer to this one */
			came = t->came;
			t->came = t->first;
		}
		finish_client(t);
	}
	if (t->state == IDLE && drawn)
		ask(sk, t, &b, drawn, now);
	else if (t->state == IDLE)
		idle(sk, t);
	if (came && t->state == ASKED)
		get(t, 0, came);
}

/* ----------------------------------------------------------------- the programs */

static __always_inline bool has_turns(struct sock *sk)
{
	__u16 family = sk->__sk_common.skc_family;

	if (sk->__sk_common.skc_state == TCP_LISTEN)
		return false;
	return family == AF_UNIX || ((family == AF_INET || family == AF_INET6) && more_of(sk)->sk_protocol == IPPROTO_TCP);
}

/* Of several programs, and once in the object: unlike what is SEPARATE, the verifier looks
 * at it for each call, and lets it have sockets. */
#define SHARED static __attribute__((noinline))

SHARED int bytes_came(struct sock *sk)
{
	struct turn *t;
	struct bytes b = {};

	count_call();
	if (!has_turns(sk))
		return 0;
	__s32 drawn = draw(sk, BYTES_CAME);
	if (drawn == PASS)
		return 0;
	t = bpf_sk_storage_get(&turns, sk, 0, 0);
	if (!t && drawn)
		t = first_sight(sk, true);
	if (!t || t->state == NO_TURNS || (t->role == CLIENT && t->state == IDLE))
		return 0;
	if (!is_unix(sk) && (!look(&b, sk) || b.unread <= 0 || b.received == t->received)) /* only the end has come */
		return 0;
	t->received = b.received;
	forget_old(t);
	if (t->role == SERVER)
		came_to_server(sk, t, &b, drawn, bpf_ktime_get_ns());
	else
		came_to_client(sk, t, &b, bpf_ktime_get_ns());
	return 0;
}

SHARED int bytes_read(struct sock *sk, int ret, int flags)
{
	struct turn *t;

	count_call();
	if (!has_turns(sk) || !is_followed(sk))
		return 0;
	t = bpf_sk_storage_get(&turns, sk, 0, 0);
	if (!t || t->state == IDLE || t->state == NO_TURNS)
		return 0;
	forget_old(t);
	if (ret == 0 && t->state == ASKED && is_unix(sk)) {
		add_failure(t, LEFT);
		t->state = IDLE;
	}
	if (ret <= 0)
		return 0;
	if (t->role == SERVER)
		read_by_server(sk, t, ret, flags & MSG_PEEK, bpf_ktime_get_ns());
	else if (!(flags & MSG_PEEK))
		read_by_client(t, bpf_ktime_get_ns());
	return 0;
}

SHARED int bytes_written(struct sock *sk, int ret)
{
	struct turn *t;

	count_call();
	if (ret <= 0 || !has_turns(sk))
		return 0;
	__s32 drawn = draw(sk, BYTES_LEFT);
	if (drawn == PASS)
		return 0;
	t = bpf_sk_storage_get(&turns, sk, 0, 0);
	if (!t && drawn && wanted(bpf_get_current_task_btf()->tgid))
		t = first_sight(sk, false);
	if (!t || t->state == NO_TURNS)
		return 0;
	forget_old(t);
	if (t->role == SERVER)
		written_by_server(sk, t, bpf_ktime_get_ns());
	else
		written_by_client(sk, t, drawn, bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/sk_data_ready")
int requests_came(__u64 *ctx)
{
	return bytes_came((struct sock *)ctx[0]);
}

SEC("tp_btf/sock_recv_length")
int requests_read(__u64 *ctx)
{
	return bytes_read((struct sock *)ctx[0], (int)ctx[1], (int)ctx[2]);
}

SEC("tp_btf/sock_send_length")
int requests_written(__u64 *ctx)
{
	return bytes_written((struct sock *)ctx[0], (int)ctx[1]);
}

/* Where the kernel has not got these tracepoints, the functions in which they would
 * stand, or which those call: the loader takes the ones or the others. A read that
 * waited when the programs were attached ends unseen. To detach one of them takes the
 * kernel a tenth of a second, so they stay, and are told. They begin as off: what came
 * before all are attached would never be seen to be read. */
volatile bool on;

SEC("fentry/sock_def_readable")
int in_sock_def_readable(__u64 *ctx)
{
	return on ? bytes_came((struct sock *)ctx[0]) : 0;
}

/* FUNCTION watches what returns how many bytes it read or wrote: as so many arguments
 * stand before that, the first is the socket. */
#define FUNCTION(name, arguments, what, ...)                              \
	SEC("fexit/" #name)                                               \
	int in_##name(__u64 *ctx)                                         \
	{                                                                 \
		struct sock *sk = on ? ((struct socket *)ctx[0])->sk : 0; \
                                                                          \
		return sk ? what(sk, (int)ctx[arguments], ##__VA_ARGS__) : 0; \
	}
#define READS(name) FUNCTION(name, 4, bytes_read, (int)ctx[3])
#define WRITES(name) FUNCTION(name, 3, bytes_written)
#define WRITES_PAGE(name) FUNCTION(name, 5, bytes_written) /* sendfile and splice, before Linux 6.5 */

READS(inet_recvmsg)
READS(inet6_recvmsg)
READS(unix_stream_recvmsg)
READS(unix_seqpacket_recvmsg)
WRITES(inet_sendmsg)
WRITES(inet6_sendmsg)
WRITES(unix_stream_sendmsg)
WRITES(unix_seqpacket_sendmsg)
WRITES_PAGE(inet_sendpage)
WRITES_PAGE(unix_stream_sendpage)

/* end_of says how a turn ends that the connection does not survive. */
static __always_inline enum failure end_of(struct sock *sk, int from, int to)
{
	int error = sk->sk_err;

	if (to == TCP_FIN_WAIT1)
		return CLOSED;
	if (to == TCP_LAST_ACK || from == TCP_FIN_WAIT1 || from == TCP_FIN_WAIT2)
		return error ? RESET : LEFT;
	if (!error)
		return ABORTED;
	return error == ECONNRESET || error == EPIPE || error == ECONNREFUSED ? RESET : TIMED_OUT;
}

/* alert says whether a turn can be no more than an alert of TLS: no request is so
 * short in its record. */
static __always_inline bool alert(struct turn *t, struct bytes *b)
{
	return t->tls && (t->state == READ ? t->bytes : b->unread) < 40;
}

/* answered_nobody ends a turn whose answer went to somebody who was gone. */
static __always_inline void answered_nobody(struct turn *t)
{
	if (t->farewell)
		add_excluded(t, FAREWELL);
	else
		add_failure(t, LEFT);
}

/* refused says whether the other end reset the connection after it had closed it. */
static __always_inline bool refused(struct sock *sk)
{
	return sk->sk_err == EPIPE;
}

/* fail ends a turn that gets no answer. */
static __always_inline void fail(struct sock *sk, struct turn *t, struct bytes *b, int from, int to)
{
	if (t->state == ASKED && to == TCP_FIN_WAIT1 && bpf_ktime_get_ns() - t->written < AT_ONCE)
		t->farewell = 1;
	if (b->more && (t->state == ASKED ? b->received != t->received : b->written != t->write_seq)) {
		if (t->state == READ && refused(sk))
			answered_nobody(t);
		else
			count(&lost_turns); /* it did get an answer */
		t->state = IDLE;
		return;
	}
	know_nobody(t);
	if (alert(t, b))
		add_excluded(t, TLS);
	else if (t->farewell)
		add_excluded(t, FAREWELL);
	else
		add_failure(t, end_of(sk, from, to));
	t->state = IDLE;
}

static __always_inline void end(struct sock *sk, struct turn *t, struct bytes *b, int from, int to)
{
	switch (t->state) {
	case ARRIVED:
	case READ:
	case ASKED:
		fail(sk, t, b, from, to);
		return;
	case COMING:
		finish_client(t);
		return;
	case REPLYING:
		add_served(t, t->written - t->read);
		t->state = CLOSING;
	}
	if (t->state != CLOSING)
		return;
	if (!b->unacked)
		acknowledged(t, b, false);
	else if (to != TCP_CLOSE || from == TCP_LAST_ACK || from == TCP_CLOSING)
		return;
	else if (refused(sk))
		answered_nobody(t);
	else
		add_failure(t, CUT);
	t->state = IDLE;
}

/* by_client says whether it was the client that ended a connection. */
static __always_inline bool by_client(struct sock *sk, int from, int to)
{
	return from == TCP_CLOSE_WAIT || end_of(sk, from, to) == RESET;
}

/* got_nothing counts a connection that nobody wrote to. */
static __always_inline void got_nothing(struct sock *sk, struct tcp_sock *tp, struct turn *t, int from, int to)
{
	struct place p = {};
	__u32 place = t ? t->place : 0;
	struct arrivals *a;

	if (t && t->role != SERVER)
		return;
	if (!t) {
		place_of_tcp(&p, sk, tp);
		if (p.role != SERVER)
			return;
		place = number_of_place(&p);
	}
	a = place ? bpf_map_lookup_elem(&place_sums, &place) : 0;
	if (!a)
		count(&lost_places);
	else if (more_of_tcp(tp)->data_segs_in)
		add(t && t->left_early ? &a->left_early : &a->unanswered, 1);
	else
		add(by_client(sk, from, to) ? &a->let_be : &a->silent, 1);
}

/* set_new begins a connection's byte, which may be left from another's, with the
 * thinning of its place. */
static __always_inline void set_new(struct sock *sk, struct tcp_sock *tp)
{
	struct place p = {};
	struct arrivals *a = 0;

	place_of_tcp(&p, sk, tp);
	__u32 *number = bpf_map_lookup_elem(&places, &p);
	if (number)
		a = bpf_map_lookup_elem(&place_sums, number);
	*glance_of(sk) = (a ? a->sample_shift : 0) << SAMPLE_SHIFT;
}

/* connects remembers a client's connection that is opened since a timer ended: so its first
 * question follows from that, too. */
static __always_inline void connects(struct sock *sk)
{
	__u64 timer = timer_before();
	struct turn *t;

	if (!timer || finishing || no_more_sockets || !wanted(bpf_get_current_task_btf()->tgid))
		return;
	t = bpf_sk_storage_get(&turns, sk, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t)
		return;
	t->role = CLIENT;
	t->fresh = 1;
	t->timer = timer;
}

SEC("tp_btf/inet_sock_set_state")
int requests_state(__u64 *ctx)
{
	struct sock *sk = (struct sock *)ctx[0];
	int from = (int)ctx[1], to = (int)ctx[2];
	struct bytes b = {};

	count_call();
	if (to == TCP_LISTEN) {
		note_listener(sk);
		return 0;
	}
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	if (from == TCP_LISTEN) {
		forget_listener(sk, swap16(tp->inet_conn.icsk_inet.inet_sport));
		return 0;
	}
	if (to == TCP_SYN_SENT)
		connects(sk);
	if (to == TCP_ESTABLISHED)
		set_new(sk, tp);
	if (from == TCP_SYN_SENT || from == TCP_SYN_RECV || from == TCP_CLOSE || !look(&b, sk))
		return 0;
	struct turn *t = bpf_sk_storage_get(&turns, sk, 0, 0);
	if (t)
		forget_old(t);
	/* A client may shut its half, and wait; a server that does has no more to say. */
	bool ends = to == TCP_LAST_ACK || to == TCP_CLOSE;
	if (to == TCP_FIN_WAIT1)
		ends = (t && t->role == SERVER) || more_of(sk)->sk_shutdown == SHUTDOWN_MASK;
	if (t && to == TCP_CLOSE_WAIT) {
		t->left = bpf_ktime_get_ns();
		if (t->left - t->came < AT_ONCE)
			t->farewell = t->role == SERVER; /* unless it is answered all the same */
	}
	if (t && (ends || t->state == CLOSING))
		end(sk, t, &b, from, to);
	if (finishing)
		return 0;
	bool first = to == TCP_FIN_WAIT1 || to == TCP_LAST_ACK || (to == TCP_CLOSE && (from == TCP_ESTABLISHED || from == TCP_CLOSE_WAIT));
	if (first && !b.more->bytes_acked && !b.unacked)
		got_nothing(sk, tp, t, from, to);
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
