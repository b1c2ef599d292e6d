//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
 *
 * Who is on the CPU, and in which function: stacks taken by the clock, and of PHP
 * the script's functions, added up here and fetched once in a while.
 */
#include "plimsoll.h"

#define MAP_TYPE_PERCPU_ARRAY 6
#define MAP_TYPE_LRU_HASH 9
#define MAX_FRAMES 127 /* the kernel's own usual bound */
#define MAX_PHP_FRAMES 24
#define BPF_F_USER_STACK (1ULL << 8)
#define NO_STACK (~0ULL)

static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;
static long (*bpf_probe_read_user_str)(void *dst, __u32 size, const void *unsafe_ptr) = (void *)114;
static long (*bpf_ringbuf_output)(void *ringbuf, void *data, __u64 size, __u64 flags) = (void *)130;
static long (*bpf_get_stack)(void *ctx, void *buf, __u32 size, __u64 flags) = (void *)67;

/* A stack is known by what is in it. User space begins a new round with each
 * fetch, so that nothing is fetched while it is still being added to. */
struct stack_key {
	__u64 hash;
	__u32 round;
	__u32 pad;
};

/* Addresses from the innermost out; of PHP, pairs of a script's function and a line. */
struct stack {
	__u64 words;
	__u64 word[MAX_FRAMES];
};

struct sample {
	__u64 kernel; /* hashes of the stacks; 0 is none, NO_STACK one that found no room */
	__u64 user;
	__u64 php;
	__u32 round;
	__u32 netns;
	__u32 tgid;
	__u32 pad;
	__u8 comm[TASK_COMM_LEN];   /* of the process */
	__u8 thread[TASK_COMM_LEN]; /* of the thread */
};

/* Where a PHP process keeps what it executes. Offsets are of its version. */
struct php {
	__u64 current; /* address of executor_globals.current_execute_data */
	__u32 filename; /* offset in struct _zend_op_array */
	__u32 pad;
};

/* A function of a PHP script, as its names are written in the process. */
struct script {
	__u8 class[64];
	__u8 function[64];
	__u8 file[128];     /* its end, if it is longer */
	__u64 file_length;
};

volatile __u32 this_round;

volatile __u64 lost_samples; /* samples that are counted nowhere */
volatile __u64 lost_stacks;  /* samples whose kernel or user stack, */
volatile __u64 lost_php;     /* or whose PHP functions, found no room or could not be read */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2048); /* the loader makes it larger on larger machines */
	__type(key, struct sample);
	__type(value, __u64);
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2048); /* likewise */
	__type(key, struct stack_key);
	__type(value, struct stack);
} stacks SEC(".maps");

/* Filled by user space, by tgid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct php);
} php_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2048);
	__type(key, __u64);
	__type(value, struct script);
} scripts SEC(".maps");

/* The programs that were found on a CPU; one that is new is announced, for user
 * space must look at its memory's layout before it ends. */
struct program {
	__u64 mm; /* another one after an exec */
	__u32 tgid;
	__u32 pad;
};

struct {
	__uint(type, MAP_TYPE_LRU_HASH);
	__uint(max_entries, 2048);
	__type(key, struct program);
	__type(value, __u8);
} programs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024);
} announced SEC(".maps"); /* tgids */

struct scratch {
	struct stack stack;
	struct script script;
};

