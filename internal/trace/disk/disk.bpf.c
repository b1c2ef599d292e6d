//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * Requests to disks, by device; and who submits them, in which system call, for
 * which file.
 */
#include "current.h"

#define TIME_SLOTS 26 /* under 1 µs, 2 µs, … 16.8 s, more */
#define PATH_PARTS 8
#define PART_LEN 64
#define DISK_NAME_LEN 32
#define REQUESTS 4096 /* powers of two */
#define BIOS 16384
#define PROBES 8
#define MAX_MERGED 4096 /* bios of one request whose end is seen */
#define MAX_MERGED_OLD 256 /* before Linux 5.17, whose verifier goes through each */

/* Operations, as our tables tell them apart. */
#define OP_READ 0
#define OP_WRITE 1
#define OP_FLUSH 2
#define OP_DISCARD 3
#define OP_OTHER 4

/* In place of the number of a system call. */
#define IN_KERNEL 0xffffffff /* a thread of the kernel's own */
#define IN_FAULT 0xfffffffe  /* a page fault: memory that a file backs, or swap */
#define IN_COMPAT 0xfffffffd /* a 32-bit program's call, whose number means another */

/* What the blocks are of. */
#define OF_FILE 0
#define OF_METADATA 1 /* of the file system's own */
#define OF_SWAP 2
#define OF_UNKNOWN 3

#define PF_IO_WORKER 0x00000010
#define REQ_OP_MASK 0xff
#define S_IFMT 0170000
#define S_IFBLK 0060000
#define MAPPING_FLAGS 3UL /* set in page->mapping where it is no file's */
#define MAPPING_ANON 1UL
#define LOWEST_MASK 0xffffffffc0000000ULL
#define TMPFS_MAGIC 0x01021994
#define HUGETLBFS_MAGIC 0x958458f6
#define IOCB_FILE 20 /* where aio_fildes is in the user's struct iocb */

/* A name for the helper's number in the kernel's own list, where it has it. */
enum bpf_func_id { BPF_FUNC_loop = 181 };

#define bpf_core_enum_value_exists(type, value) __builtin_preserve_enum_value(*(typeof(type) *)value, 0)
#define BPF_FIELD_BYTE_OFFSET 0
#define bpf_core_field_offset(field) __builtin_preserve_field_info(field, BPF_FIELD_BYTE_OFFSET)

static long (*bpf_loop)(__u32 times, void *step, void *ctx, __u64 flags) = (void *)BPF_FUNC_loop;
static void *(*bpf_task_pt_regs)(struct task_struct *task) = (void *)175;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gendisk {
	int major;
	int first_minor;
	char disk_name[DISK_NAME_LEN];
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	__u32 cmd_flags;
	unsigned int __data_len;
	struct bio *bio;     /* the first of those that it carries */
	__u64 start_time_ns; /* when it was made; 0 if nobody keeps account */
};

struct block_device {
	struct gendisk *bd_disk;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct hlist_node d_alias; /* in a union without a name */
};

/* Before Linux 7.2 the union has a name. */
struct dentry___old {
	union {
		struct hlist_node d_alias;
	} d_u;
};

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	unsigned long i_ino;
	__u32 i_generation;
	struct hlist_head i_dentry;
};

struct address_space {
	struct inode *host;
};

struct page {
	unsigned long compound_info; /* of a tail page odd: the head's address, or a mask, + 1 */
	struct address_space *mapping;
};

/* Its name before Linux 7; no masks then. */
struct page___old {
	unsigned long compound_head;
};

struct bio_vec {
	struct page *bv_page;
};

