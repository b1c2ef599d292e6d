/* What a load generator can cost at least, and a server that costs next to nothing, for bench/load.sh.
 *
 *   floor sink PORT                                       answers each request at once, reads none; until it is killed
 *   floor client PORT CONNECTIONS SECONDS BYTES REQUEST   sends REQUEST on each connection as soon as so many BYTES came on
 *                                                         it, parses nothing, measures nothing; prints requests, seconds
 *
 * One thread, epoll, edge-triggered, one receive and one send a request: what is left is the kernel's. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char buffer[1 << 16];
static struct epoll_event events[64];

static void stop(const char *what) { perror(what); exit(1); }

static struct sockaddr_in at(const char *port) {
	return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static void watch(int epoll, int fd) {
	int one = 1;
	struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.fd = fd};
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e)) stop("epoll_ctl");
}

/* One request on the way to one connection is all that the clients here send, so each receive is one. */
static void sink(const char *port) {
	static char reply[1024];
	int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), epoll = epoll_create1(0);
	struct sockaddr_in a = at(port);
	int n = sprintf(reply, "HTTP/1.1 200 OK\r\nServer: sink\r\nContent-Type: application/octet-stream\r\nContent-Length: 599\r\nConnection: keep-alive\r\n\r\n");
	memset(reply + n, 'x', 599);
	n += 599;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(listener, (void *)&a, sizeof a) || listen(listener, 8192)) stop("listen");
	watch(epoll, listener);
	for (;;) {
		int ready = epoll_wait(epoll, events, 64, -1);
		for (int i = 0; i < ready; i++) {
			int fd = events[i].data.fd, c;
			if (fd == listener) {
				while ((c = accept4(listener, 0, 0, SOCK_NONBLOCK)) >= 0) watch(epoll, c);
				continue;
			}
			ssize_t got = recv(fd, buffer, sizeof buffer, 0);
			if (got == 0 || (got < 0 && errno != EAGAIN)) close(fd);
			if (got > 0 && send(fd, reply, n, MSG_NOSIGNAL) != n) close(fd);
		}
	}
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void client(const char *port, int connections, double seconds, long bytes, const char *request) {
	static long left[65536];
	int epoll = epoll_create1(0);
	long requests = 0, length = strlen(request);
	struct sockaddr_in a = at(port);
	double begun = now();
	for (int i = 0; i < connections; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd < 0 || fd >= 65536 || connect(fd, (void *)&a, sizeof a)) stop("connect");
		watch(epoll, fd);
		left[fd] = bytes;
		if (send(fd, request, length, MSG_NOSIGNAL) != length) stop("send");
	}
	while (now() - begun < seconds) {
		int ready = epoll_wait(epoll, events, 64, 100);
		for (int i = 0; i < ready; i++) {
			int fd = events[i].data.fd;
			ssize_t got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
			if (got <= 0) stop("recv");
			if ((left[fd] -= got) > 0) continue;
			if (left[fd] < 0) { fprintf(stderr, "floor: a reply is longer than %ld bytes\n", bytes); exit(1); }
			left[fd] = bytes;
			requests++;
			if (send(fd, request, length, MSG_NOSIGNAL) != length) stop("send");
		}
	}
	printf("%ld %f\n", requests, now() - begun);
}

int main(int argc, char **argv) {
	if (argc == 3 && !strcmp(argv[1], "sink")) sink(argv[2]);
	if (argc != 7 || strcmp(argv[1], "client")) {
		fprintf(stderr, "floor sink PORT | floor client PORT CONNECTIONS SECONDS BYTES REQUEST\n");
		return 2;
	}
	client(argv[2], atoi(argv[3]), atof(argv[4]), atol(argv[5]), argv[6]);
}
