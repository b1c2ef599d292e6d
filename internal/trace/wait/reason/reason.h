/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * What a thread that sleeps waits for, and towards whom: from its state, from
 * the system call that it is in, and from the file that the call is about.
 * Include plimsoll.h first.
 */
#ifndef PLIMSOLL_REASON_H
#define PLIMSOLL_REASON_H

/* The order is that of the Go package's. */
enum reason {
	REASON_OTHER,
	REASON_DISK,
	REASON_LOCK,
	REASON_SOCKET_READ,
	REASON_SOCKET_WRITE,
	REASON_CONNECT,
	REASON_ACCEPT,
	REASON_POLL,
	REASON_SLEEP,
	REASON_PAGE_FAULT,
	REASON_PIPE,
	REASON_PIPE_WRITE,
	REASON_CHILD,
	REASON_FILE_LOCK,
	REASON_UNINTERRUPTIBLE_OTHER,
	REASON_STOPPED,
	REASON_FILE_SYSTEM,
	REASON_DEVICE_WRITE,
};

/* What a system call waits for. The order is that of the Go package's. */
enum call {
	CALL_OTHER,
	CALL_READ,    /* a file is the first argument, as for the four that follow */
	CALL_WRITE,
	CALL_CONNECT,
	CALL_ACCEPT,
	CALL_POLL,    /* an array of struct pollfd, and its length */
	CALL_SELECT,  /* how many files to look at */
	CALL_EVENTS,
	CALL_SLEEP,
	CALL_LOCK,
	CALL_CHILD,
	CALL_FILE_LOCK,
	CALL_DISK,
	CALL_SYNC,    /* has an open file written, which is the first argument */
	CALL_FILE,    /* asks about an open file, which is the first argument */
	CALL_PATH,    /* looks up a path */
	CALL_STAT,    /* asks about what a path leads to */
};

enum peer {
	PEER_NONE,
	PEER_IPV4,
	PEER_IPV6,
	PEER_UNIX,
	PEER_FILE_SYSTEM,
	PEER_DEVICE,
	PEER_OTHER, /* one beyond the bound */
};

/* Why a thread is blocked. */
struct cause {
	__u8 addr[16]; /* an IP address; of a Unix socket the key of its path; of a device its number */
	__u16 port;
	__u8 peer;     /* enum peer */
	__u8 client;   /* the peer connects to us: the address is our own */
	__u8 reason;   /* enum reason */
	__u8 unused[3];
};

#define PATH_LEN 108

struct path {
	__u32 len;
	__u8 name[PATH_LEN];
};

#define MAX_CALLS 512

/* By the number of the system call; given by the loader, since numbers differ
 * between architectures. */
const volatile __u8 calls[MAX_CALLS] = {};

/* Paths of Unix sockets by the address of the kernel's copy of them, which is
 * one for a listener and all its connections. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u64);
	__type(value, struct path);
} paths SEC(".maps");

static struct pt_regs *(*bpf_task_pt_regs)(struct task_struct *task) = (void *)175;

#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_WAKEKILL 0x0100
#define TASK_STOPPED_OR_TRACED 0x000c
#define TASK_FROZEN 0x8000 /* by a control group's freezer of version 1; since Linux 6.1 */
#define TASK_EXITING 0x00b0 /* EXIT_DEAD, EXIT_ZOMBIE, TASK_DEAD */
#define TASK_RTLOCK_WAIT 0x1000 /* on a kernel with PREEMPT_RT */
#define PF_IO_WORKER 0x00000010
#define TS_COMPAT 0x0002
#define PSR_MODE32_BIT 0x0010

#define S_IFMT 0170000
#define S_IFIFO 0010000
#define S_IFCHR 0020000
#define S_IFSOCK 0140000

#define FUSE_SUPER_MAGIC 0x65735546

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define TCP_SYN_SENT 2
#define TCP_LISTEN 10
#define IPPROTO_TCP 6

