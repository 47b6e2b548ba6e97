/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a stack whose netisr belongs to an attached thread (socket/close.c): while that thread
 * waits in the library, or runs its netisr, its connections are looked at and reset like all
 * others; if it is at work elsewhere nobody can, and the end does not wait for it. Two stacks and a
 * memory cable; the peer sees what arrives.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "threads/world.h"

#include "runtime/stack.h"
#include "socket/sock.h"

enum pastime {
	NAPS,		/* in a call that waits */
	RUNS,		/* its netisr, without a pause */
	IS_AWAY		/* attached, but elsewhere */
};

struct scene {
	struct world world;
	enum pastime pastime;
	struct sockaddr_in server;
	int peer;		/* the connection's other end */
	int idle_pipe[2];	/* never readable until the end */
	_Atomic bool is_connected, is_over;
	pthread_t thread;
};

static int
ends(void *arg)
{
	const struct scene *sc = arg;

	return atomic_load(&sc->is_over);
}

static void
pass_the_time(struct scene *sc)
{
	struct pollfd p = { .fd = sc->idle_pipe[0], .events = POLLIN };

	switch (sc->pastime) {
	case NAPS:
		darter_poll(&p, 1, -1);
		break;
	case RUNS:
		darter_run(ends, sc);
		break;
	case IS_AWAY:
		while (!ends(sc))
			usleep(100);
		break;
	}
}

static void *
be_attached(void *arg)
{
	struct scene *sc = arg;
	char c;
	int fd;

	darter_stack_use(sc->world.stack[0]);
	if (!world_attach(&sc->world, 1))
		wrong("not attached\n");
	fd = darter_socket(AF_INET, SOCK_STREAM, 0);
	if (darter_connect(fd, (struct sockaddr *)&sc->server, sizeof(sc->server)) < 0)
		wrong("connect: %s\n", strerrorname_np(errno));
	/* nothing of the handshake is left for a thread that goes away */
	if (darter_recv(fd, &c, 1, 0) != 1)
		wrong("recv: %s\n", strerrorname_np(errno));
	atomic_store(&sc->is_connected, true);
	pass_the_time(sc);
	darter_close(fd);
	return NULL;
}

static void
begin(struct scene *sc, enum pastime pastime)
{
	struct net *n = &darter_net;
	socklen_t len = sizeof(sc->server);
	char err[DARTER_ERR_MAX];
	int l;

	memset(sc, 0, sizeof(*sc));
	sc->world = (struct world)WORLD_CABLE;
	sc->pastime = pastime;
	world_open(&sc->world);
	assert_int_equal(pipe(sc->idle_pipe), 0);
	if (pastime == RUNS)
		assert_int_equal(darter_sysctl_set(sc->world.stack[0], "net.isr.poll_idle_us", "-1",
		    err, sizeof(err)), 0);
	darter_stack_use(sc->world.stack[1]);
	l = n->socket(AF_INET, SOCK_STREAM, 0);
	sc->server = loopback(0);
	sc->server.sin_addr.s_addr = htonl(0x0a090002);
	assert_int_equal(n->bind(l, (struct sockaddr *)&sc->server, sizeof(sc->server)), 0);
	assert_int_equal(n->listen(l, 1), 0);
	assert_int_equal(n->getsockname(l, (struct sockaddr *)&sc->server, &len), 0);
	assert_int_equal(pthread_create(&sc->thread, NULL, be_attached, sc), 0);
	sc->peer = n->accept4(l, NULL, NULL, 0);
	assert_true(sc->peer >= 0);
	assert_int_equal(n->send(sc->peer, "x", 1, 0), 1);
	n->close(l);
	while (!atomic_load(&sc->is_connected))
		usleep(100);
	usleep(2000);	/* whoever naps does now; the case holds for who does not yet, too */
}

static void
end(struct scene *sc)
{
	atomic_store(&sc->is_over, true);
	assert_int_equal(write(sc->idle_pipe[1], "x", 1), 1);
	pthread_join(sc->thread, NULL);
	close(sc->idle_pipe[0]);
	close(sc->idle_pipe[1]);
	darter_close(sc->peer);
	darter_stack_use(NULL);
	world_close(&sc->world);
	assert_int_equal(atomic_load(&wrongs), 0);
}

static void
abort_while(enum pastime pastime)
{
	uint64_t until = now_ms() + 4 * SOON_MS;
	struct pollfd p = { .events = POLLIN };
	struct scene sc;
	char c;

	begin(&sc, pastime);
	p.fd = sc.peer;
	/* again only where the thread gets no CPU for longer than it is waited for */
	do
		sock_abort_all(sc.world.stack[0]);
	while (darter_poll(&p, 1, SOON_MS) == 0 && now_ms() < until);
	assert_int_equal(darter_recv(sc.peer, &c, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	end(&sc);
}

static void
attached_thread_that_waits_or_runs_resets_at_the_end(void **state)
{
	(void)state;
	abort_while(NAPS);
	abort_while(RUNS);
}

/* Its peer has all there was and keeps its own side open: that is no reason to stay. */
static void
drain_while(enum pastime pastime)
{
	struct scene sc;
	char c;

	begin(&sc, pastime);
	fd_close_stack(sc.world.stack[0]);
	assert_true(sock_drain(sc.world.stack[0], SOON_MS));
	assert_int_equal(darter_recv(sc.peer, &c, 1, 0), 0);
	end(&sc);
}

static void
drain_of_an_attached_netisr_ends_when_all_is_delivered(void **state)
{
	(void)state;
	drain_while(NAPS);
	drain_while(RUNS);
}

static void
attached_thread_that_is_away_does_not_hold_up_the_end(void **state)
{
	struct pollfd p = { .events = POLLIN };
	struct scene sc;
	char c;

	(void)state;
	begin(&sc, IS_AWAY);
	assert_false(sock_drain(sc.world.stack[0], 50));
	sock_abort_all(sc.world.stack[0]);
	p.fd = sc.peer;
	assert_int_equal(darter_poll(&p, 1, NEVER_MS), 0);
	/* what came too late is not done either: the thread closes its connection itself */
	atomic_store(&sc.is_over, true);
	await(&darter_net, sc.peer, POLLIN);
	assert_int_equal(darter_recv(sc.peer, &c, 1, 0), 0);
	end(&sc);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attached_thread_that_waits_or_runs_resets_at_the_end),
		cmocka_unit_test(drain_of_an_attached_netisr_ends_when_all_is_delivered),
		cmocka_unit_test(attached_thread_that_is_away_does_not_hold_up_the_end),
	};

	return cmocka_run_group_tests_name("proof attached", tests, NULL, NULL);
}
