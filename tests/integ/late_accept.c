/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A server that is too slow to accept: it listens with a small backlog, accepts nobody for a while,
 * and then serves one client after the other: reads a fixed number of bytes and answers a line.
 *
 *	integ_late_accept [options] BACKLOG WAIT_MS BYTES
 */
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <darter/socket.h>

#include "prog.h"

static atomic_uint n_served, n_failed;

struct server {
	int listener;
	unsigned wait_ms;
	size_t bytes;
};

static bool
serve(int fd, size_t bytes)
{
	char buf[1024];

	if (bytes > sizeof(buf) ||
	    darter_recv(fd, buf, bytes, MSG_WAITALL) != (ssize_t)bytes)
		return false;
	return darter_send(fd, "served\n", 7, MSG_NOSIGNAL) == 7;
}

static void *
server_main(void *arg)
{
	const struct server *s = arg;
	int fd;

	usleep(s->wait_ms * 1000);
	while ((fd = darter_accept(s->listener, NULL, NULL)) >= 0) {
		if (serve(fd, s->bytes)) {
			atomic_fetch_add(&n_served, 1);
		} else {
			warn("connection");
			atomic_fetch_add(&n_failed, 1);
		}
		darter_close(fd);
	}
	return NULL;
}

static void
report(FILE *out)
{
	fprintf(out, "report served %u\n", atomic_load(&n_served));
	fprintf(out, "report failed %u\n", atomic_load(&n_failed));
}

int
main(int argc, char **argv)
{
	int first = prog_parse(argc, argv);
	struct server s;
	pthread_t thread;

	if (argc - first != 3)
		errx(1, "usage: integ_late_accept [options] BACKLOG WAIT_MS BYTES");
	prog.report = report;
	prog_open();
	s.listener = prog_listen(atoi(argv[first]));
	s.wait_ms = (unsigned)atoi(argv[first + 1]);
	s.bytes = (size_t)atoi(argv[first + 2]);
	if (pthread_create(&thread, NULL, server_main, &s) != 0)
		errx(1, "no thread");
	printf("listening on port %u\n", prog.port);
	prog_wait();
	darter_close(s.listener);
	pthread_join(thread, NULL);
	prog_close();
	return 0;
}