struct bvec_iter {
	unsigned int bi_size;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	__u32 bi_opf;
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct address_space *f_mapping;
	struct inode *f_inode;
	unsigned int f_flags;
	struct path f_path;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_struct___disk {
	struct files_struct *files;
};

struct pt_regs___x86 {
	unsigned long di, si, dx, orig_ax;
};

struct pt_regs___arm64 {
	__u64 regs[31];
	__u64 orig_x0;
	__s32 syscallno;
};

#pragma clang attribute pop

struct device_op {
	__u32 dev; /* major << 20 | minor, of the whole disk */
	__u32 op;
};

struct device {
	__u64 requests; /* completed */
	__u64 bytes;
	__u64 io_ns;
	__u64 queued; /* of the completed, those whose time in the queue is known */
	__u64 queue_ns;
	__u64 io[TIME_SLOTS];
	__u64 queue[TIME_SLOTS];
};

struct disk_name {
	__u8 name[DISK_NAME_LEN];
};

struct owner {
	__u32 netns;
	__u32 direct;
	struct device_op device;
	__u8 comm[TASK_COMM_LEN];
};

struct owned {
	__u64 submitted;
	__u64 bytes;
	__u64 completed;
	__u64 ns;
};

/* A bio that was submitted, or a request at the device. */
struct under_way {
	__u64 address; /* its; 0 of a free slot */
	__u64 at;      /* when it was submitted or issued */
	__u64 made;    /* of a request, when; 0 if that is not known */
	__u64 bytes;
	struct owner owner; /* of a request, only the device is filled */
};

struct target {
	__u32 netns;
	__u32 nr; /* of the system call, or IN_… */
	__u32 direct;
	__u32 of;
	__u32 dev; /* the file's: its file system, inode, and that one's generation */
	__u32 generation;
	__u64 ino;
	__u8 comm[TASK_COMM_LEN];
};

struct target_file {
	__u64 submitted;
	__u32 named; /* all that follows is written */
	__u32 whole; /* the path reaches up to its file system's root */
	__u8 part[PATH_PARTS][PART_LEN]; /* the file, its folder, … */
};

struct syncer {
	__u32 netns;
	__u8 comm[TASK_COMM_LEN];
};

struct syncs {
	__u64 count;
	__u64 ns;
	__u64 time[TIME_SLOTS];
};

struct syncing {
	__u64 since; /* nanoseconds; 0 outside */
};

/* Given by the loader, as they differ between architectures. */
const volatile __u64 first_is_fd[8] = {}; /* by number: the calls whose first argument is the file */
const volatile __u32 sys_sendfile = 0;    /* its second one is */
const volatile __u32 sys_io_submit = 0;
const volatile __u32 sys_io_uring_enter = 0;
const volatile __u32 o_direct = 0;

volatile __u64 lost_devices;   /* requests of devices and operations beyond the bound */
volatile __u64 lost_requests;  /* requests that could not be remembered */
volatile __u64 lost_processes; /* I/O of processes beyond the bound */
volatile __u64 lost_bios;      /* I/O whose end will not be seen */
/* The kernel skips a program that would interrupt itself; there are kernels that
 * skip all programs in what interrupts process 1. The next request or bio at the same
 * address tells. */
volatile __u64 lost_ends;      /* requests and I/O whose end was not seen */
volatile __u64 lost_files;     /* I/O of files beyond the bound */
volatile __u64 lost_syncs;     /* syncs of processes beyond the bound, or not remembered */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 256);
	__type(key, struct device_op);
	__type(value, struct device);
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32); /* dev */
	__type(value, struct disk_name);
} names SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct owner);
	__type(value, struct owned);
} owners SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2048); /* user space makes room when it is nearly full */
	__type(key, struct target);
	__type(value, struct target_file);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 256);
	__type(key, struct syncer);
	__type(value, struct syncs);
} syncers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct syncing);
} tasks SEC(".maps");

/* Here is what is under way, by its address, in the first of a few slots that is
 * free: a hash of the kernel's would cost several times as much. */
struct under_way requests[REQUESTS] __attribute__((aligned(64)));
struct under_way bios[BIOS] __attribute__((aligned(64)));

