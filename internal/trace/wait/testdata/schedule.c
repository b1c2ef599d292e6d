/* A program that blocks by a schedule, in every way that a test can cause, and
 * measures each of its waits itself: the time that the call took, without its
 * time on a CPU and the time it stood in the queue for one.
 *
 *   schedule NAME FILE PORT OTHERPORT
 *
 * NAME is what its threads are called while it works, FILE lies on a disk. At
 * 127.0.0.1:PORT somebody answers a byte with a byte 11 ms later; at OTHERPORT
 * somebody reads what comes, but only 101 ms after it began to come.
 * It prints a line for each reason: nanoseconds, waits, and how many of those
 * nanoseconds the host of a virtual machine may have taken instead. That is as much a
 * wait as it took of the calls that did not block, as for requests to a disk which it
 * serves at once.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SLEEP, LOCK, SOCKET_READ, SOCKET_WRITE, UNIX_READ, SERVED_READ, CONNECT, ACCEPT, POLL, PIPE, PIPE_WRITE, CHILD, FILE_LOCK, DISK, PAGE_FAULT, KINDS };

static const char *names[KINDS] = {
	"sleep", "lock", "socket_read", "socket_write", "unix_read", "served_read", "connect", "accept", "poll", "pipe", "pipe_write", "child", "file_lock", "disk", "page_fault",
};

static struct {
	long long ns, waits;
	long long taken, unblocked; /* of calls that did not block: nanoseconds, how many */
} seen[KINDS];

struct now {
	long long clock, cpu, queue, switches;
};

static int schedstat;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static long long clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static long long queued(void)
{
	char text[96] = "";
	long long ran, queue;

	if (pread(schedstat, text, sizeof(text) - 1, 0) <= 0 || sscanf(text, "%lld %lld", &ran, &queue) != 2)
		fail("schedstat");
	return queue;
}

/* now reads all clocks at one moment: again, if the CPU was lost in between. */
static struct now now(void)
{
	struct now n;
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	n.switches = u.ru_nvcsw;
	do {
		n.queue = queued();
		n.cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		n.clock = clock_ns(CLOCK_MONOTONIC);
	} while (queued() != n.queue);
	return n;
}

static void seen_since(int kind, struct now a)
{
	struct now b = now();

	long long off = (b.clock - a.clock) - (b.cpu - a.cpu) - (b.queue - a.queue);
	if (b.switches == a.switches) {
		seen[kind].taken += off;
		seen[kind].unblocked++;
		return;
	}
	seen[kind].ns += off;
	seen[kind].waits += b.switches - a.switches;
}

#define BLOCK(kind, call) ({ struct now before = now(); long result = (call); seen_since(kind, before); if (result < 0) fail(#call); result; })

static void rest(int ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&t, 0);
}

/* helper begins a process of another name, which ends with us. */
static int helper(void)
{
	int pid = fork();

	if (pid < 0)
		fail("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "helper");
	}
	return pid;
}

static void end(int pid)
{
	BLOCK(CHILD, waitpid(pid, 0, 0));
}

static struct sockaddr_in local(int port)
{
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int dial(int port)
{
	struct sockaddr_in to = local(port);
	int s = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(s, (void *)&to, sizeof(to)))
		fail("connect");
	return s;
}

static void sleeps(void)
{
	for (int i = 0; i < 101; i++) {
		struct timespec t = {.tv_nsec = 7000000};
		BLOCK(SLEEP, nanosleep(&t, 0));
	}
	for (int i = 0; i < 19; i++)
		BLOCK(SLEEP, poll(0, 0, 3));
}

