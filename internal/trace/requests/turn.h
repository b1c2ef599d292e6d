/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * A turn: one end asks, the other answers. What a socket remembers of the one that
 * is under way, and what is added up of those that were.
 *
 * Sums are added to by all CPUs at once: so few turns are followed that this costs
 * less than having them for every CPU.
 */
#ifndef PLIMSOLL_TURN_H
#define PLIMSOLL_TURN_H

#include "place.h"

#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define NUMBERS 512 /* more than there are places or groups: two CPUs may each take one for the same */
#define SLOTS 106	/* under 1 µs; four for each doubling up to 67 s; more */
#define SECOND 1000000000ULL
#define AT_ONCE 1000000ULL /* for a process that does not wait */
#define NOTICED 100000000ULL /* a wait as long as this */

enum state {
	IDLE,	  /* nobody has asked, or this turn is not followed */
	ARRIVED,  /* at a server: bytes came that were not read */
	READ,	  /* it has read them, and has not answered */
	REPLYING, /* it has written, and may write on */
	CLOSING,  /* likewise, but it will not: the reply is on its way */
	ASKED,	  /* at a client: it has written, and has no answer */
	COMING,	  /* the answer has come, or its beginning */
	NO_TURNS, /* this connection does not take turns */
};

/* How a turn ended that got no answer, or not all of it. */
enum failure {
	CLOSED,	   /* this end closed */
	LEFT,	   /* the other end closed first */
	LEFT_EARLY, /* likewise a server's client, before anybody notices a wait */
	RESET,	   /* the other end reset the connection */
	ABORTED,   /* this end did */
	TIMED_OUT, /* the kernel gave up sending */
	CUT,	   /* the connection was reset when the reply had begun, and the other end had not closed it */
	FAILURES,
};

/* What is no turn of one request and one reply. */
enum exclusion {
	OVERLAPPED, /* asked on before the reply was there: the connection is left alone from then on */
	ONE_WAY,    /* went on sending and being read for a second without an answer */
	STREAMED,   /* the reply paused for more than a second */
	TLS,	    /* its handshakes and alerts */
	FAREWELL,   /* bytes whose sender closed at once, and waited for no answer */
	EXCLUSIONS,
};

/* What a service did when a timer had ended from which a reply follows. */
enum then {
	REPLIED, /* at once */
	ASKED_ON, /* it asked others, and replied when it had their answer */
	THENS,
};

struct turn {
	__u64 began;   /* server: the first bytes came; client: it wrote them */
	__u64 came;    /* bytes came last */
	__u64 read;    /* server: it read last of the request; client: 0 until it read of the reply */
	__u64 first;   /* server: it first read */
	__u64 written; /* wrote last */
	__u64 unanswered;    /* 1 until somebody counts the reply: arrival and write may do so at once */
	__u64 early;	     /* a Unix server read when nothing had been told to have come since its reply */
	__u64 early_written; /* and wrote, likewise */
	__u64 left;	     /* the other end closed a TCP server's connection; 0 while it has not */
	__u64 next;	     /* the next turn of a TCP server came while another CPU still counted this one's reply */
	__u64 walk;	     /* the last that found it */
	__u64 timer;	     /* a client asked, or connected, since a timer ended then; else 0 */
	__u32 write_seq; /* what the server had written when the turn began */
	__u32 received;	 /* what had come when bytes came last */
	__u32 weight;	 /* so many turns this one stands for */
	__u32 place;
	__u32 group;
	__u32 tgid; /* whose group that is */
	__u32 tid; /* the server's thread that read last of it, or the client's that wrote last; 0 where that was not seen */
	__u32 bytes; /* read in this turn */
	__u8 state;
	__u8 role;
	__u8 pending; /* bytes came that were not read when the reply was written */
	__u8 pieces;  /* in which the request was read, after the first; 255 is all above */
	__u8 tls;     /* 0 of a connection not known to be; else 1 and the handshake turns that may still come */
	__u8 one_way, streamed;
	__u8 fresh;   /* the connection's first turn */
	__u8 farewell;
	__u8 left_early; /* it ended as LEFT_EARLY */
};