/* address_of makes a number of a pointer: to the verifier they are different things. */
static __always_inline __u64 address_of(void *pointer)
{
	__u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof(address), &pointer);
	return address;
}

static __always_inline struct under_way *slot_of(struct under_way *table, __u32 size, __u64 address, __u32 probe)
{
	__u64 mixed = address * 0x9e3779b97f4a7c15ULL;
	__u32 first = mixed >> 32, step = mixed >> 45 | 1;

	return &table[(first + probe * step) & (size - 1)];
}

static __always_inline struct under_way *find(struct under_way *table, __u32 size, __u64 address)
{
	for (__u32 i = 0; i < PROBES; i++) {
		struct under_way *u = slot_of(table, size, address, i);
		if (u->address == address)
			return u;
	}
	return 0;
}

/* claim returns a slot for what begins now: a free one, or its own, if its last
 * end was not seen; 0 if there is none. */
static __always_inline struct under_way *claim(struct under_way *table, __u32 size, __u64 address)
{
	for (__u32 i = 0; i < PROBES; i++) {
		struct under_way *u = slot_of(table, size, address, i);
		__u64 was = __sync_val_compare_and_swap(&u->address, 0, address);
		if (was == address && u->at >= resumed_at)
			count(&lost_ends);
		if (!was || was == address)
			return u;
	}
	return 0;
}

/* release frees a slot. Its time goes first: user space may look at any moment, and
 * must not take the next one's for as old as this. */
static __always_inline void release(struct under_way *u)
{
	*(volatile __u64 *)&u->at = 0;
	*(volatile __u64 *)&u->address = 0;
}

static __always_inline __u32 dev_of(struct gendisk *disk)
{
	return (__u32)disk->major << 20 | disk->first_minor;
}

static __always_inline void name_disk(struct gendisk *disk, __u32 dev)
{
	struct disk_name n = {};

	bpf_probe_read_kernel_str(n.name, sizeof(n.name), disk->disk_name);
	bpf_map_update_elem(&names, &dev, &n, BPF_NOEXIST);
}

static __always_inline __u32 operation(__u32 flags)
{
	__u32 op = flags & REQ_OP_MASK; /* the first four are numbered as ours */

	return op < OP_OTHER ? op : OP_OTHER;
}

/* Requests: what the device does. */

static __always_inline struct device *device_of(struct device_op *d, struct gendisk *disk)
{
	static const struct device nothing;
	struct device *found = bpf_map_lookup_elem(&devices, d);

	if (found)
		return found;
	name_disk(disk, d->dev);
	bpf_map_update_elem(&devices, d, &nothing, BPF_NOEXIST);
	found = bpf_map_lookup_elem(&devices, d);
	if (!found)
		count(&lost_devices);
	return found;
}

SEC("tp_btf/block_rq_issue")
int rq_issue(__u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	struct under_way *u = claim(requests, REQUESTS, address_of(rq));

	if (!u) {
		count(&lost_requests);
		return 0;
	}
	u->made = rq->start_time_ns;
	u->bytes = rq->__data_len;
	u->owner.device.dev = dev_of(untrusted(rq)->q->disk);
	u->owner.device.op = operation(rq->cmd_flags);
	u->at = bpf_ktime_get_ns();
	return 0;
}

/* The device did not take it; it will be issued again. */
SEC("tp_btf/block_rq_requeue")
int rq_requeue(__u64 *ctx)
{
	struct under_way *u = find(requests, REQUESTS, address_of((void *)ctx[0]));

	if (u)
		release(u);
	return 0;
}

