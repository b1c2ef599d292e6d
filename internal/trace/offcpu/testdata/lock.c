/* Two threads that want one mutex, which has a name. The first holds it for 13 ms,
 * 53 times. Prints for the other one's calls how long they can have been blocked at
 * the most and at the least, in nanoseconds, and how often, and stays until its
 * standard input closes.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t wanted, held;

static long long clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *holder(void *unused)
{
	struct timespec t = {.tv_nsec = 13000000};

	for (;;) {
		sem_wait(&wanted);
		pthread_mutex_lock(&the_lock);
		sem_post(&held);
		nanosleep(&t, 0);
		pthread_mutex_unlock(&the_lock);
	}
	return unused;
}

/* queued_ns is how long the only other state lasted: ready, but with no CPU. */
static long long queued_ns(void)
{
	long long on_cpu, queued = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "r");

	if (f) {
		if (fscanf(f, "%lld %lld", &on_cpu, &queued) != 2)
			queued = 0;
		fclose(f);
	}
	return queued;
}

static long long waits(void)
{
	struct rusage r;

	getrusage(RUSAGE_THREAD, &r);
	return r.ru_nvcsw;
}

struct blocked {
	long long most, least, times;
};

/* A function of its own: who calls a library without frame pointers is missing in
 * the stack, but not who called that.
 * A thread that neither runs nor queues is blocked. Each clock is read twice, around
 * and within the other's readings, since those take time too: the longer wall time
 * without the shorter CPU time is an upper bound, the reverse a lower one.
 */
__attribute__((noinline)) static void wants(struct blocked *b)
{
	long long queued, times, cpu_around, wall_around, cpu_within, wall_within, wall, cpu;

	queued = queued_ns();
	times = waits();
	wall_around = clock_ns(CLOCK_MONOTONIC);
	cpu_around = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	wall_within = clock_ns(CLOCK_MONOTONIC);
	cpu_within = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	pthread_mutex_lock(&the_lock);

	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	wall = clock_ns(CLOCK_MONOTONIC);
	b->least += wall - wall_within;
	b->most -= cpu - cpu_within;
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	wall = clock_ns(CLOCK_MONOTONIC);
	b->least -= cpu - cpu_around;
	b->most += wall - wall_around;
	b->times += waits() - times;
	b->least -= queued_ns() - queued;
}

int main(void)
{
	struct blocked b = {0};
	pthread_t thread;
	char c;

	sem_init(&wanted, 0, 0);
	sem_init(&held, 0, 0);
	pthread_create(&thread, 0, holder, 0);
	for (int i = 0; i < 53; i++) {
		sem_post(&wanted);
		sem_wait(&held);
		wants(&b);
		pthread_mutex_unlock(&the_lock);
	}
	printf("%lld %lld %lld\n", b.most, b.least, b.times);
	fflush(stdout);
	return read(0, &c, 1) > 0;
}