#define POLLIN 0x0001
#define POLLOUT 0x0004
#define POLLED 4 /* entries of a pollfd array that are looked at */

struct pollfd {
	int fd;
	short events;
	short revents;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs___x86 {
	unsigned long di, si;
	unsigned long orig_ax; /* -1 if it is not in a system call */
};

struct pt_regs___arm64 {
	__u64 regs[31];
	__u64 pstate;
	__u64 orig_x0;
	__s32 syscallno; /* -1 if it is not in a system call */
};

struct thread_info___x86 {
	__u32 status;
};

struct super_block {
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	__u32 i_rdev;
	struct super_block *i_sb;
};

struct vfsmount {
	struct super_block *mnt_sb;
};

struct path___vfs {
	struct vfsmount *mnt;
};

/* While a thread looks up a path: where it has come to. */
struct nameidata {
	struct path___vfs path;
};

struct file {
	struct inode *f_inode;
	void *private_data;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct sched_info___blocked {
	unsigned long long run_delay; /* nanoseconds that it stood in the queue for a CPU */
};

struct task_struct___blocked {
	struct thread_info___x86 thread_info;
	struct sched_info___blocked sched_info;
	struct files_struct *files;
	struct nameidata *nameidata;
	unsigned in_iowait : 1;
	__u8 on_rq; /* an int before Linux 7.2, of which this is the byte that is ever in use */
	unsigned long nvcsw; /* how often it left a CPU to sleep */
};

struct in6_addr {
	__u8 in6_u[16];
};

struct sock_common {
	__u32 skc_daddr, skc_rcv_saddr;
	__u16 skc_dport; /* in the network's order */
	__u16 skc_num;
	unsigned short skc_family;
	unsigned char skc_state;
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
	__u32 sk_max_ack_backlog;
};

struct socket {
	struct sock *sk;
};

struct sockaddr_un {
	char sun_path[PATH_LEN];
};

struct unix_address {
	int len; /* with the family, two bytes */
	struct sockaddr_un name[0];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

#pragma clang attribute pop

#define copy(into, from) bpf_probe_read_kernel(&(into), sizeof(into), &(from))

/* A bit field lies elsewhere in every kernel. */
static __always_inline bool in_iowait(struct task_struct *task)
{
	struct task_struct___blocked *t = (void *)task;
	const void *at = (const void *)t + __builtin_preserve_field_info(t->in_iowait, 0);
	__u64 v = 0;

	switch (__builtin_preserve_field_info(t->in_iowait, 1)) {
	case 1:
		v = *(const __u8 *)at;
		break;
	case 2:
		v = *(const __u16 *)at;
		break;
	case 4:
		v = *(const __u32 *)at;
		break;
	case 8:
		v = *(const __u64 *)at;
		break;
	}
	v <<= __builtin_preserve_field_info(t->in_iowait, 4);
	return v >> __builtin_preserve_field_info(t->in_iowait, 5);
}

/* asleep says whether a task is off its CPU and in no queue for one. */
static __always_inline bool asleep(struct task_struct *t)
{
	return t->__state && !(t->__state & TASK_EXITING) && !((struct task_struct___blocked *)t)->on_rq;
}

/* queued returns how long a task has waited for CPUs in its life, until it last got
 * one. A kernel that does not count it tells 0: that wait is then part of ours. */
static __always_inline __u64 queued(struct task_struct *task)
{
	struct task_struct___blocked *t = (void *)task;

	return bpf_core_field_exists(t->sched_info.run_delay) ? t->sched_info.run_delay : 0;
}

/* arrived returns when a task that leaves its CPU now had got it: as seen (0 if it
 * was not), or by the CPU time that it had since, whichever is earlier. For what is
 * seen is seen late, after the switch's own work and other programs; and CPU time
 * may lack what interrupts and the host of a virtual machine took. */
static __always_inline __u64 arrived(__u64 seen, __u64 now, __u64 cpu)
{
	__u64 by_cpu = now - cpu;

	return seen && seen < by_cpu ? seen : by_cpu;
}

struct call_at {
	__u64 args[2];
	bool in_call;
	__u8 call; /* enum call */
};

/* call_of tells in which system call a thread is. */
static __always_inline void call_of(struct call_at *c, struct task_struct *t)
{
	struct pt_regs *regs = bpf_task_pt_regs(t);
	struct pt_regs___x86 *x86 = (void *)regs;
	struct pt_regs___arm64 *arm64 = (void *)regs;
	struct task_struct___blocked *b = (void *)t;
	bool narrow = false; /* a program of 32 bits has other numbers */
	__s64 nr = -1;

	if (bpf_core_field_exists(x86->orig_ax)) {
		nr = (__s64)x86->orig_ax;
		c->args[0] = x86->di;
		c->args[1] = x86->si;
		if (bpf_core_field_exists(b->thread_info.status))
			narrow = b->thread_info.status & TS_COMPAT;
	} else if (bpf_core_field_exists(arm64->syscallno)) {
		nr = arm64->syscallno;
		c->args[0] = arm64->orig_x0;
		c->args[1] = arm64->regs[1];
		narrow = arm64->pstate & PSR_MODE32_BIT;
	}
	c->in_call = nr >= 0;
	if (c->in_call && !narrow && nr < MAX_CALLS)
		c->call = calls[nr];
}

/* file_of returns the address of an open file; 0 if there is none. */
static __always_inline __u64 file_of(struct fdtable *table, __u32 fd)
{
	__u64 f = 0;

	if (fd < table->max_fds)
		bpf_probe_read_kernel(&f, sizeof(f), table->fd + fd);
	return f;
}

static __always_inline __u16 kind_of(struct file *f)
{
	struct inode *inode = 0;
	__u16 mode = 0;

	if (f && !copy(inode, f->f_inode))
		copy(mode, inode->i_mode);
	return mode & S_IFMT;
}

static __always_inline struct sock *sock_of(struct file *f)
{
	struct socket *s = 0;
	struct sock *sk = 0;

	if (!copy(s, f->private_data))
		copy(sk, s->sk);
	return sk;
}

/* set_path notes the path of a Unix socket; its own or that which it connected to. */
static __always_inline bool set_path(struct cause *c, struct sock *sk)
{
	struct unix_address *a = 0;
	struct path p = {};

	copy(a, ((struct unix_sock *)sk)->addr);
	if (!a)
		return false;
	__u64 key = (__u64)a;
	__builtin_memcpy(c->addr, &key, sizeof(key));
	c->peer = PEER_UNIX;
	if (bpf_map_lookup_elem(&paths, &key))
		return true;
	int len = 0;
	copy(len, a->len);
	p.len = len - 2 < PATH_LEN ? len - 2 : PATH_LEN;
	copy(p.name, a->name[0].sun_path);
	bpf_map_update_elem(&paths, &key, &p, 0);
	return true;
}

static __always_inline void set_unix(struct cause *c, struct sock *sk)
{
	struct sock *peer = 0;

	copy(peer, ((struct unix_sock *)sk)->peer);
	if (peer && set_path(c, peer))
		return;
	c->client = set_path(c, sk);
}

/* A connection that was accepted keeps the length of its listener's queue, which
 * one that we opened never had. Its peer's port is nobody's, so that the address
 * is our own. */
static __always_inline void set_address(struct cause *c, struct sock *sk, __u16 family, __u8 state)
{
	struct sock_common *k = &sk->__sk_common;
	__u32 backlog = 0;

	if (family == AF_UNIX) {
		set_unix(c, sk);
		return;
	}
	if (family != AF_INET && family != AF_INET6)
		return;
	copy(backlog, sk->sk_max_ack_backlog);
	c->client = backlog > 0 || state == TCP_LISTEN;
	if (c->client) {
		copy(c->port, k->skc_num);
	} else {
		copy(c->port, k->skc_dport);
		c->port = __builtin_bswap16(c->port);
		if (!c->port) /* connected to nobody */
			return;
	}
	if (family == AF_INET) {
		c->peer = PEER_IPV4;
		bpf_probe_read_kernel(c->addr, 4, c->client ? &k->skc_rcv_saddr : &k->skc_daddr);
	} else {
		c->peer = PEER_IPV6;
		bpf_probe_read_kernel(c->addr, 16, c->client ? &k->skc_v6_rcv_saddr : &k->skc_v6_daddr);
	}
}

/* set_device notes a character device (a terminal, a serial line) that takes no more at the moment. */
static __always_inline void set_device(struct cause *c, struct file *f)
{
	struct inode *inode = 0;
	__u32 number = 0;

	copy(inode, f->f_inode);
	copy(number, inode->i_rdev);
	__builtin_memcpy(c->addr, &number, sizeof(number));
	c->reason = REASON_DEVICE_WRITE;
	c->peer = PEER_DEVICE;
}

/* by_file says what a call that is about a file waits for; of a polled file,
 * whether it is the one. The file comes as its address. */
SEPARATE int by_file(struct cause *c, __u64 file, __u32 events, bool polled)
{
	struct file *f = (struct file *)file;
	__u16 kind = kind_of(f), family = 0;
	__u8 state = 0;

	if (!c)
		return false;
	if (kind == S_IFIFO && !polled)
		c->reason = events & POLLIN ? REASON_PIPE : REASON_PIPE_WRITE;
	if (kind == S_IFCHR && !polled && events & POLLOUT)
		set_device(c, f);
	if (kind != S_IFSOCK)
		return false;
	struct sock *sk = sock_of(f);
	copy(family, sk->__sk_common.skc_family);
	copy(state, sk->__sk_common.skc_state);
	if (polled && state == TCP_LISTEN) /* a server that waits for events */
		return true;
	set_address(c, sk, family, state);
	if (polled && c->peer == PEER_NONE)
		return false;
	if (c->reason == REASON_OTHER || polled) /* a poll for either would end at once if there were room to write */
		c->reason = events & POLLOUT ? REASON_SOCKET_WRITE : REASON_SOCKET_READ;
	if (polled && state == TCP_SYN_SENT && family != AF_UNIX)
		c->reason = REASON_CONNECT;
	return true;
}

/* events_of are what a poll asks for of the file of its i-th entry, in all entries of that file. */
static __always_inline __u32 events_of(struct pollfd *fds, __u32 n, int i)
{
	__u32 events = 0;

	for (int k = 0; k < POLLED; k++)
		if (k < n && fds[k].fd == fds[i].fd)
			events |= (__u16)fds[k].events;
	return events;
}

/* by_files looks at the file of a call, or at the first few that it polls. Of
 * another thread than the current one the polled files cannot be read. */
static __always_inline void by_files(struct cause *c, struct task_struct *t, struct call_at *at, bool current)
{
	struct fdtable *open = untrusted((struct task_struct___blocked *)t)->files->fdt;
	struct pollfd fds[POLLED] = {};
	bool polled = at->call == CALL_POLL;
	__u32 n = 1;

	if (polled) {
		n = at->args[1];
		if (!current || n > POLLED || bpf_probe_read_user(fds, n * sizeof(fds[0]), (void *)at->args[0]))
			return;
	} else {
		fds[0].fd = at->args[0];
		fds[0].events = at->call == CALL_READ ? POLLIN : POLLOUT;
	}
	for (int i = 0; i < POLLED; i++) {
		if (i >= n || by_file(c, file_of(open, fds[i].fd), events_of(fds, n, i), polled))
			return;
	}
}

/* by_file_system says whether a file system is one whose answers come from a program:
 * that of a path that is just being looked up, or of an open file. Both come as addresses. */
SEPARATE int by_file_system(__u64 lookup, __u64 file)
{
	struct nameidata *looks_up = (struct nameidata *)lookup;
	struct super_block *sb = 0;
	struct vfsmount *mount = 0;
	struct inode *inode = 0;
	unsigned long magic = 0;

	if (looks_up) {
		copy(mount, looks_up->path.mnt);
		copy(sb, mount->mnt_sb);
	} else {
		copy(inode, ((struct file *)file)->f_inode);
		copy(sb, inode->i_sb);
	}
	copy(magic, sb->s_magic);
	return magic == FUSE_SUPER_MAGIC;
}

static __always_inline bool about_a_file(__u8 call)
{
	return call == CALL_READ || call == CALL_WRITE || call == CALL_SYNC || call == CALL_FILE;
}

/* nameless says whether a reason is one that a file system's answer may be behind. */
static __always_inline bool nameless(__u8 reason)
{
	return reason == REASON_OTHER || reason == REASON_DISK || reason == REASON_UNINTERRUPTIBLE_OTHER;
}

/* in_file_system says whether a thread waits for the answer of such a file system. One that asks about what a
 * path leads to has looked it up before; nothing but such a file system lets it sleep
 * so that a signal can end it. */
static __always_inline bool in_file_system(struct task_struct *t, struct call_at *at, bool hard)
{
	struct task_struct___blocked *b = (void *)t;
	__u64 lookup = 0, file = 0;

	copy(lookup, b->nameidata);
	if (!lookup && about_a_file(at->call))
		file = file_of(untrusted(b)->files->fdt, at->args[0]);
	if ((lookup || file) && by_file_system(lookup, file))
		return true;
	return at->call == CALL_STAT && !lookup && !hard;
}

static __always_inline __u8 by_call(struct call_at *at)
{
	switch (at->call) {
	case CALL_CONNECT:
		return REASON_CONNECT;
	case CALL_ACCEPT:
		return REASON_ACCEPT;
	case CALL_POLL:
		return at->args[1] ? REASON_POLL : REASON_SLEEP;
	case CALL_SELECT:
		return at->args[0] ? REASON_POLL : REASON_SLEEP;
	case CALL_EVENTS:
		return REASON_POLL;
	case CALL_SLEEP:
		return REASON_SLEEP;
	case CALL_LOCK:
		return REASON_LOCK;
	case CALL_CHILD:
		return REASON_CHILD;
	case CALL_FILE_LOCK:
		return REASON_FILE_LOCK;
	case CALL_DISK:
	case CALL_SYNC:
		return REASON_DISK;
	}
	return REASON_OTHER;
}

/* why says why a thread is blocked that left its CPU in a state; c is all zero
 * before. at tells its system call. */
static __always_inline void why(struct cause *c, struct call_at *at, struct task_struct *t, __u32 state, bool current)
{
	bool hard = state & (TASK_UNINTERRUPTIBLE | TASK_RTLOCK_WAIT);

	if (t->flags & PF_IO_WORKER) { /* of io_uring; it is in no system call */
		c->reason = in_iowait(t) ? REASON_DISK : hard ? REASON_UNINTERRUPTIBLE_OTHER : REASON_OTHER;
		return;
	}
	call_of(at, t);
	if (state & (TASK_STOPPED_OR_TRACED | TASK_FROZEN)) {
		c->reason = REASON_STOPPED;
		return;
	}
	if (!at->in_call) {
		c->reason = REASON_PAGE_FAULT;
		return;
	}
	c->reason = by_call(at);
	if (in_iowait(t))
		c->reason = REASON_DISK;
	else if (hard && c->reason == REASON_CHILD && state & TASK_WAKEKILL)
		return; /* until a vforked child has its program */
	else if (hard && c->reason != REASON_DISK)
		c->reason = REASON_UNINTERRUPTIBLE_OTHER;
	else if (at->call >= CALL_READ && at->call <= CALL_POLL && c->reason != REASON_SLEEP)
		by_files(c, t, at, current);
	if (nameless(c->reason) && in_file_system(t, at, hard)) {
		c->reason = REASON_FILE_SYSTEM;
		c->peer = PEER_FILE_SYSTEM;
	}
}

#endif