SEC("tp_btf/block_rq_complete")
int rq_complete(__u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	__u64 now = bpf_ktime_get_ns();
	struct under_way *u = find(requests, REQUESTS, address_of(rq));

	if (!u || (__u32)ctx[2] < rq->__data_len) /* not issued (a flush that was folded into another), or a part of it */
		return 0;
	struct under_way done = *u;
	release(u);
	if (done.at < resumed_at)
		return 0;
	struct device *d = device_of(&done.owner.device, untrusted(rq)->q->disk);
	if (!d)
		return 0;
	__u64 took = now - done.at;
	d->requests++;
	d->bytes += done.bytes;
	d->io_ns += took;
	d->io[log2_slot(took, TIME_SLOTS)]++;
	if (!done.made || done.made > done.at) /* two clocks of the kernel's, nanoseconds apart */
		return 0;
	__u64 waited = done.at - done.made;
	d->queued++;
	d->queue_ns += waited;
	d->queue[log2_slot(waited, TIME_SLOTS)]++;
	return 0;
}

/* Bios: what processes submit. */

/* Where a bio comes from; addresses are 0 where there is none. */
struct origin {
	__u32 nr;
	__u64 file;    /* struct file of the system call */
	__u64 mapping; /* struct address_space of the first page, with its flags */
	__u64 inode;   /* which that belongs to */
	bool block;    /* and that is a device's */
};

/* file_at returns the address of a task's open file. */
static __always_inline __u64 file_at(struct task_struct *t, __u32 fd)
{
	struct fdtable *table = untrusted((struct task_struct___disk *)t)->files->fdt;
	__u64 file = 0;

	if (fd < table->max_fds)
		bpf_probe_read_kernel(&file, sizeof(file), &table->fd[fd]);
	return file;
}

/* submitted returns the address of the file of an AIO that is submitted alone. */
static __always_inline __u64 submitted(struct task_struct *t, __u64 list)
{
	__u64 iocb = 0;
	__u32 fd;

	if (bpf_probe_read_user(&iocb, sizeof(iocb), (void *)list) || bpf_probe_read_user(&fd, sizeof(fd), (void *)(iocb + IOCB_FILE)))
		return 0;
	return file_at(t, fd);
}

/* set_call notes the system call that a task is in, and the file it is about. */
static __always_inline void set_call(struct origin *o, struct task_struct *t)
{
	struct pt_regs___x86 *x86 = bpf_task_pt_regs(t);
	struct pt_regs___arm64 *arm64 = (void *)x86;
	__s32 nr;
	__u32 first, second;
	__u64 third;

	if (bpf_core_field_exists(x86->orig_ax)) {
		nr = x86->orig_ax;
		first = x86->di;
		second = x86->si;
		third = x86->dx;
	} else {
		nr = arm64->syscallno;
		first = arm64->orig_x0;
		second = arm64->regs[1];
		third = arm64->regs[2];
	}
	o->nr = nr;
	if (nr < 0)
		o->nr = IN_FAULT;
	else if (is_32bit(t, nr))
		o->nr = IN_COMPAT;
	else if (o->nr == sys_sendfile)
		o->file = file_at(t, second);
	else if (o->nr == sys_io_submit && second == 1)
		o->file = submitted(t, third);
	else if (o->nr < 512 && first_is_fd[(o->nr >> 6) & 7] & 1ULL << (o->nr & 63))
		o->file = file_at(t, first);
}

/* knows_pages says whether a page tells here, in the way we know, whose it is. */
static __always_inline bool knows_pages(void)
{
	struct page *page = 0;
	struct page___old *old = 0;

	return (bpf_core_field_exists(page->compound_info) || bpf_core_field_exists(old->compound_head)) &&
	       bpf_core_field_exists(page->mapping);
}

/* head_of returns the page that tells for a tail. A mask of the bits that the two
 * addresses have in common is higher than any address of a page. */
static __always_inline struct page *head_of(struct page *page)
{
	__u64 info = 0;

	if (bpf_core_field_exists(page->compound_info))
		bpf_probe_read_kernel(&info, sizeof(info), &page->compound_info);
	else
		bpf_probe_read_kernel(&info, sizeof(info), &((struct page___old *)page)->compound_head);
	if (!(info & 1))
		return page;
	return (struct page *)(info >= LOWEST_MASK ? (__u64)page & info : info - 1);
}

