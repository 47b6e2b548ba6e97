/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that end before anybody accepts them, and a close that waits, on darter's sockets and
 * on the kernel's (case S12 a, f). The other letters of the case are scripts.
 */
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "unit/both_nets.h"

/* ---- a: reset between handshake and accept ---- */

static void
reset_before_accept(struct net *n)
{
	int l = listener(n, 8), c = n->socket(AF_INET, SOCK_STREAM, 0), d;
	struct sockaddr_in peer = { .sin_family = 0 }, own;
	socklen_t len = sizeof(peer), own_len = sizeof(own);
	char buf[8];

	assert_int_equal(connect_to(n, c, port_of(n, l)), 0);
	assert_int_equal(n->getsockname(c, (struct sockaddr *)&own, &own_len), 0);
	await(n, l, POLLIN);
	reset_close(n, c);
	usleep(NEVER_MS * 1000);
	d = say_ok(n, "accept", n->accept4(l, (struct sockaddr *)&peer, &len, 0));
	say(n, "the client's address: %d, length %u\n",
	    peer.sin_addr.s_addr == own.sin_addr.s_addr && peer.sin_port == own.sin_port, len);
	/* whoever is late: the reset is there before it is used */
	await(n, d, 0);
	say_result(n, "recv", n->recv(d, buf, sizeof(buf), 0));
	say_result(n, "recv", n->recv(d, buf, sizeof(buf), 0));
	say_result(n, "send", n->send(d, buf, sizeof(buf), MSG_NOSIGNAL));
	n->close(d);
	n->close(l);
}

/* ---- f: linger 2 s against a window that stays shut ---- */

static long
ms_since(const struct timespec *t0)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (t.tv_sec - t0->tv_sec) * 1000 + (t.tv_nsec - t0->tv_nsec) / 1000000;
}

struct lingering {
	struct net *net;
	long ms;
	int rc;
	int queued;
};

/* cmocka's assertions are for the main thread: this one only measures. */
static void *
close_lingering(void *arg)
{
	struct lingering *g = arg;
	struct net *n = g->net;
	struct linger l = { .l_onoff = 1, .l_linger = 2 };
	static const char bytes[65536];
	struct timespec t0;
	int fd[2], i;

	connected_pair(n, fd);
	n->fcntl(fd[0], F_SETFL, O_NONBLOCK);
	/* nobody reads: the peer's buffer, then ours, are full; tried again a little later */
	for (i = 0; i < 2; i++) {
		while (n->send(fd[0], bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
			;
		usleep(NEVER_MS * 1000);
	}
	n->ioctl(fd[0], TIOCOUTQ, &g->queued);
	n->fcntl(fd[0], F_SETFL, 0);
	n->setsockopt(fd[0], SOL_SOCKET, SO_LINGER, &l, sizeof(l));
	clock_gettime(CLOCK_MONOTONIC, &t0);
	g->rc = n->close(fd[0]);
	g->ms = ms_since(&t0);
	n->close(fd[1]);
	return NULL;
}

/* Case S12 f: close returns after about two seconds, without an error, as on the kernel */
static void
close_lingers_for_two_seconds_as_the_kernels(void **state)
{
	struct lingering g[2] = { { .net = &kernel_net }, { .net = &darter_net } };
	pthread_t t[2];
	unsigned i;

	(void)state;
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, close_lingering, &g[i]), 0);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	for (i = 0; i < 2; i++) {
		assert_true(g[i].queued >= 5000);
		assert_int_equal(g[i].rc, 0);
		/* never early; a busy machine may be late */
		assert_in_range(g[i].ms, 1990, 6000);
	}
}

/* Case S12 a */
static void
connection_reset_before_accept_is_returned_as_the_kernels(void **state)
{
	(void)state;
	compare(reset_before_accept);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connection_reset_before_accept_is_returned_as_the_kernels),
		cmocka_unit_test(close_lingers_for_two_seconds_as_the_kernels),
	};

	return cmocka_run_group_tests(tests, open_stack, close_stack);
}