struct {
	__uint(type, MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline __u64 mix(__u64 hash, __u64 value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

/* room is where this CPU's sample is put together. Functions of their own look it
 * up, and are not given it: before Linux 6.2 the verifier does not let what they were
 * given be put into a map. */
static __always_inline struct scratch *room(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

/* keep puts the stack in the room into the map, and returns by what it is known there. */
SEPARATE __u64 keep(__u32 in_round)
{
	struct stack_key key = {.round = in_round};
	struct scratch *in = room();

	if (!in)
		return NO_STACK;
	struct stack *s = &in->stack;
	key.hash = s->words;
	for (int i = 0; i < MAX_FRAMES; i++) {
		if (i >= s->words)
			break;
		key.hash = mix(key.hash, s->word[i]);
	}
	if (!key.hash || key.hash == NO_STACK)
		key.hash = 1;
	if (bpf_map_lookup_elem(&stacks, &key) || !bpf_map_update_elem(&stacks, &key, s, 0))
		return key.hash;
	return NO_STACK;
}

/* native takes the kernel's or the process's stack. */
static __always_inline __u64 native(void *ctx, struct stack *s, __u32 in_round, __u64 flags)
{
	long bytes = bpf_get_stack(ctx, s->word, sizeof(s->word), flags);

	if (bytes <= 0)
		return 0;
	s->words = (__u64)bytes / sizeof(__u64);
	__u64 hash = keep(in_round);
	if (hash == NO_STACK)
		count(&lost_stacks);
	return hash;
}

/* PHP 7 and 8, without threads, 64 bits. Offsets that no version has changed. */
#define EXECUTE_DATA_OPLINE 0
#define EXECUTE_DATA_FUNCTION 24
#define EXECUTE_DATA_PREV 48
#define OPLINE_LINE 24
#define INCLUDE_OR_EVAL 73 /* ZEND_INCLUDE_OR_EVAL, of all versions */
#define INCLUDES (1ULL << 32) /* in a word beside the line */
#define FUNCTION_NAME 8
#define FUNCTION_CLASS 16
#define CLASS_NAME 8
#define INTERNAL_FUNCTION 1
#define USER_FUNCTION 2
#define EVAL_CODE 4
#define IS_STRING 6
#define LONGEST_NAME 4096
#define LAST_LINE 10000000

struct zend_string {
	__u32 references;
	__u32 type;
	__u64 hash;
	__u64 length;
};

static __always_inline bool user_read(void *into, __u32 size, __u64 from)
{
	return !bpf_probe_read_user(into, size, (void *)from);
}

/* name_of reads the head of a PHP string; false if there is no such at this address. */
static __always_inline bool name_of(struct zend_string *s, __u64 at)
{
	return user_read(s, sizeof(*s), at) && (s->type & 0xf) == IS_STRING && s->length > 0 && s->length < LONGEST_NAME;
}

/* identify adds a string to what tells functions apart: PHP's own hash of it. Where
 * that was never made, the string's place in this process serves. */
static __always_inline __u64 identify(__u64 id, struct zend_string *s, __u64 at, __u32 tgid)
{
	id = mix(id, s->length);
	return s->hash ? mix(id, s->hash) : mix(mix(id, at), tgid);
}

/* text copies a string, of one that is too long the end: of a path it tells more. */
static __always_inline void text(__u8 *into, __u32 size, __u64 at, __u64 length)
{
	__u64 skipped = length >= size ? length - size + 1 : 0;

	bpf_probe_read_user_str(into, size, (void *)(at + sizeof(struct zend_string) + skipped));
}

struct function {
	struct zend_string name, class, file;
	__u64 name_at, class_at, file_at; /* 0: it has none */
};

/* describe reads what a function is called, and where it is; false where what is
 * read cannot be that. */
static __always_inline bool describe(struct function *f, __u64 at, __u32 filename, __u8 type)
{
	__u64 class = 0;

	if (!user_read(&f->name_at, sizeof(__u64), at + FUNCTION_NAME) || !user_read(&class, sizeof(class), at + FUNCTION_CLASS))
		return false;
	if (f->name_at && !name_of(&f->name, f->name_at))
		return false;
	if (class && (!user_read(&f->class_at, sizeof(__u64), class + CLASS_NAME) || !name_of(&f->class, f->class_at)))
		return false;
	if (type == INTERNAL_FUNCTION)
		return f->name_at;
	return user_read(&f->file_at, sizeof(__u64), at + filename) && name_of(&f->file, f->file_at);
}

/* known returns by what a function is known to user space, and tells it about one
 * that is new. */
static __always_inline __u64 known(struct function *f, struct script *s, __u32 tgid)
{
	__u64 id = 1;

	if (f->name_at)
		id = identify(id, &f->name, f->name_at, tgid);
	id = mix(id, !!f->class_at);
	if (f->class_at)
		id = identify(id, &f->class, f->class_at, tgid);
	id = mix(id, !!f->file_at);
	if (f->file_at)
		id = identify(id, &f->file, f->file_at, tgid);
	if (bpf_map_lookup_elem(&scripts, &id))
		return id;
	__builtin_memset(s, 0, sizeof(*s));
	if (f->name_at)
		text(s->function, sizeof(s->function), f->name_at, f->name.length);
	if (f->class_at)
		text(s->class, sizeof(s->class), f->class_at, f->class.length);
	if (f->file_at)
		text(s->file, sizeof(s->file), f->file_at, f->file.length);
	s->file_length = f->file.length;
	if (bpf_map_update_elem(&scripts, &id, s, 0))
		count(&lost_php);
	return id;
}

/* php_frame adds one frame; false where the stack cannot be followed. */
SEPARATE int php_frame(__u64 function, __u64 opline, __u32 filename, __u32 tgid)
{
	struct scratch *to = room();
	struct function f = {};
	struct {
		__u32 line;
		__u8 opcode;
		__u8 types[3];
	} op = {};
	__u8 type;

	if (!to || !user_read(&type, sizeof(type), function))
		return false;
	if (type != INTERNAL_FUNCTION && type != USER_FUNCTION && type != EVAL_CODE)
		return false;
	if (!describe(&f, function, filename, type))
		return false;
	if (type != INTERNAL_FUNCTION && (!user_read(&op, sizeof(op), opline + OPLINE_LINE) || op.line > LAST_LINE))
		return false;
	__u64 n = to->stack.words;
	if (n > MAX_FRAMES - 2)
		return false;
	to->stack.word[n] = known(&f, &to->script, tgid);
	/* The innermost function that includes a file has nothing of it to execute yet. */
	to->stack.word[n + 1] = op.line | (!n && op.opcode == INCLUDE_OR_EVAL ? INCLUDES : 0);
	to->stack.words = n + 2;
	return true;
}

/* php_stack takes the stack of the script that a process executes. */
static __always_inline __u64 php_stack(struct scratch *to, struct php *p, __u32 tgid, __u32 in_round)
{
	__u64 at = 0, opline, function;

	to->stack.words = 0;
	if (!user_read(&at, sizeof(at), p->current))
		count(&lost_php);
	for (int i = 0; i < MAX_PHP_FRAMES && at; i++) {
		bool whole = user_read(&opline, sizeof(opline), at + EXECUTE_DATA_OPLINE) &&
			     user_read(&function, sizeof(function), at + EXECUTE_DATA_FUNCTION) &&
			     user_read(&at, sizeof(at), at + EXECUTE_DATA_PREV);
		if (whole && !function) /* PHP's own, between two calls */
			continue;
		if (!whole || !php_frame(function, opline, p->filename, tgid)) {
			count(&lost_php);
			break;
		}
	}
	if (!to->stack.words)
		return 0;
	__u64 hash = keep(in_round);
	if (hash == NO_STACK)
		count(&lost_php);
	return hash;
}

/* php_of finds a PHP process, also one that was forked from a known one and has
 * executed nothing since: its memory is laid out in the same way. */
static __always_inline struct php *php_of(struct task_struct *t)
{
	struct task_struct *leader = untrusted(t)->group_leader;
	__u32 tgid = t->tgid;
	struct php *p = bpf_map_lookup_elem(&php_processes, &tgid);

	if (p || !(leader->flags & PF_FORKNOEXEC))
		return p;
	tgid = leader->real_parent->tgid;
	return bpf_map_lookup_elem(&php_processes, &tgid);
}

static __always_inline void announce(struct task_struct *t)
{
	struct program p = {.mm = (__u64)untrusted(t)->mm, .tgid = t->tgid};
	__u8 one = 1;

	if (bpf_map_lookup_elem(&programs, &p))
		return;
	bpf_map_update_elem(&programs, &p, &one, 0);
	bpf_ringbuf_output(&announced, &p.tgid, sizeof(p.tgid), 0); /* if there is no room, it is looked at later */
}

static __always_inline void add(struct sample *s)
{
	__u64 one = 1, *n = bpf_map_lookup_elem(&samples, s);

	if (!n && !bpf_map_update_elem(&samples, s, &one, BPF_NOEXIST))
		return;
	n = n ? n : bpf_map_lookup_elem(&samples, s);
	count(n ? n : &lost_samples);
}

SEC("perf_event")
int cpu_sample(void *ctx)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct scratch *scratch = room();
	struct sample s = {.round = this_round};

	if (!scratch || !t->pid || !wanted(t->tgid))
		return 0;
	s.netns = netns_of(t);
	s.tgid = t->tgid;
	group_name(s.comm, t);
	bpf_probe_read_kernel(s.thread, TASK_COMM_LEN, t->comm);
	s.kernel = native(ctx, &scratch->stack, s.round, 0);
	if (!(t->flags & PF_KTHREAD)) {
		announce(t);
		s.user = native(ctx, &scratch->stack, s.round, BPF_F_USER_STACK);
		struct php *p = php_of(t);
		if (p)
			s.php = php_stack(scratch, p, s.tgid, s.round);
	}
	add(&s);
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