/* set_mapping notes whose memory is read or written: of the page cache, that is a
 * file's; of anybody else's memory it has a flag, or is nothing. */
static __always_inline void set_mapping(struct origin *o, struct bio *bio)
{
	struct bio_vec *first = 0;
	struct page *page = 0;
	__u64 back = 0, magic = 0;
	struct inode *inode = 0;
	struct super_block *sb = 0;
	unsigned short mode = 0;

	if (!knows_pages())
		return;
	bpf_probe_read_kernel(&first, sizeof(first), &bio->bi_io_vec);
	bpf_probe_read_kernel(&page, sizeof(page), &first->bv_page);
	page = head_of(page);
	bpf_probe_read_kernel(&o->mapping, sizeof(o->mapping), &page->mapping);
	if (!o->mapping || o->mapping & MAPPING_FLAGS)
		return;
	bpf_probe_read_kernel(&inode, sizeof(inode), &((struct address_space *)o->mapping)->host);
	bpf_probe_read_kernel(&back, sizeof(back), &inode->i_mapping);
	if (back != o->mapping) { /* no page of the page cache, but a slab or the like, where this is something else */
		o->mapping = 0;
		return;
	}
	bpf_probe_read_kernel(&sb, sizeof(sb), &inode->i_sb);
	bpf_probe_read_kernel(&magic, sizeof(magic), &sb->s_magic);
	if (magic == TMPFS_MAGIC || magic == HUGETLBFS_MAGIC) { /* a process's memory after all: shared, or huge */
		o->mapping = MAPPING_ANON;
		return;
	}
	o->inode = (__u64)inode;
	bpf_probe_read_kernel(&mode, sizeof(mode), &inode->i_mode);
	o->block = (mode & S_IFMT) == S_IFBLK;
}

/* judge says what a bio is of, and whether it goes past the page cache. It returns
 * the address of the inode, and of a dentry of it. */
static __always_inline __u64 judge(struct target *to, struct origin *o, bool data, __u64 *dentry)
{
	struct file *file = (struct file *)o->file;
	__u64 mapping = 0, inode = 0;
	__u32 flags = 0;

	if (file) {
		bpf_probe_read_kernel(&mapping, sizeof(mapping), &file->f_mapping);
		bpf_probe_read_kernel(&flags, sizeof(flags), &file->f_flags);
		bpf_probe_read_kernel(&inode, sizeof(inode), &file->f_inode);
		bpf_probe_read_kernel(dentry, sizeof(*dentry), &file->f_path.dentry);
	}
	bool own = mapping && mapping == o->mapping; /* the file's pages in the cache */
	to->direct = data && flags & o_direct && !own && !o->block;
	to->of = OF_FILE;
	if (file && (own || to->direct || !data))
		return inode;
	if (o->inode && !o->block) {
		*dentry = 0; /* the first of the inode's */
		return o->inode;
	}
	to->of = knows_pages() || !data ? OF_METADATA : OF_UNKNOWN;
	if (!(o->mapping & MAPPING_ANON))
		return 0;
	to->direct = o->nr == sys_io_submit || o->nr == sys_io_uring_enter;
	to->of = to->direct ? OF_UNKNOWN : OF_SWAP;
	return 0;
}

static __always_inline __u64 first_dentry(struct inode *inode)
{
	struct hlist_node *first = 0;
	struct dentry *d = 0;
	struct dentry___old *old = 0;

	bpf_probe_read_kernel(&first, sizeof(first), &inode->i_dentry.first);
	if (!first)
		return 0;
	if (bpf_core_field_exists(d->d_alias))
		return (__u64)first - bpf_core_field_offset(d->d_alias);
	return (__u64)first - bpf_core_field_offset(old->d_u.d_alias);
}

