/* Two threads that want one mutex, which has a name. The first holds it for 13 ms,
 * 53 times. Prints how long the other one's calls took without its CPU time, in
 * nanoseconds, and stays until its standard input closes.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
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

/* A function of its own: who calls a library without frame pointers is missing in
 * the stack, but not who called that. */
__attribute__((noinline)) static long long wants(void)
{
	long long cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), clock = clock_ns(CLOCK_MONOTONIC);

	pthread_mutex_lock(&the_lock);
	return clock_ns(CLOCK_MONOTONIC) - clock - (clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu);
}

int main(void)
{
	pthread_t thread;
	long long blocked = 0;
	char c;

	sem_init(&wanted, 0, 0);
	sem_init(&held, 0, 0);
	pthread_create(&thread, 0, holder, 0);
	for (int i = 0; i < 53; i++) {
		sem_post(&wanted);
		sem_wait(&held);
		blocked += wants();
		pthread_mutex_unlock(&the_lock);
	}
	printf("%lld\n", blocked);
	fflush(stdout);
	return read(0, &c, 1) > 0;
}
