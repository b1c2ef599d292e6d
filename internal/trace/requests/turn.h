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
#define NUMBERS 512 /* more than there are places or crews: two CPUs may each take one for the same */
#define SLOTS 106	/* under 1 µs; four for each doubling up to 67 s; more */
#define SECOND 1000000000ULL
#define AT_ONCE 1000000ULL /* for a process that does not wait */

enum state {
	IDLE,	  /* nobody has asked */
	SKIPPED,  /* somebody has, and this turn is not followed */
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
	RESET,	   /* the other end reset the connection */
	ABORTED,   /* this end did */
	TIMED_OUT, /* the kernel gave up sending */
	CUT,	   /* the connection was reset when the reply had begun */
	FAILURES,
};

/* What is no turn of one request and one reply. */
enum unlike {
	OVERLAPPED, /* asked on before the reply was there: the connection is left alone from then on */
	ONE_WAY,    /* went on sending and being read for a second without an answer */
	STREAMED,   /* the reply paused for more than a second */
	TLS,	    /* its handshakes and alerts */
	FAREWELL,   /* bytes whose sender closed at once, and waited for no answer */
	UNLIKES,
};

struct turn {
	__u64 began;   /* server: the first bytes came; client: it wrote them */
	__u64 came;    /* bytes came last */
	__u64 read;    /* server: it read last of the request; client: 0 until it read of the reply */
	__u64 first;   /* server: it first read */
	__u64 written; /* wrote last */
	__u32 write_seq; /* what the server had written when the turn began */
	__u32 received;	 /* what had come when bytes came last */
	__u32 weight;	 /* so many turns this one stands for */
	__u32 place;
	__u32 crew;
	__u32 tgid; /* whose crew that is */
	__u32 bytes; /* read in this turn */
	__u8 state;
	__u8 role;
	__u8 pending; /* bytes came that were not read when the reply was written */
	__u8 pieces;  /* in which the request was read, after the first; 255 is all above */
	__u8 tls;     /* 0 of a connection not known to be; else 1 and the handshake turns that may still come */
	__u8 one_way, streamed;
	__u8 fresh;   /* the connection's first turn */
	__u8 farewell;
};

struct sums {
	__u64 unread_ns;
	__u64 receiving_ns;
	__u64 receiving;
	__u64 hand_ns; /* until the first byte of the reply */
	__u64 reply_ns; /* from there to the last */
	__u64 whole_ns; /* of those that are known to be over, until the last byte */
	__u64 way_ns;
	__u64 with_next; /* replies that the next request acknowledged */
	__u64 followed;
	__u64 failed[FAILURES];
	__u64 unlike[UNLIKES];
	__u64 unread[SLOTS];
	__u64 hand[SLOTS];
	__u64 whole[SLOTS]; /* in hand until the last byte */
	__u64 way[SLOTS];
};

/* Of a place, whoever serves there. */
struct arrivals {
	__u64 begun;
	__u64 followed;
	__u64 silent;	 /* connections that came, and nobody wrote anything */
	__u64 unanswered; /* that asked, and got no byte */
};

/* Given by the loader: so many turns a second are followed at most, about. */
const volatile __u32 most = 5000;

volatile __u64 lost_sockets; /* turns on sockets beyond the bound, or without memory */
volatile bool no_more_sockets; /* set by user space when so many are remembered */

/* One turn in mask + 1 is followed. */
volatile __u32 mask;
volatile __u64 second_began;
volatile __u32 in_second;

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct turn);
} turns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NUMBERS);
	__type(key, __u32);
	__type(value, struct sums);
} crew_sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NUMBERS);
	__type(key, __u32);
	__type(value, struct arrivals);
} place_sums SEC(".maps");

static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;
static __u32 (*bpf_get_prandom_u32)(void) = (void *)7;

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

static __always_inline struct sums *sums_of(__u32 crew)
{
	struct sums *s = crew ? bpf_map_lookup_elem(&crew_sums, &crew) : 0;

	if (!s)
		count(&lost_places);
	return s;
}

/* adapt follows fewer turns at once when there are many, and more after a second
 * of few. Two CPUs that do it at the same time do no harm. */
static __always_inline void adapt(__u64 now)
{
	if (now - second_began > SECOND) {
		if (mask && in_second < most / 4 && now - second_began < 2 * SECOND + SECOND / 2)
			mask >>= 1;
		else if (mask && now - second_began >= 2 * SECOND + SECOND / 2)
			mask = 0;
		second_began = now;
		in_second = 0;
	}
	if (++in_second > most && mask < 4095) {
		mask = mask << 1 | 1;
		in_second = most / 2;
	}
}

/* chosen says whether a turn that begins now is followed. It is asked once a turn:
 * a second chance would count those in several pieces too often. */
static __always_inline bool chosen(void)
{
	__u32 m = mask;

	return !m || !(bpf_get_prandom_u32() & m);
}

#endif