static __always_inline void set_path(struct target_file *f, __u64 dentry)
{
	for (int i = 0; dentry && i <= PATH_PARTS; i++) {
		struct dentry *d = (struct dentry *)dentry;
		const unsigned char *name = 0;
		__u64 up = 0;

		bpf_probe_read_kernel(&up, sizeof(up), &d->d_parent);
		if (up == dentry) {
			f->whole = 1;
			break;
		}
		if (i == PATH_PARTS)
			break;
		bpf_probe_read_kernel(&name, sizeof(name), &d->d_name.name);
		bpf_probe_read_kernel_str(f->part[i], PART_LEN, name);
		dentry = up;
	}
	f->named = 1;
}

static __always_inline void count_target(struct target *to, __u64 inode, __u64 dentry)
{
	static const struct target_file nothing;
	struct target_file *f = bpf_map_lookup_elem(&targets, to);

	if (!f) {
		if (!bpf_map_update_elem(&targets, to, &nothing, BPF_NOEXIST)) {
			f = bpf_map_lookup_elem(&targets, to);
			if (f)
				set_path(f, dentry || !inode ? dentry : first_dentry((struct inode *)inode));
		} else {
			f = bpf_map_lookup_elem(&targets, to);
		}
	}
	if (f)
		count(&f->submitted);
	else
		count(&lost_files);
}

/* set_inode names a file for good: its inode may come to be another's. */
static __always_inline void set_inode(struct target *to, struct inode *inode)
{
	struct super_block *sb = 0;

	if (!inode)
		return;
	bpf_probe_read_kernel(&to->ino, sizeof(to->ino), &inode->i_ino);
	bpf_probe_read_kernel(&to->generation, sizeof(to->generation), &inode->i_generation);
	bpf_probe_read_kernel(&sb, sizeof(sb), &inode->i_sb);
	bpf_probe_read_kernel(&to->dev, sizeof(to->dev), &sb->s_dev);
}

static __always_inline struct owned *owned_by(struct owner *o)
{
	static const struct owned nothing;
	struct owned *found = bpf_map_lookup_elem(&owners, o);

	if (found)
		return found;
	bpf_map_update_elem(&owners, o, &nothing, BPF_NOEXIST);
	return bpf_map_lookup_elem(&owners, o);
}

/* count_owner counts what a process submits, and remembers it until it is done. */
static __always_inline void count_owner(struct bio *bio, struct gendisk *disk, struct target *to, __u32 op)
{
	struct owner o = {.netns = to->netns, .direct = to->direct, .device = {.dev = dev_of(disk), .op = op}};

	__builtin_memcpy(o.comm, to->comm, TASK_COMM_LEN);
	struct owned *sum = owned_by(&o);
	if (!sum) {
		count(&lost_processes);
		return;
	}
	if (!sum->submitted++) /* the first on this CPU */
		name_disk(disk, o.device.dev);
	sum->bytes += bio->bi_iter.bi_size;
	struct under_way *u = claim(bios, BIOS, address_of(bio));
	if (!u) {
		count(&lost_bios);
		return;
	}
	u->owner = o;
	u->at = bpf_ktime_get_ns();
}

SEC("tp_btf/block_bio_queue")
int bio_queue(__u64 *ctx)
{
	struct bio *bio = (struct bio *)ctx[0];
	struct task_struct *t = bpf_get_current_task_btf();
	struct origin o = {.nr = IN_KERNEL};
	__u64 dentry = 0;

	if (!wanted(t->tgid))
		return 0;
	/* Before there is more than one way to get here: pointers are what the verifier
	 * takes longest for. */
	struct target to = {.netns = netns_of(t)};
	struct gendisk *disk = untrusted(bio)->bi_bdev->bd_disk;
	__u32 op = operation(bio->bi_opf);
	if (op == OP_WRITE && !bio->bi_iter.bi_size)
		op = OP_FLUSH;
	bool data = op == OP_READ || op == OP_WRITE;
	current_group((struct name *)to.comm);
	if (t->flags & PF_IO_WORKER)
		o.nr = sys_io_uring_enter;
	else if (!(t->flags & PF_KTHREAD))
		set_call(&o, t);
	if (data)
		set_mapping(&o, bio);
	__u64 inode = judge(&to, &o, data, &dentry);
	to.nr = o.nr;
	set_inode(&to, (struct inode *)inode);
	count_owner(bio, disk, &to, op);
	count_target(&to, inode, dentry);
	return 0;
}

