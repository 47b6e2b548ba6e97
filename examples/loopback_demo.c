/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both ends in one process: an HTTP server and its client over darter's own loopback. It needs no
 * device, no rights, no second host; tools/demo shows it where no tap can be had.
 *
 *	loopback_demo [-o key=value]... [requests [connections]]
 *
 * Three runs, a line each: one request; `requests` over one connection; `connections` one after the
 * other with a request each. The last line says what the server counted; the exit status is 0 only
 * when both ends counted the same.
 */
#define _GNU_SOURCE 1	/* strcasestr */
#include <arpa/inet.h>
#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <darter/darter.h>
#include <darter/socket.h>

#define OVERRIDES_MAX	32
#define HEAD_BYTES	1024

static const char keep_request[] = "GET / HTTP/1.1\r\nHost: darter\r\n\r\n";
static const char close_request[] =
    "GET / HTTP/1.1\r\nHost: darter\r\nConnection: close\r\n\r\n";
static const char answer[] =
    "HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\nHello from a netisr.\n";

static struct sockaddr_in address = { .sin_family = AF_INET };
static atomic_ulong n_accepted, n_served;

/* Requests come one at a time: the client waits for each answer. */
static void
serve(int fd)
{
	char head[HEAD_BYTES];
	size_t used = 0;
	ssize_t n;

	while ((n = darter_recv(fd, head + used, sizeof(head) - 1 - used, 0)) > 0) {
		used += (size_t)n;
		head[used] = '\0';
		if (strstr(head, "\r\n\r\n") == NULL)
			continue;
		if (darter_send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL) < 0)
			return;
		atomic_fetch_add(&n_served, 1);
		if (strcasestr(head, "\r\nConnection: close") != NULL)
			return;
		used = 0;
	}
}

static void *
server_main(void *arg)
{
	int listener = *(int *)arg;
	int fd;

	while ((fd = darter_accept(listener, NULL, NULL)) >= 0) {
		atomic_fetch_add(&n_accepted, 1);
		serve(fd);
		darter_close(fd);
	}
	return NULL;
}

static int
connect_to_server(void)
{
	int fd = darter_socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || darter_connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		err(1, "connect");
	return fd;
}

static void
ask(int fd, const char *request, char got[sizeof(answer)])
{
	size_t len = strlen(request);

	if (darter_send(fd, request, len, MSG_NOSIGNAL) != (ssize_t)len)
		err(1, "send");
	if (darter_recv(fd, got, sizeof(answer) - 1, MSG_WAITALL) != (ssize_t)sizeof(answer) - 1)
		err(1, "receive");
	got[sizeof(answer) - 1] = '\0';
	if (strcmp(got, answer) != 0)
		errx(1, "not the expected answer: %s", got);
}

static double
now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void
run_requests(unsigned long count)
{
	char got[sizeof(answer)];
	double start = now_s();
	int fd = connect_to_server();

	for (unsigned long i = 0; i < count; i++)
		ask(fd, keep_request, got);
	darter_close(fd);
	printf("requests: %lu over one connection, %.0f a second\n", count,
	    (double)count / (now_s() - start));
}

static void
run_connects(unsigned long count)
{
	char got[sizeof(answer)];
	double start = now_s();

	for (unsigned long i = 0; i < count; i++) {
		int fd = connect_to_server();

		ask(fd, close_request, got);
		darter_close(fd);
	}
	printf("connects: %lu with a request each, %.0f a second\n", count,
	    (double)count / (now_s() - start));
}

static int
listen_on_loopback(void)
{
	socklen_t len = sizeof(address);
	int fd = darter_socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || darter_bind(fd, (struct sockaddr *)&address, len) != 0 ||
	    darter_listen(fd, 128) != 0 ||
	    darter_getsockname(fd, (struct sockaddr *)&address, &len) != 0)
		err(1, "listen");
	return fd;
}

static struct darter_stack *
open_stack(int argc, char **argv)
{
	const char *overrides[OVERRIDES_MAX + 1] = { NULL };
	struct darter_options opts = { .size = sizeof(opts), .overrides = overrides };
	char why[DARTER_ERR_MAX];
	struct darter_stack *stack;
	unsigned n = 0;
	int c;

	while ((c = getopt(argc, argv, "o:")) != -1) {
		if (c != 'o' || n == OVERRIDES_MAX)
			errx(2, "usage: %s [-o key=value]... [requests [connections]]", argv[0]);
		overrides[n++] = optarg;
	}
	stack = darter_open(&opts, why, sizeof(why));
	if (stack == NULL)
		errx(1, "%s", why);
	return stack;
}

int
main(int argc, char **argv)
{
	struct darter_stack *stack = open_stack(argc, argv);
	unsigned long requests = argc > optind ? strtoul(argv[optind], NULL, 10) : 20000;
	unsigned long connects = argc > optind + 1 ? strtoul(argv[optind + 1], NULL, 10) : 5000;
	int listener = listen_on_loopback();
	char got[sizeof(answer)];
	pthread_t server;
	int fd;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (pthread_create(&server, NULL, server_main, &listener) != 0)
		errx(1, "no thread");
	fd = connect_to_server();
	ask(fd, close_request, got);
	darter_close(fd);
	printf("get: %.15s, \"%.20s\"\n", got, strstr(got, "\r\n\r\n") + 4);
	run_requests(requests);
	run_connects(connects);
	darter_close(listener);		/* ends the server's accept */
	pthread_join(server, NULL);
	printf("server: %lu connections accepted, %lu requests answered\n", n_accepted, n_served);
	darter_stack_close(stack);
	return n_accepted == connects + 2 && n_served == requests + connects + 1 ? 0 : 1;
}