struct sums {
	__u64 unread_ns;
	__u64 receiving_ns;
	__u64 receiving;
	__u64 in_hand_ns; /* until the first byte of the reply */
	__u64 reply_ns; /* from there to the last */
	__u64 served_ns; /* of those that are known to be over, until the last byte */
	__u64 acknowledged_ns;
	__u64 with_next; /* replies that the next request acknowledged */
	__u64 timer_ns[THENS]; /* of replies that follow from a timer, until that ended */
	__u64 timers[THENS];
	__u64 followed;
	__u64 failed[FAILURES];
	__u64 failed_ns[FAILURES]; /* how old those turns were when they ended */
	__u64 excluded[EXCLUSIONS];
	__u64 unread[SLOTS];
	__u64 in_hand[SLOTS];
	__u64 served[SLOTS]; /* in hand until the last byte */
	__u64 acknowledged[SLOTS];
};

/* Of a place, whoever serves there. */
struct arrivals {
	__u64 begun;
	__u64 followed;
	__u64 silent;	 /* connections that came, and nobody wrote anything, other than these: */
	__u64 let_be;	 /* that the client closed */
	__u64 unanswered; /* that asked, and got no byte, other than these: */
	__u64 left_early; /* whose turn is LEFT_EARLY */
	__u64 second_began;
	__u32 in_second; /* followed since */
	__u32 sample_shift;	 /* one turn in so many powers of two is followed */
};

/* Given by the loader: so many turns a second are followed at a place, about. */
const volatile __u32 most = 1000;

volatile __u64 lost_turns;   /* of which an event was passed over, because another socket has the same word in glances */
volatile __u64 lost_sockets; /* turns on sockets beyond the bound, or without memory */
volatile bool no_more_sockets; /* set by user space when so many are remembered */

volatile bool finishing; /* set by user space: no turn is begun */

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct turn);
} turns SEC(".maps");

/* How often the programs were called that may be called very often. */
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

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NUMBERS);
	__type(key, __u32);
	__type(value, struct sums);
} group_sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NUMBERS);
	__type(key, __u32);
	__type(value, struct arrivals);
} place_sums SEC(".maps");

static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;
static __u32 (*bpf_get_prandom_u32)(void) = (void *)7;

/* take sets a number, and returns what it was; what stands before it is done when it is. */
static __always_inline __u64 take(__u64 *n, __u64 v)
{
	return __sync_lock_test_and_set(n, v);
}

static __always_inline void add(__u64 *n, __u64 v)
{
	__sync_fetch_and_add(n, v);
}

/* The slot of a time: 0 holds what is under 1 µs, four slots each doubling. */
static __always_inline __u32 slot_of(__u64 ns)
{
	__u64 quarters = ns / 250;
	__u32 bits = bits_of(quarters);

	if (bits < 3)
		return 0;
	__u32 slot = 1 + (bits - 3) * 4 + ((quarters >> (bits - 3)) & 3);
	return slot < SLOTS ? slot : SLOTS - 1;
}

static __always_inline struct sums *sums_of(__u32 group)
{
	struct sums *s = group ? bpf_map_lookup_elem(&group_sums, &group) : 0;

	if (!s)
		count(&lost_places);
	return s;
}

#define MAX_SAMPLE_SHIFT 12

/* adapt follows fewer of a place's turns at once when they are many, and more after
 * a second of few. Two CPUs that do it at the same time do no harm. */
static __always_inline void adapt(struct arrivals *a, __u64 now)
{
	__u64 since = now - a->second_began;

	if (since > SECOND) {
		if (since > 3 * SECOND)
			a->sample_shift = 0;
		else if (a->sample_shift && a->in_second < most / 4)
			a->sample_shift--;
		a->second_began = now;
		a->in_second = 0;
	}
	if (++a->in_second > most && a->sample_shift < MAX_SAMPLE_SHIFT) {
		a->sample_shift++;
		a->in_second = most / 2;
	}
}

/* What is noted of a socket, by its hash: enough to pass over most events where only
 * some turns are followed. Two sockets that share a word do little harm. */