/* Separate, so that the verifier need not follow it at each turn of the walk. */
SEPARATE int end_bio(__u64 bio, __u64 now)
{
	struct under_way *u = find(bios, BIOS, bio);

	if (!u) /* a part of one, or it was submitted before we looked */
		return 0;
	__u64 at = u->at;
	struct owner o = u->owner;
	release(u);
	struct owned *sum = at < resumed_at ? 0 : bpf_map_lookup_elem(&owners, &o);
	if (!sum)
		return 0;
	sum->completed++;
	sum->ns += now - at;
	return 0;
}

/* Devices without requests (stacked ones, memory) say when a bio is done; of the
 * others, the kernel only tells that the request is. */
SEC("tp_btf/block_bio_complete")
int bio_complete(__u64 *ctx)
{
	end_bio(address_of((void *)ctx[1]), bpf_ktime_get_ns());
	return 0;
}

struct walk {
	__u64 bio;
	__u64 now;
};

static __always_inline bool walk_on(struct walk *w)
{
	if (!w->bio)
		return false;
	end_bio(w->bio, w->now);
	bpf_probe_read_kernel(&w->bio, sizeof(w->bio), &((struct bio *)w->bio)->bi_next);
	return true;
}

static long end_next(__u32 i, struct walk *w)
{
	return !walk_on(w);
}

/* A program of its own, as it may take long: while it runs, the kernel skips it on
 * that CPU for what interrupts it. */
SEC("tp_btf/block_rq_complete")
int rq_bios(__u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	struct walk w = {.bio = address_of(untrusted(rq)->bio), .now = bpf_ktime_get_ns()};

	if ((__u32)ctx[2] < rq->__data_len) /* a part of it */
		return 0;
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop)) {
		bpf_loop(MAX_MERGED, end_next, &w, 0);
	} else {
		for (int i = 0; i < MAX_MERGED_OLD; i++)
			if (!walk_on(&w))
				break;
	}
	if (w.bio)
		count(&lost_bios);
	return 0;
}

/* Syncs: what a process waits until its writes are safe. */

SEC("tp_btf/ext4_sync_file_enter")
int sync_enter(__u64 *ctx)
{
	struct task_struct *t = bpf_get_current_task_btf();

	if (!wanted(t->tgid))
		return 0;
	struct syncing *s = bpf_task_storage_get(&tasks, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (s)
		s->since = bpf_ktime_get_ns();
	else
		count(&lost_syncs);
	return 0;
}

static __always_inline struct syncs *syncs_of(struct syncer *who)
{
	static const struct syncs nothing;
	struct syncs *found = bpf_map_lookup_elem(&syncers, who);

	if (found)
		return found;
	bpf_map_update_elem(&syncers, who, &nothing, BPF_NOEXIST);
	found = bpf_map_lookup_elem(&syncers, who);
	if (!found)
		count(&lost_syncs);
	return found;
}

SEC("tp_btf/ext4_sync_file_exit")
int sync_exit(__u64 *ctx)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct syncing *s = bpf_task_storage_get(&tasks, t, 0, 0);

	if (!s || !s->since)
		return 0;
	__u64 since = s->since, took = bpf_ktime_get_ns() - since;
	s->since = 0;
	if (since < resumed_at)
		return 0;
	struct syncer who = {.netns = netns_of(t)};
	current_group((struct name *)who.comm);
	struct syncs *sum = syncs_of(&who);
	if (!sum)
		return 0;
	sum->count++;
	sum->ns += took;
	sum->time[log2_slot(took, TIME_SLOTS)]++;
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
