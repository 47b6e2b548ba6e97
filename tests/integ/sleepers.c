/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An application that never asked for a signal: no handler, no mask. Its threads sleep in system
 * calls of the kernel's and in calls of darter's, and count how often one was interrupted. A TCP
 * connection to the port is answered with a line "CALL COUNT" each; its end ends the program.
 */
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include <darter/event.h>
#include <darter/socket.h>

#include "prog.h"

#define NAP_MS 20

static int silent[2];	/* a pipe that nobody writes to */

static int
in_nanosleep(void)
{
	struct timespec ts = { .tv_nsec = NAP_MS * 1000000 };

	return nanosleep(&ts, NULL);
}

static int
in_poll(void)
{
	struct pollfd p = { .fd = silent[0], .events = POLLIN };

	return poll(&p, 1, NAP_MS);
}

static int
in_select(void)
{
	struct timeval tv = { .tv_usec = NAP_MS * 1000 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(silent[0], &set);
	return select(silent[0] + 1, &set, NULL, NULL, &tv);
}

static int
in_read(void)
{
	char c;

	return (int)read(silent[0], &c, 1);
}

static int
in_darter_recv(void)
{
	static _Atomic int fd = -1;
	struct sockaddr_in sin = { .sin_family = AF_INET };
	char c;

	if (fd < 0) {
		fd = darter_socket(AF_INET, SOCK_DGRAM, 0);
		darter_bind(fd, (struct sockaddr *)&sin, sizeof(sin));
	}
	return (int)darter_recv(fd, &c, 1, 0);
}

static int
in_darter_poll(void)
{
	struct pollfd p = { .fd = silent[0], .events = POLLIN };

	return darter_poll(&p, 1, NAP_MS);
}

static int
in_darter_epoll(void)
{
	static _Atomic int fd = -1;
	struct epoll_event ev;

	if (fd < 0)
		fd = darter_epoll_create1(0);
	return darter_epoll_wait(fd, &ev, 1, -1);
}

static struct sleeper {
	const char *name;
	int (*fn)(void);
	_Atomic unsigned interrupted;
	pthread_t thread;
} sleepers[] = {
	{ .name = "nanosleep", .fn = in_nanosleep },
	{ .name = "poll", .fn = in_poll },
	{ .name = "select", .fn = in_select },
	{ .name = "read", .fn = in_read },
	{ .name = "darter_recv", .fn = in_darter_recv },
	{ .name = "darter_poll", .fn = in_darter_poll },
	{ .name = "darter_epoll_wait", .fn = in_darter_epoll },
};

#define N_SLEEPERS (sizeof(sleepers) / sizeof(sleepers[0]))

static void *
sleep_for_ever(void *arg)
{
	struct sleeper *s = arg;

	for (;;) {
		if (s->fn() >= 0)
			continue;
		/* main() has ended, and the stack with it */
		if (errno == EBADF)
			return NULL;
		if (errno != EINTR)
			err(1, "%s", s->name);
		atomic_fetch_add(&s->interrupted, 1);
	}
}

/* One connection: what was counted, then until its end. Calls of this thread count too. */
static void
serve(int lfd)
{
	unsigned interrupted = 0;
	char line[128], c;
	int fd;

	while ((fd = darter_accept(lfd, NULL, NULL)) < 0) {
		if (errno != EINTR)
			err(1, "accept");
		interrupted++;
	}
	for (size_t i = 0; i <= N_SLEEPERS; i++) {
		int n = i == N_SLEEPERS ?
		    snprintf(line, sizeof(line), "darter_accept %u\n", interrupted) :
		    snprintf(line, sizeof(line), "%s %u\n", sleepers[i].name,
		    atomic_load(&sleepers[i].interrupted));

		if (darter_send(fd, line, (size_t)n, MSG_NOSIGNAL) != n)
			err(1, "send");
	}
	darter_shutdown(fd, SHUT_WR);
	if (darter_recv(fd, &c, 1, 0) != 0)
		err(1, "the driver's end");
	darter_close(fd);
}

int
main(int argc, char **argv)
{
	char why[DARTER_ERR_MAX];
	struct darter_options opts = { .size = sizeof(opts), .overrides = prog.overrides };
	int lfd;

	prog_parse(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (pipe(silent) != 0)
		err(1, "pipe");
	prog.stack = darter_open(&opts, why, sizeof(why));
	if (prog.stack == NULL)
		errx(1, "%s", why);
	lfd = prog_listen(4);
	for (size_t i = 0; i < N_SLEEPERS; i++)
		if (pthread_create(&sleepers[i].thread, NULL, sleep_for_ever, &sleepers[i]) != 0)
			errx(1, "no thread");
	printf("listening\n");
	serve(lfd);
	return 0;
}