enum glance {
	BYTES_CAME = 1, /* or left: what happened to a Unix socket last */
	BYTES_LEFT = 2,
	KIND = 3,
	FOLLOWED = 4, /* it has a turn that is followed */
	SAMPLE_SHIFT = 3, /* four bits: by how much its turns are thinned */
	CAME = 8,     /* a TCP socket's mark of what it had written when bytes came last */
	LEFT_AT = 20, /* and of what was read from it when bytes left last */
};

#define SAMPLE_SHIFT_BITS 0xf
#define MARK_BITS 0xfff

volatile __u32 glances[65536];

static __always_inline volatile __u32 *glance_of(struct sock *sk)
{
	__u32 hash = more_of(sk)->__sk_common.skc_hash;
	__u64 address;

	if (sk->__sk_common.skc_family == AF_UNIX) { /* has but 256 of them */
		bpf_probe_read_kernel(&address, sizeof(address), &more_of(sk)->sk_socket);
		hash = address >> 6;
	}
	return &glances[(hash * 0x9E3779B1U) >> 16];
}

static __always_inline __u32 sample_shift_of(__u32 glance)
{
	return glance >> SAMPLE_SHIFT & SAMPLE_SHIFT_BITS;
}

/* may_be_followed asks the socket itself where many are: it is sure, and a word is not. */
static __always_inline bool may_be_followed(__u32 glance)
{
	return glance & FOLLOWED || sample_shift_of(glance) < 3;
}

/* chance is how many turns the one that begins stands for, 0 if it is passed over. */
static __always_inline __s32 chance(__u32 glance)
{
	__u32 sample_shift = sample_shift_of(glance);

	if (finishing)
		return 0;
	return bpf_get_prandom_u32() & ((1U << sample_shift) - 1) ? 0 : 1 << sample_shift;
}

#define PASS (-1)

/* next_glance is what to note of a socket of which something came or left: another
 * than before if a turn begins. A server's begins with bytes that come when it has
 * written since the last; a client's with bytes that leave when it has read since. A
 * Unix socket has no sequence numbers, and there the events have to alternate: where a
 * write wakes the reader at once, the next bytes may come before the write's own event. */
static __always_inline __u32 next_glance(struct sock *sk, __u32 was, __u32 kind)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);
	__u32 at = kind == BYTES_CAME ? CAME : LEFT_AT, seq;

	if (!tp)
		return (was & ~KIND) | kind;
	seq = kind == BYTES_CAME ? more_of_tcp(tp)->write_seq : more_of_tcp(tp)->copied_seq;
	return (was & ~(MARK_BITS << at)) | ((seq * 0x9E3779B1U) >> 20) << at;
}

/* draw says of a socket of which something came or left for how many turns one that
 * begins stands; 0 if none is to begin, and PASS if none is under way either. It is
 * drawn once only, for else those in several pieces would be counted too often. */
static __always_inline __s32 draw(struct sock *sk, __u32 kind)
{
	volatile __u32 *g = glance_of(sk);
	__u32 was = *g, now;

	if (!sample_shift_of(was))
		return !finishing;
	if (finishing)
		return may_be_followed(was) ? 0 : PASS;
	now = next_glance(sk, was, kind);
	if (now != was) {
		__sync_fetch_and_xor(g, now ^ was); /* the other end of it may be noted on another CPU */
		__s32 drawn = chance(was);
		if (drawn)
			return drawn;
	}
	return may_be_followed(was) ? 0 : PASS;
}

static __always_inline bool is_followed(struct sock *sk)
{
	return may_be_followed(*glance_of(sk));
}

static __always_inline void set_followed(struct sock *sk, __u32 sample_shift)
{
	volatile __u32 *g = glance_of(sk);
	__u32 was = *g, now = (was & ~(SAMPLE_SHIFT_BITS << SAMPLE_SHIFT)) | FOLLOWED | sample_shift << SAMPLE_SHIFT;

	__sync_fetch_and_xor(g, now ^ was);
}

static __always_inline void set_idle(struct sock *sk)
{
	volatile __u32 *g = glance_of(sk);

	__sync_fetch_and_and(g, ~FOLLOWED);
}

#endif