/* The helper holds a mutex for 13 ms and says through a pipe when it has it. */
static void locks(void)
{
	int has[2], go[2];
	char c = 0;
	pthread_mutex_t *m = mmap(0, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(m, &a);
	if (pipe(has) || pipe(go))
		fail("pipe");
	int pid = helper();
	if (!pid) {
		close(go[1]);
		for (;;) {
			if (read(go[0], &c, 1) != 1)
				_exit(0);
			pthread_mutex_lock(m);
			if (write(has[1], &c, 1) != 1)
				_exit(1);
			rest(13);
			pthread_mutex_unlock(m);
		}
	}
	close(go[0]);
	for (int i = 0; i < 53; i++) {
		if (write(go[1], &c, 1) != 1)
			fail("write");
		BLOCK(PIPE, read(has[0], &c, 1));
		BLOCK(LOCK, pthread_mutex_lock(m));
		pthread_mutex_unlock(m);
	}
	close(go[1]);
	end(pid);
}

static void reads(int port)
{
	int s = dial(port);
	char c = 0;

	for (int i = 0; i < 61; i++) {
		if (send(s, &c, 1, 0) != 1)
			fail("send");
		BLOCK(SOCKET_READ, recv(s, &c, 1, 0));
	}
	for (int i = 0; i < 31; i++) { /* as PHP reads */
		struct pollfd p = {.fd = s, .events = POLLIN};
		if (send(s, &c, 1, 0) != 1)
			fail("send");
		BLOCK(SOCKET_READ, poll(&p, 1, 1000));
		if (recv(s, &c, 1, MSG_DONTWAIT) != 1)
			fail("recv");
	}
	for (int i = 0; i < 17; i++) { /* as an event server waits */
		int e = epoll_create1(0);
		struct epoll_event want = {.events = EPOLLIN};
		epoll_ctl(e, EPOLL_CTL_ADD, s, &want);
		BLOCK(POLL, epoll_wait(e, &want, 1, 3));
		close(e);
	}
	close(s);
}

static void writes(int port)
{
	static char much[2 << 20];
	int s = dial(port), room = 65536;

	setsockopt(s, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	BLOCK(SOCKET_WRITE, send(s, much, sizeof(much), 0));
	close(s);
}

static void unix_reads(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int l = socket(AF_UNIX, SOCK_STREAM, 0), s = socket(AF_UNIX, SOCK_STREAM, 0);
	socklen_t len = sizeof(at.sun_family) + 1 + snprintf(at.sun_path + 1, 64, "schedule%d", getpid());
	char c = 0;

	if (bind(l, (void *)&at, len) || listen(l, 5))
		fail("listen");
	int pid = helper();
	if (!pid) {
		close(s);
		int a = accept(l, 0, 0);
		while (recv(a, &c, 1, 0) == 1) {
			rest(5);
			send(a, &c, 1, 0);
		}
		_exit(0);
	}
	if (connect(s, (void *)&at, len))
		fail("connect");
	for (int i = 0; i < 43; i++) {
		if (send(s, &c, 1, 0) != 1)
			fail("send");
		BLOCK(UNIX_READ, recv(s, &c, 1, 0));
	}
	close(s);
	end(pid);
}

/* Connections come every 6 ms, and send after 3 ms. Then the queue is full while the last one comes:
 * its first SYN is dropped, the second, a second later, is not. */
static void connections(void)
{
	struct sockaddr_in at = local(0);
	socklen_t len = sizeof(at);
	int l = socket(AF_INET, SOCK_STREAM, 0), s = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(l, (void *)&at, len) || listen(l, 5) || getsockname(l, (void *)&at, &len))
		fail("listen");
	int pid = helper();
	if (!pid) {
		for (int i = 0; i < 29; i++) {
			rest(3);
			int c = dial(ntohs(at.sin_port));
			rest(3);
			send(c, "", 1, 0);
			close(c);
		}
		_exit(0);
	}
	for (int i = 0; i < 29; i++) {
		char byte;
		int c = BLOCK(ACCEPT, accept(l, 0, 0));
		BLOCK(SERVED_READ, recv(c, &byte, 1, 0));
		close(c);
	}
	end(pid);
	listen(l, 0);
	int fills = dial(ntohs(at.sin_port));
	pid = helper();
	if (!pid) {
		rest(503);
		accept(l, 0, 0);
		_exit(0);
	}
	BLOCK(CONNECT, connect(s, (void *)&at, len));
	end(pid);
	close(fills);
	close(s);
	close(l);
}

static void pipes(void)
{
	int p[2];
	char c = 0;

	if (pipe(p))
		fail("pipe");
	int pid = helper();
	if (!pid) {
		for (int i = 0; i < 71; i++) {
			rest(5);
			if (write(p[1], &c, 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	for (int i = 0; i < 71; i++)
		BLOCK(PIPE, read(p[0], &c, 1));
	end(pid);
}

/* A full pipe has room again for a page once a page was read. */
static void full_pipes(void)
{
	static char page[4096];
	int p[2], size;

	if (pipe(p) || (size = fcntl(p[1], F_GETPIPE_SZ)) < 0)
		fail("pipe");
	for (int i = 0; i < size; i += sizeof(page))
		if (write(p[1], page, sizeof(page)) != sizeof(page))
			fail("fill a pipe");
	int pid = helper();
	if (!pid) {
		for (int i = 0; i < 59; i++) {
			rest(7);
			if (read(p[0], page, sizeof(page)) != sizeof(page))
				_exit(1);
		}
		_exit(0);
	}
	for (int i = 0; i < 59; i++)
		BLOCK(PIPE_WRITE, write(p[1], page, sizeof(page)));
	end(pid);
}

static void children(void)
{
	for (int i = 0; i < 23; i++) {
		int pid = helper();
		if (!pid) {
			rest(19);
			_exit(0);
		}
		end(pid);
	}
}

static void file_locks(const char *file)
{
	int has[2], go[2], f = open(file, O_RDWR);
	char c = 0;

	if (f < 0 || pipe(has) || pipe(go))
		fail(file);
	int pid = helper();
	if (!pid) {
		int own = open(file, O_RDWR);
		close(go[1]);
		for (;;) {
			if (read(go[0], &c, 1) != 1)
				_exit(0);
			flock(own, LOCK_EX);
			if (write(has[1], &c, 1) != 1)
				_exit(1);
			rest(17);
			flock(own, LOCK_UN);
		}
	}
	close(go[0]);
	for (int i = 0; i < 37; i++) {
		if (write(go[1], &c, 1) != 1)
			fail("write");
		BLOCK(PIPE, read(has[0], &c, 1));
		BLOCK(FILE_LOCK, flock(f, LOCK_EX));
		flock(f, LOCK_UN);
	}
	close(go[1]);
	end(pid);
	close(f);
}

#define PAGES 512

/* Direct writes and reads, fsync, and pages that are not in memory any more. */
static void disk(const char *file)
{
	int f = open(file, O_RDWR | O_DIRECT);
	char *page;

	if (f < 0)
		f = open(file, O_RDWR); /* a file system without */
	if (posix_memalign((void **)&page, 4096, 4096))
		fail("memory");
	memset(page, 1, 4096);
	for (int i = 0; i < PAGES; i++)
		BLOCK(DISK, pwrite(f, page, 4096, i * 4096L));
	for (int i = 0; i < 211; i++)
		BLOCK(DISK, pread(f, page, 4096, i * 7 % PAGES * 4096L));
	for (int i = 0; i < 31; i++) {
		BLOCK(DISK, pwrite(f, page, 4096, i * 4096L));
		BLOCK(DISK, fsync(f));
	}
	posix_fadvise(f, 0, 0, POSIX_FADV_DONTNEED);
	volatile char *map = mmap(0, PAGES * 4096, PROT_READ, MAP_SHARED, f, 0);
	madvise((void *)map, PAGES * 4096, MADV_RANDOM);
	for (int i = 0; i < 127; i++)
		BLOCK(PAGE_FAULT, (long)map[i * 4 * 4096]);
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	schedstat = open("/proc/thread-self/schedstat", O_RDONLY);
	prctl(PR_SET_NAME, argv[1]);
	sleeps();
	locks();
	reads(atoi(argv[3]));
	writes(atoi(argv[4]));
	unix_reads();
	connections();
	pipes();
	full_pipes();
	children();
	file_locks(argv[2]);
	disk(argv[2]);
	prctl(PR_SET_NAME, "done");
	for (int i = 0; i < KINDS; i++) {
		long long each = seen[i].unblocked ? seen[i].taken / seen[i].unblocked : 0;
		printf("%s %lld %lld %lld\n", names[i], seen[i].ns, seen[i].waits, each * seen[i].waits);
	}
	return 0;
}
