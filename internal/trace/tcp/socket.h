/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * What the tracers of sockets and packets look at of the kernel's types; see
 * vmlinux.h for how.
 */
#ifndef PLIMSOLL_SOCKET_H
#define PLIMSOLL_SOCKET_H

#include "plimsoll.h"

#define AF_INET 2
#define SOCK_BINDPORT_LOCK 8 /* the process chose the port itself */
#define IPPROTO_TCP 6

enum {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT = 2,
	TCP_SYN_RECV = 3,
	TCP_FIN_WAIT1 = 4,
	TCP_FIN_WAIT2 = 5,
	TCP_TIME_WAIT = 6,
	TCP_CLOSE = 7,
	TCP_LAST_ACK = 9,
	TCP_LISTEN = 10,
	TCP_CLOSING = 11,
	TCP_NEW_SYN_RECV = 12,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
	union {
		__u8 u6_addr8[16];
	} in6_u;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	__u32 skc_daddr;
	__u16 skc_dport; /* as on the wire */
	__u16 skc_num;	 /* the local port; 0 of a closed socket */
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
};

struct sk_buff;

struct sk_buff_head {
	struct sk_buff *next;
};

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	__u8 sk_userlocks; /* a bit field in older kernels: see field */
	int sk_err;
	__u32 sk_ack_backlog;
};

struct inet_sock {
	struct sock sk;
	__u16 inet_sport; /* as on the wire; stays in a closed socket */
};

struct inet_bind_bucket {
	signed char fastreuse; /* under 0: connect() chose the port */
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	struct inet_bind_bucket *icsk_bind_hash;
	struct {
		__u32 lrcvtime; /* jiffies at which data came last */
	} icsk_ack;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 segs_out;
	__u32 total_retrans;
	__u32 rcv_nxt;
	__u64 bytes_received;
	__u64 tcp_wstamp_ns;   /* when it sent last, CLOCK_MONOTONIC */
	__u64 tcp_clock_cache; /* when it received or sent last */
};

struct net_device {
	possible_net_t nd_net;
};

struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	char cb[48];
	__u16 transport_header, network_header; /* from head */
	unsigned char *head;
};

struct tcp_skb_cb {
	__u32 seq;
	__u16 tcp_gso_segs;
};

#pragma clang attribute pop

static struct tcp_sock *(*bpf_skc_to_tcp_sock)(void *sk) = (void *)137;

/* How every TCP and UDP header begins. */
struct port_pair {
	__u16 source, dest; /* as on the wire */
};

static __always_inline __u32 netns_of_socket(struct sock *sk)
{
	return untrusted(sk)->__sk_common.skc_net.net->ns.inum;
}

#define swap16(x) __builtin_bswap16(x) /* all our machines are little endian */

#endif
